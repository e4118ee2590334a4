"""Best-of-N: the gold value of the response with the highest score among N, for every N, and where the curve peaks.

N of a prompt's k responses are drawn without replacement, all subsets with equal probability, and the one with the
highest score is selected (at random among equal scores). The expectation is exact: of k responses sorted by score, the
one at place i (from 0) is the highest of the N drawn with probability C(i, N - 1) / C(k, N).

All points of a curve are of the same prompts and the same resamples, so that they can be compared. A curve that rises
and then falls shows over-optimisation: the scores reward what the gold values do not (Gao, Schulman and Hilton, 2022).
The drop after the peak is tested by the largest of all drops between two points in the recentred resamples: this
corrects for the number of points tested, and for the peak being the largest of them. The lower end of the interval of
a loss is moved by what the peak gains because it is selected, which is the gain of each resample's peak over the data.
"""

from collections.abc import Sequence
from math import ceil, log
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Record
from steelyard.evaluation.columns import prompts_by_size
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Estimate, Evidence, Scale, difference, interval
from steelyard.statistics.prediction_powered import PopulationCheck

_CELLS_AT_A_TIME = 4_000_000
_RESAMPLES_AT_A_TIME = 64
_EVERY = 1024
_STEPS_A_DOUBLING = 8
_LEVEL = 0.05
_ROUNDING = 1e-6
"""Sums of resamples are in single precision: smaller differences, relative to the range of the curve, are none."""


class BestOfNPoint(Record, frozen=True, kw_only=True):
    """The gold value of the selected response at one N, and of the best by gold (``oracle``).

    ``kl_bound``: log N - (N - 1) / N, the largest KL divergence of the selection from the policy. ``loss``: the value
    at the peak minus that here, with ``p`` corrected for all points; both null at the peak. ``gold_only``: the value
    without the proxy; null where there is none.
    """

    n: int
    chosen: Estimate
    oracle: Estimate
    kl_bound: float
    loss: Estimate | None = None
    p: float | None = None
    gold_only: Estimate | None = None


class BestOfNPeak(Record, frozen=True, kw_only=True):
    """The N of the highest mean, with the 95% interval of its place over resamples.

    ``smallest_equal`` and ``largest_equal``: the ends of the range around the peak in which no loss from it is
    significant. ``rises``: whether the peak is significantly above N = 1; ``falls``: whether a later N is significantly
    below the peak. Null where there are too few prompts to test.
    """

    n: int
    low: int | None
    high: int | None
    smallest_equal: int | None
    largest_equal: int | None
    rises: bool | None
    falls: bool | None


class BestOfNProxy(Record, frozen=True, kw_only=True):
    """The share of a proxy in a curve: its values on all ``num_prompts`` prompts, the gold values on some of them.

    ``weight``: the weight λ of the proxy in the gains over a random response, the same for every N; ``level_weight``:
    that in the value of a random response. ``correlation`` and ``level_correlation``: of the proxy's value of a prompt
    with the gold one, of the gain at the largest N and of the random response. At the largest N: ``effective_labels``,
    as how many prompts with gold values alone one of them counts, and ``proxy_only``, the proxy's value on the other
    prompts. ``population``: whether the prompts with gold values look like a random sample;
    ``categories_without_gold`` have none.
    """

    num_prompts: int
    weight: float
    correlation: float
    level_weight: float
    level_correlation: float
    effective_labels: float
    proxy_only: float | None
    population: PopulationCheck
    categories_without_gold: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """True where the proxy has a weight."""
        return bool(self.weight or self.level_weight)


class BestOfNCurve(Record, frozen=True, kw_only=True):
    """A curve on ``num_prompts`` prompts with gold values; ``random`` is the mean of all their responses (N = 1)."""

    num_prompts: int
    random: Estimate
    points: tuple[BestOfNPoint, ...]
    peak: BestOfNPeak
    proxy: BestOfNProxy | None = None

    @property
    def num_covered(self) -> int:
        """The number of prompts that enter the curve."""
        return self.num_prompts if self.proxy is None or not self.proxy.is_used else self.proxy.num_prompts


class BestOfNWins(Record, frozen=True, kw_only=True):
    """The share of prompts on which the response selected among ``n`` beats the baseline's, a tie one half."""

    n: int
    win_rate: Estimate


