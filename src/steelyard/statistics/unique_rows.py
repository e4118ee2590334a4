"""Distinct codes and rows of whole numbers, by counting where sorting is slower.

Resampling a table then costs its few distinct rows (`bootstrap`).
"""

from math import prod
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Integers

_DENSE = 64
"""Possible codes for each present one, up to which marking beats sorting."""
_LARGEST_CODE = 2**62
"""The bound of codes: products beyond it would leave the range of 64 bits."""
_ROWS_AT_A_TIME = 2**14
_MOST_CODES = 2**16


class UniqueRows(NamedTuple):
    """The unique rows of a table, shape (unique, column), in a fixed order, and the number of times each occurs."""

    rows: Integers
    counts: Integers


def unique_codes(code: Integers, bound: int) -> tuple[Integers, Integers]:
    """Return the sorted unique codes, all below ``bound``, and the position of each code among them."""
    if bound > _DENSE * len(code) + 4096:
        return np.unique(code, return_inverse=True)
    # With few possible codes, marking those that occur is faster than sorting.
    is_used = np.zeros(bound, np.bool_)
    is_used[code] = True
    codes = np.flatnonzero(is_used)
    place_of = np.empty(bound, np.int64)
    place_of[codes] = np.arange(len(codes))
    return codes, place_of[code]


def find_codes(codes: Integers, wanted: Integers) -> tuple[Integers, Booleans]:
    """Return the position of each wanted code among sorted ``codes``, and whether it is one of them."""
    if not len(codes):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), np.bool_)
    place = np.searchsorted(codes, wanted).clip(max=len(codes) - 1)
    return place, codes[place] == wanted


def unique_rows(table: Integers) -> UniqueRows:
    """Count the unique rows of a table by one integer code per row; short tables by comparing their rows.

    Codes are equal exactly for equal rows, and below an exclusive upper bound.
    """
    if len(table) < table.shape[1]:
        return UniqueRows(*np.unique(table, axis=0, return_counts=True))
    code, bound = np.zeros(len(table), dtype=np.int64), 1
    for column in table.T:
        least = int(column.min())
        size = int(column.max()) - least + 1
        if bound * size > _LARGEST_CODE:
            # Renumber the codes so far without gaps, before the product overflows.
            unique, code = np.unique(code, return_inverse=True)
            bound = len(unique)
        code = code * size + (column - least)
        bound *= size
    if bound <= 4 * len(table) + 1024:
        # With few possible codes, counting is faster than sorting.
        counts = np.bincount(code, minlength=bound)
        used = np.flatnonzero(counts)
        # Any row of a code stands for all: equal codes are equal rows.
        example = np.zeros(bound, dtype=np.int64)
        example[code] = np.arange(len(table))
        return UniqueRows(table[example[used]], counts[used])
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return UniqueRows(table[first], counts)


class RowCodes(NamedTuple):
    """One code per row of a table, in mixed radix with the last column as the lowest digit; shape (row,)."""

    code: Integers
    least: tuple[int, ...]
    sizes: tuple[int, ...]

    def count_rows(self, selected: Integers) -> UniqueRows:
        """Count the unique rows among those at the selected positions."""
        counts = np.bincount(self.code[selected])
        used = np.flatnonzero(counts)
        return UniqueRows(self._decode(used), counts[used])

    def _decode(self, codes: Integers) -> Integers:
        columns: list[Integers] = []
        for least, size in zip(reversed(self.least), reversed(self.sizes), strict=True):
            codes, column = np.divmod(codes, size)
            columns.append(least + column)
        return np.stack(columns[::-1], axis=1)


def row_codes(table: Integers) -> RowCodes | None:
    """Code all rows at once; None if counting the possible codes costs more than sorting.

    The table is read in blocks that fit the processor's cache, so that it passes through memory only twice.
    """
    blocks = [slice(start, start + _ROWS_AT_A_TIME) for start in range(0, len(table), _ROWS_AT_A_TIME)]
    if not blocks or not table.shape[1]:
        return None
    columns = range(table.shape[1])
    least = np.min([[table[block, column].min() for column in columns] for block in blocks], axis=0)
    largest = np.max([[table[block, column].max() for column in columns] for block in blocks], axis=0)
    sizes = (largest - least + 1).tolist()
    if prod(sizes) > max(_MOST_CODES, len(table)):
        return None
    code = np.zeros(len(table), np.int64)
    varied = [column for column in columns if sizes[column] > 1]
    for block in blocks:
        part = code[block]
        for column in varied:
            part *= sizes[column]
            part += table[block, column] - least[column]
    return RowCodes(code, tuple(least.tolist()), tuple(sizes))
