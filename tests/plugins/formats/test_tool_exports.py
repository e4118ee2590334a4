"""Flat exports of annotation tools: several people stay several judges, and what was not submitted does not count."""

import json

import pytest

from each_value import each
from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.io.cases import read_cases
from steelyard.io.rows import write_rows
from steelyard.stages.convert import convert

FIELDS = {"prompt": "什么是秤？", "response1": "称重的工具。", "response2": "不知道。"}
TWO = {
    "id": "r1", "status": "completed", "_server_id": "8f", **FIELDS,
    "best.responses": [["response2", "response1"], ["response1", "response2"], ["response1", "response2"]],
    "best.responses.users": ["u1", "u2", "u3"], "best.responses.status": ["submitted", "draft", "submitted"],
    "best.suggestion": ["response1", "response2"], "best.suggestion.score": None, "best.suggestion.agent": "gpt",
    "response1-depth.responses": [4], "response1-depth.responses.users": ["u1"],
    "response1-depth.responses.status": ["submitted"],
}  # fmt: skip
RANKS = {"rank": [2, 1], "value": ["response1", "response2"]}
ONE_LISTS = {
    **FIELDS, "external_id": "r1", "metadata": "{}",
    "best": {"user_id": ["u1", "u2"], "value": [RANKS, RANKS], "status": ["submitted", "discarded"]},
    "best-suggestion": {"rank": [1, 2], "value": ["response1", "response2"]},
    "best-suggestion-metadata": {"type": None, "score": None, "agent": "gpt"},
}  # fmt: skip
ONE_ITEMS = ONE_LISTS | {
    "best": [
        {
            "user_id": user,
            "value": [{"rank": 3 - rank, "value": f"response{rank}"} for rank in (1, 2)],
            "status": status,
        }
        for user, status in (("u1", "submitted"), ("u2", "discarded"))
    ]
}


def verdicts(one):
    return [(item.judge, item.kind, item.left if item.verdict == "left" else item.verdict) for item in one.judgments]


def test_argilla_2_in_columns():
    (one,), warnings = read("argilla", TWO)
    assert sorted(verdicts(one)) == [
        ("gpt", "llm", "response1"),
        ("u1", "human", "response2"),
        ("u3", "human", "response1"),
    ]
    assert [(item.response, item.rater, item.dimension, item.value) for item in one.ratings] == [
        ("response1", "u1", "depth", 4)
    ]
    assert (one.prompt.id, one.prompt.messages[0].content) == ("r1", "什么是秤？")
    assert one.prompt.meta == {"status": "completed", "_server_id": "8f"}
    assert warnings == {"responses that were not submitted": 1}


@pytest.mark.parametrize("row", [ONE_LISTS, ONE_ITEMS])
def test_argilla_1_in_columns(row):
    (one,), warnings = read("argilla", row)
    assert sorted(verdicts(one)) == [("gpt", "llm", "response1"), ("u1", "human", "response2")]
    assert (one.prompt.id, warnings) == ("r1", {"responses that were not submitted": 1})


@pytest.mark.parametrize("row", [TWO, ONE_LISTS, ONE_ITEMS])
def test_columns_are_written_as_the_record_of_the_same_case(row):
    (one,), _ = read("argilla", row)
    (record,), _ = write("argilla", one)
    (again,), _ = read("argilla", record)
    assert (again.prompt.messages, again.responses, again.judgments, again.ratings) == (
        one.prompt.messages,
        one.responses,
        one.judgments,
        one.ratings,
    )


def test_argilla_without_answers_yet_and_with_labels():
    row = {key: value for key, value in TWO.items() if "." not in key} | {
        "kind.responses": [["good", "bad"]], "kind.responses.users": ["u1"], "kind.responses.status": ["submitted"],
        "best.responses": None, "best.responses.users": None, "best.responses.status": None,
    }  # fmt: skip
    (one,), warnings = read("argilla", row)
    assert (one.judgments, one.ratings) == ((), ())
    assert warnings == {"answers that are neither rankings nor ratings of a response": 1}


