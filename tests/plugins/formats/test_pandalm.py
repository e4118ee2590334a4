import pytest

from format_rows import read
from steelyard.core.errors import RecordError

ROW = {
    "idx": 4,
    "cmp_key": "m-7b_n-7b",
    "instruction": "q",
    "input": "x",
    "response1": "a",
    "response2": "b",
    "annotator1": 1,
    "annotator2": 0,
    "annotator3": 2,
}


def test_three_people_are_three_judges():
    (one,), _ = read("pandalm", ROW)
    assert [(said.judge, said.kind, said.verdict) for said in one.judgments] == [
        ("annotator1", "human", "left"),
        ("annotator2", "human", "tie"),
        ("annotator3", "human", "right"),
    ]
    assert one.prompt.messages[0].content == "q\nx"
    assert [response.author for response in one.responses] == ["m-7b", "n-7b"]


@pytest.mark.parametrize(
    ("given", "verdict"), [("1", "left"), ("2", "right"), ("Tie", "tie"), ("garbage", "none"), (2, "right"), (0, "tie")]
)
def test_a_model_s_verdict_is_an_llm_s_and_garbage_is_none(given, verdict):
    row = {**ROW, "gpt_result": given, "gpt_reason": "why", "gpt_reference": "ref"}
    (one,), _ = read("pandalm", row)
    said = one.judgments[-1]
    assert (said.judge, said.kind, said.verdict) == ("gpt-3.5-turbo", "llm", verdict)
    assert said.reason == ("garbage" if verdict == "none" else "why")


def test_a_word_that_became_a_truth_value_is_a_word():
    (one,), warnings = read("pandalm", {**ROW, "response1": True})
    assert one.responses[0].text == "True"
    assert warnings == {"answers that are true or false, not texts": 1}


def test_a_model_s_name_with_an_underline_cannot_be_told_from_two():
    (one,), _ = read("pandalm", {**ROW, "cmp_key": "a_b_c"})
    assert [response.author for response in one.responses] == [None, None]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"annotator2": 3}, "annotator2: unknown vote 3"),
        ({"annotator2": "garbage"}, "annotator2: unknown vote 'garbage'"),
        ({"gpt_result": "both"}, "gpt_result: unknown verdict 'both'"),
        ({"gpt_result": "1", "gpt_reason": 3}, "gpt_reason"),
        ({"response2": None}, "response2"),
    ],
)
def test_what_is_wrong_is_named(change, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("pandalm", {**ROW, **change})
