"""One case analysed: which response beats which, the judgments in conflict with their cycles, and the tiers."""

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.types import Case, Judgment, Ranking
from steelyard.curation.data_checks import MOST_LISTED, ConflictedPrompt
from steelyard.ranking.judgment_table import (
    EVERYTHING,
    NONE,
    REVERSED,
    Aggregate,
    JudgmentTable,
    Only,
    distinct_judgments,
    edges_of,
    first_identical,
    judgment_table,
)
from steelyard.ranking.resolution import resolve_table

_NUM_LETTERS = 26


class Arrow(NamedTuple):
    """All admitted judgments on one pair with one outcome: ``>`` first beats second, ``=`` a tie, ``?`` unparsed.

    ``by_kind`` counts them. Where ``is_conflicting``, they are strict and contradict the tiers.
    """

    first: str
    second: str
    outcome: str
    by_kind: dict[str, int]
    is_conflicting: bool


class Cycle(NamedTuple):
    """Responses that beat one another in a circle: all of them share a tier.

    ``circle`` is a shortest one, which begins and ends with the same response; ``signs`` lie between them.
    ``judgments`` are the positions in the case of the strict judgments between the cycle's responses.
    """

    responses: tuple[str, ...]
    circle: tuple[str, ...]
    signs: tuple[str, ...]
    judgments: tuple[int, ...]


class CaseAnalysis(NamedTuple):
    """A case with the graph of its judgments.

    ``labels`` are short names of the responses by id. ``tiers`` come from the admitted judgments, null without any;
    the case's own ``ranking`` may differ. ``admitted`` and ``conflicting`` have a value for each judgment of the case.
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
        """The number of judgments that contradict the tiers."""
        return sum(self.conflicting)

    @property
    def num_repeated(self) -> int:
        """The number of judgments that do not count because an identical one does."""
        first = enumerate(first_identical(self.case.judgments))
        return sum(self.admitted[at] for position, at in first if position != at)

    @property
    def ranking(self) -> Ranking | None:
        """The tiers of the judgments, or the ranking of the file without any."""
        return self.tiers if self.tiers is not None else self.case.ranking

    def tier_of(self, response: str) -> int | None:
        """Return the response's tier in the ranking, the best is 1; null where it has none."""
        return next((number for number, tier in enumerate(self.ranking or (), 1) if response in tier), None)


def analyze_case(case: Case, *, only: Only = EVERYTHING, aggregate: Aggregate = "none") -> CaseAnalysis:
    """Analyse a case, its judgments taken as `resolve` takes them. The case must have been checked."""
    admitted = tuple(only.votes(case.judgments))
    table = judgment_table((case,), only)
    resolution = resolve_table(table, aggregate)
    contradicts = iter((table.verdicts.is_strict & ~resolution.graphs.full.is_kept).tolist())
    conflicting = tuple(next(contradicts) if counts else False for counts in admitted)
    return CaseAnalysis(
        case=case,
        labels={response.id: response_label(position) for position, response in enumerate(case.responses)},
        tiers=resolution.rankings[0] if any(admitted) else None,
        admitted=admitted,
        conflicting=conflicting,
        arrows=_arrows(case, admitted, conflicting),
        cycles=_cycles(table, aggregate, case, conflicting) if any(conflicting) else (),
    )