def min_row(task, person, **controls):
    data = {"prompt": "q", "answer1": "a", "answer2": "b"}
    return {"id": task, **data, **controls, "annotator": person, "annotation_id": person, "lead_time": 2.5}


def test_json_min_joins_the_annotations_of_a_task():
    rows = [
        min_row(1, 4, best={"selected": "left"}),
        min_row(1, 5, best=[{"selected": "right"}]),
        min_row(2, 4, order=[{"ranker": {"rank": ["answer2", "answer1"]}}]),
    ]
    (one, two), warnings = read("label_studio", *rows)
    assert [(item.judge, item.verdict, item.task) for item in one.judgments] == [
        ("4", "left", "best"),
        ("5", "right", "best"),
    ]
    assert [(item.judge, item.left, item.verdict) for item in two.judgments] == [("4", "answer2", "left")]
    assert (one.prompt.id, two.prompt.id, warnings) == ("1", "2", {})
    again, _ = read("label_studio", *write("label_studio", one, two)[0])
    assert [item.judgments for item in again] == [one.judgments, two.judgments]


def potato(label, item, user="u1"):
    return {"instance_id": "i1", "user_id": user, "labels": {"s": label}, "item": {"id": "i1", "prompt": "q"} | item}


@each("item", [{"responses": ["甲", "乙"]}, {"left": "甲", "right": "乙"}, {"answer1": "甲", "answer2": "乙"}])
@each(
    ("label", "better"),
    [
        ({"selection": "A"}, "甲"),
        ({"selection": "B"}, "乙"),
        ({"selection": "tie"}, None),
        ({"scale_value": "-2"}, "甲"),
        ({"scale_value": 3}, "乙"),
        ({"scale_value": "0"}, None),
    ],
)
def test_potato_compares_two(item, label, better):
    row = potato(label, item)
    (one,), _ = read("potato", row)
    (said,) = one.judgments
    texts = {response.id: response.text for response in one.responses}
    assert (said.judge, said.task) == ("u1", "s")
    assert (texts[said.left] if said.verdict == "left" else None) == better
    assert (said.verdict == "tie") == (better is None)
    assert write("potato", one)[0] == [row]


def test_potato_ranks_a_list_of_texts():
    (one,), _ = read("potato", potato({"rank_order": "B,A=C"}, {"responses": ["甲", "乙", "丙"]}))
    assert [(item.left, item.verdict, item.right) for item in one.judgments] == [
        ("B", "left", "A"),
        ("B", "left", "C"),
        ("A", "tie", "C"),
    ]


def test_potato_without_items_names_the_remedy(tmp_path):
    path = tmp_path / "export.jsonl"
    path.write_text('{"instance_id": "i1", "user_id": "u1", "labels": {"s": {"rank_order": "B,A"}}, "spans": {}}\n')
    with pytest.raises(RecordError, match=r"export\.jsonl:1: the row lacks 'item'(.|\n)*do: add the item to each row"):
        convert(path, tmp_path / "cases.jsonl")


def test_text_answers_after_sharegpt_turns_come_back_as_texts():
    row = {"conversations": [{"from": "human", "value": "你好"}], "chosen": "好", "rejected": "坏"}
    (one,), warnings = read("llamafactory_sharegpt", row)
    assert [response.text for response in one.responses] == ["好", "坏"]
    assert one.ranking == ((one.responses[0].id,), (one.responses[1].id,))
    assert (write("llamafactory_sharegpt", one)[0], warnings) == ([row], {})


def test_what_people_said_of_chosen_and_rejected_counts(tmp_path):
    columns = {"best.responses": [["rejected", "chosen"]], "best.responses.users": ["u1"]}
    path = tmp_path / "hub.jsonl"
    write_rows(
        path, [{"prompt": "q", "chosen": "a", "rejected": "b", **columns, "best.responses.status": ["submitted"]}]
    )
    assert convert(path, tmp_path / "cases.jsonl").from_kind == "argilla"
    (one,) = read_cases(tmp_path / "cases.jsonl")
    assert [(item.judge, item.left, item.right) for item in one.judgments] == [("u1", "rejected", "chosen")]


