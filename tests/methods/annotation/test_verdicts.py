import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.asking import OUTCOMES, VERDICTS, Answer, PairVerdict, Showing
from steelyard.methods.annotation.verdicts import (
    combine_orders,
    majority,
    members_verdict,
    panel_answer,
    pull_of_first,
    shares_won,
)

outcomes = st.sampled_from(OUTCOMES)


def pair(left, right, outcome, *showings):
    return PairVerdict(left=left, right=right, outcome=outcome, showings=showings)


def both(first, second):
    showings = (Showing(shown=("x", "y"), outcome=first), Showing(shown=("y", "x"), outcome=second, detail="why"))
    return combine_orders("x", "y", showings)


@pytest.mark.parametrize(
    ("first", "second", "outcome", "is_inconsistent"),
    [
        ("left", "left", "left", False),
        ("right", "right", "right", False),
        ("tie", "tie", "tie", False),
        ("left", "right", "tie", True),
        ("left", "tie", "tie", True),
        ("left", "unreadable", "unreadable", False),
        ("cut off", "right", "cut off", False),
        ("unreadable", "failed", "failed", False),
        ("refused", "cut off", "refused", False),
    ],
)
def test_both_orders(first, second, outcome, is_inconsistent):
    found = both(first, second)
    assert (found.outcome, found.is_inconsistent) == (outcome, is_inconsistent)
    assert both(second, first).outcome == outcome
    assert len(found.showings) == 2


@given(outcomes, outcomes)
def test_a_verdict_needs_both_orders(first, second):
    found = both(first, second)
    if found.outcome in ("left", "right"):
        assert first == second == found.outcome
    assert (found.verdict == "none") == (first not in VERDICTS or second not in VERDICTS)


def test_one_order_is_that_order():
    assert combine_orders("x", "y", (Showing(shown=("y", "x"), outcome="right"),)).outcome == "right"


@pytest.mark.parametrize(
    ("members", "outcome"),
    [
        (("left", "left", "right"), "left"),
        (("left", "right", "tie"), "tie"),
        (("left", "right", "unreadable"), "tie"),
        (("left", "left", "unreadable"), "left"),
        (("left", "unreadable", "unreadable"), "unreadable"),
        (("left", "unreadable", "refused", "refused"), "refused"),
        (("left", "left", "failed"), "failed"),
        (("tie", "tie", "left"), "tie"),
        (("right",), "right"),
    ],
)
def test_majority(members, outcome):
    assert majority(members) == outcome


@given(st.lists(outcomes, min_size=1, max_size=7))
def test_the_majority_does_not_know_names_or_sides(members):
    assert majority(members) == majority(members[::-1])
    turned = {"left": "right", "right": "left"}
    swapped = [turned.get(one, one) for one in members]
    assert majority(swapped) == turned.get(majority(members), majority(members))


def test_shares_won_by_hand():
    # a beats b, ties with c; b loses to c: a 1.5 of 2, b 0 of 2, c 1.5 of 2
    verdicts = [pair("a", "b", "left"), pair("c", "a", "tie"), pair("b", "c", "right")]
    assert shares_won("abc", verdicts) == ({"a": 0.75, "b": 0.0, "c": 0.75}, {})


def test_a_response_without_a_verdict_has_no_share():
    won = shares_won("abcd", [pair("a", "b", "refused"), pair("b", "c", "right")])
    assert won.shares == {"a": None, "b": None, "c": 1.0, "d": None}
    assert won.reasons == {"a": "refused", "b": "refused", "d": "not compared"}


def test_the_pull_of_the_first_place():
    always_first = [both("left", "right"), both("left", "right")]
    assert pull_of_first(always_first) == (4, 4)
    assert pull_of_first([both("right", "left")]) == (0, 2)
    assert pull_of_first([both("left", "left"), both("tie", "unreadable")]) == (1, 2)


def test_a_panel_says_what_its_members_said():
    found = members_verdict("x", "y", {"one": both("left", "left"), "two": both("right", "right")})
    assert (found.outcome, found.members) == ("tie", {"one": "left", "two": "right"})


def test_the_answer_of_a_panel():
    one = Answer(verdicts=(pair("a", "b", "left"), pair("a", "c", "tie")))
    two = Answer(verdicts=(pair("a", "b", "left"), pair("a", "c", "right")))
    three = Answer(verdicts=(pair("a", "b", "right"), pair("a", "c", "unreadable")))
    found = panel_answer({"1": one, "2": two, "3": three}).verdicts
    assert [verdict.outcome for verdict in found] == ["left", "tie"]
    assert panel_answer({"1": one}) == one