def response_label(position: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    rounds, letter = divmod(position, _NUM_LETTERS)
    return (response_label(rounds - 1) if rounds else "") + chr(ord("A") + letter)


def _arrows(case: Case, admitted: Sequence[bool], conflicting: Sequence[bool]) -> tuple[Arrow, ...]:
    """Return an arrow for each outcome of a pair, in order of first mention."""
    kinds: dict[tuple[str, str, str], Counter[str]] = {}
    in_conflict: set[tuple[str, str, str]] = set()
    for judgment, counts, is_conflicting in zip(case.judgments, admitted, conflicting, strict=True):
        if not counts:
            continue
        first, second = judgment.left, judgment.right
        outcome = {"tie": "=", "none": "?"}.get(judgment.verdict, ">")
        if judgment.verdict == "right" or (outcome != ">" and (second, first, outcome) in kinds):
            first, second = second, first
        key = (first, second, outcome)
        kinds.setdefault(key, Counter())[judgment.kind] += 1
        if is_conflicting:
            in_conflict.add(key)
    return tuple(Arrow(*key, dict(sorted(counts.items())), key in in_conflict) for key, counts in kinds.items())


def _cycles(table: JudgmentTable, aggregate: Aggregate, case: Case, conflicting: Sequence[bool]) -> tuple[Cycle, ...]:
    """Return a cycle for each set of responses that reach one another and have a conflicting judgment among them."""
    edges = edges_of(table.verdicts, aggregate)
    ids = table.cases[0].responses
    beats = np.zeros((len(ids), len(ids)), np.bool_)
    beats[edges.better, edges.worse] = True
    strict = beats & ~beats.T if aggregate == "majority" else _strict_conflicts(case, conflicting, ids)
    cycles = []
    for members in _components(beats):
        names = {ids[member] for member in members}
        inside = tuple(
            position
            for position, (judgment, is_conflicting) in enumerate(zip(case.judgments, conflicting, strict=True))
            if is_conflicting and judgment.left in names and judgment.right in names
        )
        circle = _shortest_circle(beats, strict, members)
        if inside and circle:
            signs = tuple(">" if strict[start, end] else "=" for start, end in pairwise(circle))
            responses = tuple(ids[member] for member in members)
            cycles.append(Cycle(responses, tuple(ids[member] for member in circle), signs, inside))
    return tuple(cycles)


def _strict_conflicts(case: Case, conflicting: Sequence[bool], ids: Sequence[str]) -> NDArray[np.bool_]:
    """Return which response beats which in a conflicting judgment, shape (response, response)."""
    position = {name: index for index, name in enumerate(ids)}
    beats = np.zeros((len(ids), len(ids)), np.bool_)
    for judgment, is_conflicting in zip(case.judgments, conflicting, strict=True):
        if is_conflicting:
            ends = (position[judgment.left], position[judgment.right])
            beats[ends if judgment.verdict == "left" else ends[::-1]] = True
    return beats


def _components(beats: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Return the sets of two or more that reach one another, each sorted, by their first member."""
    reached = beats.copy()
    for middle in range(len(beats)):
        reached |= reached[:, middle, None] & reached[None, middle]
    together = reached & reached.T
    groups = {tuple(map(int, np.flatnonzero(row))) for row in together if row.any()}
    return sorted(group for group in groups if len(group) > 1)


def _shortest_circle(beats: NDArray[np.bool_], strict: NDArray[np.bool_], members: Sequence[int]) -> tuple[int, ...]:
    """Return the shortest way around through a strict edge between members; empty where there is none."""
    ways = [(start, *_shortest_way(beats, end, start)) for start in members for end in members if strict[start, end]]
    return min(ways, key=len, default=())


def _shortest_way(beats: NDArray[np.bool_], start: int, end: int) -> tuple[int, ...]:
    """Return the way from start to end along edges, both included; they lie in one component."""
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


class PairEdge(NamedTuple):
    """All judgments on one pair: how many prefer the first, the second, neither, and how many are unparsed.

    ``is_in_cycle``: the two ends lie in one cycle, so that the strict judgments on the pair are in conflict.
    """

    first: str
    second: str
    num_first: int
    num_second: int
    num_ties: int
    num_none: int
    is_in_cycle: bool

    @property
    def num_conflicting(self) -> int:
        """The strict judgments of the pair if it lies in a cycle, else none (CHEEMS, section 3.2)."""
        return self.num_first + self.num_second if self.is_in_cycle else 0


def graph_edges(judgments: Sequence[Judgment]) -> tuple[PairEdge, ...]:
    """Return an edge for each judged pair, in order of first mention.

    A tie is an arrow both ways; an unparsed judgment is none. Of identical judgments the first counts.
    """
    verdicts: dict[tuple[str, str], list[str]] = {}
    arrows: set[tuple[str, str]] = set()
    for judgment in distinct_judgments(judgments):
        pair, opposite = (judgment.left, judgment.right), (judgment.right, judgment.left)
        if opposite in verdicts:
            verdicts[opposite].append(REVERSED[judgment.verdict])
        else:
            verdicts.setdefault(pair, []).append(judgment.verdict)
        if judgment.verdict in ("left", "tie"):
            arrows.add(pair)
        if judgment.verdict in ("right", "tie"):
            arrows.add(opposite)
    reached = _reachable(arrows)
    return tuple(
        PairEdge(
            *pair,
            num_first=outcomes.count("left"),
            num_second=outcomes.count("right"),
            num_ties=outcomes.count("tie"),
            num_none=outcomes.count("none"),
            is_in_cycle=pair in reached and pair[::-1] in reached,
        )
        for pair, outcomes in verdicts.items()
    )


def num_conflicting(edges: Iterable[PairEdge]) -> int:
    """Return the number of strict judgments whose two ends lie in one cycle."""
    return sum(edge.num_conflicting for edge in edges)


def _reachable(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the pairs that a path of arrows joins."""
    reached = set(arrows)
    for middle in sorted({name for arrow in arrows for name in arrow}):
        into = [start for start, end in reached if end == middle]
        out_of = [end for start, end in reached if start == middle]
        reached |= {(start, end) for start in into for end in out_of}
    return reached


def worst_conflicts(data: Sequence[Case], only: Only) -> tuple[int, tuple[ConflictedPrompt, ...]]:
    """Return how many prompts have a conflict, and those with the largest share of conflicting judgments."""
    table = judgment_table(data, only)
    full = resolve_table(table).graphs.full
    verdicts = full.verdicts
    num_read = np.bincount(verdicts.graph[verdicts.verdict != NONE], minlength=len(data))
    num_conflicting = np.bincount(verdicts.graph[verdicts.is_strict & ~full.is_kept], minlength=len(data))
    order = np.lexsort((-num_conflicting, -num_conflicting / np.maximum(num_read, 1)))
    worst = [place for place in order[:MOST_LISTED].tolist() if num_conflicting[place]]
    rows = []
    for place in worst:
        analysis = analyze_case(data[place], only=only)
        cycle = analysis.cycles[0]
        names = [analysis.labels[name] for name in cycle.circle]
        shown = " ".join([names[0], *(f"{sign} {name}" for sign, name in zip(cycle.signs, names[1:], strict=True))])
        rows.append(
            ConflictedPrompt(
                prompt=data[place].prompt.id,
                language=data[place].prompt.language,
                num_conflicting=int(num_conflicting[place]),
                num_judgments=int(num_read[place]),
                shown=shown,
                cycle=cycle.circle,
            )
        )
    return int((num_conflicting > 0).sum()), tuple(rows)
