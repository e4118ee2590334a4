"""Accuracy that length does not explain: length-matched pairs, pairs by the longer answer, and a regression on length.

The regression is a logistic one of "the pair is right" on the logarithm of the ratio of the two lengths,

    logit P(right) = intercept + slope * ln(better length / worse length),

over all pairs with equal weight. Length-adjusted accuracy is its prediction at equal length: the sigmoid of the
intercept.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers, sigmoid, softplus
from steelyard.core.types import Record
from steelyard.evaluation.measure import (
    GroupedMeans,
    Measure,
    MeasureRow,
    ResampledBench,
    ScoredBench,
    grouped_means,
    means_row,
)
from steelyard.evaluation.tables import word
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Estimate, interval
from steelyard.statistics.prompt_means import Ratio

TEXT = {
    "unadjusted_accuracy": {"en": "Accuracy, all pairs", "zh": "全部偏好对的准确率"},
    "matched_accuracy": {"en": "Length-matched accuracy", "zh": "长度相近时的准确率"},
    "adjusted_accuracy": {"en": "Length-adjusted accuracy", "zh": "长度校正后的准确率"},
    "better_not_longer": {"en": "Accuracy, better answer not longer", "zh": "更好者不更长时的准确率"},
    "better_longer": {"en": "Accuracy, better answer longer", "zh": "更好者更长时的准确率"},
    "why_length_alone": {
        "en": "not estimated: length alone separates right and wrong pairs",
        "zh": "无法估计：仅凭长度即可区分对错",
    },
    "why_one_length_ratio": {
        "en": "not estimated: all pairs have the same ratio of lengths",
        "zh": "无法估计：所有偏好对的长度比相同",
    },
    "why_all_right": {"en": "not estimated: all pairs are right", "zh": "无法估计：全部排序正确"},
    "why_all_wrong": {"en": "not estimated: all pairs are wrong", "zh": "无法估计：全部排序错误"},
    "define_adjusted_accuracy": {
        "en": "The prediction, at equal length, of a logistic regression of “right” on the logarithm of the ratio of "
        "the two lengths.",
        "zh": "以两段长度之比的对数对“排序正确”做逻辑回归，在两者等长处的预测值。",
    },
}
_FEWEST, _SHARE, _GLANCE = 5, 0.25, 2000
"""Length alone: fewer misplaced pairs than both bounds; and the number of pairs of the first, cheap look."""
_FEWEST_PROMPTS = 60
_PENALTY = 1e-3
"""The ridge penalty: far below the information of one pair, so it matters only where the fit has no finite optimum."""
_STEPS = 60
_MANY, _STRIDE = 20_000, 16
_ENOUGH, _NEAR = 1e-10, 1e-6


class LengthAccuracy(Record, frozen=True, kw_only=True):
    """Accuracy of all pairs (``raw``), of length-matched pairs, by the longer answer, and adjusted for length.

    Two lengths match where the longer one is at most ``matched_ratio`` times the shorter. ``adjusted`` and ``slope``
    are of the regression over all pairs. A slope above 0 means that the model is right more often where the better
    answer is longer.
    """

    matched_ratio: float
    raw: GroupedMeans
    matched: GroupedMeans
    better_not_longer: GroupedMeans
    better_longer: GroupedMeans
    adjusted: Estimate
    slope: Estimate


class PairLengths(NamedTuple):
    """Pairs: their prompt, whether they are right (a tie is wrong), and lengths in code points; shape (pair,)."""

    prompt: Integers
    is_right: Booleans
    better: Integers
    worse: Integers

    @property
    def log_ratio(self) -> Floats:
        """ln((better + 1) / (worse + 1)); the added 1 keeps it finite for an empty answer."""
        return np.log((self.better + 1) / (self.worse + 1))

    def is_matched(self, ratio: float) -> Booleans:
        """Return whether the longer of the two lengths is at most ``ratio`` times the shorter."""
        return np.maximum(self.better, self.worse) <= ratio * np.minimum(self.better, self.worse)


WhyNot = Literal["one length ratio", "all right", "all wrong", "length alone"]


class Fit(NamedTuple):
    """Intercept and slope of the logistic regression."""

    intercept: float
    slope: float


def pair_lengths(bench: ScoredBench) -> PairLengths:
    """Return the pairs of a bench; ``prompt`` is the case."""
    columns, values = bench.columns, bench.values
    is_right = values.better > values.worse
    return PairLengths(columns.prompt, is_right, columns.length[columns.better], columns.length[columns.worse])


def estimate(resampled: ResampledBench) -> LengthAccuracy:
    """Estimate accuracy by length, and the regression; ``raw`` is the headline itself."""
    pairs = pair_lengths(resampled.bench)
    pairs = pairs._replace(prompt=resampled.rows[pairs.prompt])
    return length_summary(resampled.blocks, pairs, resampled.bench.matched_ratio, resampled.accuracy)


def length_summary(blocks: Blocks, pairs: PairLengths, matched_ratio: float, raw: GroupedMeans) -> LengthAccuracy:
    """Return the same summary for pairs whose ``prompt`` is a row of the resampled prompts."""
    longer = pairs.better > pairs.worse
    chosen = {"matched": pairs.is_matched(matched_ratio), "better_not_longer": ~longer, "better_longer": longer}
    means = grouped_means(blocks, {name: _accuracy(blocks, pairs, selected) for name, selected in chosen.items()})
    adjusted, slope = _regression(blocks, pairs)
    return LengthAccuracy(matched_ratio=matched_ratio, raw=raw, **means, adjusted=adjusted, slope=slope)


def fit_logistic(ratio: Floats, is_right: Booleans) -> Fit:
    """Fit the regression by Newton's method, with a penalty of 0.0005 x (intercept² + slope²) that keeps it finite."""
    beta = np.zeros(2)
    if len(ratio) > _MANY:
        # A warm start from every 16th pair saves most of the steps over all pairs.
        beta = np.array([*fit_logistic(ratio[::_STRIDE], is_right[::_STRIDE])], np.float64)
    best = _loss(beta, ratio, is_right)
    for _ in range(_STEPS):
        gradient, hessian = _slopes(beta, ratio, is_right)
        step: Floats = np.linalg.solve(hessian, gradient).astype(np.float64)
        loss = _loss(beta + step, ratio, is_right)
        # A full Newton step can overshoot where nearly all pairs are right; halving restores descent.
        while loss > best + _ENOUGH and np.abs(step).max() > _ENOUGH:
            step = step / 2
            loss = _loss(beta + step, ratio, is_right)
        beta, best = beta + step, loss
        if np.abs(step).max() < _NEAR:
            break
    return Fit(float(beta[0]), float(beta[1]))


