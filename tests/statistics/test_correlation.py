"""Correlations over models: against scipy, and the coverage of their intervals."""

import numpy as np
import pytest
from scipy import stats

from each_value import each
from steelyard.statistics.correlation import compare_correlations, correlate, kendall, pearson, spearman

PEERS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
OURS = {"pearson": pearson, "spearman": spearman, "kendall": kendall}


@each("name", PEERS)
@each("seed", range(5))
def test_coefficients_are_those_of_scipy_also_with_ties(name, seed):
    first, second = np.random.default_rng(seed).integers(0, 6, (2, 12)).astype(float)
    assert float(OURS[name](first, second)) == pytest.approx(PEERS[name](first, second).statistic, abs=1e-12)


@each("name", PEERS)
def test_coefficients_do_not_depend_on_the_unit(name):
    first, second = np.random.default_rng(1).normal(size=(2, 10))
    assert float(OURS[name](first * 1e-9, second * 1e9)) == pytest.approx(float(OURS[name](first, second)), abs=1e-12)


def test_taus_of_three_models_by_hand():
    # Of the pairs ab, ac, bc two have the same order on both sides, and one the opposite.
    assert float(kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))) == pytest.approx(1 / 3)
    # One pair is tied on one side: one of two other pairs more than opposite, over sqrt(2 * 3).
    assert float(kendall(np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 3.0]))) == pytest.approx(2 / 6**0.5)


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


@each("name", ["pearson", "spearman"])
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


@each("number", [8, 12, 20, 50])
def test_intervals_of_tau_cover_the_correlation_of_all_models(number):
    rng, num_runs = np.random.default_rng(2), 400
    pairs = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], (num_runs, number))
    intervals = [correlate(kendall, pair[None, :, 0], pair[None, :, 1]) for pair in pairs]
    truth = 2 / np.pi * np.arcsin(0.7)
    covered = sum(each.low <= truth <= each.high for each in intervals) / num_runs
    # The standard error of a coverage of 95 % in 400 runs is 1.1 %.
    assert 0.92 <= covered <= 0.985


@each("name", PEERS)
def test_models_of_families_are_not_taken_for_independent_ones(name):
    """Ten families of four models whose skills are nearly those of their family."""
    rng, num_runs, families = np.random.default_rng(4), 200, np.repeat(np.arange(10), 4)
    truth = {"pearson": 0.6, "spearman": 6 / np.pi * np.arcsin(0.3), "kendall": 2 / np.pi * np.arcsin(0.6)}[name]
    covered = {"families": 0, "independent": 0}
    for _ in range(num_runs):
        shared, alone = (rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size) for size in (10, 40))
        first, second = (shared[families] * 0.9**0.5 + alone * 0.1**0.5).T
        for unit, groups in (("families", families), ("independent", None)):
            estimate = correlate(OURS[name], first[None], second[None], groups)
            covered[unit] += estimate.low <= truth <= estimate.high
    assert covered["families"] / num_runs >= 0.9
    assert covered["independent"] / num_runs <= 0.85


def test_seven_families_are_no_evidence_however_many_models_they_have():
    values = np.random.default_rng(0).normal(size=(2, 1, 70))
    few = correlate(pearson, *values, np.arange(70) % 7)
    assert (few.low, few.n, few.why) == (None, 70, "fewer than 8 families of models")
    compared = compare_correlations(pearson, *values, values[0] + values[1], np.arange(70) % 7)
    assert (compared.p, compared.estimate.why) == (None, "fewer than 8 families of models")


def test_families_of_one_model_each_are_independent_models():
    values = np.random.default_rng(0).normal(size=(2, 1, 20))
    assert correlate(pearson, *values, np.arange(20)) == correlate(pearson, *values)


def test_values_that_one_family_alone_varies_have_no_interval():
    first = np.array([[1.0, 2.0, *[0.0] * 8]])
    alone = correlate(pearson, first, np.arange(10.0)[None], np.array([0, 0, *range(1, 9)]))
    assert (alone.low, alone.why) == (None, "only one family has different values")


