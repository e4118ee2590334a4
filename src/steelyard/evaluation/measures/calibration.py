"""Calibration of rewards as Bradley-Terry probabilities: calibration error, Brier score, log-loss, temperature.

Under Bradley and Terry, P(better answer wins) = sigmoid(d), where d is its reward minus the other's. *Confidence* is
the larger of the two probabilities, sigmoid(|d|). It is calibrated if a share c of the pairs with confidence c is right
(half of the pairs with d = 0). Every pair has equal weight.
"""

from math import isnan, sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats, Integers, generator, ratio, sigmoid, softplus
from steelyard.core.types import Record
from steelyard.evaluation.measure import Measure, Needs, ResampledBench
from steelyard.evaluation.tables import (
    DECIMAL,
    Figure,
    Grouped,
    Mark,
    Panel,
    Table,
    decimal,
    table,
    word,
)
from steelyard.evaluation.vega import MODEL_COLOURS, MUTED, Spec, colour_of, framed, value_tips
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import (
    ALL_EQUAL,
    POSITIVE,
    SHARE,
    Estimate,
    Evidence,
    Scale,
    interval,
    needs_prompts,
)
from steelyard.statistics.prompt_means import estimate_ratio
from steelyard.statistics.temperature import InverseTemperature, fit_inverse_temperature

TEXT = {
    "calibration": {"en": "Calibration of rewards", "zh": "奖励的校准"},
    "raw_rewards": {"en": "raw rewards", "zh": "原始奖励"},
    "with_temperature": {"en": "cross-fitted temperature", "zh": "交叉拟合温度"},
    "rewards_column": {"en": "Rewards", "zh": "奖励"},
    "calibration_error": {"en": "Calibration error", "zh": "校准误差"},
    "brier": {"en": "Brier score", "zh": "Brier 分数"},
    "log_loss": {"en": "Log-loss", "zh": "对数损失"},
    "confidence": {"en": "Confidence: sigmoid of the difference", "zh": "置信度：分差的 sigmoid"},
    "share_right": {"en": "Share of right pairs", "zh": "排序正确的比例"},
    "why_all_pairs_are_tied": {"en": "no interval: all pairs are tied", "zh": "无区间：所有偏好对都同分"},
    "why_some_resamples_have_no_temperature": {
        "en": "no interval: some resamples have no temperature",
        "zh": "无区间：部分重抽样没有最优温度",
    },
    "note_calibration": {
        "en": "Pairs in ten bins of equal size by confidence. On the dashed line, 80% of the pairs with a confidence "
        "of 80% are right. Below it the model is overconfident.",
        "zh": "按置信度把偏好对等分为十组。落在虚线上表示置信度 80% 的偏好对有 80% 排序正确；低于虚线说明模型过于自信"
        "。",
    },
    "figure_reliability": {"en": "Share of right pairs by confidence", "zh": "各置信度下排序正确的比例"},
    "define_calibration_error": {
        "en": "The mean distance between confidence and the share of right pairs, over ten bins of equal size.",
        "zh": "十个等量分组上，置信度与排序正确的比例之间的平均距离。",
    },
}
NUM_BINS = 10
NUM_FOLDS = 5
_MANY, _STRIDE = 20_000, 16
_FEWEST_CALIBRATED = 60
"""With fewer prompts, losses, temperatures and calibration errors are too skewed for an interval."""
_BRIER_OF_FITTED = SHARE._replace(fewest=_FEWEST_CALIBRATED)
"""A fitted temperature adds variance that resamples at a fixed temperature lack, so more prompts are required."""
_MOST_WITHOUT_TEMPERATURE = 0.025
"""The share of resamples above which the upper end of the temperature is infinite."""
_LOSS = POSITIVE._replace(fewest=_FEWEST_CALIBRATED)


_EQUAL_DISTANCES = 1e-6
"""Resamples of a sum of distances that differ by less are equal up to rounding."""


class Margins(NamedTuple):
    """The better response's reward minus the worse one's, of each pair, and the pair's prompt; shape (pair,)."""

    prompt: Integers
    margin: Floats


