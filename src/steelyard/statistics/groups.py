"""The layout of a bench's prompts for sums and resamples: cells, strata, and units.

A *cell* is the finest group that is reported (category, subset, language). A *stratum* (category and subset) keeps its
size in every resample. A *unit* is drawn whole: one prompt with its parallel items, and with all other items of the
same prompt.

A stratum of one unit carries no information about the variance between units. It draws from the `Pool`, the units of
all such strata (collapsed strata: Wolter, Introduction to Variance Estimation, 2007).
"""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import blake2b
from heapq import nsmallest
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import numpy as np

from steelyard.core.languages import language_key
from steelyard.core.numerics import Floats, Integers
from steelyard.core.text import common_spellings, conversation_form, name_form
from steelyard.core.types import Case, Prompt
from steelyard.statistics.intervals import Evidence

UNCATEGORISED = "uncategorised"
"""The category of prompts without one."""
_FEWEST = 5
"""Units across several strata below which they join the largest of these."""
_FEWEST_SOURCES, _MOST_BORROWED = 20, 64
"""Units of the pool below which it borrows from other strata, and the number that it borrows."""
_LEAST_REMAINING = 1e-6
"""The least share of a variance that remains beside units that dominate their groups."""
_BETWEEN = "\x1e"


class Cell(NamedTuple):
    """The groups of one prompt. ``category`` is its first tier."""

    category: str
    subset: str | None = None
    language: str | None = None


class Label(NamedTuple):
    """The name of the unit that a prompt is drawn with, and the cell that it is counted in."""

    prompt: str
    cell: Cell


class Stratum(NamedTuple):
    """Prompts that are resampled among each other. All arrays except ``cells`` have shape (row,)."""

    name: str
    rows: Integers
    """The positions of its prompts."""
    unit: Integers
    """The unit of each row, from 0."""
    column: Integers
    """The position in ``cells`` of each row's cell."""
    cells: Integers
    """The cells of the stratum, as positions in the layout's cells; shape (cell,)."""
    num_units: int


