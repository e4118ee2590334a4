"""Bootstrap over prompts within strata, drawn as a multinomial over the distinct statistics of each stratum.

Drawing units with replacement and summing their statistics depends only on how often each *distinct* row of statistics
is drawn, and these counts are multinomial: the same bootstrap, at the cost of the few distinct rows. How many are
drawn, and what a stratum of one unit draws, is told in `strata`.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from steelyard.core.seeds import generator
from steelyard.statistics.estimates import Evidence
from steelyard.statistics.groups import Cell, Layout, Stratum, draw_source, evidence_of_groups
from steelyard.statistics.pair_counts import Booleans, Floats, Integers

_DRAWS_AT_A_TIME = 4_000_000
_LARGEST_CODE = 2**62
_ROWS_AT_A_TIME = 2**14
_MOST_COUNTED = 2**16


class Items(NamedTuple):
    """What is evaluated: where each prompt counts, its statistics of shape (prompt, column), and how often to redraw.

    A paired comparison has the columns of both models side by side: they are drawn together.
    """

    layout: Layout
    statistics: Integers
    num_resamples: int = 1000


class Support(NamedTuple):
    """A stratum's units by the cells in which they have anything to count: what stands behind an interval.

    ``cells`` are positions among those of the totals; ``patterns`` (pattern, cell) has ``counts`` (pattern,) units.
    """

    cells: Integers
    patterns: Booleans
    counts: Integers
    num_units: int

    def only(self, place: Sequence[int]) -> "Support":
        """The same by some cells of the totals alone."""
        column = {cell: index for index, cell in enumerate(self.cells.tolist())}
        columns = np.array([column[cell] for cell in place if cell in column], np.int64)
        cells = np.array([index for index, cell in enumerate(place) if cell in column], np.int64)
        return self._replace(cells=cells, patterns=self.patterns[:, columns])


class Totals(NamedTuple):
    """Sums by cell: of the prompts themselves, shape (cell, column), and of each resample, (resample, cell, column).

    ``support``: of each stratum; ``num_sources``: how many units the strata of one unit draw from.
    """

    cells: tuple[Cell, ...]
    point: Floats
    resampled: Floats
    support: tuple[Support, ...]
    num_sources: int = 0

    def only(self, place: Sequence[int]) -> "Totals":
        """The totals of some cells."""
        return Totals(
            tuple(self.cells[index] for index in place),
            self.point[place],
            self.resampled[:, place],
            tuple(own.only(place) for own in self.support),
            self.num_sources,
        )

    def evidence(self, members: Floats | None = None, *, used: Booleans | None = None) -> Evidence:
        """What stands behind the plain mean over groups of cells, ``members`` (group, cell).

        Without members: over the strata, or those that are ``used``, shape (stratum,).
        """
        if members is None:
            counts = np.diag([float(own.counts[own.patterns.any(axis=1)].sum()) for own in self.support])
            counts = counts if used is None or not used.any() else counts[used]
        else:
            counts = np.zeros((len(members), len(self.support)))
            is_plain = [own.patterns.shape == (1, 1) for own in self.support]
            plain = [place for place, is_own in enumerate(is_plain) if is_own]
            cells = [int(self.support[place].cells[0]) for place in plain]
            numbers = [int(self.support[place].counts[0]) for place in plain]
            counts[:, plain] = (members[:, cells] > 0) * np.array(numbers, np.float64)
            for place, own in enumerate(self.support):
                if not is_plain[place]:
                    is_there = (own.patterns.astype(np.float64) @ members[:, own.cells].T) > 0
                    counts[:, place] = own.counts @ is_there
        sizes = np.array([own.num_units for own in self.support], np.float64)
        return evidence_of_groups(counts, sizes, self.num_sources)


class DistinctRows(NamedTuple):
    """The different rows of a matrix, shape (distinct, column), in a fixed order, and how often each occurs."""

    rows: Integers
    counts: Integers


def resample(items: Items, *, seed: int) -> Totals:
    """The totals of the prompts and of every resample. The order of the prompts does not matter; the seed does."""
    layout, statistics = items.layout, items.statistics
    shape = (len(layout.cells), statistics.shape[1])
    point = np.zeros(shape)
    resampled = np.zeros((items.num_resamples, *shape))
    coded = _coded(statistics)
    support: list[Support] = []
    for stratum in layout.strata:
        distinct = _distinct_units(stratum, statistics, coded)
        point[stratum.cells] += (distinct.counts @ distinct.rows).reshape(len(stratum.cells), -1)
        support.append(_support(stratum, distinct))
        for rows, sums in _drawn(stratum, distinct, items.num_resamples, seed):
            resampled[rows, stratum.cells] += sums.reshape(len(sums), len(stratum.cells), -1)
    _fill_slots(items, resampled, seed)
    return Totals(layout.cells, point, resampled, tuple(support), layout.pool.num_sources)


def cell_sums(layout: Layout, statistics: Integers) -> Floats:
    """The sums of the prompts by cell, without resamples: shape (cell, column)."""
    size = len(layout.cells)
    return np.stack([np.bincount(layout.cell, column, size) for column in statistics.T], axis=1).astype(np.float64)


def difference_items(both: Items, *, shared: Sequence[int], compared: Sequence[int]) -> Items:
    """Two models side by side as one table: the columns they share, first minus second of others, and its size.

    A difference of sums over equal denominators is the sum of differences: its resamples have the same distribution,
    and far fewer distinct rows to be drawn than pairs of rows. Asserts that both count the same in those columns.
    """
    first, second = np.split(both.statistics, 2, axis=1)
    table = np.empty((len(first), len(shared) + 2 * len(compared)), np.int64, order="F")
    for place, column in enumerate(shared):
        assert (first[:, column] == second[:, column]).all(), "the same pairs of the same prompts"
        table[:, place] = first[:, column]
    for place, column in enumerate(compared, len(shared)):
        np.subtract(first[:, column], second[:, column], out=table[:, place])
        np.abs(table[:, place], out=table[:, place + len(compared)])
    return both._replace(statistics=table)


def distinct_rows(table: Integers) -> DistinctRows:
    """The distinct rows of a table of whole numbers, by one integer code a row; of few rows, by comparing them."""
    if len(table) < table.shape[1]:
        return DistinctRows(*np.unique(table, axis=0, return_counts=True))
    code, bound = _codes(table)
    if bound <= 4 * len(table) + 1024:
        # Few possible codes: counting them is faster than sorting.
        counts = np.bincount(code, minlength=bound)
        kinds = np.flatnonzero(counts)
        one_of = np.zeros(bound, dtype=np.int64)
        one_of[code] = np.arange(len(table))
        return DistinctRows(table[one_of[kinds]], counts[kinds])
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return DistinctRows(table[first], counts)


class _Coded(NamedTuple):
    """One number a prompt for its row of statistics, in mixed radix: the last column counts by 1."""

    code: Integers
    least: tuple[int, ...]
    sizes: tuple[int, ...]

    def rows(self, codes: Integers) -> Integers:
        """The rows that the codes stand for."""
        columns: list[Integers] = []
        for least, size in zip(reversed(self.least), reversed(self.sizes), strict=True):
            codes, column = np.divmod(codes, size)
            columns.append(least + column)
        return np.stack(columns[::-1], axis=1)


def _coded(statistics: Integers) -> _Coded | None:
    """The codes of all prompts at once, if so few are possible that counting them is cheap; else None.

    The table is passed over in blocks that the processor's cache holds: it is read from memory twice and no more.
    """
    blocks = [slice(start, start + _ROWS_AT_A_TIME) for start in range(0, len(statistics), _ROWS_AT_A_TIME)]
    if not blocks or not statistics.shape[1]:
        return None
    columns = range(statistics.shape[1])
    least = np.min([[statistics[block, column].min() for column in columns] for block in blocks], axis=0)
    largest = np.max([[statistics[block, column].max() for column in columns] for block in blocks], axis=0)
    sizes = (largest - least + 1).tolist()
    if prod(sizes) > max(_MOST_COUNTED, len(statistics)):
        return None
    code = np.zeros(len(statistics), np.int64)
    varied = [column for column in columns if sizes[column] > 1]
    for block in blocks:
        own = code[block]
        for column in varied:
            own *= sizes[column]
            own += statistics[block, column] - least[column]
    return _Coded(code, tuple(least.tolist()), tuple(sizes))


def _distinct_units(stratum: Stratum, statistics: Integers, coded: _Coded | None) -> DistinctRows:
    """What the stratum's units add to its cells. Where every unit is one prompt of one cell, codes are counted."""
    is_plain = len(stratum.cells) == 1 and stratum.num_units == len(stratum.rows)
    if coded is None or not is_plain:
        return distinct_rows(_unit_table(stratum, statistics))
    counts = np.bincount(coded.code[stratum.rows])
    kinds = np.flatnonzero(counts)
    return DistinctRows(coded.rows(kinds), counts[kinds])


