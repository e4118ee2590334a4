"""The how-to of rated translations: its functions on the numbers of several raters."""

import runpy
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.types import Rating
from steelyard.ranking.dawid_skene import Pairs, Votes
from strategies import case

_SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "howto" / "wmt_mqm.py"), run_name="wmt_mqm")
Ratings, by_mean_rating, key_of_means, penalties_of, votes_of_ratings = (
    _SCRIPT[name] for name in ("Ratings", "by_mean_rating", "key_of_means", "penalties_of", "votes_of_ratings")
)

FIRST, SECOND, TIED = range(3)


def ratings_of(rows):
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return Ratings(*(np.array(column, np.int64) for column in columns[:3]), np.array(columns[3], np.float64))


def rows_of(votes):
    return sorted(zip(*(column.tolist() for column in (*votes.pairs, votes.rater, votes.label)), strict=True))


# Of the three responses rater 0 gives 0, -1, -1; rater 1 gives -5, -1, 0; rater 2 only the first and third a number.
ROWS = [(0, 0, 0, 0.0), (0, 1, 0, -1.0), (0, 2, 0, -1.0), (0, 0, 1, -5.0), (0, 1, 1, -1.0), (0, 2, 1, 0.0),
        (0, 0, 2, 0.3), (0, 2, 2, 0.1 + 0.2)]  # fmt: skip


def test_a_raters_numbers_are_votes_and_equal_ones_ties():
    assert rows_of(votes_of_ratings(ratings_of(ROWS[::-1]))) == [
        (0, 0, 1, 0, FIRST), (0, 0, 1, 1, SECOND), (0, 0, 2, 0, FIRST), (0, 0, 2, 1, SECOND),
        (0, 0, 2, 2, TIED), (0, 1, 2, 0, TIED), (0, 1, 2, 1, SECOND),
    ]  # fmt: skip


def test_the_key_is_the_higher_mean_and_equal_means_are_none():
    # Means over raters 0 and 1: -2.5, -1, -0.5.
    ratings = ratings_of(ROWS[:6])
    pairs = Pairs(*(np.array(column) for column in ((0, 0, 0, 0), (0, 0, 0, 1), (1, 1, 2, 2))))
    key = key_of_means(ratings, pairs)
    assert [column.tolist() for column in key.pairs] == [[0, 0, 0], [0, 0, 1], [1, 2, 2]]
    assert key.label.tolist() == [SECOND, SECOND, SECOND]
    equal = ratings_of([(0, 0, 0, -1.0), (0, 1, 0, 0.0), (0, 0, 1, 0.0), (0, 1, 1, -1.0)])
    assert len(key_of_means(equal, Pairs(*np.array([[0], [0], [1]]))).label) == 0


def test_a_rater_whose_votes_are_held_out_has_no_numbers_either():
    ratings = ratings_of(ROWS[:6])
    asked = Pairs(*np.array([[0, 0], [0, 1], [1, 3]]))
    votes = votes_of_ratings(ratings)
    both = by_mean_rating(ratings, votes, asked)
    # Mean 1.5 below: 1 / (1 + e^1.5) of the first. Response 3 has no number.
    assert both[0].tolist() == pytest.approx([1 / (1 + np.e**1.5), 1 - 1 / (1 + np.e**1.5), 0.0])
    assert np.isnan(both[1]).all()
    own = votes.rater == 0
    first = Votes(Pairs(*(column[own] for column in votes.pairs)), votes.rater[own], votes.label[own])
    assert by_mean_rating(ratings, first, asked)[0, 0] == pytest.approx(1 / (1 + np.e**-1))


def test_omissions_are_the_penalties_of_their_categories_over_all_raters():
    def rated(rater, value, *errors):
        rows = [{"row": dict(zip(("category", "severity"), each, strict=True))} for each in errors]
        rating = Rating(response="a", rater=rater, kind="human", dimension="mqm", value=value)
        return msgspec.structs.replace(rating, meta={"errors": rows})

    ratings = (
        rated("x", -6.0, ("Accuracy/Omission (Translation 2)", "Major"), ("Style/Unnatural or awkward", "minor")),
        rated("y", -1.0, ("Accuracy/Omission (Translation)", "Minor")),
        rated("z", 0.0, ("No-error", "No-error")),
    )
    length, everything, omitted = penalties_of([case("p", "ab", ratings=ratings)])
    # Of three raters: 7 / 3 in all, and 6 / 3 for omissions.
    assert everything.tolist() == [[pytest.approx(7 / 3), 0.0]]
    assert omitted.tolist() == [[pytest.approx(2.0), 0.0]]
    assert length.shape == (1, 2)


NUMBERS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2), st.integers(-3, 3)),
    max_size=20,
    unique_by=lambda row: row[:3],
)


@given(NUMBERS)
def test_votes_are_those_of_every_rater_and_every_two_responses(rows):
    expected = [
        (one[0], one[1], other[1], one[2], FIRST if one[3] > other[3] else SECOND if one[3] < other[3] else TIED)
        for one in rows
        for other in rows
        if one[0] == other[0] and one[2] == other[2] and one[1] < other[1]
    ]
    assert rows_of(votes_of_ratings(ratings_of(rows))) == sorted(expected)