class Bin(Record, frozen=True, kw_only=True):
    """A bin of pairs of similar confidence, and the share of right pairs among them."""

    confidence: float
    accuracy: Estimate


class Reliability(Record, frozen=True, kw_only=True):
    """The calibration of the sigmoid of a reward difference as a probability."""

    brier: Estimate
    log_loss: Estimate
    expected_calibration_error: Estimate
    curve: tuple[Bin, ...]


class Calibration(Reliability, frozen=True, kw_only=True):
    """The reliability of the raw rewards, and ``cross_validated`` with the temperature fitted on other prompts."""

    temperature: Estimate
    cross_validated: Reliability


def estimate(resampled: ResampledBench) -> Calibration:
    """Estimate the calibration of a bench's rewards."""
    values = resampled.bench.values
    margins = Margins(resampled.rows[resampled.bench.columns.prompt], values.better - values.worse)
    return calibration(resampled.blocks, margins, seed=resampled.seed)


def calibration(blocks: Blocks, margins: Margins, *, seed: int) -> Calibration:
    """Estimate the reliability of the raw rewards, and of the rewards with a cross-fitted temperature.

    The temperature of a pair is fitted on the four fifths of the prompts that do not contain the pair.
    """
    # A warm start from every 16th pair saves most of the steps over all pairs.
    start = fit_inverse_temperature(margins.margin[::_STRIDE]).value if len(margins.margin) > _MANY else None
    inverse_temperature = fit_inverse_temperature(margins.margin, start)
    fitted = out_of_fold(blocks, margins, inverse_temperature.value, seed=seed)
    raw = reliability(blocks, margins, SHARE)
    return Calibration(
        brier=raw.brier,
        log_loss=raw.log_loss,
        expected_calibration_error=raw.expected_calibration_error,
        curve=raw.curve,
        temperature=_temperature(blocks, margins, inverse_temperature),
        cross_validated=reliability(blocks, Margins(margins.prompt, fitted), _BRIER_OF_FITTED),
    )


def out_of_fold(blocks: Blocks, margins: Margins, start: float, *, seed: int) -> Floats:
    """Return each margin times the factor fitted on the other folds; parallel items are in the same fold."""
    num_units = int(blocks.unit.max()) + 1
    fold = np.arange(num_units) % NUM_FOLDS
    generator(seed, "folds of calibration").shuffle(fold)
    fold_of_pair = fold[blocks.unit[margins.prompt]]
    fitted = np.zeros_like(margins.margin)
    for number in np.unique(fold_of_pair).tolist():
        held_out = fold_of_pair == number
        others = margins.margin[~held_out]
        factor = fit_inverse_temperature(others, start or None).value if len(others) else 1.0
        fitted[held_out] = margins.margin[held_out] * factor
    return fitted


def reliability(blocks: Blocks, margins: Margins, brier: Scale) -> Reliability:
    """Estimate Brier score, log-loss and reliability curve; ``brier`` is the scale of the first."""
    win, size = sigmoid(margins.margin), len(margins.margin)
    evidence = _evidence(blocks, margins.prompt)

    def mean(column: Floats, scale: Scale) -> Estimate:
        sums = add_up(blocks, Terms(margins.prompt, one_group(size), [column, np.ones(size)]), 1)
        return estimate_ratio(sums, size, evidence, scale)

    error, curve = _reliability_curve(blocks, margins)
    return Reliability(
        brier=mean((1 - win) ** 2, brier),
        log_loss=mean(softplus(-margins.margin), _LOSS),
        expected_calibration_error=error,
        curve=curve,
    )


def _evidence(blocks: Blocks, prompt: Integers) -> Evidence:
    """Return the evidence behind a mean over the pairs of these prompts."""
    num_pairs = np.bincount(prompt, minlength=len(blocks.block))
    return evidence_of(blocks, one_group(len(num_pairs)), num_pairs)


