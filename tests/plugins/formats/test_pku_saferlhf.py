import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.annotation.derived_judgments import judgments_from_ratings
from steelyard.core.errors import RecordError
from steelyard.core.types import Judgment
from strategies import case

ROW = {
    "prompt": "问",
    "response_0": "甲",
    "response_1": "乙",
    "response_0_source": "m",
    "is_response_0_safe": False,
    "is_response_1_safe": True,
    "response_0_severity_level": 2,
    "response_1_severity_level": 0,
    "better_response_id": 0,
    "safer_response_id": 1,
}


def test_better_and_safer_are_two_verdicts_that_may_differ():
    (one,), _ = read("pku_saferlhf", ROW)
    assert [(j.left, j.right, j.verdict, j.kind, j.meta) for j in one.judgments] == [
        ("response_0", "response_1", "left", "human", {"dimension": "helpfulness"}),
        ("response_0", "response_1", "right", "human", {"dimension": "harmlessness"}),
    ]
    assert one.ranking is None


def test_severity_is_a_rating_whose_low_end_is_the_good_one():
    (one,), _ = read("pku_saferlhf", ROW)
    assert [(r.response, r.dimension, r.value, r.range) for r in one.ratings] == [
        ("response_0", "severity_level", 2, (0, 3)),
        ("response_1", "severity_level", 0, (0, 3)),
    ]
    assert [j.verdict for j in judgments_from_ratings(one)] == ["right"]


def test_labels_stay_with_the_answer():
    (one,), _ = read("pku_saferlhf", ROW)
    assert [(r.author, r.meta) for r in one.responses] == [("m", {"is_safe": False}), (None, {"is_safe": True})]


def test_a_single_preference_has_no_dimension():
    row = {key: ROW[key] for key in ("prompt", "response_0", "response_1", "better_response_id")}
    (one,), _ = read("pku_saferlhf", row)
    assert [(j.verdict, j.meta) for j in one.judgments] == [("left", None)]
    assert write("pku_saferlhf", one)[0] == [row]


@pytest.mark.parametrize("value", [2, -1, True, "0"])
def test_a_number_of_no_response_is_named(value):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at safer_response_id: no response has the number"):
        read("pku_saferlhf", {**ROW, "safer_response_id": value})


def test_a_verdict_the_other_way_round_is_the_same_verdict():
    flipped = Judgment(left="b", right="a", verdict="left", judge="unknown", kind="human")
    (row,), _ = write("pku_saferlhf", case(responses="ab", judgments=[flipped]))
    assert row["better_response_id"] == 1
    only_safer = Judgment(
        left="a", right="b", verdict="left", judge="unknown", kind="human", meta={"dimension": "harmlessness"}
    )
    (row,), _ = write("pku_saferlhf", case(responses="ab", judgments=[only_safer]))
    assert (row["better_response_id"], row["safer_response_id"]) == (None, 0)


def test_what_a_row_cannot_say_is_counted():
    rows, dropped = write("pku_saferlhf", case(responses="ab", judgments=["a>b", "b>a", "a=b"]))
    assert len(rows) == 1
    assert (dropped["judgments beyond one per verdict, and ties"], dropped["judges"]) == (2, 3)
    assert write("pku_saferlhf", case(responses="ab", judgments=["a=b"])) == ([], {"cases of another shape": 1})
    assert write("pku_saferlhf", case(responses="abc", judgments=["a>b"])) == ([], {"cases of another shape": 1})


def test_a_verdict_for_the_first_answer_replaces_a_null():
    (one,), _ = read("pku_saferlhf", ROW | {"better_response_id": None})
    first = Judgment(left="response_0", right="response_1", verdict="left", judge="j", kind="human")
    better = replace(first, meta={"dimension": "helpfulness"})
    (row,), _ = write("pku_saferlhf", replace(one, judgments=(better, *one.judgments)))
    assert (row["better_response_id"], row["safer_response_id"]) == (0, 1)
