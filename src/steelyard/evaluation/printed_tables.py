"""Tables of published numbers as CSV: rows with a name and a kind of model, and numbers as printed, with their digits.

Shares are given in percent or from 0 to 1, all of a table alike. What a column means, and which numbers follow from
others, is the business of the table's own module.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from steelyard.core.errors import FileError, RecordError, choices
from steelyard.core.protocols import Row
from steelyard.core.types import Record
from steelyard.io.rows import read_rows
from steelyard.plugins.reward_models import PublishedModel, published_model

KIND_COLUMNS = ("type", "kind")
"""The columns with the kind of a model."""
_KINDS = get_args(PublishedModel.__annotations__["kind"])
_SYNONYMS = {"discriminative": "classifier"}
"""Kinds of models as papers have them, and their names here."""
_ROUNDING = 1e-9


class Slip(Record, frozen=True, kw_only=True):
    """A printed number that does not follow from the printed numbers of its row or column, whatever they round."""

    model: str
    column: str
    printed: float
    computed: float


class NumberRule(NamedTuple):
    """The numbers of a column: their bounds in percent, and what is allowed, in words.

    ``is_squared``: a variance, in squared percentage points, which does not tell shares from percentages.
    ``may_lack``: an empty cell is a number that the table does not print.
    """

    low: float = 0.0
    high: float = 100.0
    allowed: str = "0 to 100, or shares"
    is_squared: bool = False
    may_lack: bool = False


class PrintedHeader(NamedTuple):
    """The columns of a table: that of the names, that of the kinds of models, and those of numbers with their rules."""

    name: str
    kind: str | None
    numbers: dict[str, NumberRule]


class PrintedRow(NamedTuple):
    """One row: its name, the kind of the model, and its numbers by column, in percent; without those it lacks."""

    name: str
    kind: str | None
    numbers: dict[str, float]
    cells: dict[str, str]


class PrintedTable(NamedTuple):
    """The rows of a table, and the digits behind the point of each column, in percent: -1 for shares of one digit.

    ``is_share``: the numbers are printed as shares, from 0 to 1.
    """

    rows: tuple[PrintedRow, ...]
    digits: dict[str, int]
    is_share: bool

    def half(self, *columns: str) -> float:
        """Return how far the numbers of these columns may lie from the unrounded ones, together."""
        return sum(0.5 * 10.0 ** -self.digits[column] for column in columns) + _ROUNDING


class _Cell(NamedTuple):
    value: float
    digits: int


def rows_of_table(path: Path) -> list[Row]:
    """Return the rows of a table. Raises FileError for none, and RecordError for a row of another length."""
    rows = list(read_rows(path))
    if not rows:
        raise FileError("the table has no rows", where=str(path), allowed="a row for each model")
    return rows


def printed_table(rows: Sequence[Row], header: PrintedHeader) -> PrintedTable:
    """Return the names and numbers of a table.

    Raises RecordError, with file and line, for a cell without a number or with one out of bounds, for a row without a
    name, and for a name that is there twice.
    """
    rules = header.numbers
    cells = [
        {name: cell for name, rule in rules.items() if (cell := _number(row, name, rule)) is not None} for row in rows
    ]
    # A table of shares has no value above 1, and one of percentages of many models has one.
    is_share = all(abs(cell.value) <= 1 for each in cells for name, cell in each.items() if not rules[name].is_squared)
    scales = {name: (1e4 if rule.is_squared else 100.0) if is_share else 1.0 for name, rule in rules.items()}
    printed: dict[str, PrintedRow] = {}
    for row, each in zip(rows, cells, strict=True):
        name = str(row.value.get(header.name, "")).strip()
        if not name or name in printed:
            problem = f"{name!r} is there twice" if name else "a row without the name of a model"
            raise RecordError(problem, where=row.place, allowed="one row a model")
        numbers = {column: cell.value * scales[column] for column, cell in each.items()}
        for column, number in numbers.items():
            if not rules[column].low <= number <= rules[column].high:
                problem = f"{column} is {row.value.get(column)}"
                raise RecordError(problem, where=row.place, allowed=rules[column].allowed)
        texts = {column: str(text or "").strip() for column, text in row.value.items()}
        printed[name] = PrintedRow(name, _kind(row, name, header.kind), numbers, texts)
    digits = {
        name: max((each[name].digits for each in cells if name in each), default=0) - round(math.log10(scale))
        for name, scale in scales.items()
    }
    return PrintedTable(tuple(printed.values()), digits, is_share)


def _number(row: Row, column: str, rule: NumberRule) -> _Cell | None:
    """Return the number in a cell, with its digits behind the point. Raises RecordError for anything else."""
    text = str(row.value.get(column) or "").strip().replace("\N{MINUS SIGN}", "-")
    if not text and rule.may_lack:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        shown = repr(text[:40]) if text else "empty"
        without = (
            "a number without a percent sign" if text.endswith(("%", "\N{FULLWIDTH PERCENT SIGN}")) else "a number"
        )
        raise RecordError(f"{column} is {shown}", where=row.place, allowed=without)
    return _Cell(value, len(text.partition(".")[2]))


def _kind(row: Row, model: str, column: str | None) -> str | None:
    """Return the kind of a model: as the table says, or as the papers' tables have it."""
    text = "" if column is None else str(row.value.get(column) or "").strip()
    kind = _SYNONYMS.get(text, text)
    if kind and kind not in _KINDS:
        raise RecordError(f"{column} is {text!r}", where=row.place, allowed=choices(text, (*_KINDS, *_SYNONYMS)))
    published = published_model(model)
    return kind or (None if published is None else published.kind)


def column_of(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first of these names that is known."""
    return next((name for name in names if name in known), None)
