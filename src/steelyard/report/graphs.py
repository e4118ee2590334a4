"""The judgments of one case as a graph to be drawn: one edge a pair, and whether it lies in a cycle."""

from collections.abc import Iterable
from typing import NamedTuple

from steelyard.core.types import Judgment

_TURNED = {"left": "right", "right": "left", "tie": "tie", "none": "none"}


class Edge(NamedTuple):
    """All judgments on one pair: how many prefer the first, the second, neither, and how many are unreadable.

    ``is_in_cycle`` says that the two ends lie in one cycle: then the strict judgments here are in conflict.
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


def graph_edges(judgments: Iterable[Judgment]) -> tuple[Edge, ...]:
    """One edge for each judged pair, in order of first mention. A tie is an arrow both ways, ``none`` is no arrow."""
    given = tuple(judgments)
    if not given:
        return ()
    counts: dict[tuple[str, str], list[str]] = {}
    for judgment in given:
        pair, turned = (judgment.left, judgment.right), (judgment.right, judgment.left)
        if turned in counts:
            counts[turned].append(_TURNED[judgment.verdict])
        else:
            counts.setdefault(pair, []).append(judgment.verdict)
    reached = _reachable(given)
    return tuple(
        Edge(
            first,
            second,
            num_first=verdicts.count("left"),
            num_second=verdicts.count("right"),
            num_ties=verdicts.count("tie"),
            num_none=verdicts.count("none"),
            is_in_cycle=(first, second) in reached and (second, first) in reached,
        )
        for (first, second), verdicts in counts.items()
    )


def num_conflicting(edges: Iterable[Edge]) -> int:
    """The strict judgments whose two ends lie in one cycle."""
    return sum(edge.num_conflicting for edge in edges)


def _reachable(judgments: Iterable[Judgment]) -> set[tuple[str, str]]:
    reached: set[tuple[str, str]] = set()
    for judgment in judgments:
        if judgment.verdict in ("left", "tie"):
            reached.add((judgment.left, judgment.right))
        if judgment.verdict in ("right", "tie"):
            reached.add((judgment.right, judgment.left))
    for middle in sorted({name for edge in reached for name in edge}):
        into = [start for start, end in reached if end == middle]
        out_of = [end for start, end in reached if start == middle]
        reached |= {(start, end) for start in into for end in out_of}
    return reached