class BestOfNSummary(Record, frozen=True, kw_only=True):
    """The summary of a selection. ``n``: candidates drawn for OUT/cases.jsonl, null for all.

    ``gold``: the kind of gold values, with the ``dimension`` of ratings, and ``gold_by`` for the kind of raters or
    judges, and ``proxy_by`` for the kind of the proxy: of raters or judges, or scores. ``largest``: the largest N of
    the curve. ``curve`` is null without gold values, ``wins`` without a baseline or without gold values for it.
    """

    n: int | None
    gold: str
    dimension: str | None
    gold_by: str | None
    largest: int | None
    baseline: str | None
    num_pairs: int
    num_next_turns: int
    curve: BestOfNCurve | None = None
    wins: tuple[BestOfNWins, ...] = ()
    num_wins: int = 0
    proxy_by: str | None = None


class CurveTable(NamedTuple):
    """Expected values by prompt at each N, of the selected and of the best response; shape (prompt, budget) both.

    NaN for prompts with fewer responses than the largest N.
    """

    budgets: tuple[int, ...]
    chosen: Floats
    oracle: Floats


def last_drawn(size: int, budgets: Sequence[int]) -> Floats:
    """Return the probability of each sorted place to be the last of N responses drawn: shape (budget, place).

    Every N is at most ``size``. The probability of place i is C(i, N - 1) / C(k, N): N / k at the last place, and one
    place lower (i - N + 1) / i of it. No binomial is formed, which would overflow.
    """
    wanted = np.array(budgets, np.float64)[:, None]
    places = np.arange(size - 1, 0, -1, dtype=np.float64)
    factors = np.maximum(places - wanted + 1, 0.0) / places
    shares: Floats = np.concatenate([wanted / size, factors], axis=1)
    return np.multiply.accumulate(shares, axis=1)[:, ::-1]


def mean_of_ties(score: Floats, value: Floats) -> Floats:
    """Return the values in ascending order of score, averaged over equal scores; shape (prompt, response)."""
    order = np.argsort(score, axis=1, kind="stable")
    scores, values = np.take_along_axis(score, order, 1), np.take_along_axis(value, order, 1)
    is_new = np.ones(scores.shape, np.bool_)
    is_new[:, 1:] = scores[:, 1:] != scores[:, :-1]
    if is_new.all():
        return values
    group = (np.cumsum(is_new.reshape(-1)) - 1).reshape(scores.shape)
    sums = np.bincount(group.reshape(-1), values.reshape(-1))
    return (sums / np.bincount(group.reshape(-1)))[group]


def selected_value(score: Floats, value: Floats, budgets: Sequence[int]) -> Floats:
    """Return the expected value of the response with the highest score of N, shape (prompt, budget).

    ``score`` and ``value`` have shape (prompt, response); every N is at most the number of responses.
    """
    size = score.shape[1]
    ordered = mean_of_ties(score, value)
    step = max(1, _CELLS_AT_A_TIME // max(1, size))
    parts = [ordered @ last_drawn(size, budgets[at : at + step]).T for at in range(0, len(budgets), step)]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(score), 0))


def budgets_from_one(largest: int, *, every: int = _EVERY) -> tuple[int, ...]:
    """Return the values of N of a curve: all up to ``every``, then eight steps a doubling, and the largest."""
    doublings = max(0, ceil(log(max(largest, 1) / every, 2)))
    later = {round(every * 2 ** (step / _STEPS_A_DOUBLING)) for step in range(doublings * _STEPS_A_DOUBLING + 1)}
    return tuple(sorted({budget for budget in {*range(1, every + 1), *later, largest} if 1 <= budget <= largest}))


def largest_shared(sizes: Integers, share: float) -> int:
    """Return the largest N that at least this share of the prompts have as many responses for; 0 without prompts."""
    if not len(sizes):
        return 0
    descending = np.sort(sizes)[::-1]
    return int(descending[max(0, ceil(share * len(sizes) - 1e-9) - 1)])