def why_not(ratio: Floats, is_right: Booleans) -> WhyNot | None:
    """Return why the regression is not identified: one length ratio, one outcome, or length alone; null if it is.

    Length alone: some cut of the length ratio separates right from wrong pairs, except for a few (fewer than `_FEWEST`,
    and than `_SHARE` of the rarer outcome). The best slope is then unbounded or depends on those few pairs, and the
    accuracy at ratio 1 is determined by the penalty.
    """
    num_right = int(is_right.sum())
    if not len(ratio) or np.ptp(ratio) == 0:
        return "one length ratio"
    if num_right in (0, len(ratio)):
        return "all right" if num_right else "all wrong"
    part = slice(None, None, max(1, len(ratio) // _GLANCE))
    # A cut misplaces at least as many of all pairs as of a part of them, so a part can settle the question.
    if num_misplaced(ratio[part], is_right[part]) >= _FEWEST:
        return None
    rarer = min(num_right, len(ratio) - num_right)
    num_beyond = num_misplaced(ratio, is_right)
    return "length alone" if num_beyond < min(_FEWEST, _SHARE * rarer) else None


def num_misplaced(ratio: Floats, is_right: Booleans) -> int:
    """Count the pairs on the wrong side of the best cut of the length ratio, in whichever direction it separates.

    A pair at the cut itself may count on either side, as in quasi-complete separation (Albert and Anderson, 1984).
    """
    fewest = len(ratio)
    for above in (is_right, ~is_right):
        # Among equal ratios, pairs that belong below come first: a cut among them misplaces none of them.
        right = above[np.lexsort((above, ratio))]
        right_below = np.concatenate([[0], np.cumsum(right)])
        wrong_above = (~right).sum() - np.concatenate([[0], np.cumsum(~right)])
        fewest = min(fewest, int((right_below + wrong_above).min()))
    return fewest


def _accuracy(blocks: Blocks, pairs: PairLengths, chosen: Booleans) -> Ratio:
    num_prompts = len(blocks.block)
    right = np.bincount(pairs.prompt[chosen & pairs.is_right], minlength=num_prompts)
    total = np.bincount(pairs.prompt[chosen], minlength=num_prompts)
    return Ratio(right.astype(np.float64), total.astype(np.float64), SHARE)


def _regression(blocks: Blocks, pairs: PairLengths) -> tuple[Estimate, Estimate]:
    """Return length-adjusted accuracy and the slope; null with ``why`` where the regression is not identified.

    Each resample takes one Newton step from the fit, whose error is of order 1 / n.
    """
    ratio, size = pairs.log_ratio, len(pairs.prompt)
    why = why_not(ratio, pairs.is_right)
    if why is not None:
        nothing = Estimate(None, None, None, size, why=why)
        return nothing, nothing
    fit = fit_logistic(ratio, pairs.is_right)
    expected = sigmoid(fit.intercept + fit.slope * ratio)
    residual, weight = pairs.is_right - expected, expected * (1 - expected)
    columns = [residual, residual * ratio, weight, weight * ratio, weight * ratio**2]
    drawn = _one_step(fit, add_up(blocks, Terms(pairs.prompt, one_group(size), columns), 1))
    num_pairs = np.bincount(pairs.prompt, minlength=len(blocks.block))
    evidence = evidence_of(blocks, one_group(len(num_pairs)), num_pairs)
    scale = UNBOUNDED._replace(fewest=_FEWEST_PROMPTS)
    # The interval is formed on the logit, where the intercept is nearly normal, and transformed by the sigmoid.
    intercept = interval(fit.intercept, drawn[:, 0], size, evidence, scale)
    adjusted = intercept.transformed(lambda logit: float(sigmoid(np.array(logit))))
    return adjusted, interval(fit.slope, drawn[:, 1], size, evidence, scale)


def _one_step(fit: Fit, sums: Sums) -> Floats:
    """Return intercept and slope in each resample: one step by the inverse of the 2 x 2 Hessian; (resample, 2)."""
    first, second, flat, mixed, square = np.moveaxis(sums.resampled[:, 0], -1, 0)
    first, second = first - _PENALTY * fit.intercept, second - _PENALTY * fit.slope
    flat, square = flat + _PENALTY, square + _PENALTY
    determinant = flat * square - mixed**2
    steps = np.stack([square * first - mixed * second, flat * second - mixed * first], axis=-1) / determinant[:, None]
    return np.array([fit.intercept, fit.slope]) + steps


def _slopes(beta: Floats, ratio: Floats, is_right: Booleans) -> tuple[Floats, Floats]:
    """Return the gradient of the penalised log-likelihood, and its negative second derivatives."""
    expected = sigmoid(beta[0] + beta[1] * ratio)
    left, weight = is_right - expected, expected * (1 - expected)
    gradient = np.array([left.sum(), left @ ratio]) - _PENALTY * beta
    mixed = weight @ ratio
    return gradient, np.array([[weight.sum(), mixed], [mixed, weight @ ratio**2]]) + _PENALTY * np.eye(2)


def _loss(beta: Floats, ratio: Floats, is_right: Booleans) -> float:
    margin = np.where(is_right, 1.0, -1.0) * (beta[0] + beta[1] * ratio)
    return float(softplus(-margin).sum() + _PENALTY / 2 * (beta @ beta))


def columns(bench: ScoredBench) -> dict[str, list[float | None]]:
    """Return the number of length-matched pairs of each case, and of those that are right."""
    pairs, num_cases = pair_lengths(bench), len(bench.columns.start)
    matched = pairs.is_matched(bench.matched_ratio)
    chosen = {"num_matched": matched, "num_matched_correct": matched & pairs.is_right}
    return {
        name: np.bincount(pairs.prompt[selected], minlength=num_cases).tolist() for name, selected in chosen.items()
    }


def paired(columns: Mapping[str, Floats]) -> dict[str, Ratio]:
    """Return the accuracy on matched pairs."""
    return {"accuracy_length_matched": Ratio(columns["num_matched_correct"], columns["num_matched"], SHARE)}


def rows(summary: LengthAccuracy) -> tuple[MeasureRow, ...]:
    """Return the rows of the table of measures."""
    return (
        means_row(word("unadjusted_accuracy"), summary.raw),
        means_row(f"{word('matched_accuracy')} (1:{summary.matched_ratio:g})", summary.matched),
        MeasureRow(word("adjusted_accuracy"), None, summary.adjusted),
        means_row(word("better_not_longer"), summary.better_not_longer),
        means_row(word("better_longer"), summary.better_longer),
    )


MEASURE = Measure(
    order=40,
    summary=LengthAccuracy,
    estimate=estimate,
    text=TEXT,
    rows=rows,
    columns=columns,
    column_names=("num_matched", "num_matched_correct"),
    paired=paired,
    paired_titles=(("accuracy_length_matched", "length-matched accuracy"),),
)
