"""Reliability of raters, with intervals, from the rankings and ties of items that several people judged.

A rater's *accuracy* is the probability that a strict verdict on two random responses has the right direction
(`accuracy_of`), *ties* the share of two random responses that the rater calls equal. The accuracy with its interval is
that of `accuracy_curves`, which draws nobody toward the others; ties follow from the parameters that `fit_raters` gives
and their standard errors. How often intervals contain the truth is in docs/log/annotation.md.

Nobody's truth is needed: who contradicts good raters is less reliable, and who agrees with them more. Errors that all
raters share are invisible here; gold tasks show them.

Where raters answer several tasks of an item, accuracy and ties come from one answer of each rater to an item
(`one_answer_each`). Several of them repeat one view of it, and how far views differ is assumed in a fit, not estimated:
with views that are those of the item, such a fit gave raters of 88% an accuracy of 75%. An estimate that uses at most
half of a rater's answers is withheld: the other answers may contradict it (`reliability_of`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.annotation.accuracy_curves import AccuracyInterval, accuracy_intervals
from steelyard.annotation.plackett_luce import RankingAnswer, Raters, choices_of
from steelyard.annotation.psychometrics import RATER_SPREAD, PanelFit, fit_raters
from steelyard.core.numerics import Floats, sigmoid
from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate

FEWEST_SHARED = 10
"""Answers to shared items below which nothing is said of a rater."""
_NORMAL = 1.959964
_STEP = 1e-4


class RaterParameters(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The fit of one rater: both parameters with their standard errors and covariance.

    ``num_answers`` are those to items that another rater answered, too: on others nothing can be learned of a rater.
    ``rater_item_variance`` is the variance of what a rater sees in an item around the item (`Raters`): without it many
    answers of one rater about one item would count as many raters. ``of_one_answer`` are then those of a fit to one
    answer of each rater to an item; null where no rater-item variance is assumed. ``accuracy`` is null where fewer than
    `FEWEST_SHARED` answers are about a set of responses that others ranked, too.
    """

    discrimination: float
    tie: float
    discrimination_error: float
    tie_error: float
    parameter_covariance: float
    num_answers: int
    rater_item_variance: float = 0.0
    of_one_answer: "RaterParameters | None" = None
    accuracy: AccuracyInterval | None = None


class RaterReliability(NamedTuple):
    """The accuracy of a rater's strict verdicts, and the share of ties, with 95% intervals; n are the answers used."""

    accuracy: Estimate
    ties: Estimate


class RaterPanel(NamedTuple):
    """Raters by name, how many items had at least two of them, and the raters' answers to such items."""

    raters: Mapping[str, RaterParameters]
    num_shared_items: int
    num_answers: int


def fit_panel(answers: Sequence[RankingAnswer], names: Sequence[str], *, num_items: int, width: int) -> RaterPanel:
    """Fit the raters of the answers; ``names`` are theirs, by number, and ``width`` is the most responses of an item.

    Seconds for 20,000 answers. Raters without an answer to a shared item have the parameters of an average one.
    """
    fit = fit_raters(choices_of(answers), num_raters=len(names), num_items=num_items, width=width)
    raters, num_shared = _parameters(fit, answers, num_items)
    if fit.raters.rater_item_variance:
        alone = one_answer_each(answers)
        fit_alone = fit_raters(choices_of(alone), num_raters=len(names), num_items=num_items, width=width)
        of_one, _ = _parameters(fit_alone, alone, num_items)
        raters = [replace(each, of_one_answer=thinned) for each, thinned in zip(raters, of_one, strict=True)]
    num_answers = sum(rater.num_answers for rater in raters)
    return RaterPanel(dict(zip(names, raters, strict=True)), num_shared, num_answers)


def one_answer_each(answers: Sequence[RankingAnswer]) -> list[RankingAnswer]:
    """Return one answer of each rater to an item: those to the responses that most raters ranked, the first if equal.

    Raters who did not rank these responses are left out of the item.
    """
    items: dict[int, dict[frozenset[int], dict[int, RankingAnswer]]] = defaultdict(lambda: defaultdict(dict))
    for answer in answers:
        responses = frozenset(response for tier in answer.tiers for response in tier)
        items[answer.item][responses].setdefault(answer.rater, answer)
    return [answer for of_item in items.values() for answer in max(of_item.values(), key=len).values()]