def curve_table(
    prompt: Integers, score: Floats, gold: Floats, num_prompts: int, *, budgets: tuple[int, ...]
) -> CurveTable:
    """Compute the curves of all prompts from arrays of shape (response,); ``prompt`` is sorted."""
    chosen, oracle = (np.full((num_prompts, len(budgets)), np.nan) for _ in range(2))
    size, shares = 0, np.zeros((0, 0))
    # About 2,000 prompts at a time stay in the processor's cache, which the product with the shares rewards most.
    for prompts, rows in prompts_by_size(prompt, num_prompts, cells_of=lambda size: max(size, 2048)):
        if rows.shape[1] >= budgets[-1]:
            if rows.shape[1] != size:
                size, shares = rows.shape[1], np.ascontiguousarray(last_drawn(rows.shape[1], budgets).T)
            values = gold[rows]
            chosen[prompts] = mean_of_ties(score[rows], values) @ shares
            oracle[prompts] = np.sort(values, axis=1) @ shares
    return CurveTable(budgets, chosen, oracle)


class DrawnCurve(NamedTuple):
    """The mean over prompts at each N: ``point`` (budget,), and in every resample, (resample, budget)."""

    point: Floats
    resampled: Floats


def draw_curve(blocks: Blocks, values: Floats) -> DrawnCurve:
    """Return the means of the columns of a table of shape (prompt, budget) without NaN, in all resamples."""
    num_prompts = len(values)
    # Centred, because sums in single precision keep seven digits.
    center = values.mean(axis=0)
    columns = [*(values - center).T, np.ones(num_prompts)]
    terms = Terms(np.arange(num_prompts), one_group(num_prompts), columns)
    sums: Sums = add_up(blocks, terms, 1)
    point, resampled = (part[..., 0, :-1] / part[..., 0, -1:] + center for part in sums)
    return DrawnCurve(point, resampled)


class CurveDraws(NamedTuple):
    """The mean curves of the selected and of the best response in the same resamples, and the evidence behind them."""

    chosen: DrawnCurve
    oracle: DrawnCurve
    evidence: Evidence


def draw_curves(blocks: Blocks, table: CurveTable) -> CurveDraws:
    """Return both mean curves of a table without NaN in all resamples."""
    num_prompts = len(table.chosen)
    evidence = evidence_of(blocks, one_group(num_prompts), np.ones(num_prompts))
    return CurveDraws(draw_curve(blocks, table.chosen), draw_curve(blocks, table.oracle), evidence)


def estimate_curve(draws: CurveDraws, table: CurveTable, scale: Scale = UNBOUNDED) -> BestOfNCurve:
    """Estimate the mean curves over the prompts of a table without NaN, and test where they peak and fall."""
    (chosen, oracle, evidence), num_prompts = draws, len(table.chosen)

    def at(drawn: DrawnCurve, place: int) -> Estimate:
        return interval(float(drawn.point[place]), drawn.resampled[:, place], num_prompts, evidence, scale)

    tolerance = _ROUNDING * max(1e-300, float(np.ptp(table.oracle)) if table.oracle.size else 0.0)
    top = first_peak(chosen.point, tolerance)
    p_values = drop_p_values(chosen, top, evidence, tolerance)
    # The peak is the highest place of the sample, and so higher there than in truth: the resamples show by how much.
    tops = chosen.resampled.argmax(axis=1)
    gain = chosen.resampled[np.arange(len(tops)), tops] - chosen.point[tops]
    selection = max(0.0, float(gain.mean())) if len(tops) else 0.0
    distance = np.abs(table.chosen[:, [top]] - table.chosen)
    # Of neighbouring N the differences are small: the range of other N would widen their intervals.
    largest, discordance = distance.max(axis=0, initial=0.0), distance.mean(axis=0)
    points = []
    for place, budget in enumerate(table.budgets):
        loss = None
        if place != top:
            loss = difference(
                float(chosen.point[top] - chosen.point[place]),
                chosen.resampled[:, top] - chosen.resampled[:, place],
                num_prompts,
                evidence,
                discordance=float(discordance[place]),
                largest=float(largest[place]) or 1.0,
            ).estimate
            if evidence.units < UNBOUNDED.fewest:
                loss = loss.without_interval(f"an interval needs {UNBOUNDED.fewest} prompts")
            elif loss.low is not None:
                loss = replace(loss, low=loss.low - selection)
        points.append(
            BestOfNPoint(
                n=budget,
                chosen=at(chosen, place),
                oracle=at(oracle, place),
                kl_bound=log(budget) - (budget - 1) / budget,
                loss=loss,
                p=None if p_values is None or place == top else float(p_values[place]),
            )
        )
    peak = _peak(table.budgets, chosen, top, p_values, tolerance)
    return BestOfNCurve(num_prompts=num_prompts, random=points[0].chosen, points=tuple(points), peak=peak)


