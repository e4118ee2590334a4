import pytest

from steelyard.core.checks import checked_scores
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Scores
from strategies import case


def check(scores, unscored=None):
    return checked_scores(case(responses="ab"), Scores(prompt="p", scores=scores, unscored=unscored or {}), by="it")


def test_a_good_line_comes_back_in_the_order_of_the_responses():
    assert list(check({"b": 1.0, "a": 2.0}).scores) == ["a", "b"]


def test_a_null_keeps_its_reason_or_gets_one():
    assert check({"a": None, "b": None}, {"a": "cut"}).unscored == {"a": "cut", "b": "no reason given"}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_refused(bad):
    with pytest.raises(EvidenceError, match="finite"):
        check({"a": bad, "b": 1.0})


@pytest.mark.parametrize(
    ("scores", "unscored", "said"),
    [
        ({"a": 1.0}, None, "no score for response 'b'"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, None, "'c', which"),
        ({"a": 1.0, "b": 1.0}, {"c": "cut"}, "'c', which"),
        ({"a": 1.0, "b": 1.0}, {"a": "cut"}, "a score and a reason"),
    ],
)
def test_what_does_not_fit_the_case_is_refused(scores, unscored, said):
    with pytest.raises(EvidenceError, match=said):
        check(scores, unscored)
