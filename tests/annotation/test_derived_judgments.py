import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from steelyard.annotation.derived_judgments import (
    LOWER_IS_BETTER,
    NEITHER_IS_BETTER,
    judgments_from_ratings,
    with_derived,
)
from steelyard.core.checks import check_case
from steelyard.core.types import Judgment, Rating
from strategies import case

FLIPPED = {"left": "right", "right": "left"}


def rating(response, value, rater="ann", kind="human", dimension="quality", **fields):
    return Rating(response=response, value=value, rater=rater, kind=kind, dimension=dimension, **fields)


def verdicts(*ratings, responses="abc"):
    return [
        (one.left, one.right, one.verdict) for one in judgments_from_ratings(case(responses=responses, ratings=ratings))
    ]


ratings = st.lists(
    st.builds(
        rating,
        st.sampled_from("abcd"),
        st.sampled_from([1.0, 2.0, 2.5, 3.0]),
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["human", "llm"]),
        st.sampled_from(["quality", "safety"]),
        range=st.sampled_from([None, (1, 5)]),
    ),
    max_size=12,
    unique_by=lambda one: (one.response, one.rater, one.kind, one.dimension, one.range),
)


def test_each_pair_with_other_values_gets_a_verdict_in_the_order_of_the_responses():
    assert verdicts(rating("c", 2.0), rating("a", 1.0), rating("b", 2.0)) == [("a", "b", "right"), ("a", "c", "right")]


def test_a_verdict_says_where_it_comes_from_and_that_nothing_was_shown():
    one = case(responses="ab", ratings=(rating("a", 3, "bob", "llm"), rating("b", 1, "bob", "llm")))
    assert judgments_from_ratings(one) == (
        Judgment(
            left="a", right="b", verdict="left", judge="bob", kind="llm",
            meta={"derived": "ratings", "dimension": "quality"},
        ),
    )  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        rating("b", 2.0, "bob"),
        rating("b", 2.0, kind="llm"),
        rating("b", 2.0, dimension="safety"),
        rating("b", 2.0, range=(1, 5)),
        rating("b", 2.0, meta=LOWER_IS_BETTER),
    ],
)
def test_other_raters_kinds_dimensions_and_scales_are_not_compared(other):
    assert verdicts(rating("a", 1.0), other) == []


def test_lower_can_be_better_and_a_description_gives_nothing():
    low = [rating("a", 1, meta=LOWER_IS_BETTER), rating("b", 2, meta=LOWER_IS_BETTER)]
    assert verdicts(*low) == [("a", "b", "left")]
    assert verdicts(rating("a", 1, meta=NEITHER_IS_BETTER), rating("b", 2, meta=NEITHER_IS_BETTER)) == []


def test_two_minds_of_one_rater_on_one_response_give_nothing_on_it():
    assert verdicts(rating("a", 1), rating("a", 3), rating("b", 2), rating("c", 4)) == [("b", "c", "right")]
    assert verdicts(rating("a", 1), rating("a", 1), rating("b", 2)) == [("a", "b", "right")]


@given(ratings)
def test_no_equal_values_and_the_higher_one_wins(given_ratings):
    one = case(responses="abcd", ratings=tuple(given_ratings))
    for judgment in judgments_from_ratings(one):
        values = [
            {
                (r.rater, r.kind, r.dimension, r.range): r.value
                for r in given_ratings
                if (r.response, r.rater, r.kind, r.dimension)
                == (response, judgment.judge, judgment.kind, judgment.meta["dimension"])
            }
            for response in (judgment.left, judgment.right)
        ]
        differences = {values[0][key] - values[1][key] for key in values[0].keys() & values[1].keys()}
        assert any(d > 0 if judgment.verdict == "left" else d < 0 for d in differences)
    assert check_case(with_derived(one)) == with_derived(one)


@given(ratings)
def test_the_other_way_round_every_verdict_is_the_other_one(given_ratings):
    one = case(responses="abcd", ratings=tuple(given_ratings))
    turned = replace(one, ratings=tuple(replace(r, value=-r.value) for r in given_ratings))
    assert judgments_from_ratings(turned) == tuple(
        replace(judgment, verdict=FLIPPED[judgment.verdict]) for judgment in judgments_from_ratings(one)
    )


@given(ratings)
def test_adding_them_twice_adds_them_once(given_ratings):
    one = case(responses="abcd", judgments=["a>b"], ratings=tuple(given_ratings))
    once = with_derived(one)
    assert once.judgments[:1] == one.judgments
    assert with_derived(once) == once