def estimate_wins(blocks: Blocks, credits_at: Floats, budgets: Sequence[int]) -> tuple[BestOfNWins, ...]:
    """Estimate the win rate at each N from expected credits without NaN, shape (prompt, budget)."""
    num_prompts = len(credits_at)
    evidence = evidence_of(blocks, one_group(num_prompts), np.ones(num_prompts))
    drawn = draw_curve(blocks, credits_at)
    return tuple(
        BestOfNWins(
            n=budget,
            win_rate=interval(float(drawn.point[place]), drawn.resampled[:, place], num_prompts, evidence, SHARE),
        )
        for place, budget in enumerate(budgets)
    )


def first_peak(curve: Floats, tolerance: float) -> int:
    """Return the first place whose value is the highest up to rounding."""
    return int(np.argmax(curve >= curve.max() - tolerance))


def drop_p_values(drawn: DrawnCurve, top: int, evidence: Evidence, tolerance: float) -> Floats | None:
    """Return the p-value of the loss of each point from the peak; null with too few prompts.

    The statistic of two points is their difference over its standard error. Its reference is the largest of all pairs
    of points in the resamples, each minus its value on the data (max-T; Romano and Wolf, 2005).
    """
    if evidence.units < UNBOUNDED.fewest:
        return None
    num_resamples, size = drawn.resampled.shape
    moved = (drawn.resampled - drawn.point) * np.sqrt(evidence.inflation)
    moved -= moved.mean(axis=0)
    covariance = moved.T @ moved / (num_resamples - 1)
    variance = np.diag(covariance)
    error = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    is_free = error > tolerance
    inverse = np.divide(1.0, error, out=np.zeros_like(error), where=is_free)
    # In single precision, and few resamples at a time, all pairs of a place stay in the processor's cache.
    scale, curves = inverse.astype(np.float32)[:, :, None], moved.T.astype(np.float32)
    highest = np.zeros(num_resamples, np.float32)
    differences = np.empty((size, _RESAMPLES_AT_A_TIME), np.float32)
    for start in range(0, num_resamples, _RESAMPLES_AT_A_TIME):
        chunk = np.ascontiguousarray(curves[:, start : start + _RESAMPLES_AT_A_TIME])
        largest = highest[start : start + _RESAMPLES_AT_A_TIME]
        for place in range(size - 1):
            part = differences[: size - 1 - place, : chunk.shape[1]]
            np.subtract(chunk[place + 1 :], chunk[place], out=part)
            part *= scale[place, place + 1 :]
            np.maximum(largest, np.abs(part, out=part).max(axis=0), out=largest)
    losses = drawn.point[top] - drawn.point
    # Without variance over prompts a difference is that of every prompt.
    statistic = np.where(is_free[top], losses * inverse[top], np.where(losses > tolerance, np.inf, 0.0))
    return ((highest[:, None] >= statistic).sum(axis=0) + 1) / (num_resamples + 1)


def _peak(
    budgets: tuple[int, ...], drawn: DrawnCurve, top: int, p_values: Floats | None, tolerance: float
) -> BestOfNPeak:
    if p_values is None:
        nothing = {"low": None, "high": None, "smallest_equal": None, "largest_equal": None}
        return BestOfNPeak(n=budgets[top], **nothing, rises=None, falls=None)
    highest = drawn.resampled.max(axis=1, keepdims=True)
    places = np.argmax(drawn.resampled >= highest - tolerance, axis=1)
    low, high = np.quantile(places, [0.025, 0.975], method="inverted_cdf").astype(int).tolist()
    lower = np.flatnonzero(p_values < _LEVEL)
    before, after = lower[lower < top], lower[lower > top]
    return BestOfNPeak(
        n=budgets[top],
        low=budgets[low],
        high=budgets[high],
        smallest_equal=budgets[before.max(initial=-1) + 1],
        largest_equal=budgets[after.min(initial=len(budgets)) - 1],
        rises=bool(p_values[0] < _LEVEL and top > 0),
        falls=bool(len(after)),
    )
