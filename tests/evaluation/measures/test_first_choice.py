import numpy as np
import pytest

from steelyard.core.types import Rating, Scores
from steelyard.evaluation.columns import bench_columns, score_columns
from steelyard.evaluation.measures.first_choice import choices_of, last_known, ratings_lost, rows_of
from strategies import case


def chosen(cases, *lines, by=choices_of):
    return by(bench_columns(cases, None, "strict"), score_columns(lines).score)


RANKING = (("a",), ("b",), ("c",))


def line(*scores):
    return Scores(
        prompt="p",
        scores=dict(zip("abc", scores, strict=False)),
        unscored={name: "cut" for name, own in zip("abc", scores, strict=False) if own is None},
    )


def rated(values, rater="ann", dimension="helpful"):
    return tuple(
        Rating(response=name, rater=rater, kind="human", dimension=dimension, value=value)
        for name, value in zip("abc", values, strict=False)
    )


def test_by_hand():
    cases = [
        case("p", "abc", ranking=RANKING),
        case("q", "abc", ranking=RANKING),
        case("r", "abc", ranking=(("a", "b", "c"),)),
        case("s", "abc", ranking=RANKING),
        case("t", "abc"),
    ]
    found = chosen(cases, line(3, 2, 1), line(1, 2, 3), line(3, 2, 1), line(3, None, 1), line(3, 2, 1))
    assert found.correlations.tau[:2].tolist() == [1.0, -1.0]
    assert found.first.half[:2].tolist() == [1.0, 0.0]
    assert found.budgets == (2, 3)
    assert found.lost_of_all[:2].tolist() == [pytest.approx(0.0), pytest.approx(2.0)]
    for own in (found.correlations.tau, found.first.half, found.lost_of_all):
        assert np.isnan(own[2:]).all()
    assert found.correlations.has_order.tolist() == [True, True, False, False, False]


def test_a_response_without_a_rank_is_no_choice():
    found = chosen([case("p", "abc", ranking=(("a",), ("b",)))], line(1, 0, 5))
    assert found.first.half.tolist() == [1.0]


def test_regret_in_units_of_the_mean_rating_of_each_dimension():
    ratings = (*rated((5, 3, 1)), *rated((3, 3, 3), rater="bob"), *rated((1, 2), dimension="short"))
    cases = [case("p", "abc", ratings=ratings), case("q", "abc")]
    found = chosen(cases, line(1, 2, 3), line(1, 2, 3), by=ratings_lost)
    # means 4, 3, 2; c is taken of all three: 2 lost; "short" is not rated for c
    assert list(found) == ["helpful"]
    lost, budgets = found["helpful"]
    assert budgets == (2, 3)
    assert last_known(lost.model)[0] == pytest.approx(2.0)
    assert np.isnan(last_known(lost.model)[1])


def test_the_last_known_of_nothing_is_nothing():
    assert np.isnan(last_known(np.zeros((2, 0)))).all()
    assert last_known(np.array([[1.0, 2.0], [3.0, np.nan]])).tolist() == [2.0, 3.0]


def test_no_case_is_ranked():
    assert np.isnan(chosen([case("p", "abc")], line(1, 2, 3)).lost_of_all).all()


def test_rows_count_the_included():
    assert rows_of(np.array([True, False, True]))[[0, 2]].tolist() == [0, 1]
