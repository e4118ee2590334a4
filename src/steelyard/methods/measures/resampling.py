"""Bootstrap over prompts within strata, drawn as a multinomial over the distinct statistics of each stratum.

Drawing n units with replacement and summing their statistics depends only on how often each *distinct* row of
statistics is drawn, and these counts are multinomial: the same bootstrap, at the cost of the few distinct rows.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from steelyard.core.seeds import generator
from steelyard.methods.measures.accuracy import Floats, Integers
from steelyard.methods.measures.strata import Cell, Layout, Stratum

_DRAWS_AT_A_TIME = 4_000_000
_LARGEST_CODE = 2**62


class Items(NamedTuple):
    """What is evaluated: where each prompt counts, its statistics of shape (prompt, column), and how often to redraw.

    A paired comparison has the columns of both models side by side: they are drawn together.
    """

    layout: Layout
    statistics: Integers
    num_resamples: int = 1000


class Totals(NamedTuple):
    """Sums by cell: of the prompts themselves, shape (cell, column), and of each resample, (resample, cell, column)."""

    cells: tuple[Cell, ...]
    point: Floats
    resampled: Floats


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
    for stratum in layout.strata:
        table = _unit_table(stratum, statistics)
        point[stratum.cells] += table.sum(axis=0).reshape(len(stratum.cells), -1)
        for rows, sums in _drawn(stratum, distinct_rows(table), items.num_resamples, seed):
            resampled[rows, stratum.cells] += sums.reshape(len(sums), len(stratum.cells), -1)
    return Totals(layout.cells, point, resampled)


def distinct_rows(table: Integers) -> DistinctRows:
    """The distinct rows of a table of counts (no negative numbers), found by one integer code a row."""
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


def _unit_table(stratum: Stratum, statistics: Integers) -> Integers:
    """What each unit adds to each of the stratum's cells: shape (unit, cell * column)."""
    num_cells, num_columns = len(stratum.cells), statistics.shape[1]
    place = stratum.unit * num_cells + stratum.column
    size = stratum.num_units * num_cells
    own = statistics[stratum.rows]
    summed = [np.bincount(place, weights=own[:, column], minlength=size) for column in range(num_columns)]
    return np.stack(summed, axis=1).astype(np.int64).reshape(stratum.num_units, num_cells * num_columns)


def _drawn(stratum: Stratum, distinct: DistinctRows, num_resamples: int, seed: int) -> Iterator[tuple[slice, Floats]]:
    random = generator(seed, "bootstrap", stratum.name)
    shares = distinct.counts / stratum.num_units
    rows = distinct.rows.astype(np.float64)
    step = max(1, _DRAWS_AT_A_TIME // len(rows))
    for start in range(0, num_resamples, step):
        size = min(step, num_resamples - start)
        drawn = random.multinomial(stratum.num_units, shares, size=size)
        yield slice(start, start + size), drawn.astype(np.float64) @ rows


def _codes(table: Integers) -> tuple[Integers, int]:
    """One integer a row, equal exactly for equal rows, and a number that all codes are below."""
    code, bound = np.zeros(len(table), dtype=np.int64), 1
    for column in table.T:
        size = int(column.max()) + 1
        if bound * size > _LARGEST_CODE:
            distinct, code = np.unique(code, return_inverse=True)
            bound = len(distinct)
        code = code * size + column
        bound *= size
    return code, bound
