"""Correlations over models: against scipy, and the coverage of their intervals."""

import numpy as np
import pytest
from scipy import stats

from each_value import each
from steelyard.statistics.correlation import correlate, pearson, spearman

PEERS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr}
OURS = {"pearson": pearson, "spearman": spearman}


@each("name", PEERS)
@each("seed", range(5))
def test_coefficients_are_those_of_scipy_also_with_ties(name, seed):
    first, second = np.random.default_rng(seed).integers(0, 6, (2, 12)).astype(float)
    assert float(OURS[name](first, second)) == pytest.approx(PEERS[name](first, second).statistic)


def test_rows_are_correlated_one_by_one():
    first = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    assert pearson(first, np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]])).tolist() == pytest.approx([1.0, -1.0])


def test_equal_values_have_no_correlation_and_few_models_no_interval():
    flat = correlate(pearson, np.ones((1, 9)), np.arange(9.0)[None])
    assert (flat.value, flat.why) == (None, "all values are equal")
    few = correlate(spearman, np.arange(7.0)[None], np.arange(7.0)[None])
    assert (few.value, few.low, few.why) == (pytest.approx(1.0), None, "fewer than 8 models")


def test_the_interval_without_items_is_fishers():
    rng = np.random.default_rng(3)
    first = rng.normal(size=23)
    second = first + rng.normal(size=23)
    found = correlate(pearson, first[None], second[None])
    peer = stats.pearsonr(first, second).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((peer.low, peer.high), abs=1e-4)


def test_a_perfect_order_of_eight_models_leaves_room_for_a_lower_correlation():
    found = correlate(spearman, np.arange(8.0)[None], np.arange(8.0)[None])
    assert found.low < 0.95
    assert found.high == found.value == 1.0


@each("name", PEERS)
@each("number", [8, 23])
def test_intervals_over_models_and_items_cover_the_correlation_of_all_models_and_items(name, number):
    """The values of models and of items are drawn anew; the truth is that of many models without noise of items."""
    rng, num_items, covered, num_runs = np.random.default_rng(5), 100, 0, 300
    truth = 0.8 if name == "pearson" else 6 / np.pi * np.arcsin(0.4)
    for _ in range(num_runs):
        skill = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], number)
        items = skill[:, :, None] + rng.normal(0, 1.4, (number, 2, num_items))
        draws = np.stack([np.arange(num_items), *rng.integers(num_items, size=(40, num_items))])
        means = items[:, :, draws].mean(axis=-1)
        found = correlate(OURS[name], means[:, 0].T, means[:, 1].T)
        covered += found.low <= truth <= found.high
    # The standard error of a coverage of 95 % in 300 runs is 1.3 %.
    assert 0.91 <= covered / num_runs <= 0.99
