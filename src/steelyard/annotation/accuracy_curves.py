"""Intervals of raters' accuracy, each by what the rater's own answers tell: nobody is drawn toward the others.

The fit of raters (`psychometrics`) shares a population: its single estimates, and what a further answer is worth, gain
by it. Intervals around them miss people unlike the others: of 200 simulated people who hardly err among four of 73
to 84% none was covered. Here each accuracy has a prior of its own, Beta(2, 1): better than guessing is likelier than
worse. The density of one rater's accuracy is that of the highest posterior over all other parameters, times their
spread (Tierney and Kadane, 1986), and its interval leaves 2.5% on each side. Where the density has not fallen at an
accuracy of 100%, the answers do not bound it, and the interval ends there.

The single estimate beside it does use the others, but lets a person unlike them go: a mixture of their population and
the prior weights the same density.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from steelyard.annotation.marginal_likelihood import MarginalLikelihood, marginal_likelihood
from steelyard.annotation.plackett_luce import RankingAnswer, Raters
from steelyard.core.numerics import Floats, sigmoid
from steelyard.core.types import Record

_EDGE = 6.0
"""The largest logit of an accuracy: 99.75%."""
_TIE, _TIE_SPREAD = -1.0, 2.0
"""Mean and standard deviation of tie inclinations before any answer."""
_TAIL = 0.025
_OPEN = np.exp(-1.92)
"""The density at an end over the highest one from which the end is not excluded (half of the 95% point of chi²)."""
_PART_OF_POPULATION = 0.8
_WHOLE = 1500
"""Answers times raters up to which all answers are taken anew for each rater; above, those to sets that the rater
ranked: with 1,749 triples of 29 people that moves an end by 0.006 at most, and takes a twelfth of the time."""
_FAR = 5.0
"""The fall of the log density at which a curve ends."""
_MOST_POINTS = 30
_LONGEST = 0.8


class AccuracyInterval(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A rater's accuracy with its 95% interval; ``n``: answers about responses that others ranked, too."""

    value: float
    low: float
    high: float
    n: int


def accuracy_intervals(
    answers: Sequence[RankingAnswer], raters: Raters, *, population: tuple[float, float], fewest: int
) -> list[AccuracyInterval | None]:
    """Return the accuracy of each rater; null with fewer than ``fewest`` answers about what others ranked, too.

    ``raters``: where the steps begin; ``population``: mean and standard deviation of their discriminations.
    """
    likelihood = marginal_likelihood(answers, len(raters.tie))
    enough = likelihood.num_answers >= fewest
    if not enough.any():
        return [None] * len(enough)
    posterior = _Posterior(likelihood, len(enough))
    of_scale, logit_of_scale = _scale()
    start = np.concatenate([np.interp(raters.discrimination, of_scale, logit_of_scale), raters.tie])
    everything = np.arange(len(start))
    peak = posterior.highest(start, everything, most=40, close=1e-3)
    is_small = likelihood.num_answers.sum() * len(enough) <= _WHOLE
    intervals: list[AccuracyInterval | None] = []
    for rater, number in enumerate(likelihood.num_answers.tolist()):
        if not enough[rater]:
            intervals.append(None)
            continue
        around = posterior if is_small else posterior.of_rater(rater, peak)
        logit, mass = _density(*_curve(around, around.at(peak.parameters), rater))
        accuracy = sigmoid(logit)
        low, high = np.interp([_TAIL, 1 - _TAIL], np.cumsum(mass), accuracy).tolist()
        of_accuracy = mass / (accuracy * (1 - accuracy))
        if of_accuracy[-1] > _OPEN * of_accuracy.max():
            high = 1.0
        # The single estimate is that of a mixture of the population and the prior.
        mean, spread = population
        discrimination = np.interp(logit, logit_of_scale, of_scale)
        usual = np.exp(-((discrimination - mean) ** 2) / (2 * spread**2)) * np.gradient(discrimination)
        prior = accuracy**2 * (1 - accuracy)
        weight = mass * (_PART_OF_POPULATION * usual / usual.sum() / (prior / prior.sum()) + 1 - _PART_OF_POPULATION)
        value = float(np.clip(weight @ accuracy / weight.sum(), low, high))
        intervals.append(AccuracyInterval(value=value, low=low, high=high, n=number))
    return intervals


