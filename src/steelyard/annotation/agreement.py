"""Agreement of two people on an item: the figure of the gate (CHEEMS, appendix D.1).

The paper asks for 90 % without a formula. Here it is the share of the points of a task on which both said the same. For
triples and pairs a point is a pair of responses with one of three verdicts: the first is better, the second is better,
equal. What the points of other kinds are, and when they are the same, is in the file of the kind (`kinds`). A pair with
a response that only one of them discarded is a disagreement; one that both discarded from, or that one of them could
not judge, does not count.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import GateUnit
from steelyard.annotation.questions import Point
from steelyard.annotation.task_kinds import TaskKind, kind_named


class PairCounts(NamedTuple):
    """Points that count, and those of them on which both said the same."""

    num_same: int = 0
    num_judged: int = 0

    @property
    def share(self) -> float | None:
        """The share of equal points; null where none counts."""
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
    kind: str


def count_agreement(responses: Sequence[str], answers: tuple[TaskAnswer, TaskAnswer], kind: TaskKind) -> PairCounts:
    """Count the points of a task that count, and those on which both answers are the same."""
    first, second = (kind.points(answer, responses) for answer in answers)
    counts = PairCounts()
    for point in first.keys() & second.keys():
        values = first[point], second[point]
        if values != ("discarded", "discarded"):
            counts = counts.plus(PairCounts(int(kind.is_same(point, *values)), 1))
    return counts


def gate_counts(doubles: Iterable[DoubleAnswer], unit: GateUnit) -> dict[object, PairCounts]:
    """Return the counts of each unit of the gate: by item, by batch, or by the two people in either order."""
    counts: dict[object, PairCounts] = {}
    for each in doubles:
        key = {"item": each.item, "batch": each.batch, "pair of people": tuple(sorted(each.people))}[unit]
        of_task = count_agreement(each.responses, each.answers, kind_named(each.kind))
        counts[key] = counts.get(key, PairCounts()).plus(of_task)
    return counts


def disputed_points(
    responses: Sequence[str], answers: tuple[TaskAnswer, TaskAnswer], kind: TaskKind
) -> tuple[Point, ...]:
    """Return the points on which two answers differ, or that only one of them has: what alignment is about."""
    first, second = (kind.points(answer, responses) for answer in answers)
    points = dict.fromkeys([*first, *second])
    return tuple(
        point
        for point in points
        if point not in first or point not in second or not kind.is_same(point, first[point], second[point])
    )