@each("name", PEERS)
@each("number", [10, 30])
def test_benches_that_predict_equally_well_differ_by_chance_in_one_test_of_twenty(name, number):
    rng, num_runs = np.random.default_rng(6), 200
    shares = [[1, 0.8, 0.6], [0.8, 1, 0.6], [0.6, 0.6, 1]]
    samples = rng.multivariate_normal([0, 0, 0], shares, (num_runs, number))
    compared = [compare_correlations(OURS[name], *sample.T[:, None]) for sample in samples]
    # The standard error of a rate of 5 % in 200 runs is 1.5 %.
    assert np.mean([each.p < 0.05 for each in compared]) <= 0.09
    assert np.mean([each.estimate.low <= 0 <= each.estimate.high for each in compared]) >= 0.91


def test_the_test_of_many_models_is_that_of_meng_rosenthal_and_rubin():
    """With normal values of 400 independent models the variances agree within a few percent."""
    rng, number = np.random.default_rng(8), 400
    first, second, outcome = rng.multivariate_normal([0] * 3, [[1, 0.5, 0.6], [0.5, 1, 0.5], [0.6, 0.5, 1]], number).T
    one, other, between = (
        stats.pearsonr(*pair).statistic for pair in ((first, outcome), (second, outcome), (first, second))
    )
    mean_square = (one**2 + other**2) / 2
    share = min((1 - between) / (2 * (1 - mean_square)), 1)
    spread = (1 - share * mean_square) / (1 - mean_square)
    score = (np.arctanh(one) - np.arctanh(other)) * np.sqrt((number - 3) / (2 * (1 - between) * spread))
    compared = compare_correlations(pearson, first[None], second[None], outcome[None])
    assert stats.norm.isf(compared.p / 2) == pytest.approx(abs(score), rel=0.15)


def test_a_detectable_difference_is_found_in_four_of_five_samples():
    rng, number = np.random.default_rng(9), 60
    truth = [[1, 0.5, 0.75], [0.5, 1, 0.4], [0.75, 0.4, 1]]
    compared = [
        compare_correlations(pearson, *rng.multivariate_normal([0] * 3, truth, number).T[:, None]) for _ in range(300)
    ]
    power = np.mean([each.p < 0.05 for each in compared])
    needed = np.median([each.detectable for each in compared])
    # The difference is 0.35: where it is above the detectable one, power is above 80 %, and below it below.
    assert (power > 0.8) == (needed < 0.35)
    assert abs(power - 0.8) < 0.2


@each("name", PEERS)
@each("factor", [1.0, 100.0])
def test_a_bench_does_not_differ_from_itself_in_another_unit(name, factor):
    values, outcome = np.random.default_rng(0).normal(size=(2, 1, 12))
    compared = compare_correlations(OURS[name], values, values * factor - 3, outcome)
    assert (compared.estimate.low, compared.estimate.value, compared.estimate.high) == (0.0, 0.0, 0.0)
    assert (compared.p, compared.detectable) == (1.0, 0.0)


@each("name", ["spearman", "kendall"])
def test_benches_that_order_few_models_alike_may_differ_on_others(name):
    values, outcome = np.random.default_rng(0).normal(size=(2, 1, 12))
    compared = compare_correlations(OURS[name], values, np.exp(values), outcome)
    assert (compared.estimate.value, compared.p) == (0.0, 1.0)
    assert compared.estimate.low < 0 < compared.estimate.high


@each("name", PEERS)
@each("num_families", [None, 9])
def test_an_interval_of_a_difference_excludes_0_exactly_where_the_test_finds_one(name, num_families):
    rng = np.random.default_rng(7)
    families = None if num_families is None else np.arange(18) % num_families
    found = []
    for other in (0.8, 0.5, 0.3):
        shares = [[1, 0.6, 0.8], [0.6, 1, other], [0.8, other, 1]]
        for sample in rng.multivariate_normal([0, 0, 0], shares, (40, 18)):
            first, second, outcome = sample.T[:, None]
            compared = compare_correlations(OURS[name], first, second, outcome, families)
            estimate = compared.estimate
            assert -2 <= estimate.low <= estimate.value <= estimate.high <= 2
            found.append(compared.p < 0.05)
            assert found[-1] == (estimate.low > 0 or estimate.high < 0)
    assert 0.1 < np.mean(found) < 0.9


