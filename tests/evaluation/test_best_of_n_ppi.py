"""Prediction-powered curves: limits in which they are known, scales of a proxy, coverage, and the level of tests."""

import numpy as np
import pytest
from msgspec.structs import asdict

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import generator
from steelyard.evaluation.best_of_n import budgets_from_one, curve_table, draw_curves, estimate_curve
from steelyard.evaluation.best_of_n_ppi import estimate_ppi_curve, estimate_ppi_wins, ppi_tables
from steelyard.evaluation.candidates import CandidateColumns
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import UNBOUNDED, Scale

DRAWING = {"num_resamples": 300, "seed": 0}


def columns_of(score, gold, proxy, *, categories=None, win=None, proxy_win=None):
    """The columns of prompts with equally many responses, all of shape (prompt, response)."""
    num_prompts, size = score.shape
    names = categories or ["all"] * num_prompts
    labels = tuple(Label(f"p{place}", Cell(name)) for place, name in enumerate(names))
    nothing = np.full(score.shape, np.nan)
    tables = score, gold, nothing if win is None else win, proxy, nothing if proxy_win is None else proxy_win
    return CandidateColumns(labels, np.repeat(np.arange(num_prompts), size), *(table.ravel() for table in tables))


def drawn_values(seed, num_prompts=200, num_labelled=60, size=5):
    """Scores, gold values of the first prompts (NaN elsewhere) and of all, and a proxy of another scale."""
    random = generator(seed, "powered curve")
    gold = random.normal(size=(num_prompts, 1)) + random.normal(size=(num_prompts, size))
    score = gold + 2 * random.normal(size=gold.shape)
    proxy = 40 + 9 * (gold + 0.7 * random.normal(size=gold.shape))
    few = gold.copy()
    few[num_labelled:] = np.nan
    return score, few, gold, proxy


def powered(columns, scale=UNBOUNDED, **drawing):
    tables = ppi_tables(columns, budgets_from_one(int(columns.gold_sizes.max())))
    return estimate_ppi_curve(tables, scale, **{**DRAWING, **drawing})


def by_gold_alone(score, gold, num_resamples=300):
    """The curve of the prompts with gold values, by the code for gold values of all prompts."""
    has_gold = ~np.isnan(gold[:, 0])
    columns = columns_of(score[has_gold], gold[has_gold], gold[has_gold])
    budgets = budgets_from_one(gold.shape[1])
    table = curve_table(columns.prompt, columns.score, columns.gold, len(columns.labels), budgets=budgets)
    blocks = columns.blocks(np.ones(len(columns.labels), bool), num_resamples=num_resamples, seed=0)
    return estimate_curve(draw_curves(blocks, table), table)


def values_of(curve):
    return [point.chosen.value for point in curve.points]


def ends_of(curve):
    return np.array([[point.chosen.low, point.chosen.high] for point in curve.points])


def test_where_all_prompts_have_gold_values_the_curve_is_theirs():
    score, _, gold, proxy = drawn_values(0)
    both, alone = powered(columns_of(score, gold, proxy)), by_gold_alone(score, gold)
    assert not both.proxy.is_used
    assert values_of(both) == pytest.approx(values_of(alone), abs=1e-12)
    # Sums of resamples are in single precision.
    assert ends_of(both) == pytest.approx(ends_of(alone), abs=1e-6)
    assert [point.p for point in both.points] == pytest.approx([point.p for point in alone.points], abs=0.01)
    assert both.peak == alone.peak


def test_a_constant_proxy_leaves_the_mean_of_the_gold_values():
    score, few, _, proxy = drawn_values(1)
    both, alone = powered(columns_of(score, few, np.full_like(proxy, 7.0))), by_gold_alone(score, few)
    assert (both.proxy.is_used, both.num_prompts, both.proxy.num_prompts) == (False, 60, 200)
    assert both.points[0].chosen.value == pytest.approx(few[:60].mean(), abs=1e-12)
    assert values_of(both) == pytest.approx(values_of(alone), abs=1e-12)
    assert both.peak == alone.peak


