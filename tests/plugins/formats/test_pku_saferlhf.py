import pytest

from format_rows import read
from steelyard.annotation.derived_judgments import judgments_from_ratings
from steelyard.core.errors import RecordError

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


@pytest.mark.parametrize("value", [2, -1, True, "0"])
def test_a_number_of_no_response_is_named(value):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at safer_response_id: no response has the number"):
        read("pku_saferlhf", {**ROW, "safer_response_id": value})
