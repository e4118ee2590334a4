"""The bootstrap over prompts, within strata of category and subset. Units (`groups`) are drawn whole.

Two ways to draw the same bootstrap, and when to use which:

- `draw_counts`: how often each *distinct* row of statistics is drawn is multinomial, so that the cost is that of the
  few unique rows. For whole numbers by prompt: `resample` gives `Totals` by cell for accuracy, exact match and every
  headline of a bench. Each call draws for itself; models that are compared are drawn together (`difference_items`).
- `draw_weights`: a weight of each unit in each resample, which then multiplies any table of sums. For other numbers
  (rewards, correlations, calibration): `draw_blocks` draws once for all measures, and `add_up` sums their columns by
  group. Beyond `MOST_BLOCKS` units, random blocks of units of one stratum are drawn instead: the variance keeps its
  expectation, and is known to about 2 % with two thousand blocks.

Judgments and pairs, which have no strata, are drawn by prompt in `unit_bootstrap`, with the same two functions.

A stratum of n units is resampled by n - 1 draws of weight n / (n - 1) each (Rao and Wu, 1988). Its variance is then
that of the mean; n draws would have (n - 1) / n of it. A stratum of one unit draws from the `Pool` of the layout.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.statistics.groups import (
    Cell,
    Label,
    Layout,
    Stratum,
    UnitWeights,
    evidence_of_groups,
    layout_of,
    rank_within,
)
from steelyard.statistics.intervals import Evidence
from steelyard.statistics.unique_rows import RowCodes, UniqueRows, row_codes, unique_rows

MOST_BLOCKS = 2048
_FEWEST_BLOCKS = 64
_COUNTS_AT_A_TIME = 4_000_000


def draw_counts(
    random: np.random.Generator, counts: Integers, *, num_drawn: int, num_resamples: int, width: int = 1
) -> Iterator[tuple[slice, Floats]]:
    """Draw units with replacement, and count them by kind, some resamples at a time: (resample, kind).

    ``counts`` is the number of units of each kind, shape (kind,). ``width`` bounds the memory: the largest row that the
    caller makes of a resample.
    """
    # Drawing units with replacement and counting them by kind is one multinomial draw.
    shares = counts / counts.sum()
    step = max(1, _COUNTS_AT_A_TIME // max(len(counts), width))
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        yield slice(start, start + size), random.multinomial(num_drawn, shares, size=size).astype(np.float64)


def draw_weights(
    random: np.random.Generator, num_units: int, *, num_drawn: int, num_resamples: int
) -> NDArray[np.float32]:
    """Draw units with replacement; return how often each is drawn, shape (resample, unit)."""
    drawn = random.integers(max(1, num_units), size=(num_resamples, num_drawn))
    # Offsets make one count serve all resamples.
    drawn += np.arange(num_resamples)[:, None] * num_units
    counts = np.bincount(drawn.reshape(-1), minlength=num_resamples * num_units)
    return counts.reshape(num_resamples, num_units).astype(np.float32)


class Items(NamedTuple):
    """The table to resample: the layout of the prompts, and whole numbers of shape (prompt, column).

    A paired comparison has the columns of both models side by side, so that they are drawn together.
    """

    layout: Layout
    statistics: Integers
    num_resamples: int = 1000


class UnitRows(NamedTuple):
    """The unique units of all strata: ``columns`` (entry, column) are what the unit ``row`` counts in a ``cell``.

    ``stratum`` and ``number`` have shape (row,): the stratum of a unique unit, and how many units are like it.
    ``sizes`` (stratum,): the units of each stratum.
    """

    row: Integers
    cell: Integers
    columns: Integers
    stratum: Integers
    number: Integers
    sizes: Floats

    def select(self, cells: Sequence[int], num_cells: int) -> "UnitRows":
        """Return what units count in some of the cells of the totals, which are then numbered from 0."""
        place = np.full(num_cells, -1)
        place[list(cells)] = np.arange(len(cells))
        is_in = place[self.cell] >= 0
        return self._replace(row=self.row[is_in], cell=place[self.cell[is_in]], columns=self.columns[is_in])


class Totals(NamedTuple):
    """Sums by cell: of the prompts themselves, shape (cell, column), and of each resample, (resample, cell, column).

    ``num_sources`` is the number of units in the pool of strata of one unit.
    """

    cells: tuple[Cell, ...]
    point: Floats
    resampled: Floats
    units: UnitRows
    num_sources: int = 0

    def select(self, cells: Sequence[int]) -> "Totals":
        """Return the totals of the cells at these positions."""
        return Totals(
            tuple(self.cells[index] for index in cells),
            self.point[cells],
            self.resampled[:, cells],
            self.units.select(cells, len(self.cells)),
            self.num_sources,
        )

    def of_columns(self, columns: slice | Integers) -> "Totals":
        """Return the totals of some columns."""
        units = self.units._replace(columns=self.units.columns[:, columns])
        return self._replace(point=self.point[:, columns], resampled=self.resampled[..., columns], units=units)

    def evidence(
        self,
        members: Floats | None = None,
        *,
        used: Booleans | None = None,
        denominator: int | None = None,
        numerator: int | None = None,
    ) -> Evidence:
        """Return the effective sample of the plain mean over groups of cells, ``members`` (group, cell).

        Without members: of the mean over the strata, or over those that are ``used``, shape (stratum,).
        ``denominator``: the column that weights a unit in its group; None: all units that count anything are equal.
        ``numerator``: the column of successes, if the ratios are shares.
        """
        units = self.units
        if members is None:
            group = units.stratum[units.row]
            # A formula that no stratum changes is constant; all strata then stand for the sample.
            group = group if used is None or not used.any() else np.where(used[group], group, -1)
        else:
            # A cell belongs to one group at most.
            group = np.arange(1, len(members) + 1) @ (members[:, units.cell] > 0) - 1
        weight = (units.columns != 0).any(axis=1) if denominator is None else units.columns[:, denominator]
        successes = None if numerator is None else units.columns[:, numerator].astype(np.float64)
        weights = UnitWeights(units.row, group, weight.astype(np.float64), units.stratum, units.number, successes)
        return evidence_of_groups(weights, units.sizes, self.num_sources)


def resample(items: Items, *, seed: int) -> Totals:
    """Return the totals of the prompts and of every resample. The order of the prompts has no influence."""
    layout, statistics = items.layout, items.statistics
    shape = (len(layout.cells), statistics.shape[1])
    point = np.zeros(shape)
    resampled = np.zeros((items.num_resamples, *shape))
    codes = row_codes(statistics)
    kinds: list[UniqueRows] = []
    for stratum in layout.strata:
        unique = _unique_units(stratum, statistics, codes)
        point[stratum.cells] += (unique.counts @ unique.rows).reshape(len(stratum.cells), -1)
        kinds.append(unique)
        # Rao and Wu (1988): n - 1 draws of weight n / (n - 1).
        num_drawn = stratum.num_units - 1
        if not num_drawn:
            continue
        # A generator for each stratum: adding a category leaves the draws of the others as they are.
        random = generator(seed, "bootstrap", stratum.name)
        rows = unique.rows * (stratum.num_units / num_drawn)
        for chunk, drawn in draw_counts(random, unique.counts, num_drawn=num_drawn, num_resamples=items.num_resamples):
            resampled[chunk, stratum.cells] += (drawn @ rows).reshape(len(drawn), len(stratum.cells), -1)
    _draw_single_units(items, resampled, seed)
    return Totals(
        layout.cells, point, resampled, _unit_rows(layout, kinds, statistics.shape[1]), layout.pool.num_sources
    )


def cell_sums(layout: Layout, statistics: Integers) -> Floats:
    """Return the sums of the prompts by cell, without resamples: shape (cell, column)."""
    size = len(layout.cells)
    return np.stack([np.bincount(layout.cell, column, size) for column in statistics.T], axis=1).astype(np.float64)


def difference_items(both: Items, *, shared: Sequence[int], compared: Sequence[int]) -> Items:
    """Return one table for two models: shared columns, first minus second of others, and the sizes of these.

    A difference of sums over equal denominators is the sum of differences: its resamples have the same distribution,
    and far fewer unique rows than pairs of rows. Asserts that both models agree in the shared columns.
    """
    first, second = np.split(both.statistics, 2, axis=1)
    # By column (Fortran order): each is written, and later coded, as a whole.
    table = np.empty((len(first), len(shared) + 2 * len(compared)), np.int64, order="F")
    for place, column in enumerate(shared):
        assert (first[:, column] == second[:, column]).all(), "the same pairs of the same prompts"
        table[:, place] = first[:, column]
    for place, column in enumerate(compared, len(shared)):
        np.subtract(first[:, column], second[:, column], out=table[:, place])
        np.abs(table[:, place], out=table[:, place + len(compared)])
    return both._replace(statistics=table)


def _unique_units(stratum: Stratum, statistics: Integers, codes: RowCodes | None) -> UniqueRows:
    """Return the unique sums of the stratum's units by cell, and the number of units with each.

    If every unit is one prompt of one cell, codes of rows are counted instead.
    """
    is_plain = len(stratum.cells) == 1 and stratum.num_units == len(stratum.rows)
    if codes is not None and is_plain:
        return codes.count_rows(stratum.rows)
    num_cells, num_columns = len(stratum.cells), statistics.shape[1]
    place = stratum.unit * num_cells + stratum.column
    size = stratum.num_units * num_cells
    rows = statistics[stratum.rows]
    summed = [np.bincount(place, weights=rows[:, column], minlength=size) for column in range(num_columns)]
    table = np.stack(summed, axis=1).astype(np.int64)
    return unique_rows(table.reshape(stratum.num_units, num_cells * num_columns))


def _unit_rows(layout: Layout, kinds: Sequence[UniqueRows], num_columns: int) -> UnitRows:
    """Return the unique units of all strata by row and cell, without the cells in which they count nothing."""
    numbers = [len(unique.counts) for unique in kinds]
    starts = np.cumsum([0, *numbers])
    nothing = np.zeros(0, np.int64)
    rows: list[Integers] = [nothing]
    cells: list[Integers] = [nothing]
    parts: list[Integers] = [np.zeros((0, num_columns), np.int64)]
    alike: list[Integers] = [nothing]
    for stratum, unique, start in zip(layout.strata, kinds, starts[:-1], strict=True):
        columns = unique.rows.reshape(len(unique.rows), len(stratum.cells), -1)
        row, cell = np.nonzero((columns != 0).any(axis=-1))
        rows.append(start + row)
        cells.append(stratum.cells[cell])
        parts.append(columns[row, cell])
        alike.append(unique.counts)
    row, cell, columns, number = (np.concatenate(each) for each in (rows, cells, parts, alike))
    return UnitRows(row, cell, columns, np.repeat(np.arange(len(kinds)), numbers), number, layout.sizes)


def _draw_single_units(items: Items, resampled: Floats, seed: int) -> None:
    """Add units of the pool for the strata of one unit; cells correspond by their rank within the unit."""
    pool = items.layout.pool
    strata = [stratum for stratum in items.layout.strata if stratum.num_units == 1]
    if not strata:
        return
    num_places = int(pool.place.max()) + 1
    table = np.zeros((pool.num_sources, num_places, items.statistics.shape[1]))
    np.add.at(table, (pool.source, pool.place), items.statistics[pool.rows])
    num_cells = np.zeros(pool.num_sources, np.int64)
    np.maximum.at(num_cells, pool.source, pool.place + 1)
    for stratum in strata:
        random = generator(seed, "bootstrap", stratum.name)
        sources = pool.draw(random, items.num_resamples, 1)
        # A source with fewer cells than the stratum is used again from its first cell.
        places = np.arange(len(stratum.cells)) % num_cells[sources]
        resampled[:, stratum.cells] += table[sources, places]


class Blocks(NamedTuple):
    """One drawing of blocks. ``block`` and ``unit`` have shape (prompt,); ``weights`` (resample, block).

    ``stratum`` is that of each unit, shape (unit,). ``single`` numbers the strata of one unit: that of each prompt,
    or -1, shape (prompt,); ``sources`` (resample, single) is the unit of the pool that replaces it.
    """

    layout: Layout
    unit: Integers
    block: Integers
    weights: NDArray[np.float32]
    stratum: Integers
    single: Integers
    sources: Integers

    @property
    def num_blocks(self) -> int:
        """Return the number of blocks."""
        return self.weights.shape[1]


class Sums(NamedTuple):
    """Sums by group: ``point`` (group, column), ``resampled`` (resample, group, column)."""

    point: Floats
    resampled: Floats


class Terms(NamedTuple):
    """The terms of sums, one row each: its prompt, its group (negative: none), and its amount in each column."""

    prompt: Integers
    group: Integers
    columns: Sequence[NDArray]


def draw_blocks(labels: Sequence[Label], *, num_resamples: int, seed: int) -> Blocks:
    """Draw prompts within category and subset, prompts of one name together. Their order has no influence."""
    names = [label.prompt for label in labels]
    return draw_layout(layout_of(labels), names, num_resamples=num_resamples, seed=seed)


def draw_layout(layout: Layout, names: Sequence[str], *, num_resamples: int, seed: int) -> Blocks:
    """Draw prompts with a known layout; ``names`` are those of their units, one a prompt."""
    random = generator(seed, "bootstrap of blocks")
    block, unit = np.empty(len(names), np.int64), np.empty(len(names), np.int64)
    single = np.full(len(names), -1)
    weights: list[NDArray[np.float32]] = []
    num_blocks = num_units = num_singles = 0
    for stratum in layout.strata:
        if stratum.num_units == 1:
            single[stratum.rows] = num_singles
            num_singles += 1
        # By name, so that the draws do not depend on the order of the prompts.
        example = np.empty(stratum.num_units, np.int64)
        example[stratum.unit] = stratum.rows
        unit_names = [names[row] for row in example.tolist()]
        rank = np.empty(stratum.num_units, np.int64)
        rank[sorted(range(stratum.num_units), key=unit_names.__getitem__)] = np.arange(stratum.num_units)
        place = rank[stratum.unit]
        size = min(stratum.num_units, max(_FEWEST_BLOCKS, MOST_BLOCKS * stratum.num_units // len(names)))
        # Blocks of equal size up to one unit, filled at random.
        folded = np.arange(stratum.num_units) % size
        if size < stratum.num_units:
            random.shuffle(folded)
        block[stratum.rows] = num_blocks + folded[place]
        unit[stratum.rows] = num_units + place
        num_blocks, num_units = num_blocks + size, num_units + stratum.num_units
        drawn = draw_weights(random, size, num_drawn=size - 1, num_resamples=num_resamples)
        weights.append(drawn * np.float32(size / max(1, size - 1)))
    owner = np.repeat(np.arange(len(layout.strata)), [stratum.num_units for stratum in layout.strata])
    sources = layout.pool.draw(random, num_resamples, num_singles)
    return Blocks(layout, unit, block, np.concatenate(weights, axis=1), owner, single, sources)


def evidence_of(blocks: Blocks, group: Integers, weight: Floats | Integers | Booleans) -> Evidence:
    """Return the effective sample of the plain mean over groups of ratios; both arrays have shape (prompt,).

    ``weight`` is the denominator of a prompt, 0 where it has nothing to measure. A negative group is none.
    """
    num_units, layout = len(blocks.stratum), blocks.layout
    weights = UnitWeights(blocks.unit, group, weight.astype(np.float64), blocks.stratum, np.ones(num_units, np.int64))
    return evidence_of_groups(weights, layout.sizes, layout.pool.num_sources)


def add_up(blocks: Blocks, terms: Terms, num_groups: int) -> Sums:
    """Return the sums of the columns by group, of the prompts themselves and of every resample."""
    has_group = terms.group >= 0
    if not has_group.all():
        columns = [column[has_group] for column in terms.columns]
        terms = Terms(terms.prompt[has_group], terms.group[has_group], columns)
    place = blocks.block[terms.prompt] * num_groups + terms.group
    size = blocks.num_blocks * num_groups
    summed = [np.bincount(place, column, size) for column in terms.columns]
    table = np.stack(summed, axis=-1).reshape(blocks.num_blocks, num_groups * len(terms.columns))
    # Single precision suffices for the sums of a resample, and not for those of the prompts themselves. It holds
    # numbers up to 3e38: powers of two, which change no digit, bring each column to at most 1.
    exponent = np.frexp(np.abs(table).max(axis=0, initial=0.0))[1]
    scaled = np.ldexp(table, -exponent).astype(np.float32)
    resampled = np.ldexp((blocks.weights @ scaled).astype(np.float64), exponent)
    shape = (num_groups, len(terms.columns))
    resampled = resampled.reshape(len(resampled), *shape)
    if blocks.sources.size:
        _add_single_units(blocks, terms, resampled)
    return Sums(table.sum(axis=0).reshape(shape), resampled)


def one_group(size: int) -> Integers:
    """Return the group of rows that all belong to one."""
    return np.zeros(size, np.int64)


def _add_single_units(blocks: Blocks, terms: Terms, resampled: Floats) -> None:
    """Add units of the pool for strata of one unit; groups correspond by their rank within the unit."""
    pool = blocks.layout.pool
    source_of = np.full(len(blocks.unit), -1)
    source_of[pool.rows] = pool.source
    source = source_of[terms.prompt]
    is_source = source >= 0
    source, rank = source[is_source], rank_within(source[is_source], terms.group[is_source])
    num_ranks = np.zeros(pool.num_sources, np.int64)
    np.maximum.at(num_ranks, source, rank + 1)
    table = np.zeros((pool.num_sources, int(num_ranks.max(initial=1)), len(terms.columns)))
    np.add.at(table, (source, rank), np.stack([column[is_source] for column in terms.columns], axis=-1))
    single = blocks.single[terms.prompt]
    singles, groups = np.unique(np.stack([single, terms.group])[:, single >= 0], axis=1)
    for place, group, group_rank in zip(singles, groups, rank_within(singles, groups), strict=True):
        sources = blocks.sources[:, place]
        resampled[:, group] += table[sources, group_rank % np.maximum(num_ranks[sources], 1)]
