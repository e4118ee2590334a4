"""Amounts that one answer, and two answers to one task, add to the counts behind the figures of a project.

Figures of 100,000 items are sums: each answer adds its part once, when it is given. A count is a number by name; the
names are those of the columns that keep the sums.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import isnan, log
from typing import NamedTuple

import numpy as np

from steelyard.annotation.agreement import count_agreement
from steelyard.annotation.answers import HIGHEST_SCORE, LOWEST_SCORE, TaskAnswer, outcome_of
from steelyard.annotation.task_kinds import TaskKind
from steelyard.core.numerics import Floats
from steelyard.statistics.agreement import NUM_LABELS, tau_b
from steelyard.statistics.linearised import RatioSums

_LABELS = {"left": 0, "right": 1, "tie": 2}
_SHORTEST = 0.5
"""Seconds that an answer counts at least: its logarithm is summed."""
SCORES = tuple(f"score_{score}" for score in range(LOWEST_SCORE, HIGHEST_SCORE + 1))
CELLS = tuple(f"num_{first}_{second}" for first in _LABELS for second in _LABELS)
"""The confusion of two people's verdicts: numbers of pairs by both labels."""
RATIO = ("num_tasks", "num_same", "num_judged", "sum_same_squared", "sum_same_judged", "sum_judged_squared")


class AnswerFacts(NamedTuple):
    """Facts about an answer besides its content.

    ``shown`` is the person's own order, ``num_characters`` the length of what was to be read. ``has_scores``: scores
    are those of triples, from 0 to 5.
    """

    shown: Sequence[str]
    num_characters: int
    seconds: float
    has_scores: bool
    is_gold: bool
    round: int


def count_answer(answer: TaskAnswer, facts: AnswerFacts) -> dict[str, float]:
    """Return what an answer adds to the counts of its person and day.

    ``sum_length`` and ``sum_time`` are sums of logarithms, of characters and seconds; ``num_first_best`` counts a
    single best response that was shown first, ``first_chance`` and ``first_variance`` what chance would give.
    """
    length, time = log(max(facts.num_characters, 1)), log(max(facts.seconds, _SHORTEST))
    counts: dict[str, float] = {
        "num_answers": 1,
        "num_gold": int(facts.is_gold),
        "num_rework": int(facts.round > 1 and not facts.is_gold),
        "num_cannot_judge": int(answer.cannot_judge is not None),
        "num_discarded": len(answer.discarded),
        "seconds": facts.seconds,
        "sum_length": length,
        "sum_time": time,
        "sum_length_squared": length**2,
        "sum_time_squared": time**2,
        "sum_length_time": length * time,
    }
    for score in answer.scores.values() if facts.has_scores else ():
        counts[SCORES[score - LOWEST_SCORE]] = counts.get(SCORES[score - LOWEST_SCORE], 0) + 1
    outcomes = [outcome_of(answer, *pair) for pair in combinations(facts.shown, 2)]
    verdicts = [outcome for outcome in outcomes if outcome in _LABELS]
    return counts | {"num_pairs": len(verdicts), "num_tied": verdicts.count("tie"), **_first_place(answer, facts.shown)}


def _first_place(answer: TaskAnswer, shown: Sequence[str]) -> dict[str, float]:
    """Count whether a single best response was the first that is judged, and what chance gives: 1 of their number."""
    judged = [response for response in shown if response not in answer.discarded]
    best = answer.ranking[0] if answer.ranking else ()
    if answer.cannot_judge is not None or len(judged) < 2 or len(best) != 1:
        return {}
    chance = 1 / len(judged)
    return {
        "num_best": 1,
        "num_first_best": int(best[0] == judged[0]),
        "first_chance": chance,
        "first_variance": chance * (1 - chance),
    }


def count_two_answers(
    responses: Sequence[str], answers: tuple[TaskAnswer, TaskAnswer], kind: TaskKind
) -> dict[str, float]:
    """Return what two people's answers to a task add to their agreement: verdicts, confusions, and tau-b.

    Tau-b is undefined where one of them ranks all responses equal: the task then adds none.
    """
    same, judged = count_agreement(responses, answers, kind)
    counts: dict[str, float] = dict(zip(RATIO, (1, same, judged, same**2, same * judged, judged**2), strict=True))
    for pair in combinations(responses, 2):
        first, second = (_LABELS.get(outcome_of(answer, *pair) or "") for answer in answers)
        if first is not None and second is not None:
            cell = CELLS[first * NUM_LABELS + second]
            counts[cell] = counts.get(cell, 0) + 1
    tau = _tau(responses, answers)
    if not isnan(tau):
        counts |= {"num_taus": 1, "sum_tau": tau, "sum_tau_squared": tau**2}
    return counts


def _tau(responses: Sequence[str], answers: tuple[TaskAnswer, TaskAnswer]) -> float:
    places = [
        {response: -number for number, tier in enumerate(answer.ranking) for response in tier} for answer in answers
    ]
    both = [response for response in responses if all(response in place for place in places)]
    if len(both) < 2:
        return float("nan")
    first, second = (np.array([[place[response] for response in both]], np.float64) for place in places)
    return float(tau_b(first, second)[0])


def ratio_sums(sums: Mapping[str, float]) -> RatioSums:
    """Return the sums behind percent agreement, whose unit is a task."""
    units, same, judged, same_squared, product, judged_squared = (sums[name] for name in RATIO)
    return RatioSums(round(units), same, judged, same_squared, product, judged_squared)


def confusion(sums: Mapping[str, float]) -> Floats:
    """Return the verdicts of the first and the second person as a flattened confusion matrix, shape (cell,)."""
    return np.array([sums[name] for name in CELLS], np.float64)


def turned(sums: Mapping[str, float]) -> dict[str, float]:
    """Return the same sums with the two people exchanged."""
    swapped = {f"num_{first}_{second}": sums[f"num_{second}_{first}"] for first in _LABELS for second in _LABELS}
    return {**sums, **swapped}


def gold_share(responses: Sequence[str], answer: TaskAnswer, truth: TaskAnswer, kind: TaskKind) -> tuple[int, int]:
    """Return how many points of a gold task an answer has as the truth has them, and how many count."""
    counts = count_agreement(responses, (answer, truth), kind)
    return counts.num_same, counts.num_judged
