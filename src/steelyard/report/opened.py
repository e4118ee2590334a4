"""One case opened: what its judgments say pair by pair, which of them contradict one another, and their tiers."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.types import Case, Judgment, Ranking
from steelyard.ranking.judgment_table import EVERYTHING, Aggregate, JudgmentTable, Only, edges_of, judgment_table
from steelyard.ranking.resolution import resolve_table

_FIRST_LETTERS = 26


class Arrow(NamedTuple):
    """All admitted judgments on one pair with one outcome: ``>`` first beats second, ``=`` a tie, ``?`` unreadable.

    ``by_kind`` counts them. Where ``is_conflicting``, they are strict and the tiers do not keep them.
    """

    first: str
    second: str
    outcome: str
    by_kind: dict[str, int]
    is_conflicting: bool


class Cycle(NamedTuple):
    """Responses that beat one another in a circle: all of them share a tier.

    ``circle`` is a shortest one, which begins and ends with the same response; ``signs`` stand between its members.
    ``judgments`` are the positions in the case of the strict judgments between the cycle's responses.
    """

    responses: tuple[str, ...]
    circle: tuple[str, ...]
    signs: tuple[str, ...]
    judgments: tuple[int, ...]


class Opened(NamedTuple):
    """A case with what its judgments come to.

    ``labels`` are short names of the responses by id. ``tiers`` come from the admitted judgments, null without any;
    the case's own ``ranking`` may be another. ``admitted`` and ``conflicting`` say it of each judgment of the case.
    """

    case: Case
    labels: dict[str, str]
    tiers: Ranking | None
    admitted: tuple[bool, ...]
    conflicting: tuple[bool, ...]
    arrows: tuple[Arrow, ...]
    cycles: tuple[Cycle, ...]

    @property
    def num_conflicting(self) -> int:
        """How many judgments the tiers do not keep."""
        return sum(self.conflicting)

    @property
    def ranking(self) -> Ranking | None:
        """The tiers of the judgments, or the ranking that the case was given where it has none."""
        return self.tiers if self.tiers is not None else self.case.ranking

    def tier_of(self, response: str) -> int | None:
        """The response's tier in the ranking, the best is 1; null where it has none."""
        found = (number for number, tier in enumerate(self.ranking or (), 1) if response in tier)
        return next(found, None)


def open_case(case: Case, *, only: Only = EVERYTHING, aggregate: Aggregate = "none") -> Opened:
    """The case opened, its judgments taken as `resolve` takes them. The case must have been checked."""
    admitted = tuple(map(only.admits, case.judgments))
    evidence = judgment_table((case,), only)
    resolution = resolve_table(evidence, aggregate)
    kept = resolution.graphs.full.is_kept
    lost = iter((evidence.verdicts.is_strict & ~kept).tolist())
    conflicting = tuple(next(lost) if counts else False for counts in admitted)
    arrows = _arrows([(one, bad) for one, ok, bad in zip(case.judgments, admitted, conflicting, strict=True) if ok])
    return Opened(
        case=case,
        labels=dict(zip((one.id for one in case.responses), map(label, range(len(case.responses))), strict=True)),
        tiers=resolution.rankings[0] if any(admitted) else None,
        admitted=admitted,
        conflicting=conflicting,
        arrows=arrows,
        cycles=_cycles(evidence, aggregate, case, conflicting) if any(conflicting) else (),
    )


def label(position: int) -> str:
    """A to Z, then AA, AB and so on."""
    above, own = divmod(position, _FIRST_LETTERS)
    return (label(above - 1) if above else "") + chr(ord("A") + own)


def _arrows(judgments: Iterable[tuple[Judgment, bool]]) -> tuple[Arrow, ...]:
    kinds: dict[tuple[str, str, str], Counter[str]] = {}
    lost: set[tuple[str, str, str]] = set()
    for judgment, is_conflicting in judgments:
        first, second = judgment.left, judgment.right
        outcome = {"tie": "=", "none": "?"}.get(judgment.verdict, ">")
        if judgment.verdict == "right" or (outcome != ">" and (second, first, outcome) in kinds):
            first, second = second, first
        key = (first, second, outcome)
        kinds.setdefault(key, Counter())[judgment.kind] += 1
        if is_conflicting:
            lost.add(key)
    return tuple(Arrow(*key, dict(sorted(counted.items())), key in lost) for key, counted in kinds.items())


def _cycles(
    evidence: JudgmentTable, aggregate: Aggregate, case: Case, conflicting: Sequence[bool]
) -> tuple[Cycle, ...]:
    """One for each set of responses that reach one another and have a judgment in conflict among them."""
    edges = edges_of(evidence.verdicts, aggregate)
    ids = evidence.cases[0].responses
    beats = np.zeros((len(ids), len(ids)), np.bool_)
    beats[edges.better, edges.worse] = True
    found = []
    for members in _components(beats):
        names = {ids[member] for member in members}
        inside = [
            position
            for position, (one, bad) in enumerate(zip(case.judgments, conflicting, strict=True))
            if bad and one.left in names and one.right in names
        ]
        strict = beats & ~beats.T if aggregate == "majority" else _strictly(case, conflicting, ids)
        circle = _shortest_circle(beats, strict, members)
        if inside and circle:
            signs = tuple(">" if strict[start, end] else "=" for start, end in pairwise(circle))
            found.append(
                Cycle(tuple(ids[one] for one in members), tuple(ids[one] for one in circle), signs, tuple(inside))
            )
    return tuple(found)


def _strictly(case: Case, conflicting: Sequence[bool], ids: Sequence[str]) -> NDArray[np.bool_]:
    """Which response beats which in a judgment in conflict."""
    position = {name: index for index, name in enumerate(ids)}
    beats = np.zeros((len(ids), len(ids)), np.bool_)
    for judgment, is_conflicting in zip(case.judgments, conflicting, strict=True):
        if is_conflicting:
            ends = (position[judgment.left], position[judgment.right])
            beats[ends if judgment.verdict == "left" else ends[::-1]] = True
    return beats


def _components(beats: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The sets of two or more that reach one another, each sorted, by their first member."""
    reached = beats.copy()
    for middle in range(len(beats)):
        reached |= reached[:, middle, None] & reached[None, middle]
    together = reached & reached.T
    groups = {tuple(map(int, np.flatnonzero(row))) for row in together if row.any()}
    return sorted(group for group in groups if len(group) > 1)


def _shortest_circle(beats: NDArray[np.bool_], strict: NDArray[np.bool_], members: Sequence[int]) -> tuple[int, ...]:
    """The shortest way around through a strict edge between members; empty where there is none."""
    ways = [(start, *_shortest_way(beats, end, start)) for start in members for end in members if strict[start, end]]
    return min(ways, key=len, default=())


def _shortest_way(beats: NDArray[np.bool_], start: int, end: int) -> tuple[int, ...]:
    """From start to end along edges, both included; they lie in one component."""
    came_from: dict[int, int] = {start: start}
    waiting = deque([start])
    while end not in came_from:
        before = waiting.popleft()
        for after in map(int, np.flatnonzero(beats[before])):
            if after not in came_from:
                came_from[after] = before
                waiting.append(after)
    way = [end]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return tuple(reversed(way))