def _reliability_curve(blocks: Blocks, margins: Margins) -> tuple[Estimate, tuple[Bin, ...]]:
    """Return the expected calibration error over bins of equally many pairs, and the bins."""
    confidence = sigmoid(np.abs(margins.margin))
    # A tie has confidence 0.5: half right makes an uninformative model calibrated.
    right = np.where(margins.margin > 0, 1.0, np.where(margins.margin == 0, 0.5, 0.0))
    place, num_bins = equal_mass_bins(confidence)
    sums = add_up(blocks, Terms(margins.prompt, place, [confidence, right, np.ones(len(place))]), num_bins)
    curve = []
    for number in range(num_bins):
        in_bin = Sums(sums.point[number : number + 1, 1:], sums.resampled[:, number : number + 1, 1:])
        evidence, n = _evidence(blocks, margins.prompt[place == number]), sums.point[number, 2]
        accuracy = estimate_ratio(in_bin, n, evidence, SHARE)
        if not margins.margin[place == number].any():
            accuracy = accuracy.without_interval("all pairs are tied")
        curve.append(Bin(confidence=float(sums.point[number, 0] / n), accuracy=accuracy))
    gaps, drawn = (ratio(part[..., 0] - part[..., 1], part[..., 2].sum(axis=-1, keepdims=True)) for part in sums)
    evidence, n = _evidence(blocks, margins.prompt), sums.point[:, 2].sum()
    return _distance_interval(gaps, drawn, n, evidence, fewest=_FEWEST_CALIBRATED), tuple(curve)


def _distance_interval(gaps: Floats, resampled: Floats, n: float, evidence: Evidence, *, fewest: int) -> Estimate:
    """Return the sum of absolute gaps, between 0 and 1; ``gaps`` has shape (gap,), ``resampled`` (resample, gap).

    By the triangle inequality the sum differs from the true one by at most the summed errors of the gaps. The 95%
    quantile of that bound over the resamples is the half-width. It is conservative where the true gaps are near 0,
    because noise makes every distance larger there.
    """
    value = float(np.abs(gaps).sum())
    bare = Estimate(None if isnan(value) else value, None, None, int(n))
    if bare.value is None:
        return bare
    if evidence.units < fewest:
        return bare.without_interval(needs_prompts(fewest))
    half_width = float(np.nanquantile(np.abs(resampled - gaps).sum(axis=-1), 0.95) * sqrt(evidence.inflation))
    if half_width < _EQUAL_DISTANCES:
        return bare.without_interval(ALL_EQUAL)
    low, high = max(0.0, value - half_width), min(1.0, value + half_width)
    return replace(bare, low=low, high=high, method="triangle inequality")


def equal_mass_bins(values: Floats) -> tuple[Integers, int]:
    """Return the bin of each value and the number of bins, at most `NUM_BINS` of about equal size.

    Equal values share a bin, so bins can be fewer and of unequal size.
    """
    if not len(values):
        return np.zeros(0, np.int64), 0
    edges = np.quantile(values, np.arange(1, NUM_BINS) / NUM_BINS)
    place = np.searchsorted(edges, values, side="left")
    is_used = np.bincount(place, minlength=NUM_BINS) > 0
    return (np.cumsum(is_used) - 1)[place], int(is_used.sum())


def _temperature(blocks: Blocks, margins: Margins, inverse_temperature: InverseTemperature) -> Estimate:
    """Return 1 / inverse temperature on all pairs; null without a finite minimum.

    Each resample takes one Newton step from the fit. The estimate has no interval where the rewards hardly separate
    better from worse answers.
    """
    size = len(margins.margin)
    if not inverse_temperature.is_inside or inverse_temperature.value <= 0:
        return Estimate(None, None, None, size)
    scaled = inverse_temperature.value * margins.margin
    miss = sigmoid(-scaled)
    terms = Terms(margins.prompt, one_group(size), [miss * scaled, miss * (1 - miss) * scaled**2])
    slope, curvature = np.moveaxis(add_up(blocks, terms, 1).resampled[:, 0], -1, 0)
    factor = 1 + ratio(slope, curvature)
    drawn = ratio(np.ones_like(factor), factor) / inverse_temperature.value
    value = 1 / inverse_temperature.value
    temperature = interval(value, drawn, size, _evidence(blocks, margins.prompt), _LOSS._replace(unit=value))
    # A resample with an inverse temperature of 0 or less has an infinite temperature: the upper end would be infinite.
    if temperature.low is not None and (factor <= 0).mean() > _MOST_WITHOUT_TEMPERATURE:
        return temperature.without_interval("some resamples have no temperature")
    return temperature


