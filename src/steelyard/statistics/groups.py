"""How a bench's prompts are laid out for summing and resampling: cells, strata, and units drawn together.

A *cell* is the finest group that is ever reported (category, subset, language). A *stratum* (category and subset) is
what keeps its size in every resample. A *unit* is what is drawn: one prompt with its parallel items, and with all other
items of the same prompt.

A stratum of n units is resampled by n - 1 draws that weigh n / (n - 1) each (Rao and Wu, 1988): its variance is then
that of the mean, where n draws would have (n - 1) / n of it. A stratum of one unit cannot tell how units vary: it draws
from the `Pool`, the units of all such strata (collapsed strata: Wolter, Introduction to Variance Estimation, 2007).
"""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from heapq import nsmallest
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.core.types import Case
from steelyard.statistics.intervals import Evidence

_FEWEST = 5
_FEWEST_SOURCES, _MOST_BORROWED = 20, 64
_BETWEEN = "\x1e"


class Cell(NamedTuple):
    """The groups that one prompt belongs to. ``category`` is its first tier."""

    category: str
    subset: str | None = None
    language: str | None = None


class Label(NamedTuple):
    """What decides where a prompt is counted and with which others it is drawn."""

    prompt: str
    cell: Cell


class Stratum(NamedTuple):
    """The prompts that are resampled among each other. All arrays but ``cells`` have shape (row,)."""

    name: str
    rows: Integers
    """Positions of its prompts in the order given."""
    unit: Integers
    """Which unit each row belongs to, from 0."""
    column: Integers
    """Which of ``cells`` each row belongs to."""
    cells: Integers
    """The cells that occur in the stratum, as positions in the layout's cells; shape (cell,)."""
    num_units: int


class Pool(NamedTuple):
    """The units from which a stratum of one unit draws what stands in its place: its sources.

    ``rows`` are the positions of their prompts, ``source`` the number of the unit, ``place`` the rank of the prompt's
    cell among those of the unit; all of shape (row,).
    """

    rows: Integers
    source: Integers
    place: Integers

    @property
    def num_sources(self) -> int:
        """Return the number of units to draw from."""
        return int(self.source.max(initial=-1)) + 1

    def draw(self, random: np.random.Generator, num_resamples: int, num_slots: int) -> Integers:
        """Draw the source that replaces each of several strata of one unit: shape (resample, slot)."""
        return random.integers(max(1, self.num_sources), size=(num_resamples, num_slots))


class Layout(NamedTuple):
    """Cells in sorted order, each prompt's cell (shape (prompt,)), the strata, and what strata of one unit draw."""

    cells: tuple[Cell, ...]
    cell: Integers
    strata: tuple[Stratum, ...]
    pool: Pool

    @property
    def sizes(self) -> Floats:
        """How many units each stratum has."""
        return np.array([stratum.num_units for stratum in self.strata], np.float64)


def evidence_of_groups(counts: Floats, sizes: Floats, num_sources: int) -> Evidence:
    """What stands behind the plain mean over groups; ``counts``: units by (group, stratum). Empty groups are left out.

    ``sizes``: units of each stratum; ``num_sources``: of the pool. Units are taken to vary alike, so that a stratum's
    part of the variance is its units over the square of the group's.
    """
    within = counts.sum(axis=1)
    counts, within = counts[within > 0], within[within > 0]
    if not len(within):
        return Evidence(0.0, 0.0)
    parts = (counts / within[:, None] ** 2).sum(axis=0)
    single, total = float(parts[sizes == 1].sum()), float(parts.sum())
    squares = float((parts[sizes > 1] ** 2 / (sizes[sizes > 1] - 1)).sum()) + single**2 / max(1, num_sources - 1)
    shortfall = single / (num_sources - 1) if num_sources > 1 else 0.0
    units = len(within) ** 2 / total
    # One prompt drawn from many is still one: its group knows no more of itself than a prompt does.
    freedom = min(total**2 / squares, max(units - 1, 1.0))
    return Evidence(units, freedom, (total + shortfall) / total)