def _unit_table(stratum: Stratum, statistics: Integers) -> Integers:
    """What each unit adds to each of the stratum's cells: shape (unit, cell * column)."""
    num_cells, num_columns = len(stratum.cells), statistics.shape[1]
    place = stratum.unit * num_cells + stratum.column
    size = stratum.num_units * num_cells
    own = statistics[stratum.rows]
    summed = [np.bincount(place, weights=own[:, column], minlength=size) for column in range(num_columns)]
    return np.stack(summed, axis=1).astype(np.int64).reshape(stratum.num_units, num_cells * num_columns)


def _support(stratum: Stratum, distinct: DistinctRows) -> Support:
    present = (distinct.rows != 0).reshape(len(distinct.rows), len(stratum.cells), -1).any(axis=-1)
    if len(stratum.cells) == 1:
        patterns, counts = np.ones((1, 1), np.bool_), distinct.counts[present[:, 0]].sum(keepdims=True)
    else:
        patterns, place = np.unique(present, axis=0, return_inverse=True)
        counts = np.bincount(place.reshape(-1), distinct.counts).astype(np.int64)
    return Support(stratum.cells, patterns, counts, stratum.num_units)


def _fill_slots(items: Items, resampled: Floats, seed: int) -> None:
    """Puts units of the pool in the place of strata of one unit; cells go by their rank within the unit."""
    pool = items.layout.pool
    slots = [stratum for stratum in items.layout.strata if stratum.num_units == 1]
    if not slots:
        return
    num_places = int(pool.place.max()) + 1
    table = np.zeros((pool.num_sources, num_places, items.statistics.shape[1]))
    np.add.at(table, (pool.source, pool.place), items.statistics[pool.rows])
    num_own = np.zeros(pool.num_sources, np.int64)
    np.maximum.at(num_own, pool.source, pool.place + 1)
    for stratum in slots:
        random = generator(seed, "bootstrap", stratum.name)
        drawn = draw_source(pool, random, items.num_resamples, 1)
        places = np.arange(len(stratum.cells)) % num_own[drawn]
        resampled[:, stratum.cells] += table[drawn, places]


def _drawn(stratum: Stratum, distinct: DistinctRows, num_resamples: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    """The sums of n - 1 draws that weigh n / (n - 1) each, some resamples at a time; of one unit there are none."""
    num_drawn = stratum.num_units - 1
    if not num_drawn:
        return
    random = generator(seed, "bootstrap", stratum.name)
    shares = distinct.counts / stratum.num_units
    rows = distinct.rows * (stratum.num_units / num_drawn)
    step = max(1, _DRAWS_AT_A_TIME // len(rows))
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        drawn = random.multinomial(num_drawn, shares, size=size)
        yield slice(start, start + size), drawn.astype(np.float64) @ rows


def _codes(table: Integers) -> tuple[Integers, int]:
    """One integer a row, equal exactly for equal rows, and a number that all codes are below."""
    code, bound = np.zeros(len(table), dtype=np.int64), 1
    for column in table.T:
        least = int(column.min())
        size = int(column.max()) - least + 1
        if bound * size > _LARGEST_CODE:
            distinct, code = np.unique(code, return_inverse=True)
            bound = len(distinct)
        code = code * size + (column - least)
        bound *= size
    return code, bound