def test_the_value_is_that_of_gold_plus_the_weighted_difference_of_the_proxy():
    score, few, _, proxy = drawn_values(2)
    both = powered(columns_of(score, few, proxy))
    assert both.proxy.weight > 0
    assert both.proxy.level_weight > 0
    for place, point in enumerate(both.points):
        budgets = (place + 1, 5) if place < 4 else (5,)
        prompt = np.repeat(np.arange(200), 5)
        by_proxy = curve_table(prompt, score.ravel(), proxy.ravel(), 200, budgets=budgets).chosen[:, 0]
        by_gold = curve_table(prompt[:300], score.ravel()[:300], few.ravel()[:300], 60, budgets=budgets).chosen[:, 0]
        # The mean of a prompt is corrected with one weight, and the gain over it with another.
        moved = by_proxy[60:].mean() - by_proxy[:60].mean()
        level = proxy[60:].mean() - proxy[:60].mean()
        expected = by_gold.mean() + both.proxy.level_weight * level + both.proxy.weight * (moved - level)
        assert point.chosen.value == pytest.approx(expected, abs=1e-10)
        assert point.gold_only.value == pytest.approx(by_gold.mean(), abs=1e-12)


def test_the_best_and_a_random_response_are_equal_at_one():
    score, few, _, proxy = drawn_values(3)
    first = powered(columns_of(score, few, proxy)).points[0]
    assert first.oracle.value == pytest.approx(first.chosen.value, abs=1e-12)


@pytest.mark.parametrize(("factor", "shift"), [(1e-3, 0.0), (250.0, -1e4)])
def test_the_scale_of_the_proxy_changes_the_weight_and_nothing_else(factor, shift):
    score, few, _, proxy = drawn_values(4)
    both = powered(columns_of(score, few, proxy))
    other = powered(columns_of(score, few, factor * proxy + shift))
    assert other.proxy.weight * factor == pytest.approx(both.proxy.weight, rel=1e-3)
    assert values_of(other) == pytest.approx(values_of(both), abs=1e-4)
    assert ends_of(other) == pytest.approx(ends_of(both), abs=1e-3)


def test_log_odds_narrow_the_interval_of_ratings_from_one_to_five():
    score, few, gold, _ = drawn_values(5, num_prompts=1000)
    ratings = np.clip(np.rint(3 + few), 1, 5)
    both = powered(columns_of(score, ratings, 1.7 * gold), Scale(1.0, 5.0))
    for point in both.points:
        assert 1 <= point.chosen.low < point.chosen.high <= 5
        assert point.chosen.high - point.chosen.low < 0.7 * (point.gold_only.high - point.gold_only.low)
    assert both.proxy.effective_labels > 2


def test_scores_that_compare_only_the_responses_to_one_prompt_narrow_the_losses():
    score, few, gold, _ = drawn_values(12, num_prompts=2000)
    shift = 100 * generator(0, "shift").normal(size=(2000, 1))
    both, alone = powered(columns_of(score, few, gold + shift)), by_gold_alone(score, few)
    assert both.proxy.weight > 0.5
    assert both.proxy.correlation == pytest.approx(1, abs=1e-3)
    # Their mean of a prompt says nothing.
    assert both.proxy.level_weight < 0.01
    assert both.peak.n == alone.peak.n == 5
    for point, other in zip(both.points[:4], alone.points[:4], strict=True):
        assert point.loss.high - point.loss.low < 0.6 * (other.loss.high - other.loss.low)


def test_a_proxy_of_the_opposite_order_is_left_out():
    score, few, _, proxy = drawn_values(6)
    both = powered(columns_of(score, few, -proxy))
    assert not both.proxy.is_used
    assert both.proxy.correlation < -0.5
    assert both.proxy.level_correlation < -0.5


