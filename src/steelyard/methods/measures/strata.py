"""How a bench's prompts are laid out for summing and resampling: cells, strata, and units drawn together.

A *cell* is the finest group that is ever reported (category, subset, language). A *stratum* (category and subset) is
what keeps its size in every resample. A *unit* is what is drawn: one prompt with its parallel items, and with all other
items of the same prompt.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.types import Case
from steelyard.methods.measures.accuracy import Integers

_FEWEST = 5
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


class Layout(NamedTuple):
    """Cells in sorted order, each prompt's cell (shape (prompt,)), and the strata."""

    cells: tuple[Cell, ...]
    cell: Integers
    strata: tuple[Stratum, ...]


def prompt_names(case: Case) -> tuple[str, str]:
    """What a case's prompt is known by: its id, which parallel items share, and its text, which rows of a file may."""
    # Parts of a text and an id are told apart by signs that neither begins with.
    text = "\x1e".join(f"{message.role}\x1f{message.content}" for message in case.prompt.messages)
    return case.prompt.id, f"\x1f{text}"


def units_of(names: Sequence[Sequence[str]]) -> list[str]:
    """What each prompt is drawn with: prompts that share a name, directly or through others, are one unit.

    ``names``: one or more of each prompt. A unit is called by the first name, the least of its prompts'.
    """
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
    rows_of_unit: dict[str, list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        rows_of_unit[label.prompt].append(row)
    units_of_stratum: dict[str, list[list[int]]] = defaultdict(list)
    for rows in rows_of_unit.values():
        units_of_stratum[_stratum_name([labels[row].cell for row in rows])].append(rows)
    _join_few(units_of_stratum)
    cell = np.array([position[label.cell] for label in labels], dtype=np.int64)
    strata = tuple(_stratum(name, units, cell) for name, units in sorted(units_of_stratum.items()))
    return Layout(cells, cell, strata)


def _join_few(units_of_stratum: dict[str, list[list[int]]]) -> None:
    """A bootstrap of n units has (n - 1) / n of their variance, and none of one: few units go where there are more."""
    for name in sorted(name for name in units_of_stratum if _BETWEEN in name):
        hosts = [part for part in name.split(_BETWEEN) if part in units_of_stratum]
        if len(units_of_stratum[name]) < _FEWEST and hosts:
            largest = max(hosts, key=lambda part: (len(units_of_stratum[part]), part))
            units_of_stratum[largest] += units_of_stratum.pop(name)


def _stratum(name: str, units: list[list[int]], cell: Integers) -> Stratum:
    rows = np.array([row for unit in units for row in unit], dtype=np.int64)
    unit = np.repeat(np.arange(len(units)), [len(members) for members in units])
    cells, column = np.unique(cell[rows], return_inverse=True)
    return Stratum(name, rows, unit, column, cells, len(units))


def _stratum_name(cells: list[Cell]) -> str:
    names = {f"{cell.category}\x1f{cell.subset or ''}" for cell in cells}
    return _BETWEEN.join(sorted(names))


def _sortable(cell: Cell) -> tuple[tuple[bool, str], ...]:
    return tuple((part is not None, part or "") for part in cell)
