from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation_summaries import plain_means, resampled_bench
from report_figures import accepted, rows
from steelyard.core.types import Rating, Scores
from steelyard.evaluation.columns import bench_columns, score_columns
from steelyard.evaluation.measures.regret import (
    RegretOfN,
    budgets_up_to,
    estimate,
    last_known,
    ratings_lost,
    regret,
    regret_figure,
)
from steelyard.evaluation.tables import word
from strategies import case

few = st.sampled_from([-1.0, 0.0, 0.5])
prompts = st.lists(
    st.lists(st.tuples(few, st.sampled_from([0.0, 1.0, 2.5])), min_size=0, max_size=6), min_size=1, max_size=4
)


def plain(own, budget):
    """Every choice of responses one by one: the mean loss of the highest score, of any, minus the least."""
    model, chance = [], []
    for drawn in combinations(own, budget):
        highest = max(score for score, _ in drawn)
        tied = [loss for score, loss in drawn if score == highest]
        least = min(loss for _, loss in drawn)
        model.append(sum(tied) / len(tied) - least)
        chance.append(sum(loss for _, loss in drawn) / budget - least)
    return sum(model) / len(model), sum(chance) / len(chance)


@given(prompts)
def test_it_is_the_mean_over_all_choices(given):
    rows = [(index, score, loss) for index, own in enumerate(given) for score, loss in own]
    prompt, score, loss = (np.array([row[place] for row in rows]) for place in range(3))
    found = regret(prompt.astype(np.int64), score.astype(float), loss.astype(float), len(given))
    for index, own in enumerate(given):
        for place, budget in enumerate(found.budgets):
            if len(own) < max(2, budget):
                assert np.isnan(found.model[index, place])
                assert np.isnan(found.chance[index, place])
            else:
                expected = plain(own, budget)
                assert found.model[index, place] == pytest.approx(expected[0])
                assert found.chance[index, place] == pytest.approx(expected[1])


def test_by_hand():
    # Scores take c first, which is in tier 2: of all three the loss is 2; of two: (c - a) 2, (c - b) 1, (a - b) 0 = 1
    found = regret(np.zeros(3, np.int64), np.array([2.0, 1.0, 3.0]), np.array([0.0, 1.0, 2.0]), 1)
    assert found.budgets == (2, 3)
    assert found.model[0].tolist() == [pytest.approx(1.0), pytest.approx(2.0)]
    assert found.chance[0].tolist() == [pytest.approx((0.5 + 1 + 0.5) / 3), pytest.approx(1.0)]


def test_the_curve_has_each_small_n_then_powers_of_two_and_the_largest():
    assert budgets_up_to(5) == (2, 3, 4, 5)
    assert budgets_up_to(40) == (2, 3, 4, 5, 6, 7, 8, 16, 32, 40)
    assert budgets_up_to(1) == ()


def line(*scores):
    return Scores(prompt="p", scores=dict(zip("abc", scores, strict=True)))


def rated(values, rater="ann", dimension="helpful"):
    return tuple(
        Rating(response=name, rater=rater, kind="human", dimension=dimension, value=value)
        for name, value in zip("abc", values, strict=False)
    )


def test_regret_in_units_of_the_mean_rating_of_each_dimension():
    ratings = (*rated((5, 3, 1)), *rated((3, 3, 3), rater="bob"), *rated((1, 2), dimension="short"))
    cases = [case("p", "abc", ratings=ratings), case("q", "abc")]
    lost = ratings_lost(bench_columns(cases, None, "strict"), score_columns([line(1, 2, 3), line(1, 2, 3)]).score)
    # means 4, 3, 2; c is taken of all three: 2 lost; "short" is not rated for c
    assert list(lost) == ["helpful"]
    assert lost["helpful"].budgets == (2, 3)
    assert last_known(lost["helpful"].model)[0] == pytest.approx(2.0)
    assert np.isnan(last_known(lost["helpful"].model)[1])


def test_the_last_known_of_nothing_is_nothing():
    assert np.isnan(last_known(np.zeros((2, 0)))).all()
    assert last_known(np.array([[1.0, 2.0], [3.0, np.nan]])).tolist() == [2.0, 3.0]


def test_no_case_is_ranked():
    cases = [case("p", "abc", ranking=(("a",), ("b",), ("c",))), case("q", "abc")]
    found = estimate(resampled_bench(cases, [line(3, 2, 1), line(1, 2, 3)]))
    assert (found.tiers.of_all.model.micro.value, found.tiers.of_all.model.micro.n) == (0.0, 1)
    assert found.ratings == {}


def curve(*values):
    return tuple(
        RegretOfN(budget=budget, model=plain_means(value, value - 0.1, value + 0.1), chance=plain_means(2 * value))
        for budget, value in enumerate(values, 2)
    )


def test_every_model_has_its_curve_and_chance_stands_beside_them():
    figure = regret_figure({"m": curve(0.2, 0.3), "other": curve(0.4, 0.6, 0.7), "short": curve(0.1)})
    assert [mark.name for mark in figure.legend] == ["m", "other", word("at_random")]
    drawn = rows(accepted(figure))
    assert {(row["n"], row["value"]) for row in drawn if row["series"] == "other"} == {(2, 0.4), (3, 0.6), (4, 0.7)}
    assert [row["value"] for row in drawn if row["series"] == word("at_random")] == [0.4, 0.6]


@pytest.mark.parametrize("values", [(), (0.1,)])
def test_one_n_is_no_curve(values):
    assert regret_figure({"m": curve(*values)}) is None
