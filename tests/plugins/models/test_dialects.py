import pytest

from each_value import each
from steelyard.plugins.models._dialects import DIALECTS, Malformed, ServedModel, ServerItem, in_order, numbers

ITEMS = [ServerItem("first", "q", "1"), ServerItem("second", "q", "2")]
ASKED = ServedModel(model="rm", task=None, adds_marks=False)


def test_questions_are_what_the_servers_document():
    questions = {name: dialect.question(ITEMS, ASKED) for name, dialect in DIALECTS.items()}
    raw = {"use_activation": False, "activation": False, "add_special_tokens": False}
    assert questions == {
        "vllm_classify": {"model": "rm", "input": ["first", "second"]} | raw,
        "vllm_pooling": {"model": "rm", "input": ["first", "second"]} | raw,
        "sglang": {"text": ["first", "second"]},
        "sglang_embeddings": {"model": "rm", "input": ["first", "second"]},
        "tei_predict": {"inputs": [["first"], ["second"]], "raw_scores": True, "truncate": False},
        "tei_rerank": {"query": "q", "texts": ["1", "2"], "raw_scores": True, "truncate": False, "return_text": False},
        "openrlhf": {"query": ["first", "second"], "prompts": ["q", "q"], "labels": ["", ""]},
        "llamafactory": {"model": "rm", "messages": ["first", "second"]},
        "slime": {"prompt": "q", "response": "1", "label": None},  # one answer a question
    }
    ids = [ServerItem([1, 2], "q", "1"), ServerItem([3], "q", "2")]
    assert DIALECTS["sglang"].question(ids, ASKED) == {"input_ids": [[1, 2], [3]]}
    talk = [ServerItem([{"role": "user", "content": "q"}], "q", "1")]
    assert DIALECTS["vllm_pooling"].question(talk, ServedModel(None, "classify", adds_marks=True)) == {
        "messages": [{"role": "user", "content": "q"}], "task": "classify",
        "use_activation": False, "activation": False, "add_special_tokens": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("vllm_classify", {"data": [{"index": 1, "probs": [2.0]}, {"index": 0, "probs": [1.0]}]}),
        ("vllm_pooling", {"data": [{"index": 1, "data": [[2.0]]}, {"index": 0, "data": [1.0]}]}),
        ("sglang_embeddings", {"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]}),
        ("sglang", [{"embedding": [1.0]}, {"embedding": [2.0]}]),
        ("tei_predict", [[{"label": "LABEL_0", "score": 1.0}], [{"label": "LABEL_0", "score": 2.0}]]),
        ("tei_rerank", [{"index": 1, "score": 2.0}, {"index": 0, "score": 1.0}]),
        ("openrlhf", {"rewards": [1.0, 2.0], "scores": [0.1, 0.2], "extra_logs": {}}),
        ("openrlhf", {"rewards": [[1.0], [2.0]]}),
        ("llamafactory", {"id": "x", "object": "score.evaluation", "model": "rm", "scores": [[1.0], [2.0]]}),
        ("llamafactory", {"scores": [1.0, 2.0]}),
    ],
)
def test_replies_are_read_in_the_order_asked(dialect, reply):
    assert DIALECTS[dialect].read(reply, 2) == [[1.0], [2.0]]


def test_one_number_answers_one_question_of_slime():
    assert DIALECTS["slime"].read(0.5, 1) == [[0.5]]
    for other in (True, "0.5", None, [0.5, 1.0], {"score": 0.5}, float("nan")):
        with pytest.raises(Malformed):
            DIALECTS["slime"].read(other, 1)


def test_labels_of_one_text_come_in_the_order_of_their_names():
    row = [{"label": "LABEL_1", "score": 0.9}, {"label": "LABEL_0", "score": 0.1}]
    assert DIALECTS["tei_predict"].read([row, row], 2) == [[0.1, 0.9]] * 2
    assert DIALECTS["tei_predict"].read(row, 1) == [[0.1, 0.9]]  # one text may come without the outer list


@each("dialect", DIALECTS)
@each(
    "reply",
    [None, 1, "x", [], {}, {"data": []}, {"data": [1, 2]}, {"rewards": [1.0]}, {"rewards": "12"}, [[], []], [{}, {}],
     {"data": [{"index": 0}, {"index": 0}]}, {"data": [{"index": [0]}, {"index": 1}]}, [[{"score": 1}], [{}]], [None]],
)  # fmt: skip
def test_any_other_reply_is_malformed(dialect, reply):
    with pytest.raises(Malformed):
        DIALECTS[dialect].read(reply, 2)


def test_a_missing_or_doubled_place_is_malformed():
    assert in_order([{"index": 1}, {"index": 0}], 2) == [{"index": 0}, {"index": 1}]
    for rows in (
        [{"index": 0}],
        [{"index": 0}, {"index": 2}],
        [{"index": 0}, {"index": 0}],
        [{"index": True}, {"index": 0}],
    ):
        with pytest.raises(Malformed):
            in_order(rows, 2)


def test_numbers_are_finite_and_not_told_by_their_spelling():
    assert numbers([1, 2.5]) == [1.0, 2.5]
    for values in ([], None, ["1"], [True], [float("nan")], [float("inf")], [[1.0, 2.0]], [[]]):
        with pytest.raises(Malformed):
            numbers(values)
