"""Accuracy that length cannot explain: pairs of like length, pairs whose better answer is not longer, and a regression.

The regression is a logistic one of "the pair is right" on the logarithm of the ratio of the two lengths,

    logit P(right) = intercept + slope * ln(better length / worse length),

over all pairs alike; at ratio 1 what it expects is the sigmoid of the intercept: accuracy if no answer were longer.
"""

from typing import Any, NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Booleans, Floats, Integers
from steelyard.methods.measures.blocks import Blocks, Sums, Terms, add_up, one_group
from steelyard.methods.measures.estimates import Estimate
from steelyard.methods.measures.logistic import sigmoid, softplus
from steelyard.methods.measures.prompt_means import Ratio, known, summarise

MATCHED_RATIO = 1.1
"""Two lengths match where the longer one is at most so many times the shorter."""
_PENALTY = 1e-3
_STEPS = 60
_MANY, _STRIDE = 20_000, 16
_ENOUGH, _NEAR = 1e-10, 1e-6


class Outcomes(NamedTuple):
    """Pairs: their prompt, whether they are right (a tie is wrong), and lengths in code points; shape (pair,)."""

    prompt: Integers
    is_right: Booleans
    better_length: Integers
    worse_length: Integers

    @property
    def log_ratio(self) -> Floats:
        """ln((better + 1) / (worse + 1)): an empty answer has a length too."""
        return np.log((self.better_length + 1) / (self.worse_length + 1))

    @property
    def is_matched(self) -> Booleans:
        """Whether the two lengths are alike, within `MATCHED_RATIO`."""
        longer = np.maximum(self.better_length, self.worse_length)
        return longer <= MATCHED_RATIO * np.minimum(self.better_length, self.worse_length)


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
    return {"matched_ratio": MATCHED_RATIO, **report, **_adjusted(blocks, outcomes)}


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


def _accuracy(blocks: Blocks, outcomes: Outcomes, chosen: Booleans) -> Ratio:
    num_prompts = len(blocks.block)
    right = np.bincount(outcomes.prompt[chosen & outcomes.is_right], minlength=num_prompts)
    return Ratio(
        right.astype(np.float64),
        np.bincount(outcomes.prompt[chosen], minlength=num_prompts).astype(np.float64),
        is_share=True,
    )


def _adjusted(blocks: Blocks, outcomes: Outcomes) -> dict[str, Any]:
    """The regression; in each resample one Newton step is taken from the fit, which is exact to the order of 1 / n.

    Null where all pairs are alike in length or in outcome: there is nothing to tell the one from the other by.
    """
    ratio, size = outcomes.log_ratio, len(outcomes.prompt)
    if not size or np.ptp(ratio) == 0 or outcomes.is_right.all() or not outcomes.is_right.any():
        nothing = Estimate(None, None, None, size).record()
        return {"adjusted": nothing, "slope": nothing}
    fit = fit_logistic(ratio, outcomes.is_right)
    expected = sigmoid(fit.intercept + fit.slope * ratio)
    left, weight = outcomes.is_right - expected, expected * (1 - expected)
    columns = [left, left * ratio, weight, weight * ratio, weight * ratio**2]
    drawn = _one_step(fit, add_up(blocks, Terms(outcomes.prompt, one_group(size), columns), 1))
    point = sigmoid(np.array(fit.intercept))
    return {
        "adjusted": known(float(point), sigmoid(drawn[:, 0]), size).record(),
        "slope": known(fit.slope, drawn[:, 1], size).record(),
    }


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