@each("name", PEERS)
def test_the_order_of_two_benches_changes_the_sign_alone(name):
    first, second, outcome = np.random.default_rng(3).normal(size=(3, 1, 11))
    one = compare_correlations(OURS[name], first, second, outcome)
    other = compare_correlations(OURS[name], second, first, outcome)
    assert (other.p, other.detectable) == pytest.approx((one.p, one.detectable))
    ends = (-other.estimate.high, -other.estimate.value, -other.estimate.low)
    assert (one.estimate.low, one.estimate.value, one.estimate.high) == pytest.approx(ends, abs=1e-5)


@each("name", PEERS)
def test_an_interval_of_a_difference_covers_it_where_both_correlations_are_high(name):
    """A bench that correlates at 0.9 with the outcome, and one at 0.7, which correlate at 0.9."""
    rng, num_runs, number = np.random.default_rng(1), 200, 12
    of_normal = {
        "pearson": lambda r: r,
        "spearman": lambda r: 6 / np.pi * np.arcsin(r / 2),
        "kendall": lambda r: 2 / np.pi * np.arcsin(r),
    }[name]
    shares = [[1, 0.9, 0.9], [0.9, 1, 0.7], [0.9, 0.7, 1]]
    samples = rng.multivariate_normal([0, 0, 0], shares, (num_runs, number))
    ends = [compare_correlations(OURS[name], *sample.T[:, None]).estimate for sample in samples]
    truth = of_normal(0.9) - of_normal(0.7)
    covered = np.mean([each.low <= truth <= each.high for each in ends])
    # The standard error of a coverage of 95 % in 200 runs is 1.5 %.
    assert 0.91 <= covered <= 0.995


def test_a_perfect_bench_is_compared_without_a_place_on_fishers_scale():
    first, outcome = np.random.default_rng(2).normal(size=(2, 1, 9))
    for name in PEERS:
        compared = compare_correlations(OURS[name], outcome, first, outcome)
        assert compared.estimate.value == pytest.approx(1 - float(OURS[name](first, outcome)[0]))
        assert compared.p < 0.05
        opposite = compare_correlations(OURS[name], outcome, -outcome, outcome)
        assert (opposite.estimate.value, opposite.estimate.high) == (pytest.approx(2.0), pytest.approx(2.0))


@each("name", ["pearson", "spearman"])
def test_families_that_predict_equally_well_differ_by_chance_in_one_test_of_twenty(name):
    """Twelve families of one to six models whose values are mostly those of their family."""
    rng, families = np.random.default_rng(4), np.repeat(np.arange(12), [1, 2, 3, 6] * 3)
    covariance = [[1, 0.8, 0.6], [0.8, 1, 0.6], [0.6, 0.6, 1]]
    alarms = {"families": 0, "independent": 0}
    for _ in range(120):
        shared, alone = (rng.multivariate_normal([0] * 3, covariance, size) for size in (12, len(families)))
        first, second, outcome = (shared[families] * 0.9**0.5 + alone * 0.1**0.5).T[:, None]
        for unit, groups in (("families", families), ("independent", None)):
            alarms[unit] += compare_correlations(OURS[name], first, second, outcome, groups).p < 0.05
    # The standard error of a rate of 5 % in 120 runs is 2 %.
    assert alarms["families"] / 120 <= 0.1
    assert alarms["independent"] / 120 >= 0.12


def test_a_family_of_nearly_all_models_leaves_one_degree_of_freedom():
    values = np.random.default_rng(0).normal(size=(3, 1, 40))
    groups = np.maximum(np.arange(40) - 32, 0)
    compared = compare_correlations(pearson, *values, groups)
    assert compared.p > 0.05
    assert compared.estimate.low < -0.9
    even = compare_correlations(pearson, *values, np.arange(40) // 4)
    assert even.estimate.high - even.estimate.low < compared.estimate.high - compared.estimate.low


def test_resampled_items_widen_a_difference():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(3, 1, 20))
    noisy = np.concatenate([values[0], values[0] + rng.normal(0, 0.5, (50, 20))])
    plain, wide = (compare_correlations(pearson, first, *values[1:]) for first in (values[0], noisy))
    assert wide.estimate.high - wide.estimate.low > plain.estimate.high - plain.estimate.low
    assert wide.p > plain.p
