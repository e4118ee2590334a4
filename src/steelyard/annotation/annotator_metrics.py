"""Figures of a person from the answers, each with its evidence and the rate at which it is wrong about good ones.

- **Gold accuracy**, and whether it changed: one change of the mean, tested at every place (`change_point`), at certain
  numbers of gold answers only (`interim_analysis`): a test repeated at every opening of a page marks good people.
- **Speed**: the mean of the logarithm of seconds, at the length of what was read, against that of all others.
- **Sameness**: the share of ties, and of one and the same score, against those of all others; and how often the single
  best response was the one that the person saw first, against chance, which is known: responses are shuffled for each
  person. Its p-value holds however often it is read (`always_valid_p`).

A person is compared with the others by the t of a new observation among theirs. p-values of one question are corrected
for the number of people (Holm, 1979): where all work alike, the chance that anybody at all is flagged is 5%. A flag is
a reason to look at answers, and no verdict.
"""

from collections.abc import Callable, Mapping, Sequence
from math import asin, exp, log, sqrt
from typing import Literal, NamedTuple

import numpy as np

from steelyard.annotation.answer_counts import SCORES
from steelyard.core.types import Record
from steelyard.statistics.change_points import FEWEST_VALUES, ChangePoint, change_point
from steelyard.statistics.interim_analysis import InterimAnalysis, latest_interim_analysis
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.significance import holm

FALSE_ALARMS = 0.05
"""The chance that anybody of a team that works alike is flagged for a question."""
FEWEST_ANSWERS = 20
"""Answers below which nothing is said of a person."""
FEWEST_OTHERS = 4
"""Other people below which nobody is compared with them."""
_FIRST_ANALYSIS = 2 * FEWEST_VALUES
Question = Literal["fast", "ties", "one score", "first shown"]
Sums = Mapping[str, float]


