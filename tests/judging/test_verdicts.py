import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_measures import reference_estimate
from steelyard.core.comparison import OUTCOMES, VERDICTS, Answer, PairVerdict, ResponseRating, Showing
from steelyard.judging.verdicts import (
    VerdictCounter,
    combine_orders,
    combine_repeats,
    first_place_preference,
    majority,
    members_verdict,
    panel_answer,
    shares_won,
)
from strategies import prompt

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
        ("left", "unparsed", "unparsed", False),
        ("cut off", "right", "cut off", False),
        ("unparsed", "failed", "failed", False),
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
        (("left", "right", "unparsed"), "tie"),
        (("left", "left", "unparsed"), "left"),
        (("left", "unparsed", "unparsed"), "unparsed"),
        (("left", "unparsed", "refused", "refused"), "refused"),
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
    assert first_place_preference(always_first) == (4, 4)
    assert first_place_preference([both("right", "left")]) == (0, 2)
    assert first_place_preference([both("left", "left"), both("tie", "unparsed")]) == (1, 2)


def test_a_panel_says_what_its_members_said():
    found = members_verdict("x", "y", {"one": both("left", "left"), "two": both("right", "right")})
    assert (found.outcome, found.members) == ("tie", {"one": "left", "two": "right"})


def test_the_answer_of_a_panel():
    one = Answer(verdicts=(pair("a", "b", "left"), pair("a", "c", "tie")))
    two = Answer(verdicts=(pair("a", "b", "left"), pair("a", "c", "right")))
    three = Answer(verdicts=(pair("a", "b", "right"), pair("a", "c", "unparsed")))
    found = panel_answer({"1": one, "2": two, "3": three}).verdicts
    assert [verdict.outcome for verdict in found] == ["left", "tie"]
    assert panel_answer({"1": one}) == one


def test_outcomes_orders_and_places_by_hand():
    counter = VerdictCounter()
    # first place: 2 of 2, 1 of 2, 1 of 1 (the other is a tie), 1 of 1 (the other cannot be read): 5 of 6
    for number, (one, language) in enumerate(
        [
            (both("left", "right"), "zh"),
            (both("left", "left"), "zh"),
            (both("left", "tie"), "he"),
            (both("left", "unparsed"), None),
        ]
    ):
        counter.add(prompt(str(number), f"{number}?", language=language), {"m": Answer(verdicts=(one,))})
    found = msgspec.to_builtins(counter.summaries(seed=0))["m"]
    assert found["outcomes"] == {"left": 1, "tie": 2, "unparsed": 1}
    assert found["by_language"] == {"he": {"tie": 1}, "unknown": {"unparsed": 1}, "zh": {"left": 1, "tie": 1}}
    assert found["first_preferred"]["value"] == pytest.approx(5 / 6)
    assert found["first_preferred"]["n"] == 6
    # two of the three pairs that have a verdict
    assert (found["inconsistent"]["value"], found["inconsistent"]["n"]) == (pytest.approx(2 / 3), 3)
    assert 0 <= found["inconsistent"]["low"] <= 2 / 3 <= found["inconsistent"]["high"] <= 1


def test_a_judge_that_always_says_the_first_is_seen_at_once():
    counter = VerdictCounter()
    for number in range(20):
        counter.add(prompt(str(number), f"{number}?"), {"m": Answer(verdicts=(both("left", "right"),))})
    found = msgspec.to_builtins(counter.summaries(seed=0))["m"]
    assert found["first_preferred"] == reference_estimate(1.0, 20, 40)
    assert found["inconsistent"] == reference_estimate(1.0, 20, 20)


def test_repeats_of_a_prompt_are_one_unit_and_spellings_of_a_language_one_row():
    once, again = VerdictCounter(), VerdictCounter()
    for number in range(30):
        answers = {"m": Answer(verdicts=(both("left", "right" if number % 3 else "left"),))}
        once.add(prompt(str(number), f"问题 {number}", language="zh"), answers)
        again.add(prompt(str(number), f"问题 {number}", language="zh"), answers)
        again.add(prompt(f"again {number}", f"问题{number} \u200b", language="zh-CN"), answers)
    alone, doubled = (msgspec.to_builtins(counter.summaries(seed=0))["m"] for counter in (once, again))
    assert doubled["by_language"] == {"zh": {"left": 20, "tie": 40}}
    assert [doubled["inconsistent"][end] for end in ("low", "high")] == pytest.approx(
        [alone["inconsistent"][end] for end in ("low", "high")]
    )


def test_ratings_are_told_by_value_and_missing_ones_by_reason():
    counter = VerdictCounter()
    ratings = [ResponseRating(response=str(place), value=value) for place, value in enumerate([10.0, 2.0, 10.0])]
    ratings.append(ResponseRating(response="z", value=None, outcome="cut off"))
    counter.add(prompt(), {"m": Answer(ratings=tuple(ratings))})
    found = msgspec.to_builtins(counter.summaries(seed=0))["m"]
    assert (found["ratings"], found["outcomes"]) == ({"2": 1, "10": 2}, {"cut off": 1})
    assert found["first_preferred"]["value"] is None


def test_a_panel_stands_beside_its_members():
    counter = VerdictCounter()
    together = PairVerdict(left="x", right="y", outcome="left", members={"m": "left"})
    counter.add(prompt(), {"m": Answer(verdicts=(both("left", "left"),)), "panel": Answer(verdicts=(together,))})
    found = msgspec.to_builtins(counter.summaries(seed=0))
    assert list(found) == ["m", "panel"]
    assert found["panel"]["outcomes"] == {"left": 1}
    assert found["panel"]["inconsistent"]["value"] is None


def test_the_verdict_of_repeats_is_that_of_most():
    def answer(outcome, value=None):
        verdict = PairVerdict(left="a", right="b", outcome=outcome, detail="why")
        rating = ResponseRating(response="a", value=value, outcome=None if value else "unparsed")
        return Answer(verdicts=(verdict,), ratings=(rating,))

    combined = combine_repeats([answer("left", 3.0), answer("left", 5.0), answer("right")])
    assert (combined.verdicts[0].outcome, combined.ratings[0].value) == ("left", 4.0)
    assert combined.verdicts[0].repeats == ("left", "left", "right")
    assert combine_repeats([answer("left"), answer("right")]).verdicts[0].outcome == "tie"
    nothing = combine_repeats([answer("left", 3.0), answer("unparsed")])
    assert (nothing.verdicts[0].outcome, nothing.ratings[0].outcome) == ("unparsed", "unparsed")
    alone = answer("left", 3.0)
    assert combine_repeats([alone]) is alone
