from itertools import combinations, pairwise
from math import comb, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.numerics import generator
from steelyard.evaluation.best_of_n import (
    CurveTable,
    DrawnCurve,
    budgets_from_one,
    curve_table,
    draw_curves,
    drop_p_values,
    estimate_curve,
    largest_shared,
    last_drawn,
    selected_value,
)
from steelyard.evaluation.candidates import GoldChoice, gold_scale
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import Evidence, difference

few = st.sampled_from([-1.0, 0.0, 0.5])
responses = st.lists(st.tuples(few, st.floats(-3, 3)), min_size=1, max_size=8)


def over_all_subsets(score, gold, budget):
    """The mean gold of the highest score over every choice of responses, one by one."""
    total = 0.0
    drawn = list(combinations(range(len(score)), budget))
    for places in drawn:
        highest = max(score[place] for place in places)
        tied = [gold[place] for place in places if score[place] == highest]
        total += sum(tied) / len(tied)
    return total / len(drawn)


def blocks_of(num_prompts, seed=0, num_resamples=500):
    labels = [Label(f"p{place}", Cell("all")) for place in range(num_prompts)]
    return draw_blocks(labels, num_resamples=num_resamples, seed=seed)


def curve_of(table, seed=0, num_resamples=500):
    return estimate_curve(draw_curves(blocks_of(len(table.chosen), seed, num_resamples), table), table)


def table_of(score, gold):
    """The curves of prompts with equally many responses."""
    num_prompts, size = score.shape
    prompt = np.repeat(np.arange(num_prompts), size)
    return curve_table(prompt, score.ravel(), gold.ravel(), num_prompts, budgets=budgets_from_one(size))


@given(responses)
def test_the_curve_is_the_mean_over_every_subset_with_ties(drawn):
    score, gold = map(np.array, zip(*drawn, strict=True))
    budgets = tuple(range(1, len(drawn) + 1))
    curve = selected_value(score[None], gold[None], budgets)[0]
    expected = [over_all_subsets(score, gold, budget) for budget in budgets]
    assert curve == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 60))
def test_a_place_is_the_last_drawn_with_its_share_of_binomials(size):
    budgets = range(1, size + 1)
    shares = [[comb(place, budget - 1) / comb(size, budget) for place in range(size)] for budget in budgets]
    assert last_drawn(size, budgets) == pytest.approx(np.array(shares), abs=1e-13)


def test_ten_thousand_responses_overflow_no_binomial():
    size = 10_000
    # Of k responses whose value is their rank from 1 to k the highest of N has the mean N (k + 1) / (N + 1).
    rank = np.arange(1, size + 1, dtype=np.float64)[None]
    budgets = (1, 2, 100, 5_000, 9_999, 10_000)
    expected = [budget * (size + 1) / (budget + 1) for budget in budgets]
    assert selected_value(rank, rank, budgets)[0] == pytest.approx(expected, rel=1e-11)


def test_the_oracle_is_the_curve_of_the_gold_values_as_scores():
    random = generator(0, "oracle")
    score, gold = random.normal(size=(5, 6)), random.normal(size=(5, 6))
    assert table_of(score, gold).oracle == pytest.approx(table_of(gold, gold).chosen, abs=1e-12)


def test_prompts_with_fewer_responses_are_in_no_point_of_the_curve():
    prompt = np.array([0, 0, 0, 1, 1])
    table = curve_table(prompt, np.arange(5.0), np.arange(5.0), 2, budgets=(1, 2, 3))
    assert np.isnan(table.chosen[1]).all()
    assert table.chosen[0] == pytest.approx([1, 5 / 3, 2])


def test_the_largest_n_is_that_of_nine_tenths_of_the_prompts():
    assert largest_shared(np.array([4] * 9 + [2]), 0.9) == 4
    assert largest_shared(np.array([4] * 8 + [2] * 2), 0.9) == 2
    assert largest_shared(np.array([], np.int64), 0.9) == 0


def test_the_curve_has_every_n_up_to_1024_and_the_largest():
    assert budgets_from_one(5) == (1, 2, 3, 4, 5)
    grid = budgets_from_one(10_000)
    assert grid[:1024] == tuple(range(1, 1025))
    assert grid[-1] == 10_000
    assert all(later / earlier < 1.11 for earlier, later in pairwise(grid[1023:]))


def test_a_curve_that_rises_everywhere_peaks_at_its_end():
    random = generator(1, "rising")
    gold = random.normal(size=(200, 8))
    curve = curve_of(table_of(gold, gold))
    assert (curve.peak.n, curve.peak.rises, curve.peak.falls) == (8, True, False)
    assert curve.peak.largest_equal == 8
    assert curve.points[3].kl_bound == pytest.approx(log(4) - 3 / 4)


def test_a_curve_that_falls_after_two_is_over_optimised():
    # The highest score of all is a bad response, the others are scored by their gold value.
    random = generator(2, "falling")
    gold = np.sort(random.normal(size=(300, 8)), axis=1)
    gold[:, 7] = -3.0
    score = np.broadcast_to(np.arange(8.0), gold.shape)
    curve = curve_of(table_of(score, gold))
    assert curve.peak.n < 4
    assert curve.peak.falls
    assert curve.peak.largest_equal < 8
    last = curve.points[-1]
    assert last.chosen.value == pytest.approx(-3.0)
    assert last.loss is not None
    assert last.loss.low > 0
    assert last.p < 0.05


