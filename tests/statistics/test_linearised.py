"""Ratios of sums: how much units that resemble each other widen an interval."""

from statistics import variance

import numpy as np
import pytest

from steelyard.statistics.linearised import RatioSums, Strata, design_effects, group_ratios, mean_of_sums

ONES = np.ones(12)


def test_copies_of_a_row_are_as_many_as_there_are_rows_without_them():
    """Three equal rows a cluster, by hand: the variance of a mean of 4 clusters over that of 12 free rows."""
    values = np.repeat([0.0, 1.0, 1.0, 0.5], 3)
    clusters = np.repeat(np.arange(4), 3)
    expected = (variance([0, 1, 1, 0.5]) / 4) / (variance(values) / 12)
    assert design_effects(np.zeros(12, np.int64), clusters, values, ONES, 1)[0] == pytest.approx(expected)


def test_free_rows_single_clusters_and_empty_groups_have_one():
    values = np.tile([0.0, 1.0, 0.5], 4)
    groups = np.repeat([0, 2], 6)
    alone = design_effects(groups, np.arange(12), values, ONES, 4)
    assert alone.tolist() == [1, 1, 1, 1]
    assert design_effects(groups, groups, values, ONES, 3).tolist() == [1, 1, 1]
    assert design_effects(groups, groups, values, 0 * ONES, 3).tolist() == [1, 1, 1]


def test_intervals_of_units_in_clusters_hold_the_mean():
    """500 draws of 60 clusters of five values with a correlation of 0.5: 95% of the intervals hold the mean."""
    random, hits, free = np.random.default_rng(1), 0, 0
    clusters = np.repeat(np.arange(60), 5)
    for _ in range(500):
        values = (random.random(60)[clusters] + random.random(300)) / 2
        effect = design_effects(np.zeros(300, np.int64), clusters, values, np.ones(300), 1)[0]
        sums = len(values), values.sum(), (values**2).sum()
        wide, narrow = (mean_of_sums(*sums, low=0.0, high=1.0, design_effect=each) for each in (effect, 1.0))
        hits += wide.low <= 0.5 <= wide.high
        free += narrow.low <= 0.5 <= narrow.high
    assert 0.93 <= hits / 500 <= 0.97
    assert free / 500 < 0.85


def test_a_ratio_of_sums_has_the_interval_of_its_mean():
    values = np.tile([0.0, 1.0, 0.5], 10)
    ratio = RatioSums(30, values.sum(), 30.0, (values**2).sum(), values.sum(), 30.0)
    for effect in (1.0, 2.5):
        mean = mean_of_sums(30, values.sum(), (values**2).sum(), low=0.0, high=1.0, design_effect=effect)
        found = ratio.estimate(design_effect=effect)
        assert (found.low, found.high) == (pytest.approx(mean.low), pytest.approx(mean.high))


def test_the_variance_within_strata_and_its_correction_by_hand():
    """Two strata of two prompts with the shares right 1, 0 and 1, 1: p = 3/4, residuals 1/4, -3/4, 1/4, 1/4."""
    zeros, ones, unit = np.zeros(4, np.int64), np.ones(4), np.arange(4)
    values = np.array([1.0, 0.0, 1.0, 1.0])
    (free,) = group_ratios(zeros, unit, values, ones, 1)
    assert free.variance == pytest.approx(variance(values) / 4)
    (within,) = group_ratios(zeros, unit, values, ones, 1, strata=Strata(np.array([0, 0, 1, 1]), np.array([2.0, 2.0])))
    # The mean of each stratum has the variance 1/4 (1/2 over two prompts) and 0; each has half the weight.
    assert within.variance == pytest.approx(1 / 4 * 1 / 4)


def test_the_variance_of_prompts_of_unequal_size_is_that_of_their_independent_quotients():
    """Mean of 5,000 draws of five prompts of 1 to 16 pairs in two strata, with standard normal quotients: Σ share²."""
    random, pairs = np.random.default_rng(3), np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    strata = Strata(np.array([0, 1, 0, 1, 1]), np.array([2.0, 3.0]))
    num_draws = 5_000
    group, unit = np.repeat(np.arange(num_draws), 5), np.tile(np.arange(5), num_draws)
    sizes = np.tile(pairs, num_draws)
    ratios = group_ratios(group, unit, sizes * random.normal(size=len(sizes)), sizes, num_draws, strata=strata)
    shares = pairs / pairs.sum()
    assert np.mean([ratio.variance for ratio in ratios]) == pytest.approx((shares**2).sum(), rel=0.05)
