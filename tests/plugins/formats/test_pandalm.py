import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case, judgment

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
    rows, dropped = write("pandalm", one)
    assert rows == [row]
    assert dropped == {"response ids": 2}


def test_a_word_that_became_a_truth_value_is_a_word():
    (one,), warnings = read("pandalm", {**ROW, "response1": True})
    assert one.responses[0].text == "True"
    assert warnings == {"answers that are true or false, not texts": 1}
    assert write("pandalm", one)[0] == [{**ROW, "response1": True}]


def test_other_people_take_the_free_columns():
    said = [judgment("b>a", judge="zoe"), judgment("a>b", judge="annotator1"), judgment("a=b", judge="gpt", kind="llm")]
    rows, dropped = write("pandalm", case(responses="ab", judgments=said))
    assert (rows[0]["annotator1"], rows[0]["annotator2"]) == (1, 2)
    assert (dropped["judges"], dropped["judgments of other judges"]) == (2, 1)


def test_three_responses_are_another_shape():
    rows, dropped = write("pandalm", case(responses="abc", judgments=["a>b"]))
    assert (rows, dropped["cases of another shape"]) == ([], 1)


def test_a_model_s_name_with_an_underline_cannot_be_told_from_two():
    (one,), _ = read("pandalm", {**ROW, "cmp_key": "a_b_c"})
    assert [response.author for response in one.responses] == [None, None]
    named = replace(one, responses=(replace(one.responses[0], author="a_b"), one.responses[1]))
    rows, dropped = write("pandalm", named)
    assert (rows[0]["cmp_key"], dropped["authors that cmp_key cannot hold"]) == ("a_b_unknown", 1)


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