def test_a_loss_that_is_significant_after_correction_has_an_interval_above_zero():
    # Two hundred responses: the losses of neighbours of the peak are small beside the range of the curve.
    score = generator(4, "many").normal(size=(60, 200))
    curve = curve_of(table_of(score, score - 0.4 * score**2 * (score > 0)), num_resamples=300)
    assert len(curve.points) == 200
    assert curve.peak.falls
    significant = [point.loss for point in curve.points if point.p is not None and point.p < 0.05]
    assert len(significant) > 100
    assert all(loss.low > 0 for loss in significant)


def test_the_lower_end_of_a_loss_allows_for_the_selection_of_the_peak():
    table = CurveTable((1, 2, 3), np.array([[0.0, 1.0, 0.9], [0.0, 1.0, 0.9]] * 15), np.ones((30, 3)))
    drawn = draw_curves(blocks_of(30), table)
    even = DrawnCurve(drawn.chosen.point, np.array([[0.0, 1.0, 0.9], [0.0, 1.2, 0.7]] * 50))
    # The third place is the peak of half of the resamples, 0.3 above its value on the data: 0.15 in the mean.
    uneven = even._replace(resampled=np.array([[0.0, 1.0, 0.9], [0.0, 1.0, 1.2]] * 50))
    for curve, gain in ((even, 0.1), (uneven, 0.15)):
        loss = estimate_curve(drawn._replace(chosen=curve), table).points[2].loss
        gap = curve.resampled[:, 1] - curve.resampled[:, 2]
        plain = difference(0.1, gap, 30, drawn.evidence, discordance=0.1, largest=0.1).estimate
        assert loss.low == pytest.approx(plain.low - gain)
        assert loss.high == pytest.approx(plain.high)


def test_the_corrected_p_is_that_of_the_largest_of_all_pairs_one_by_one():
    random = generator(5, "pairs")
    means = random.normal(size=(1, 5)) * 0.1
    resampled = means + random.normal(size=(200, 5)) * 0.1
    drawn, top = DrawnCurve(means[0], resampled), int(np.argmax(means))
    moved = resampled - means - (resampled - means).mean(axis=0)
    largest, statistic = np.zeros(200), np.zeros(5)
    for first in range(5):
        for second in range(5):
            difference = moved[:, first] - moved[:, second]
            if first != second:
                largest = np.maximum(largest, np.abs(difference) / difference.std(ddof=1))
                if first == top:
                    statistic[second] = (means[0, top] - means[0, second]) / difference.std(ddof=1)
    expected = [(1 + (largest >= each).sum()) / 201 for each in statistic]
    p_values = drop_p_values(drawn, top, Evidence(100, 99), 1e-9)
    assert p_values == pytest.approx(expected, abs=1 / 201 + 1e-9)


def test_scores_without_a_relation_to_gold_show_neither_rise_nor_fall():
    """At a level of 5% at most; 6 of 40 has a probability of 0.01 by the binomial distribution."""
    wrong = 0
    for seed in range(40):
        random = generator(seed, "unrelated")
        score, gold = random.normal(size=(60, 6)), random.normal(size=(60, 6))
        peak = curve_of(table_of(score, gold), seed, 300).peak
        wrong += bool(peak.falls or peak.rises)
    assert wrong < 6


def test_equal_scores_leave_a_flat_curve_with_its_peak_at_one():
    gold = generator(3, "flat").normal(size=(50, 4))
    curve = curve_of(table_of(np.zeros((50, 4)), gold))
    assert (curve.peak.n, curve.peak.low, curve.peak.high) == (1, 1, 1)
    assert not curve.peak.falls
    assert [point.chosen.value for point in curve.points] == pytest.approx([curve.random.value] * 4)


def test_few_prompts_have_a_curve_and_no_test():
    table = CurveTable((1, 2), np.array([[0.0, 1.0]] * 5), np.array([[0.0, 1.0]] * 5))
    curve = curve_of(table)
    assert curve.peak.falls is None
    assert curve.points[1].chosen.low is None


@pytest.mark.parametrize(("unit", "offset"), [(2.0**-100, 0.0), (2.0**70, 0.0), (1.0, 2.0**27)])
def test_gold_scores_in_other_units_have_the_intervals_of_plain_ones(unit, offset):
    gold = np.random.default_rng(3).integers(0, 64, (60, 4)) / 64
    blocks = draw_blocks([Label(f"p{place}", Cell("code")) for place in range(60)], num_resamples=50, seed=0)

    def ends(values):
        table = curve_table(np.repeat(np.arange(60), 4), gold.reshape(-1), values.reshape(-1), 60, budgets=(1, 4))
        scale = gold_scale(GoldChoice("scores"), values)
        points = estimate_curve(draw_curves(blocks, table), table, scale).points
        return np.array([[point.chosen.low, point.chosen.high] for point in points], float)

    assert (ends(gold * unit + offset) - offset) / unit == pytest.approx(ends(gold), abs=1e-6)