class BehaviourFlag(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Difference of a person: the value, what the others (or chance) give, and the p-value, corrected for all people.

    ``fast``: seconds of an answer of usual length. ``ties``: the share of pairs. ``one score``: the share of the score
    that the person gives most. ``first shown``: the share of single best responses that were shown first.
    """

    question: Question
    value: float
    expected: float
    p: float
    is_raised: bool


class AgreementOverTime(NamedTuple):
    """The shares right of a person's latest gold answers, in their order, and how many came before these."""

    shares: Sequence[float]
    num_before: int = 0


class Drift(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A change of a person's gold accuracy: before and after, the number of the answer, and the corrected p-value.

    ``place``: gold answers before the change, from the person's first one on.
    """

    before: Estimate
    after: Estimate
    place: int
    p: float
    is_real: bool


def behaviour_flags(people: Mapping[int, Sums]) -> dict[int, tuple[BehaviourFlag, ...]]:
    """Return for each person what was asked of the sums (`count_answer`), also where nothing stands out.

    People with fewer than `FEWEST_ANSWERS` answers are left out, and are not among the others.
    """
    judged = {person: sums for person, sums in people.items() if sums["num_answers"] >= FEWEST_ANSWERS}
    flags: dict[int, list[BehaviourFlag]] = {person: [] for person in judged}
    paces = _log_paces(judged)
    _compare(flags, "fast", {person: -pace for person, pace in paces.items()}, lambda value: exp(-value))
    ties = {person: _angle(sums["num_tied"], sums["num_pairs"]) for person, sums in judged.items()}
    _compare(flags, "ties", ties, _share)
    scores = {person: [sums[score] for score in SCORES] for person, sums in judged.items()}
    most_frequent = {person: _angle(max(numbers), sum(numbers)) for person, numbers in scores.items()}
    _compare(flags, "one score", most_frequent, _share)
    # Whose best response was shown first too often, by chance known from the shuffle.
    counted = {person: sums for person, sums in judged.items() if sums["num_best"]}
    chances = {person: sums["first_chance"] / sums["num_best"] for person, sums in counted.items()}
    p_values = [
        always_valid_p(round(sums["num_first_best"]), round(sums["num_best"]), chances[person])
        for person, sums in counted.items()
    ]
    for (person, sums), p in zip(counted.items(), holm(p_values), strict=True):
        share = sums["num_first_best"] / sums["num_best"]
        flags[person].append(
            BehaviourFlag(
                question="first shown", value=share, expected=chances[person], p=p, is_raised=p < FALSE_ALARMS
            )
        )
    return {person: tuple(of_person) for person, of_person in flags.items()}


def gold_analysis(num_answers: int) -> InterimAnalysis | None:
    """Return the latest interim analysis of a person with this number of gold answers; None where they are too few."""
    return latest_interim_analysis(num_answers, first=_FIRST_ANALYSIS)


def drifts(answers: Mapping[int, AgreementOverTime]) -> dict[int, Drift]:
    """Return the most likely change of each person's gold accuracy.

    Only answers up to the latest interim analysis count (`gold_analysis`). However often the page is read, the chance
    that anybody of a team whose accuracy never changes is ever marked is at most `FALSE_ALARMS`. People with too few
    answers have none.
    """
    changes: dict[int, tuple[ChangePoint, int, float]] = {}
    for person, (shares, num_before) in answers.items():
        analysis = gold_analysis(num_before + len(shares))
        seen = np.array(shares[: max(analysis.size - num_before, 0)] if analysis else (), np.float64)
        change = change_point(seen, np.arange(len(seen)))
        if analysis is not None and change is not None:
            changes[person] = change, num_before, min(1.0, analysis.factor * change.p)
    corrected = holm([p for _, _, p in changes.values()])
    return {
        person: Drift(
            before=change.before, after=change.after, place=num_before + change.place, p=p, is_real=p < FALSE_ALARMS
        )
        for (person, (change, num_before, _)), p in zip(changes.items(), corrected, strict=True)
    }


def _log_paces(people: Mapping[int, Sums]) -> dict[int, float]:
    """Return the mean logarithm of seconds of each person, moved to the mean length by the slope within people."""
    products = squares = length = number = 0.0
    for sums in people.values():
        size = sums["num_answers"]
        products += sums["sum_length_time"] - sums["sum_length"] * sums["sum_time"] / size
        squares += sums["sum_length_squared"] - sums["sum_length"] ** 2 / size
        length, number = length + sums["sum_length"], number + size
    slope = products / squares if squares > 1e-9 * max(number, 1.0) else 0.0
    return {
        person: (sums["sum_time"] - slope * (sums["sum_length"] - sums["num_answers"] * length / number))
        / sums["num_answers"]
        for person, sums in people.items()
    }


def _compare(
    flags: dict[int, list[BehaviourFlag]],
    question: Question,
    values: Mapping[int, float],
    shown: Callable[[float], float],
) -> None:
    """Add the flag of a question: is a person's value larger than a new one among those of the others would be?"""
    from scipy.special import stdtr

    if len(values) <= FEWEST_OTHERS:
        return
    p_values, expected = [], []
    for person, value in values.items():
        others = np.array([other for key, other in values.items() if key != person])
        error = float(others.std(ddof=1)) * sqrt(1 + 1 / len(others))
        t = (value - float(others.mean())) / max(error, 1e-9)
        p_values.append(float(stdtr(len(others) - 1, -t)))
        expected.append(float(others.mean()))
    for (person, value), usual, p in zip(values.items(), expected, holm(p_values), strict=True):
        flag = BehaviourFlag(
            question=question, value=shown(value), expected=shown(usual), p=p, is_raised=p < FALSE_ALARMS
        )
        flags[person].append(flag)


def always_valid_p(num_hits: int, number: int, chance: float) -> float:
    """Return a p-value for more hits than by chance that holds however often it is read while the number grows.

    One over the likelihood ratio of all larger probabilities, equally weighted, and chance (Robbins, 1970): the
    probability that it ever falls below a level is at most that level (Ville's inequality). ``chance`` is the mean of
    the tasks where it differs between them.
    """
    from scipy.special import betaincc, betaln

    first, second = num_hits + 1, number - num_hits + 1
    share = float(betaincc(first, second, chance))
    if not 0 < chance < 1 or share <= 0:
        return 1.0
    log_ratio = betaln(first, second) + log(share) - num_hits * log(chance) - second * log(1 - chance)
    return min(1.0, exp(-min(float(log_ratio), 700.0)))


def _angle(number: float, total: float) -> float:
    """Return the arcsine of the root of a share: its variance hardly depends on the share."""
    return asin(sqrt((number + 0.375) / (total + 0.75)))


def _share(angle: float) -> float:
    return float(np.sin(angle) ** 2)