@cache
def _scale() -> tuple[Floats, Floats]:
    """Return discriminations with the logits of their accuracies, both rising.

    On the scale of logits accuracies have no far ends: 1 - accuracy is as 1 / discrimination there.
    """
    half = np.sinh(np.linspace(0.0, np.arcsinh(400.0), 800))
    edges = np.sinh(np.linspace(0.0, np.arcsinh(9e4), 1501)) / 1e4
    difference = (edges[1:] + edges[:-1]) / 2
    weight = np.exp(-(difference**2) / 4) * np.diff(edges)
    accuracy = sigmoid(half[:, None] * difference) @ (weight / weight.sum())
    logit = np.log(accuracy / (1 - accuracy))
    return np.concatenate([-half[:0:-1], half]), np.concatenate([-logit[:0:-1], logit])


class _Point(NamedTuple):
    """Parameters (2 * rater,), logits of accuracies first, with log density and information; ``value`` at the top."""

    parameters: Floats
    value: float
    gradient: Floats
    information: Floats


class _Posterior:
    """The log density of logits of accuracies and of tie inclinations, (2 * rater,).

    ``rest``: the log likelihood of answers that are not taken anew, as a centre with gradient and information there.
    """

    def __init__(
        self, likelihood: MarginalLikelihood, num_raters: int, rest: tuple[Floats, Floats, Floats] | None = None
    ) -> None:
        self._likelihood, self._number, self._rest = likelihood, num_raters, rest

    def of_rater(self, rater: int, peak: _Point) -> "_Posterior":
        """Return the density with the sets of a rater taken anew, and the rest by its slopes at the peak."""
        mine = self._likelihood.of_rater(rater)
        _, *my_slopes = self._slopes(mine, peak.parameters)
        gradient, information = (
            whole - part - prior
            for whole, part, prior in zip(peak[2:], my_slopes, self._prior(peak.parameters)[1:], strict=True)
        )
        return _Posterior(mine, self._number, (peak.parameters, gradient, information))

    def at(self, parameters: Floats) -> _Point:
        """Return the density with its slopes."""
        value, gradient, information = self._slopes(self._likelihood, parameters)
        if self._rest is not None:
            centre, slope, curvature = self._rest
            move = parameters - centre
            bend = curvature @ move
            value += float(slope @ move - bend @ move / 2)
            gradient, information = gradient + slope - bend, information + curvature
        before = self._prior(parameters)
        return _Point(parameters, value + before[0], gradient + before[1], information + before[2])

    def _prior(self, parameters: Floats) -> tuple[float, Floats, Floats]:
        logit, tie = parameters[: self._number], parameters[self._number :]
        # Beta(2, 1) as a density of logits: accuracy² (1 - accuracy).
        accuracy = sigmoid(logit)
        value = float((3 * np.log(accuracy) - logit).sum() - ((tie - _TIE) ** 2).sum() / (2 * _TIE_SPREAD**2))
        gradient = np.concatenate([2 - 3 * accuracy, (_TIE - tie) / _TIE_SPREAD**2])
        bends = np.concatenate([3 * accuracy * (1 - accuracy), np.full(len(tie), 1 / _TIE_SPREAD**2)])
        return value, gradient, np.diag(bends)

    def highest(self, start: Floats, free: np.ndarray, *, most: int, close: float) -> _Point:
        """Return the highest point that is reached from the start while only ``free`` parameters move.

        Its value has what the last step is expected to add.
        """
        best, step, scale = self.at(_inside(start, self._number)), np.zeros(len(start)), 1.0
        for _ in range(most):
            step = np.zeros(len(start))
            step[free] = np.linalg.solve(best.information[np.ix_(free, free)], best.gradient[free])
            gain = float(best.gradient @ step) / 2
            if gain < close or scale < 0.1:
                return best._replace(value=best.value + min(gain, 10 * close))
            step = np.clip(step, -_LONGEST, _LONGEST)
            after = self.at(_inside(best.parameters + scale * step, self._number))
            scale = min(1.0, 2 * scale) if after.value >= best.value else scale / 3
            best = after if after.value >= best.value else best
        return best

    def _slopes(self, likelihood: MarginalLikelihood, parameters: Floats) -> tuple[float, Floats, Floats]:
        """Return value, gradient and information of a likelihood in logits of accuracies and tie inclinations."""
        (of_scale, logit_of_scale), logit = _scale(), parameters[: self._number]
        low, at, high = (np.interp(logit + off, logit_of_scale, of_scale) for off in (-1e-3, 0.0, 1e-3))
        value, gradient, information = likelihood.slopes(Raters(at, parameters[self._number :]))
        chain = np.concatenate([(high - low) / 2e-3, np.ones(self._number)])
        return value, gradient * chain, information * np.outer(chain, chain)


