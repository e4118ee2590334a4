"""Annotation features besides the verdicts: authors and lengths of the answers, and the order shown."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Integers
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Judgment
from steelyard.ranking.judgment_table import JudgmentTable, NameNumbers, integers
from steelyard.statistics.unit_bootstrap import MOST_UNITS

UNKNOWN = -1


class Traits(NamedTuple):
    """Further columns of the cases of a `JudgmentTable`.

    One entry a case: ``unit``, the bootstrap unit of the prompt. One entry a judgment: ``left_place`` and
    ``right_place``, from 0, in the order shown, and ``num_shown``, 0 where the order is unknown. One entry a response,
    case after case: ``length`` in code points, and ``author``, a position in ``authors`` or -1.
    """

    unit: Integers
    left_place: Integers
    right_place: Integers
    num_shown: Integers
    length: Integers
    author: Integers
    authors: tuple[str, ...]


class TraitCollector:
    """Collects traits while `judgment_table` reads the cases: ``judgment_table(cases, only, collector.add)``."""

    def __init__(self) -> None:
        self._unit: list[int] = []
        self._num_shown: list[int] = []
        self._shown: list[int] = []
        self._length: list[int] = []
        self._author: list[int] = []
        self._authors = NameNumbers()

    def add(self, case: Case, position: dict[str, int], admitted: Sequence[Judgment]) -> None:
        """Collect the traits of one case. Only numbers are retained."""
        self._unit.append(unit_of(case.prompt.id))
        shown = [judgment.shown or () for judgment in admitted]
        self._num_shown += map(len, shown)
        self._shown += [position[name] for names in shown for name in names]
        self._length += map(num_characters, case.responses)
        authors = self._authors
        self._author += [
            UNKNOWN if response.author is None else authors[response.author] for response in case.responses
        ]

    def traits(self, table: JudgmentTable) -> Traits:
        """Return the traits of the cases of the table."""
        num_shown, shown = integers(self._num_shown), integers(self._shown)
        left_place = _place(shown, num_shown, table.verdicts.left)
        right_place = _place(shown, num_shown, table.verdicts.right)
        known = (left_place >= 0) & (right_place >= 0)  # else the order shown is unknown
        author = integers(self._author)
        is_known = author >= 0
        names, author[is_known] = self._authors.sorted(author[is_known])
        return Traits(
            unit=integers(self._unit),
            left_place=np.where(known, left_place, 0),
            right_place=np.where(known, right_place, 0),
            num_shown=np.where(known, num_shown, 0),
            length=integers(self._length),
            author=author,
            authors=names,
        )


def _place(shown: Integers, num_shown: Integers, response: Integers) -> Integers:
    """Return the first place of each judgment's response in the order shown, from 0, or -1; ``shown`` is flat."""
    owner = np.repeat(np.arange(len(num_shown)), num_shown)
    at = np.flatnonzero(shown == response[owner])[::-1]  # reversed, so that the first of two places is written last
    start = np.cumsum(num_shown) - num_shown
    place = np.full(len(num_shown), -1)
    place[owner[at]] = at - start[owner[at]]
    return place


def unit_of(prompt: str) -> int:
    """Return the bootstrap unit of a prompt id. Parallel items of one id, and a few by chance, share a unit."""
    return zlib.crc32(prompt.encode("utf-8", "surrogatepass")) % MOST_UNITS