class Pool(NamedTuple):
    """The units that replace a stratum of one unit in a resample: its sources.

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
    """Cells in sorted order, the cell of each prompt (shape (prompt,)), the strata, and the pool for strata of one."""

    cells: tuple[Cell, ...]
    cell: Integers
    strata: tuple[Stratum, ...]
    pool: Pool

    @property
    def sizes(self) -> Floats:
        """Return the number of units of each stratum."""
        return np.array([stratum.num_units for stratum in self.strata], np.float64)

    def within(self, cells: tuple[Cell, ...]) -> "Layout":
        """Return the layout with its cells numbered among ``cells``, which include all of them."""
        place = {cell: index for index, cell in enumerate(cells)}
        moved = np.array([place[cell] for cell in self.cells], np.int64)
        strata = tuple(stratum._replace(cells=moved[stratum.cells]) for stratum in self.strata)
        return self._replace(cells=cells, cell=moved[self.cell], strata=strata)


class UnitWeights(NamedTuple):
    """Amounts of each kind of unit in the denominators of groups: ``unit``, ``group``, ``weight`` of shape (entry,).

    ``stratum`` and ``number`` have shape (unit,): the stratum of a kind, and how many units of the stratum are of it.
    ``successes``: what it adds to the numerators of shares, of shape (entry,); None for other ratios.
    """

    unit: Integers
    group: Integers
    weight: Floats
    stratum: Integers
    number: Integers
    successes: Floats | None = None


def evidence_of_groups(units: UnitWeights, sizes: Floats, num_sources: int) -> Evidence:
    """Return the effective sample of the plain mean over groups of ratios, as if the quotients had equal variances.

    ``sizes``: the units of each stratum. ``num_sources``: those of the pool. A unit's part of the variance is the
    square of its share of a group's denominator, so that a prompt of many pairs counts for more (Kish, 1965). Degrees
    of freedom are those of a sum of squares with unequal variances, and combine over strata as in Satterthwaite (1946).
    Units that dominate a group draw its ratio to themselves: the inflation corrects the variance for it (the leverage
    of Bell and McCaffrey, 2002). A prompt counts as an event by its part of the measured variance, which such a unit
    hardly has; unequal parts make events fewer, as all of them may be of the smallest.
    """
    used = (units.group >= 0) & (units.weight > 0)
    if not used.any():
        return Evidence(0.0, 0.0)
    num_units, num_groups = len(units.number), int(units.group.max()) + 1
    # A unit counts once in a group. Adding into a table is faster than sorting.
    table = np.bincount(units.group[used] * num_units + units.unit[used], units.weight[used], num_groups * num_units)
    place = np.flatnonzero(table)
    group, unit = np.divmod(place, num_units)
    count = units.number[unit].astype(np.float64)
    share = table[place] / np.bincount(group, table[place] * count, num_groups)[group]
    number, second, third = (np.bincount(group, count * share**power, num_groups) for power in (0, 2, 3))
    number, second, third = (sums[number > 0] for sums in (number, second, third))
    part = np.bincount(unit, share**2, num_units)
    parts, squares = (np.bincount(units.stratum, units.number * part**power, len(sizes)) for power in (1, 2))
    # All strata of one unit draw from the same pool: together they have its degrees of freedom.
    single, total, several = float(parts[sizes == 1].sum()), float(parts.sum()), (sizes > 1) & (parts > 0)
    size, of_stratum = sizes[several], parts[several]
    lost = (squares[several] * (1 - 2 / size) + (of_stratum / size) ** 2) / (1 - 1 / size) ** 2
    # Draws from the pool have (m - 1) / m of its variance; Rao and Wu's correction covers the other strata only.
    shortfall = single / (num_sources - 1) if num_sources > 1 else 0.0
    remaining = np.where(number > 1, (1 - 2 * third / second + second) / (1 - 1 / np.maximum(number, 2)), 1.0)
    # Of a stratum of two units one is drawn: the resampled ratio is that of a unit for any weights.
    largest = np.zeros(num_groups)
    np.maximum.at(largest, group, sizes[units.stratum[unit]])
    remaining = np.where((number == 2) & (largest[np.unique(group)] == 2), 0.5 / second, remaining)
    leverage = total / max(float(second @ remaining), _LEAST_REMAINING * total)
    effective = len(number) ** 2 / total
    # A group of one prompt has no degree of freedom, however many units of the pool replace it.
    freedom = min(total**2 / float(lost.sum() + single**2 / max(1, num_sources - 1)), max(effective - 1, 1.0))
    concentration = float(second.max() / second.mean())
    within = float((of_stratum / size).sum()) + single / max(num_sources, 2)
    loss = total / (total - within)
    evidence = Evidence(effective, freedom, leverage * (total + shortfall) / total, concentration, loss)
    if units.successes is None:
        return evidence
    successes = np.bincount(
        units.group[used] * num_units + units.unit[used], units.successes[used], num_groups * num_units
    )[place]
    measured = count * (share * np.where(share < 1, 1 - share, 1)) ** 2
    most = (freedom + 1) * float((1 / number).sum() / second.sum()) / float(measured.sum())
    succeeded, failed = (most * float(measured[has].sum()) for has in (successes > 0, successes < table[place]))
    return evidence._replace(events=(succeeded, failed))


def prompt_names(case: Case) -> tuple[str, ...]:
    """Return the names of a case's prompt: its id, which parallel items share, and a digest of its normal form.

    Prompts without text have their ids alone.
    """
    return _names(case.prompt)


def _names(prompt: Prompt) -> tuple[str, ...]:
    text = conversation_form(prompt.messages)
    if not text:
        return (prompt.id,)
    # A separator that no id begins with keeps the two kinds of names apart. A digest takes little memory.
    return prompt.id, f"\x1f{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


class PromptUnits:
    """Numbers units one by one, from 0: prompts that share one of their `prompt_names` are one unit."""

    def __init__(self) -> None:
        self._unit: dict[str, int] = {}
        self._num_units = 0

    def unit(self, prompt: Prompt) -> int:
        """Return the unit of a prompt."""
        return self.of_names(_names(prompt))

    def of_names(self, names: Sequence[str]) -> int:
        """Return the unit of the prompt with these `prompt_names`."""
        unit = next((self._unit[name] for name in names if name in self._unit), self._num_units)
        self._num_units = max(self._num_units, unit + 1)
        for name in names:
            self._unit.setdefault(name, unit)
        return unit


def units_of(names: Sequence[Sequence[str]]) -> list[str]:
    """Return the unit of each prompt: prompts that share a name, directly or through others, are one unit.

    ``names``: one or more of each prompt. A unit has the smallest of its prompts' first names.
    """
    num_names = sum(map(len, names))
    # Prompts with one name each are units of that name, and so are prompts without a shared name.
    if num_names == len(names) or len(set(chain.from_iterable(names))) == num_names:
        return [first for first, *_ in names]
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # A graph of prompts and names, in which each prompt is joined to its names.
    number: dict[str, int] = {}
    name = np.array([number.setdefault(alias, len(number)) for alias in chain.from_iterable(names)])
    prompt = np.repeat(np.arange(len(names)), [len(aliases) for aliases in names])
    size = len(names) + len(number)
    graph = coo_array((np.ones(num_names, np.int8), (prompt, len(names) + name)), shape=(size, size))
    component = connected_components(graph, directed=False)[1][: len(names)].tolist()
    unit_names: dict[int, str] = {}
    for unit, (first, *_) in zip(component, names, strict=True):
        unit_names[unit] = min(unit_names.get(unit, first), first)
    return [unit_names[unit] for unit in component]


def cell_of(case: Case) -> Cell:
    """Return the cell of a case: its first-tier category, subset and language."""
    category = case.prompt.category[0] if case.prompt.category else UNCATEGORISED
    return Cell(category, case.prompt.subset, case.prompt.language)


def common_cells(cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells with one spelling, the most frequent, of each category and each language."""
    categories = common_spellings((cell.category for cell in cells), name_form)
    languages = common_spellings((cell.language for cell in cells if cell.language is not None), language_key)
    common = {
        cell: Cell(categories[cell.category], cell.subset, cell.language and languages[cell.language])
        for cell in set(cells)
    }
    return [common[cell] for cell in cells]