def _parameters(fit: PanelFit, answers: Sequence[RankingAnswer], num_items: int) -> tuple[list[RaterParameters], int]:
    """Return the parameters of each rater, and how many items had at least two raters."""
    number = len(fit.raters.tie)
    item = np.array([answer.item for answer in answers], np.int64)
    rater = np.array([answer.rater for answer in answers], np.int64)
    num_raters = np.bincount(np.unique(item * number + rater) // max(number, 1), minlength=num_items)
    is_shared = num_raters > 1
    num_answers = np.bincount(rater[is_shared[item]], minlength=number)
    errors = fit.standard_errors()
    usual = float(fit.population[0]), float(RATER_SPREAD[0])
    # With a rater-item variance the accuracy comes from another fit, to one answer each.
    accuracies: list[AccuracyInterval | None] = [None] * number
    if not fit.raters.rater_item_variance:
        accuracies = accuracy_intervals(answers, fit.raters, population=usual, fewest=FEWEST_SHARED)
    parameters = [
        RaterParameters(
            discrimination=float(fit.raters.discrimination[place]),
            tie=float(fit.raters.tie[place]),
            discrimination_error=float(errors.discrimination[place]),
            tie_error=float(errors.tie[place]),
            parameter_covariance=float(fit.covariance[place, number + place]),
            num_answers=int(num_answers[place]),
            rater_item_variance=fit.raters.rater_item_variance,
            accuracy=accuracies[place],
        )
        for place in range(number)
    ]
    return parameters, int(is_shared.sum())


def reliability_of(rater: RaterParameters) -> RaterReliability:
    """Return accuracy and ties of a rater, each without numbers where it uses too few of the rater's answers.

    Both use the answers to items that others answered, too: at least `FEWEST_SHARED`, and more than half of these.
    """
    single = rater.of_one_answer or rater
    known = single.accuracy
    accuracy = _accuracy_of_fit(single) if known is None else Estimate(known.value, known.low, known.high, known.n)
    return RaterReliability(*(_withhold_few(each, rater.num_answers) for each in (accuracy, _ties(single))))


def _withhold_few(estimate: Estimate, num_answers: int) -> Estimate:
    """Withhold an estimate that uses fewer than `FEWEST_SHARED` answers, or at most half of ``num_answers``."""
    if estimate.n >= FEWEST_SHARED and 2 * estimate.n > num_answers:
        return estimate
    needed = f"an estimate needs {FEWEST_SHARED} answers to items that others answered, too, and more than half of them"
    return replace(estimate.withheld(), why=f"{needed}; it could use {estimate.n:,} of {num_answers:,}")


def _accuracy_of_fit(rater: RaterParameters) -> Estimate:
    """Return the accuracy by the fit, where too few answers are about the same set of responses as those of others.

    That is so where each triple of an item has one person: raters are known by what their triples have in common. It
    draws raters toward each other: a rater far better than the others can be above the interval.
    """
    reach = _NORMAL * rater.discrimination_error
    ends = np.array([0.0, -reach, reach]) + rater.discrimination
    value, low, high = accuracy_of(ends, rater.rater_item_variance).tolist()
    return Estimate(value, low, high, rater.num_answers)


def accuracy_of(discrimination: Floats, rater_item_variance: float = 0.0) -> Floats:
    """Return the probability that a strict verdict on two random responses has the right direction.

    Of what the rater sees, sigmoid(discrimination * difference) over differences of two normal strengths of variance
    1 + ``rater_item_variance``; what is seen has the direction of the true strengths, of variance 1, with the
    probability that both have one sign. 0.5 for a rater who guesses.
    """
    from scipy.special import ndtr

    points, weights = _half_normal()
    seen = points * np.sqrt(2 * (1 + rater_item_variance))
    follows = sigmoid(np.asarray(discrimination)[..., None] * seen)
    is_so = (
        ndtr(seen / np.sqrt(2 * rater_item_variance * (1 + rater_item_variance)))
        if rater_item_variance
        else np.ones_like(seen)
    )
    return (follows * is_so + (1 - follows) * (1 - is_so)) @ weights


def ties_of(raters: Raters) -> Floats:
    """Return the probability of a tie between two random responses, (rater,)."""
    points, weights = _half_normal()
    half = np.abs(raters.discrimination)[:, None] * points * np.sqrt(2 * (1 + raters.rater_item_variance)) / 2
    tie = np.exp(raters.tie[:, None] - half)
    return (tie / (1 + np.exp(-2 * half) + tie)) @ weights


def _half_normal() -> tuple[Floats, Floats]:
    """Return points and weights of the expectation over the absolute value of a standard normal."""
    points, weights = np.polynomial.legendre.leggauss(60)
    points = 4 * (points + 1)
    density = np.exp(-(points**2) / 2) * weights
    return points, density / density.sum()


def _ties(rater: RaterParameters) -> Estimate:
    """Return the share of ties; its interval by the delta method on the logit of the share."""
    first = np.array([rater.discrimination, rater.discrimination + _STEP, rater.discrimination])
    second = np.array([rater.tie, rater.tie, rater.tie + _STEP])
    shares = np.clip(ties_of(Raters(first, second, rater.rater_item_variance)), 1e-12, 1 - 1e-12)
    logits = np.log(shares / (1 - shares))
    slopes = (logits[1:] - logits[0]) / _STEP
    mixed = rater.parameter_covariance
    covariance = np.array([[rater.discrimination_error**2, mixed], [mixed, rater.tie_error**2]])
    reach = _NORMAL * sqrt(max(float(slopes @ covariance @ slopes), 0.0))
    low, high = sigmoid(np.array([logits[0] - reach, logits[0] + reach])).tolist()
    return Estimate(float(shares[0]), low, high, rater.num_answers)
