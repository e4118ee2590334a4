"""Accuracy that length cannot explain: pairs of like length, pairs whose better answer is not longer, and a regression.

The regression is a logistic one of "the pair is right" on the logarithm of the ratio of the two lengths,

    logit P(right) = intercept + slope * ln(better length / worse length),

over all pairs alike; at ratio 1 what it expects is the sigmoid of the intercept: accuracy if no answer were longer.
"""

from collections.abc import Iterator, Mapping
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
from steelyard.evaluation.tables import plain_row, plain_value, word
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Estimate, interval
from steelyard.statistics.prompt_means import Ratio

TEXT = {
    "as_it_is": {"en": "Accuracy as it is", "zh": "原始准确率"},
    "like_length": {"en": "Accuracy at like length", "zh": "长度相近时的准确率"},
    "no_difference": {"en": "Accuracy at no length difference", "zh": "长度差为零时的准确率"},
    "better_not_longer": {"en": "Accuracy, better one not longer", "zh": "更好者不更长时的准确率"},
    "better_longer": {"en": "Accuracy, better one longer", "zh": "更好者更长时的准确率"},
    "why_length_alone": {"en": "not told: the model is length alone", "zh": "无法给出：该模型只看长度"},
    "why_one_length_ratio": {
        "en": "not told: all pairs have one ratio of lengths",
        "zh": "无法给出：所有偏好对的长度比相同",
    },
    "why_all_right": {"en": "not told: all pairs are right", "zh": "无法给出：全部排序正确"},
    "why_all_wrong": {"en": "not told: all pairs are wrong", "zh": "无法给出：全部排序错误"},
    "define_no_difference": {
        "en": "What a logistic regression of “right” on the logarithm of the two lengths' ratio expects where both "
        "are equally long.",
        "zh": "以两段长度之比的对数对“排序正确”做逻辑回归，在两者等长处的预期值。",
    },
}
_FEWEST, _SHARE, _GLANCE = 5, 0.25, 2000
_FEWEST_PROMPTS = 60
_PENALTY = 1e-3
_STEPS = 60
_MANY, _STRIDE = 20_000, 16
_ENOUGH, _NEAR = 1e-10, 1e-6
_WIDTH = 26


class LengthAccuracy(Record, frozen=True, kw_only=True):
    """Accuracy as it is and beside it: of matched pairs, by which answer is longer, and at no difference in length.

    Two lengths match where the longer one is at most ``matched_ratio`` times the shorter. ``adjusted`` and ``slope``
    are the regression's, over all pairs alike; a slope above 0: the model is right more often where the better answer
    is the longer one.
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
        """ln((better + 1) / (worse + 1)): an empty answer has a length too."""
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
    """Return the same for pairs by their prompt among the resampled ones."""
    longer = pairs.better > pairs.worse
    chosen = {"matched": pairs.is_matched(matched_ratio), "better_not_longer": ~longer, "better_longer": longer}
    means = grouped_means(blocks, {name: _accuracy(blocks, pairs, selected) for name, selected in chosen.items()})
    adjusted, slope = _regression(blocks, pairs)
    return LengthAccuracy(matched_ratio=matched_ratio, raw=raw, **means, adjusted=adjusted, slope=slope)


def fit_logistic(ratio: Floats, is_right: Booleans) -> Fit:
    """The regression by Newton's method, with a penalty of 0.0005 x (intercept² + slope²) that keeps it finite."""
    beta = np.zeros(2)
    if len(ratio) > _MANY:  # a part of the pairs leads close to the end at little cost
        beta = np.array([*fit_logistic(ratio[::_STRIDE], is_right[::_STRIDE])], np.float64)
    best = _loss(beta, ratio, is_right)
    for _ in range(_STEPS):
        gradient, hessian = _slopes(beta, ratio, is_right)
        step: Floats = np.linalg.solve(hessian, gradient).astype(np.float64)
        loss = _loss(beta + step, ratio, is_right)
        while loss > best + _ENOUGH and np.abs(step).max() > _ENOUGH:
            step = step / 2
            loss = _loss(beta + step, ratio, is_right)
        beta, best = beta + step, loss
        if np.abs(step).max() < _NEAR:
            break
    return Fit(float(beta[0]), float(beta[1]))


