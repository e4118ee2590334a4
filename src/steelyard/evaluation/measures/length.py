"""Accuracy that length cannot explain: pairs of like length, pairs whose better answer is not longer, and a regression.

The regression is a logistic one of "the pair is right" on the logarithm of the ratio of the two lengths,

    logit P(right) = intercept + slope * ln(better length / worse length),

over all pairs alike; at ratio 1 what it expects is the sigmoid of the intercept: accuracy if no answer were longer.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.arrays import Booleans, Floats, Integers, sigmoid, softplus
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Estimate, interval
from steelyard.statistics.prompt_means import Ratio, summarise

MATCHED_RATIO = 1.1
"""Two lengths match where the longer one is at most so many times the shorter, unless another ratio is asked for."""
_FEWEST, _SHARE, _GLANCE = 5, 0.25, 2000
_FEWEST_PROMPTS = 60
_ENDS = ("value", "low", "high")
_PENALTY = 1e-3
_STEPS = 60
_MANY, _STRIDE = 20_000, 16
_ENOUGH, _NEAR = 1e-10, 1e-6


class Outcomes(NamedTuple):
    """Pairs: their prompt, whether they are right (a tie is wrong), and lengths in code points; shape (pair,).

    Two lengths match where the longer one is at most ``matched_ratio`` times the shorter.
    """

    prompt: Integers
    is_right: Booleans
    better_length: Integers
    worse_length: Integers
    matched_ratio: float = MATCHED_RATIO

    @property
    def log_ratio(self) -> Floats:
        """ln((better + 1) / (worse + 1)): an empty answer has a length too."""
        return np.log((self.better_length + 1) / (self.worse_length + 1))

    @property
    def is_matched(self) -> Booleans:
        """Whether the two lengths are alike."""
        longer = np.maximum(self.better_length, self.worse_length)
        return longer <= self.matched_ratio * np.minimum(self.better_length, self.worse_length)


WhyNot = Literal["one length ratio", "all right", "all wrong", "length alone"]


class Fit(NamedTuple):
    """Intercept and slope of the logistic regression."""

    intercept: float
    slope: float


def length_report(blocks: Blocks, outcomes: Outcomes) -> dict[str, Any]:
    """Accuracy as it is and beside it: of matched pairs, of pairs by which answer is longer, and at no difference.

    ``adjusted`` and ``slope`` are over all pairs alike; ``raw`` holds both kinds of mean. A slope above 0: the model is
    right more often where the better answer is the longer one.
    """
    longer = outcomes.better_length > outcomes.worse_length
    chosen = {
        "raw": np.ones(len(longer), np.bool_),
        "matched": outcomes.is_matched,
        "better_not_longer": ~longer,
        "better_longer": longer,
    }
    report = summarise(blocks, {name: _accuracy(blocks, outcomes, own) for name, own in chosen.items()})
    return {"matched_ratio": outcomes.matched_ratio, **report, **_adjusted(blocks, outcomes)}


def fit_logistic(ratio: Floats, is_right: Booleans) -> Fit:
    """The regression by Newton's method, with a penalty of 0.0005 x (intercept² + slope²) that keeps it finite."""
    beta = np.zeros(2)
    if len(ratio) > _MANY:  # a part of the pairs leads close to the end at little cost
        beta = np.array([*fit_logistic(ratio[::_STRIDE], is_right[::_STRIDE])], np.float64)
    best = _loss(beta, ratio, is_right)
    for _ in range(_STEPS):
        gradient, hessian = _slopes(beta, ratio, is_right)
        step: Floats = np.linalg.solve(hessian, gradient).astype(np.float64)
        found = _loss(beta + step, ratio, is_right)
        while found > best + _ENOUGH and np.abs(step).max() > _ENOUGH:
            step = step / 2
            found = _loss(beta + step, ratio, is_right)
        beta, best = beta + step, found
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


def _accuracy(blocks: Blocks, outcomes: Outcomes, chosen: Booleans) -> Ratio:
    num_prompts = len(blocks.block)
    right = np.bincount(outcomes.prompt[chosen & outcomes.is_right], minlength=num_prompts)
    return Ratio(
        right.astype(np.float64),
        np.bincount(outcomes.prompt[chosen], minlength=num_prompts).astype(np.float64),
        SHARE,
    )


def _adjusted(blocks: Blocks, outcomes: Outcomes) -> dict[str, Any]:
    """The regression; in each resample one Newton step is taken from the fit, which is exact to the order of 1 / n.

    Null, with ``why``, where it can tell nothing of pairs of one length.
    """
    ratio, size = outcomes.log_ratio, len(outcomes.prompt)
    why = why_not(ratio, outcomes.is_right)
    if why is not None:
        nothing = Estimate(None, None, None, size).record() | {"why": why}
        return {"adjusted": nothing, "slope": nothing}
    fit = fit_logistic(ratio, outcomes.is_right)
    expected = sigmoid(fit.intercept + fit.slope * ratio)
    left, weight = outcomes.is_right - expected, expected * (1 - expected)
    columns = [left, left * ratio, weight, weight * ratio, weight * ratio**2]
    drawn = _one_step(fit, add_up(blocks, Terms(outcomes.prompt, one_group(size), columns), 1))
    counted = np.bincount(outcomes.prompt, minlength=len(blocks.block)) > 0
    evidence = evidence_of(blocks, one_group(len(counted)), counted)
    scale = UNBOUNDED._replace(fewest=_FEWEST_PROMPTS)
    # The interval is formed on the logit, where the intercept is nearly normal, and read off the sigmoid.
    intercept = interval(fit.intercept, drawn[:, 0], size, evidence, scale)
    return {
        "adjusted": replace(intercept, **{name: _sigmoid(getattr(intercept, name)) for name in _ENDS}).record(),
        "slope": interval(fit.slope, drawn[:, 1], size, evidence, scale).record(),
    }


def _sigmoid(value: float | None) -> float | None:
    return None if value is None else float(sigmoid(np.array(value)))


def _one_step(fit: Fit, sums: Sums) -> Floats:
    """Intercept and slope in each resample, shape (resample, 2)."""
    one, two, flat, mixed, square = np.moveaxis(sums.resampled[:, 0], -1, 0)
    one, two = one - _PENALTY * fit.intercept, two - _PENALTY * fit.slope
    flat, square = flat + _PENALTY, square + _PENALTY
    determinant = flat * square - mixed**2
    steps = np.stack([square * one - mixed * two, flat * two - mixed * one], axis=-1) / determinant[:, None]
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
