"""How far two people agree on an item: the figure of the gate (CHEEMS, appendix D.1).

The paper asks for 90 % without a formula. Here it is the share of the pairs of responses on which both gave the same of
three verdicts: the first is better, the second is better, equal. A pair with a response that only one of them discarded
is a disagreement; one that both discarded from, or that one of them could not judge, does not count.
"""

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

from steelyard.annotation.answers import TaskAnswer, outcome_of
from steelyard.annotation.pipeline import GateUnit


class PairCounts(NamedTuple):
    """Pairs that count, and those of them with the same verdict."""

    num_same: int = 0
    num_judged: int = 0

    @property
    def share(self) -> float | None:
        """The share of equal verdicts; null where no pair counts."""
        return self.num_same / self.num_judged if self.num_judged else None

    def plus(self, other: "PairCounts") -> "PairCounts":
        """Return the sum of two counts."""
        return PairCounts(self.num_same + other.num_same, self.num_judged + other.num_judged)


class DoubleAnswer(NamedTuple):
    """The answers of two people to one task, and what the task belongs to."""

    item: int
    batch: str
    people: tuple[int, int]
    responses: Sequence[str]
    answers: tuple[TaskAnswer, TaskAnswer]


def count_agreement(responses: Sequence[str], answers: tuple[TaskAnswer, TaskAnswer]) -> PairCounts:
    """Count the pairs of the responses that count, and those with the same verdict in both answers."""
    counts = PairCounts()
    for pair in combinations(responses, 2):
        outcomes = [outcome_of(answer, *pair) for answer in answers]
        if None in outcomes or outcomes == ["discarded", "discarded"]:
            continue
        counts = counts.plus(PairCounts(int(outcomes[0] == outcomes[1]), 1))
    return counts


def gate_counts(doubles: Iterable[DoubleAnswer], unit: GateUnit) -> dict[object, PairCounts]:
    """Return the counts of each unit of the gate: by item, by batch, or by the two people in either order."""
    counts: dict[object, PairCounts] = {}
    for each in doubles:
        key = {"item": each.item, "batch": each.batch, "pair of people": tuple(sorted(each.people))}[unit]
        counts[key] = counts.get(key, PairCounts()).plus(count_agreement(each.responses, each.answers))
    return counts


def disputed_pairs(responses: Sequence[str], answers: tuple[TaskAnswer, TaskAnswer]) -> tuple[tuple[str, str], ...]:
    """Return the pairs on which two answers differ: what alignment is about."""
    pairs = combinations(responses, 2)
    return tuple(pair for pair in pairs if len({outcome_of(answer, *pair) for answer in answers}) > 1)