def why_not(ratio: Floats, is_right: Booleans) -> WhyNot | None:
    """What keeps the regression from telling anything: one length ratio, one outcome, or length alone; else null.

    Length alone: some cut of the length ratio has all right pairs on one side and all wrong ones on the other, but for
    a few (fewer than `_FEWEST`, and than `_SHARE` of the rarer outcome). Then the slope that fits best is without
    bound, or rests on those few pairs, and the accuracy at ratio 1 is the penalty's and not the model's.
    """
    num_right = int(is_right.sum())
    if not len(ratio) or np.ptp(ratio) == 0:
        return "one length ratio"
    if num_right in (0, len(ratio)):
        return "all right" if num_right else "all wrong"
    part = slice(None, None, max(1, len(ratio) // _GLANCE))
    if num_misplaced(ratio[part], is_right[part]) >= _FEWEST:  # of all pairs no cut misplaces fewer than of a part
        return None
    rarer = min(num_right, len(ratio) - num_right)
    num_beyond = num_misplaced(ratio, is_right)
    return "length alone" if num_beyond < min(_FEWEST, _SHARE * rarer) else None


def num_misplaced(ratio: Floats, is_right: Booleans) -> int:
    """How many pairs the best cut of the length ratio has on the wrong side, whichever side is the right pairs'.

    A pair at the cut itself may stand on either side, as in quasi-complete separation (Albert and Anderson, 1984).
    """
    fewest = len(ratio)
    for above in (is_right, ~is_right):
        # Of equal ratios those that belong below come first, so that a cut among them leaves each on its own side.
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
    """Return accuracy at no difference in length, and the slope; null, with ``why``, where nothing can be estimated.

    In each resample one Newton step is taken from the fit, which is exact to the order of 1 / n.
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
    counted = np.bincount(pairs.prompt, minlength=len(blocks.block)) > 0
    evidence = evidence_of(blocks, one_group(len(counted)), counted)
    scale = UNBOUNDED._replace(fewest=_FEWEST_PROMPTS)
    # The interval is formed on the logit, where the intercept is nearly normal, and read off the sigmoid.
    intercept = interval(fit.intercept, drawn[:, 0], size, evidence, scale)
    adjusted = intercept.transformed(lambda logit: float(sigmoid(np.array(logit))))
    return adjusted, interval(fit.slope, drawn[:, 1], size, evidence, scale)


def _one_step(fit: Fit, sums: Sums) -> Floats:
    """Intercept and slope in each resample, shape (resample, 2)."""
    first, second, flat, mixed, square = np.moveaxis(sums.resampled[:, 0], -1, 0)
    first, second = first - _PENALTY * fit.intercept, second - _PENALTY * fit.slope
    flat, square = flat + _PENALTY, square + _PENALTY
    determinant = flat * square - mixed**2
    steps = np.stack([square * first - mixed * second, flat * second - mixed * first], axis=-1) / determinant[:, None]
    return np.array([fit.intercept, fit.slope]) + steps


def _slopes(beta: Floats, ratio: Floats, is_right: Booleans) -> tuple[Floats, Floats]:
    """The gradient of the penalised log-likelihood, and its negative second derivatives."""
    expected = sigmoid(beta[0] + beta[1] * ratio)
    left, weight = is_right - expected, expected * (1 - expected)
    gradient = np.array([left.sum(), left @ ratio]) - _PENALTY * beta
    mixed = weight @ ratio
    return gradient, np.array([[weight.sum(), mixed], [mixed, weight @ ratio**2]]) + _PENALTY * np.eye(2)


def _loss(beta: Floats, ratio: Floats, is_right: Booleans) -> float:
    margin = np.where(is_right, 1.0, -1.0) * (beta[0] + beta[1] * ratio)
    return float(softplus(-margin).sum() + _PENALTY / 2 * (beta @ beta))


def columns(bench: ScoredBench) -> dict[str, list[float | None]]:
    """Return how many pairs of each case match in length, and how many of these are right."""
    pairs, num_cases = pair_lengths(bench), len(bench.columns.start)
    matched = pairs.is_matched(bench.matched_ratio)
    chosen = {"num_matched": matched, "num_matched_correct": matched & pairs.is_right}
    return {
        name: np.bincount(pairs.prompt[selected], minlength=num_cases).tolist() for name, selected in chosen.items()
    }


def paired(columns: Mapping[str, Floats]) -> dict[str, Ratio]:
    """Return the accuracy on matched pairs."""
    return {"accuracy_length_matched": Ratio(columns["num_matched_correct"], columns["num_matched"], SHARE)}


_WHY_NOT: dict[str | None, str] = {
    "length alone": "the model is length alone, which says which pairs are right",
    "one length ratio": "all pairs have one ratio of lengths",
    "all right": "all pairs are right",
    "all wrong": "all pairs are wrong",
}


def lines(summary: LengthAccuracy) -> Iterator[str]:
    """Yield the lines of the terminal: accuracy on matched pairs, and at no difference in length."""
    matched, adjusted = summary.matched.macro, summary.adjusted
    if matched.value is not None:
        yield plain_row(f"accuracy, lengths 1:{summary.matched_ratio:g}", matched, f"  n={matched.n:,}")
    if adjusted.value is not None:
        remark = f"; as it is {plain_value(summary.raw.micro.value)} over all pairs"
        yield plain_row("  at no length difference", adjusted, remark)
    else:
        yield f"{'  at no length difference':{_WIDTH}} not told: {_WHY_NOT[adjusted.why]}"


def rows(summary: LengthAccuracy) -> tuple[MeasureRow, ...]:
    """Return the rows of the table of measures."""
    return (
        means_row(word("as_it_is"), summary.raw),
        means_row(f"{word('like_length')} (1:{summary.matched_ratio:g})", summary.matched),
        MeasureRow(word("no_difference"), None, summary.adjusted),
        means_row(word("better_not_longer"), summary.better_not_longer),
        means_row(word("better_longer"), summary.better_longer),
    )


MEASURE = Measure(
    order=40,
    summary=LengthAccuracy,
    estimate=estimate,
    text=TEXT,
    lines=lines,
    rows=rows,
    columns=columns,
    column_names=("num_matched", "num_matched_correct"),
    paired=paired,
    paired_titles=(("accuracy_length_matched", "accuracy at like length"),),
)