def prompt_names(case: Case) -> tuple[str, str]:
    """What a case's prompt is known by: its id, which parallel items share, and its text, which rows of a file may."""
    # Parts of a text and an id are told apart by signs that neither begins with.
    text = "\x1e".join(f"{message.role}\x1f{message.content}" for message in case.prompt.messages)
    # A digest, since the names of a whole bench are held.
    return case.prompt.id, f"\x1f{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def units_of(names: Sequence[Sequence[str]]) -> list[str]:
    """What each prompt is drawn with: prompts that share a name, directly or through others, are one unit.

    ``names``: one or more of each prompt. A unit is called by the first name, the least of its prompts'.
    """
    num_names = sum(map(len, names))
    # Prompts with one name each are called by it, and so are prompts that share none.
    if num_names == len(names) or len(set(chain.from_iterable(names))) == num_names:
        return [own[0] for own in names]
    leader = list(range(len(names)))
    holder: dict[str, int] = {}

    def led(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for place, own in enumerate(names):
        for name in own:
            one, other = sorted((led(place), led(holder.setdefault(name, place))))
            leader[other] = one
    called: dict[int, str] = {}
    for place, own in enumerate(names):
        unit = led(place)
        called[unit] = min(called.get(unit, own[0]), own[0])
    return [called[led(place)] for place in range(len(names))]


def layout_of(labels: Sequence[Label]) -> Layout:
    """The layout of prompts. Equal names are one unit; units whose items lie in the same several strata make their own.

    Few such units (below `_FEWEST`) are drawn with the largest of these strata: alone they would hardly vary.
    """
    cells = tuple(sorted({label.cell for label in labels}, key=_sortable))
    position = {cell: index for index, cell in enumerate(cells)}
    cell = np.array([position[label.cell] for label in labels], dtype=np.int64)
    number_of: dict[str, int] = {}
    units = _Units.of(np.array([number_of.setdefault(label.prompt, len(number_of)) for label in labels], np.int64))
    units_of_stratum = _units_by_stratum(units, cell, [_stratum_name(own) for own in cells])
    _join_few(units_of_stratum)
    members = [own for _, own in sorted(units_of_stratum.items())]
    strata = tuple(_stratum(name, units, own, cell) for name, own in sorted(units_of_stratum.items()))
    return Layout(cells, cell, strata, _pool(members, units, list(number_of), cell))


class _Units(NamedTuple):
    """The rows of every unit: ``sizes[unit]`` of ``rows`` from ``starts[unit]`` on, units in order of appearance."""

    rows: Integers
    starts: Integers
    sizes: Integers

    @classmethod
    def of(cls, unit: Integers) -> "_Units":
        """From the unit of each row."""
        sizes = np.bincount(unit)
        return cls(np.argsort(unit, kind="stable"), np.cumsum(sizes) - sizes, sizes)

    def rows_of(self, members: Integers) -> Integers:
        """The rows of some units, unit after unit."""
        sizes = self.sizes[members]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.rows[np.repeat(self.starts[members], sizes) + within]


def _units_by_stratum(units: _Units, cell: Integers, names: Sequence[str]) -> dict[str, Integers]:
    """The units of each stratum; ``names``: of the stratum that each cell belongs to."""
    distinct = sorted(set(names))
    place = np.array([distinct.index(name) for name in names], np.int64)[cell[units.rows]]
    low, high = (own.reduceat(place, units.starts) if len(place) else place for own in (np.minimum, np.maximum))
    found = {name: np.flatnonzero((low == high) & (low == index)) for index, name in enumerate(distinct)}
    found = {name: own for name, own in found.items() if len(own)}
    several: dict[str, list[int]] = defaultdict(list)
    for unit in np.flatnonzero(low != high).tolist():
        own = place[units.starts[unit] : units.starts[unit] + units.sizes[unit]]
        several[_BETWEEN.join(distinct[index] for index in np.unique(own))].append(unit)
    return found | {name: np.array(own, np.int64) for name, own in several.items()}


def _join_few(units_of_stratum: dict[str, Integers]) -> None:
    """A bootstrap of n units has (n - 1) / n of their variance, and none of one: few units go where there are more."""
    for name in sorted(name for name in units_of_stratum if _BETWEEN in name):
        hosts = [part for part in name.split(_BETWEEN) if part in units_of_stratum]
        if len(units_of_stratum[name]) < _FEWEST and hosts:
            largest = max(hosts, key=lambda part: (len(units_of_stratum[part]), part))
            units_of_stratum[largest] = np.append(units_of_stratum[largest], units_of_stratum.pop(name))


def _pool(strata: Sequence[Integers], units: _Units, names: Sequence[str], cell: Integers) -> Pool:
    """The units of all strata of one; where these are few, with some of other strata, whatever the prompts' order."""
    sources = [int(own[0]) for own in strata if len(own) == 1]
    if 0 < len(sources) < _FEWEST_SOURCES:
        others = (unit for own in strata if len(own) > 1 for unit in own.tolist())
        sources += nsmallest(_MOST_BORROWED, others, key=lambda unit: _shuffled(names[int(unit)]))
    members = np.array(sources, np.int64)
    rows = units.rows_of(members)
    source = np.repeat(np.arange(len(sources)), units.sizes[members])
    return Pool(rows, source, rank_within(source, cell[rows]))


def rank_within(owner: Integers, value: Integers) -> Integers:
    """The rank of each value among the distinct values of its owner, from 0."""
    if not len(owner):
        return np.zeros(0, np.int64)
    pairs, place = np.unique(np.stack([owner, value]), axis=1, return_inverse=True)
    starts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    within = np.arange(pairs.shape[1]) - np.repeat(starts, np.diff(starts, append=pairs.shape[1]))
    return within[place.reshape(-1)]


def _shuffled(name: str) -> tuple[int, str]:
    return crc32(name.encode()), name


def _stratum(name: str, units: _Units, members: Integers, cell: Integers) -> Stratum:
    rows = units.rows_of(members)
    unit = np.repeat(np.arange(len(members)), units.sizes[members])
    cells, column = np.unique(cell[rows], return_inverse=True)
    return Stratum(name, rows, unit, column, cells, len(members))


def _stratum_name(cell: Cell) -> str:
    return f"{cell.category}\x1f{cell.subset or ''}"


def _sortable(cell: Cell) -> tuple[tuple[bool, str], ...]:
    return tuple((part is not None, part or "") for part in cell)
