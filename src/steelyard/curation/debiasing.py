"""Debiasing by downsampling (CHEEMS, section 4.2): as many pairs whose better answer is longer as whose is shorter.

The pairs are split into those whose better response has more of a feature (is longer) and those where it has less; of
the larger group, a random part as large as the smaller is kept. Pairs that have equally much take no side and stay.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.types import Case
from steelyard.ranking.judgment_table import NO_LANGUAGE, Integers
from steelyard.ranking.pairs import IndexedPair
from steelyard.statistics.aggregation import UNCATEGORISED

Within = Literal["overall", "category", "language", "both"]


class Sided(NamedTuple):
    """Which side one pair is on: 1, its better response has more of the feature; -1, less; 0, neither.

    Pairs are balanced among those of the same ``group``.
    """

    side: int
    group: tuple[str, ...]


class Balance(NamedTuple):
    """How many pairs of a group are on each side."""

    num_more: int
    num_less: int
    num_equal: int

    def as_row(self) -> dict[str, Any]:
        """The counts, and the share of ``more`` among the pairs that take a side; null where none does."""
        sided = self.num_more + self.num_less
        return {**self._asdict(), "share_more": self.num_more / sided if sided else None}


def sided_by(case: Case, pairs: Sequence[IndexedPair], values: Sequence[float], within: Within) -> tuple[Sided, ...]:
    """The side of each pair by a number that each of the case's responses has."""
    group = group_of(case, within)
    return tuple(Sided(int(np.sign(values[pair.better] - values[pair.worse])), group) for pair in pairs)


def sided_by_author(case: Case, pairs: Sequence[IndexedPair], within: Within) -> tuple[Sided, ...]:
    """The side of each pair by its better response's author, balanced for every two authors on their own.

    ``more`` is the author whose name sorts last. A pair with one author or an unknown one takes no side.
    """
    found = []
    for pair in pairs:
        better, worse = case.responses[pair.better].author, case.responses[pair.worse].author
        if better is None or worse is None or better == worse:
            found.append(Sided(0, group_of(case, within)))
        else:
            group = (*group_of(case, within), min(better, worse), max(better, worse))
            found.append(Sided(1 if better > worse else -1, group))
    return tuple(found)


def group_of(case: Case, within: Within) -> tuple[str, ...]:
    """The case's first-tier category, its language, both, or nothing: what pairs are balanced within."""
    category = case.prompt.category[0] if case.prompt.category else UNCATEGORISED
    language = case.prompt.language or NO_LANGUAGE
    names = {"overall": (), "category": (category,), "language": (language,), "both": (category, language)}
    return names[within]


def priority(case: Case, pair: IndexedPair, *, seed: int) -> int:
    """A random number of 64 bits that depends on the seed and on the pair alone, not on where it stands in a file."""
    ends = (case.responses[pair.better].id, case.responses[pair.worse].id)
    text = "\x1f".join((str(seed), case.prompt.id, case.prompt.language or "", *ends))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def balanced(side: Integers, group: Integers, priorities: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which pairs stay: in each group the smaller side whole, of the larger as many, and those on neither side.

    Of the larger side those of lowest priority number stay, and of equal numbers the earlier.
    """
    cell = group * 3 + side + 1
    num_cells = 3 * (int(group.max(initial=-1)) + 1)
    sizes = np.bincount(cell, minlength=num_cells)
    quota = np.minimum(sizes[0::3], sizes[2::3])[group]
    order = np.lexsort((priorities, cell))
    starts = np.concatenate([[0], np.cumsum(sizes)])[cell[order]]
    place = np.empty(len(side), np.int64)
    place[order] = np.arange(len(side)) - starts
    return (side == 0) | (place < quota)


def is_matched(pair: IndexedPair, lengths: Sequence[float], closeness: float) -> bool:
    """Whether the two lengths differ by at most a share of the longer one: then length can hardly tell them apart."""
    better, worse = lengths[pair.better], lengths[pair.worse]
    return abs(better - worse) <= closeness * max(better, worse)


def balances(side: Integers, group: Integers, num_groups: int) -> tuple[Balance, ...]:
    """The counts of each group, by its number."""
    counts = np.bincount(group * 3 + side + 1, minlength=3 * num_groups).reshape(num_groups, 3)
    return tuple(Balance(num_more=more, num_less=less, num_equal=equal) for less, equal, more in counts.tolist())