CHOICE = {"instruction": "什么是秤？", "response-1": "称重的工具。", "response-2": "乐器。"}


@pytest.mark.parametrize(
    ("name", "value"), [("choose-best", 2), ("choose-best", "2"), ("preference", 2), ("更好的回答", 2)]
)
def test_a_number_in_a_question_for_the_best_response_is_its_place(name, value):
    responses = [{"user_id": "u1", "value": value, "status": "submitted"}]
    (one,), warnings = read("argilla", CHOICE | {name: responses, f"{name}-suggestion": None})
    assert (verdicts(one), warnings) == ([("u1", "human", "response-2")], {})
    (vote,) = one.judgments
    assert (vote.right, vote.task) == ("response-1", name)


def test_the_best_of_several_is_better_than_each_other_one_and_these_are_not_ordered():
    fields = {"prompt": "q", "response-3": "c", "response-1": "a", "response-2": "b"}
    answers = {"user_id": ["u1", "u2", "u3"], "value": [1, 3, 2], "status": ["submitted", "submitted", "discarded"]}
    (one,), warnings = read("argilla", fields | {"choose-best": answers})
    assert {(item.left, item.right, item.judge, item.verdict) for item in one.judgments} == {
        ("response-1", "response-2", "u1", "left"), ("response-1", "response-3", "u1", "left"),
        ("response-3", "response-1", "u2", "left"), ("response-3", "response-2", "u2", "left"),
    }  # fmt: skip
    assert warnings == {"responses that were not submitted": 1}
    written, dropped = write("argilla", one)
    assert (read("argilla", *written)[0][0].judgments, dropped) == (one.judgments, {})


@pytest.mark.parametrize(
    ("name", "value"), [("quality", 2), ("choose-best", 3), ("choose-best", 0), ("choose-best", True)]
)
def test_a_number_of_no_response_is_no_choice(name, value):
    (one,), warnings = read("argilla", CHOICE | {name: [{"user_id": "u1", "value": value, "status": "submitted"}]})
    assert (one.judgments, one.ratings) == ((), ())
    assert warnings == {"answers that are neither rankings nor ratings of a response": 1}


def test_argilla_1_in_its_own_json_lists_the_values_of_each_person():
    ranking = [{"value": "response-1", "rank": 2}, {"value": "response-2", "rank": 1}]
    record = {
        "fields": CHOICE,
        "responses": [
            {"user_id": "u1", "status": "submitted", "values": {"best": {"value": ranking}}},
            {"user_id": "u2", "status": "draft", "values": {"best": {"value": ranking}}},
        ],
        "suggestions": [{"question_name": "best", "value": ranking, "agent": "gpt"}],
        "metadata": {},
        "external_id": "r7",
    }
    (one,), warnings = read("argilla", record)
    assert sorted(verdicts(one)) == [("gpt", "llm", "response-2"), ("u1", "human", "response-2")]
    assert (one.prompt.id, warnings) == ("r7", {"responses that were not submitted": 1})


def test_a_list_of_items_in_a_cell_is_json_text():
    items = [{"id": "a", "body": "x"}, {"id": "b", "body": "y"}]
    row = {"id": 1, "question": "q", "answers": json.dumps(items), "ranking": '{"ranker": {"rank": ["b", "a"]}}',
           "annotator": "u", "annotation_id": 5}  # fmt: skip
    (one,), _ = read("label_studio", row)
    assert [(response.id, response.text) for response in one.responses] == [("a", "x"), ("b", "y")]
    assert [(said.left, said.verdict, said.right, said.judge) for said in one.judgments] == [("b", "left", "a", "u")]