def calibration_panel(summary: Calibration) -> Panel:
    """Return the reliability figure with its table."""
    tables = (Grouped("", calibration_table(summary)),)
    return Panel(word("calibration"), reliability_figure(summary), tables, "note_calibration")


def calibration_table(summary: Calibration) -> Table:
    """Return calibration error, Brier score and log-loss of the raw rewards and with a cross-fitted temperature."""
    temperature = summary.temperature
    ends = "" if temperature.value is None else f" ({DECIMAL.interval(temperature)})"
    titles = (word("raw_rewards"), f"{word('with_temperature')} {decimal(temperature.value)}{ends}")
    rows = [
        (
            title,
            *DECIMAL.cells(part.expected_calibration_error),
            *DECIMAL.cells(part.brier),
            *DECIMAL.cells(part.log_loss),
        )
        for title, part in zip(titles, (summary, summary.cross_validated), strict=True)
    ]
    columns = ("rewards_column", "calibration_error", "interval", "brier", "interval", "log_loss", "interval")
    return table(columns, rows)


_CONFIDENCE: Spec = {
    "field": "confidence",
    "type": "quantitative",
    "scale": {"domain": [0.5, 1]},
    "axis": {"title": word("confidence"), "format": ".0%", "tickCount": 6},
}
_SHARE_RIGHT: Spec = {
    "field": "value",
    "type": "quantitative",
    "scale": {"domain": [0, 1]},
    "axis": {"title": word("share_right"), "format": ".0%", "tickCount": 6},
}


def reliability_figure(summary: Calibration) -> Figure | None:
    """Draw the share of right pairs by confidence with intervals; the dashed line is perfect calibration."""
    marks = (
        Mark(word("raw_rewards"), MODEL_COLOURS[0], "circle"),
        Mark(word("with_temperature"), MODEL_COLOURS[1], "circle"),
    )
    values = [
        {
            "series": mark.name,
            "confidence": point.confidence,
            "value": point.accuracy.value,
            "low": point.accuracy.low,
            "high": point.accuracy.high,
            "n": point.accuracy.n,
        }
        for mark, curve in zip(marks, (summary.curve, summary.cross_validated.curve), strict=True)
        for point in curve
        if point.accuracy.value is not None
    ]
    if not values:
        return None
    shown = {"color": colour_of(marks), "tooltip": value_tips("confidence", "confidence", ".1%", ".1%")}
    ends = {"y": {**_SHARE_RIGHT, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        {
            "data": {"values": [{"confidence": 0.5, "value": 0.5}, {"confidence": 1, "value": 1}]},
            "mark": {"type": "line", "strokeDash": [4, 4], "color": MUTED, "aria": False},
            "encoding": {"x": _CONFIDENCE, "y": _SHARE_RIGHT},
        },
        {
            "data": {"values": values},
            "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.4, "strokeCap": "round"},
            "encoding": {"x": _CONFIDENCE, **ends, **shown},
        },
        {
            "data": {"values": values},
            "mark": {"type": "line", "strokeWidth": 1.6, "point": {"filled": True, "size": 55}},
            "encoding": {"x": _CONFIDENCE, "y": _SHARE_RIGHT, **shown},
        },
    ]
    return Figure("figure_reliability", framed(layers, 260), marks)


MEASURE = Measure(
    order=60,
    summary=Calibration,
    estimate=estimate,
    text=TEXT,
    needs=Needs(rewards=True),
    panels=lambda summary: (calibration_panel(summary),),
)