def layout_of(labels: Sequence[Label]) -> Layout:
    """Return the layout of prompts, with one spelling of each cell. Equal names are one unit.

    Units across the same several strata form a stratum. Fewer than `_FEWEST` such units join the largest of these
    strata: alone they would hardly vary.
    """
    cell_of_label = common_cells([label.cell for label in labels])
    # A missing part (None) comes before every name.
    cells = tuple(sorted(set(cell_of_label), key=lambda cell: [(part is not None, part or "") for part in cell]))
    position = {cell: index for index, cell in enumerate(cells)}
    cell = np.array([position[each] for each in cell_of_label], dtype=np.int64)
    number_of: dict[str, int] = {}
    units = _Units.of(np.array([number_of.setdefault(label.prompt, len(number_of)) for label in labels], np.int64))
    units_of_stratum = _units_by_stratum(units, cell, [f"{each.category}\x1f{each.subset or ''}" for each in cells])
    # Sorted, and ties of size broken by name, so that the strata do not depend on the order of the prompts.
    for joint in sorted(joint for joint in units_of_stratum if _BETWEEN in joint):
        hosts = [part for part in joint.split(_BETWEEN) if part in units_of_stratum]
        if len(units_of_stratum[joint]) < _FEWEST and hosts:
            largest = max(hosts, key=lambda part: (len(units_of_stratum[part]), part))
            units_of_stratum[largest] = np.append(units_of_stratum[largest], units_of_stratum.pop(joint))
    members = dict(sorted(units_of_stratum.items()))
    strata: list[Stratum] = []
    for name, of_stratum in members.items():
        rows, unit = units.rows_of(of_stratum), np.repeat(np.arange(len(of_stratum)), units.sizes[of_stratum])
        stratum_cells, column = np.unique(cell[rows], return_inverse=True)
        strata.append(Stratum(name, rows, unit, column, stratum_cells, len(of_stratum)))
    return Layout(cells, cell, tuple(strata), _pool(list(members.values()), units, list(number_of), cell))


class _Units(NamedTuple):
    """The rows of every unit: ``sizes[unit]`` of ``rows`` from ``starts[unit]`` on, units in order of appearance."""

    rows: Integers
    starts: Integers
    sizes: Integers

    @classmethod
    def of(cls, unit: Integers) -> "_Units":
        """Build from the unit of each row."""
        sizes = np.bincount(unit)
        return cls(np.argsort(unit, kind="stable"), np.cumsum(sizes) - sizes, sizes)

    def rows_of(self, members: Integers) -> Integers:
        """Return the rows of some units, unit after unit."""
        sizes = self.sizes[members]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.rows[np.repeat(self.starts[members], sizes) + within]


def _units_by_stratum(units: _Units, cell: Integers, names: Sequence[str]) -> dict[str, Integers]:
    """Return the units of each stratum; ``names``: the stratum of each cell."""
    distinct = sorted(set(names))
    place = np.array([distinct.index(name) for name in names], np.int64)[cell[units.rows]]
    low, high = (end.reduceat(place, units.starts) if len(place) else place for end in (np.minimum, np.maximum))
    plain = {name: np.flatnonzero((low == high) & (low == index)) for index, name in enumerate(distinct)}
    strata: dict[str, Integers] = {name: members for name, members in plain.items() if len(members)}
    several: dict[str, list[int]] = defaultdict(list)
    for unit in np.flatnonzero(low != high).tolist():
        parts = np.unique(place[units.starts[unit] : units.starts[unit] + units.sizes[unit]])
        several[_BETWEEN.join(distinct[index] for index in parts)].append(unit)
    return strata | {name: np.array(members, np.int64) for name, members in several.items()}


def _pool(strata: Sequence[Integers], units: _Units, names: Sequence[str], cell: Integers) -> Pool:
    """Return the units of all strata of one; if these are few, with some of other strata, in an order by name."""
    sources = [int(members[0]) for members in strata if len(members) == 1]
    if 0 < len(sources) < _FEWEST_SOURCES:
        # Ordered by a hash of the name: arbitrary, and the same for any order of the prompts.
        others = (int(unit) for members in strata if len(members) > 1 for unit in members)
        sources += nsmallest(_MOST_BORROWED, others, key=lambda unit: (crc32(names[unit].encode()), names[unit]))
    source_units = np.array(sources, np.int64)
    rows = units.rows_of(source_units)
    source = np.repeat(np.arange(len(sources)), units.sizes[source_units])
    return Pool(rows, source, rank_within(source, cell[rows]))


def rank_within(owner: Integers, value: Integers) -> Integers:
    """Return the rank of each value among the distinct values of its owner, from 0."""
    if not len(owner):
        return np.zeros(0, np.int64)
    pairs, place = np.unique(np.stack([owner, value]), axis=1, return_inverse=True)
    starts = np.flatnonzero(np.diff(pairs[0], prepend=-1))
    within = np.arange(pairs.shape[1]) - np.repeat(starts, np.diff(starts, append=pairs.shape[1]))
    return within[place.reshape(-1)]