def _inside(parameters: Floats, number: int) -> Floats:
    return np.concatenate([np.clip(parameters[:number], -_EDGE, _EDGE), parameters[number:]])


def _curve(posterior: _Posterior, peak: _Point, rater: int) -> tuple[Floats, Floats]:
    """Return logits of one rater's accuracy, rising, with the log density of each, both (point,).

    Steps lead from the peak to both sides, all others moving along.
    """
    others = np.delete(np.arange(len(peak.parameters)), rater)
    deviation = float(np.sqrt(np.linalg.inv(peak.information)[rater, rater]))
    points = [(float(peak.parameters[rater]), peak.value, _log_volume(peak, others))]
    for side in (-1.0, 1.0):
        here, length = peak, min(0.8 * deviation, _LONGEST)
        for _ in range(_MOST_POINTS):
            start = here.parameters.copy()
            start[rater] += side * length
            if abs(start[rater]) > _EDGE:
                break
            inner = here.information[np.ix_(others, others)]
            start[others] -= side * length * np.linalg.solve(inner, here.information[others, rater])
            before, here = here, posterior.highest(start, others, most=8, close=0.03)
            points.append((float(here.parameters[rater]), here.value, _log_volume(here, others)))
            fall = abs(before.value - here.value)
            length = min(_LONGEST, length * (1.6 if fall < 0.3 else 0.5 if fall > 1.5 else 1.0))
            if here.value < peak.value - _FAR:
                break
    logit, value, volume = np.array(sorted(points)).T
    return logit, value + volume


def _log_volume(point: _Point, others: np.ndarray) -> float:
    """Return the logarithm of the spread of all others, but for a constant."""
    return -float(np.linalg.slogdet(point.information[np.ix_(others, others)])[1]) / 2


def _density(logit: Floats, log_density: Floats) -> tuple[Floats, Floats]:
    """Return logits at equal steps with the mass of each, both (step,), from the points of a curve."""
    from scipy.interpolate import PchipInterpolator

    grid = np.linspace(-_EDGE, _EDGE, 4801)
    first, last = logit[[0, -1]]
    is_curve = len(logit) > 1
    height = PchipInterpolator(logit, log_density)(np.clip(grid, first, last)) if is_curve else -np.abs(grid - first)
    # Beyond its ends a curve falls at least as a prior would; past the upper edge it is as good as level.
    height = height - 2 * np.maximum(first - grid, 0.0) - np.maximum(grid - last, 0.0)
    mass = np.exp(height - height.max())
    return grid, mass / mass.sum()