def test_gold_values_of_some_responses_are_compared_with_the_proxy_on_the_same_ones():
    score, few, gold, _ = drawn_values(7)
    # A proxy that is right up to a constant, and so is its curve of the same two of five responses.
    few[:60, 2:] = np.nan
    both = powered(columns_of(score, few, gold + 3))
    assert [point.n for point in both.points] == [1, 2]
    rest = curve_table(np.repeat(np.arange(140), 5), score[60:].ravel(), gold[60:].ravel(), 140, budgets=(1, 2))
    assert both.proxy.proxy_only == pytest.approx(rest.chosen[:, 1].mean() + 3)
    assert both.proxy.correlation == pytest.approx(1, abs=1e-6)


def test_a_prompt_with_one_gold_value_has_no_choice_and_counts_as_one_without():
    score, few, _, proxy = drawn_values(13)
    few[:30, 1:] = np.nan
    tables = ppi_tables(columns_of(score, few, proxy), (1,))
    assert (int(tables.is_labelled.sum()), len(tables.labels)) == (30, 200)
    curve = estimate_ppi_curve(tables, UNBOUNDED, **DRAWING)
    assert curve.points[0].gold_only.value == pytest.approx(few[30:60].mean(), abs=1e-12)


def test_prompts_with_gold_values_of_one_category_only_are_named():
    score, few, _, proxy = drawn_values(8)
    both = powered(columns_of(score, few, proxy, categories=["poems"] * 100 + ["sums"] * 100))
    assert both.proxy.categories_without_gold == ("sums",)
    assert both.proxy.population.differs
    mixed = powered(columns_of(score, few, proxy, categories=["poems", "sums"] * 100))
    assert mixed.proxy.categories_without_gold == ()
    assert not mixed.proxy.population.differs


def test_too_few_prompts_with_gold_values_and_a_copy_of_them_are_refused():
    score, few, gold, proxy = drawn_values(9)
    with pytest.raises(EvidenceError, match="is a copy"):
        powered(columns_of(score, few, gold))
    few[1:] = np.nan
    with pytest.raises(EvidenceError, match="1 prompt has gold values of 5 candidates"):
        powered(columns_of(score, few, proxy))


def test_win_rates_are_corrected_by_the_proxy_too():
    score, few, gold, proxy = drawn_values(10, num_prompts=1000)
    win, proxy_win = (few > 0.5).astype(float), (proxy > 40 + 9 * 0.5).astype(float)
    win[60:] = np.nan
    columns = columns_of(score, few, proxy, win=win, proxy_win=proxy_win)
    both = estimate_ppi_wins(columns, (1, 2, 5), **DRAWING)
    assert both.num_wins == 60
    for rate, budget in zip(both.wins, (1, 2, 5), strict=True):
        budgets = tuple(sorted({budget, 5}))
        prompt = np.repeat(np.arange(1000), 5)
        truth = curve_table(prompt, score.ravel(), (gold > 0.5).ravel().astype(float), 1000, budgets=budgets)
        assert 0 <= rate.win_rate.low <= truth.chosen[:, 0].mean() <= rate.win_rate.high <= 1
    assert estimate_ppi_wins(columns_of(score, few, proxy, win=win), (1, 2, 5), **DRAWING) is None


def test_intervals_hold_the_expected_curve_and_equal_points_show_no_fall():
    """95% of 60 samples; 51 have a probability of 0.01 by the binomial distribution, and 8 false alarms 0.01."""
    covered, called = np.zeros(3), 0
    for seed in range(60):
        random = generator(seed, "coverage")
        effect = random.normal(size=(120, 1))
        gold = effect + random.normal(size=(120, 3))
        proxy = 3 * (gold + random.normal(size=gold.shape)) + effect
        gold[40:] = np.nan
        curve = powered(columns_of(random.normal(size=gold.shape), gold, proxy), num_resamples=200)
        # Scores without a relation to gold: the expectation is 0 at every N.
        covered += (ends_of(curve)[:, 0] <= 0) & (ends_of(curve)[:, 1] >= 0)
        called += bool(curve.peak.falls or curve.peak.rises)
    assert (covered > 51).all()
    assert called < 8


def test_a_summary_has_the_same_numbers_for_the_same_seed():
    score, few, _, proxy = drawn_values(11)
    columns = columns_of(score, few, proxy)
    assert asdict(powered(columns)) == asdict(powered(columns))
