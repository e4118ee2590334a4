"""Tables of published numbers as CSV: rows with a name and a kind of model, and numbers as printed, with their digits.

Shares are given in percent or from 0 to 1, all of a table alike. All cells have a percent sign or none, and one decimal
mark. A cell such as ``-`` or ``n/a`` is empty. What a column means, and which numbers follow from others, is the
business of the table's own module.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from steelyard.core.errors import FileError, Place, RecordError, choices
from steelyard.core.names import name_key
from steelyard.core.protocols import Row
from steelyard.core.types import Record
from steelyard.io.compression import data_suffix
from steelyard.io.rows import read_rows
from steelyard.plugins.reward_models import PublishedModel, published_model

KIND_COLUMNS = ("type", "kind")
"""The columns with the kind of a model."""
_KINDS = get_args(PublishedModel.__annotations__["kind"])
_SYNONYMS = {"discriminative": "classifier"}
"""Kinds of models as papers have them, and their names here."""
_ROUNDING = 1e-9
_PERCENT = "%\N{FULLWIDTH PERCENT SIGN}"
_COMMA = re.compile(r"[-+]?\d+,\d+")
ABSENT = frozenset(
    ("", "-", "--", "---", "\N{EN DASH}", "\N{EM DASH}", "/", "n/a", "#n/a", "n.a.", "na", "nan", "none", "null")
)
"""Entries of tables in place of an absent number, in lower case."""
_SUMMARY_ROWS = frozenset((
    "average", "avg", "avg.", "mean", "median", "total", "totals", "sum", "summe", "mittelwert", "durchschnitt",
    "moyenne", "promedio", "平均", "平均值", "合计", "总计", "总和", "合計",
))  # fmt: skip
"""Names of rows that sum up the others, in lower case."""
_MARKS = (
    ("**", "**"), ("__", "__"), ("$", "$"), ("<b>", "</b>"), ("\\textbf{", "}"), ("\\textit{", "}"), ("\\emph{", "}"),
    ("\\underline{", "}"), ("\\mathbf{", "}"),
)  # fmt: skip
"""The marks around a cell that Markdown, LaTeX and HTML have for the best values of a column."""
_MOST_MARKS = 4
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?")
_FORMS = {".md": "Markdown", ".tex": "LaTeX", ".html": "HTML", ".xlsx": "a spreadsheet", ".ods": "a spreadsheet"}
_AS_CSV = "write it as CSV: the names of the columns in the first line, and commas between cells"
_LEAST_GAP = 5.0
"""The smallest ratio of the least percentage to the greatest share in a table that mixes both."""


class Slip(Record, frozen=True, kw_only=True):
    """A printed number that does not follow from the printed numbers of its row or column in any rounding."""

    model: str
    column: str
    printed: float
    computed: float


class NumberRule(NamedTuple):
    """The numbers of a column: their bounds in percent, and what is allowed, in words.

    ``is_squared``: a variance, in squared percentage points, which does not tell shares from percentages.
    ``may_lack``: an empty cell is a number that the table does not print; any other one leaves its row out.
    """

    low: float = 0.0
    high: float = 100.0
    allowed: str = "0 to 100, or shares"
    is_squared: bool = False
    may_lack: bool = False


class PrintedHeader(NamedTuple):
    """The columns of a table: that of the names, that of the kinds of models, and those of numbers with their rules.

    ``averages`` are the names, in lower case, of a row that may lack any number, such as the means over the others.
    """

    name: str
    kind: str | None
    numbers: dict[str, NumberRule]
    averages: frozenset[str] = frozenset()


class PrintedRow(NamedTuple):
    """One row: its name, the kind of the model, and its numbers by column, in percent; without those it lacks."""

    name: str
    kind: str | None
    numbers: dict[str, float]
    cells: dict[str, str]


class PrintedTable(NamedTuple):
    """The rows of a table, and the digits behind the point of each column, in percent: -1 for shares of one digit.

    ``is_share``: the numbers are printed as shares, from 0 to 1. ``incomplete`` are the names of rows that are left
    out, with the columns of their empty cells.
    """

    rows: tuple[PrintedRow, ...]
    digits: dict[str, int]
    is_share: bool
    incomplete: dict[str, tuple[str, ...]]

    def half(self, *columns: str) -> float:
        """Return how far the numbers of these columns may lie from the unrounded ones, together."""
        return sum(0.5 * 10.0 ** -self.digits[column] for column in columns) + _ROUNDING


class _Cell(NamedTuple):
    value: float
    digits: int


def rows_of_table(path: Path, known: Sequence[str]) -> list[Row]:
    """Return the rows of a table, the names of columns without blanks at the ends, and ``known`` ones in lower case.

    Raises FileError for none and for a file of another form, and RecordError for a row of another length, or a column
    that is there twice.
    """
    if form := _FORMS.get(data_suffix(path)):
        raise FileError(f"the table is {form}", where=str(path), allowed="CSV, TSV, Parquet or JSON lines", do=_AS_CSV)
    rows = list(read_rows(path))
    if not rows:
        raise FileError("the table has no rows", where=str(path), allowed="a row for each model")
    names = {name: name.strip() for row in rows for name in row.value}
    names = {name: text.casefold() if text.casefold() in known else text for name, text in names.items()}
    if len({*names.values()}) < len(names):
        twice = next(text for text in names.values() if [*names.values()].count(text) > 1)
        raise RecordError(f"the header has {twice!r} twice", where=Place(str(path), 1), allowed="names that are unique")
    first = next(iter(names), "")
    if (len(names) < 2 and first.startswith(("|", "\\"))) or first.endswith("\\\\") or first.count("|") > 1:
        raise RecordError("the first line is not one of CSV", where=Place(str(path), 1), do=_AS_CSV)
    return [row._replace(value={names[name]: cell for name, cell in row.value.items()}) for row in rows]


def plain_cell(value: object) -> str:
    """Return the text of a cell without marks of emphasis, with the sign of a keyboard for minus; empty for none."""
    text = "" if value is None else str(value).strip().replace("\N{MINUS SIGN}", "-")
    text = text.removesuffix("\\\\").rstrip().replace("\\%", "%")
    for _ in range(_MOST_MARKS):
        for start, end in _MARKS:
            inner = text[len(start) : -len(end)]
            # A mark within closes the first one: `**A** or **B**`.
            if inner and text.startswith(start) and text.endswith(end) and end not in inner.partition("{")[0]:
                text = inner.strip()
    return text


def check_is_model(name: str, place: Place) -> None:
    """Raise RecordError for a row without a name, and for one that sums up the others."""
    if not name:
        raise RecordError("a row without the name of a model", where=place, allowed="one row a model")
    if name.casefold() in _SUMMARY_ROWS:
        raise RecordError(f"{name!r} sums up the other rows", where=place, allowed="one row a model", do="leave it out")


def printed_table(rows: Sequence[Row], header: PrintedHeader) -> PrintedTable:
    """Return the names and numbers of a table.

    Raises RecordError, with file and line, for a cell without a number or with one out of bounds, for a row without a
    name, for a name that is there twice, and where no row has all its numbers.
    """
    rules = header.numbers
    style = _NumberStyle.of(rows, rules)
    cells = [{name: cell for name in rules if (cell := _number(row, name, style)) is not None} for row in rows]
    # A table of shares has no value above 1, and one of percentages of many models has one.
    is_share = not style.has_percent and all(
        abs(cell.value) <= 1 for each in cells for name, cell in each.items() if not rules[name].is_squared
    )
    scales = {name: (1e4 if rule.is_squared else 100.0) if is_share else 1.0 for name, rule in rules.items()}
    if not is_share and not style.has_percent:
        _check_scale(rows, cells, rules)
    printed: dict[str, PrintedRow] = {}
    incomplete: dict[str, tuple[str, ...]] = {}
    places: dict[str, Place] = {}
    for row, each in zip(rows, cells, strict=True):
        name = plain_cell(row.value.get(header.name))
        if name.casefold() not in header.averages:
            check_is_model(name, row.place)
        if (key := name_key(name)) in places:
            problem = f"{name!r} is there twice, first in {places[key]}"
            raise RecordError(problem, where=row.place, allowed="one row a model")
        places[key] = row.place
        numbers = {column: cell.value * scales[column] for column, cell in each.items()}
        for column, number in numbers.items():
            if not rules[column].low <= number <= rules[column].high:
                problem = f"{column} is {row.value.get(column)}"
                raise RecordError(problem, where=row.place, allowed=rules[column].allowed)
        lacking = tuple(column for column, rule in rules.items() if column not in each and not rule.may_lack)
        if lacking and name.casefold() not in header.averages:
            incomplete[name] = lacking
            continue
        texts = {column: str(text or "").strip() for column, text in row.value.items()}
        printed[name] = PrintedRow(name, _kind(row, name, header.kind), numbers, texts)
    if not printed:
        column = next(iter(incomplete.values()))[0]
        text = plain_cell(rows[0].value.get(column))
        shown = repr(text) if text else "empty"
        raise RecordError(f"{column} is {shown}", where=rows[0].place, allowed="a number in at least one row")
    digits = {
        name: max((each[name].digits for each in cells if name in each), default=0) - round(math.log10(scale))
        for name, scale in scales.items()
    }
    return PrintedTable(tuple(printed.values()), digits, is_share, incomplete)


def _check_scale(rows: Sequence[Row], cells: Sequence[Mapping[str, _Cell]], rules: Mapping[str, NumberRule]) -> None:
    """Raise RecordError where a column has shares, and other cells of the table look like percentages."""
    plain = [name for name, rule in rules.items() if not rule.is_squared and rule.low >= 0]
    columns = {name: [each[name].value for each in cells if name in each] for name in plain}
    larger = [value for values in columns.values() for value in values if value > 1]
    shares = {name: max(values) for name, values in columns.items() if 0 < max(values, default=0) < 1}
    if not larger or not shares or min(larger) / max(shares.values()) < _LEAST_GAP:
        return
    place, column, value = next(
        (row.place, name, each[name].value)
        for row, each in zip(rows, cells, strict=True)
        for name in plain
        if name in each and each[name].value > 1
    )
    raise RecordError(
        f"{column} is {value:g}, and {next(iter(shares))} has shares",
        where=place,
        allowed="shares or percentages in one table, not both",
        do="write all numbers in one unit; with the sign % in all cells they are in percent",
    )


class _NumberStyle(NamedTuple):
    """Notation of the numbers of a table: with a percent sign, and with a comma before the decimals."""

    has_percent: bool
    has_comma: bool

    @classmethod
    def of(cls, rows: Sequence[Row], rules: Mapping[str, NumberRule]) -> "_NumberStyle":
        """Return the style of all cells. Raises RecordError where some have percent signs, or two decimal marks."""
        cells = [
            (row, column, text, rule.is_squared)
            for row in rows
            for column, rule in rules.items()
            if (text := plain_cell(row.value.get(column))).casefold() not in ABSENT
        ]
        with_percent = [cell for cell in cells if cell[2].endswith(tuple(_PERCENT))]
        with_comma = [cell for cell in cells if _COMMA.fullmatch(cell[2].rstrip(_PERCENT).rstrip())]
        faults: list[tuple[tuple[Row, str, str, bool], str]] = []
        if with_percent and any(
            not text.endswith(tuple(_PERCENT)) for _, _, text, is_squared in cells if not is_squared
        ):
            faults.append((with_percent[0], "percent signs in all cells, or a number without a percent sign"))
        if with_comma and any("." in text for _, _, text, _ in cells):
            faults.append((with_comma[0], "the same decimal mark in all cells"))
        for (row, column, text, _), allowed in faults:
            raise RecordError(f"{column} is {text[:40]!r}", where=row.place, allowed=allowed)
        return cls(bool(with_percent), bool(with_comma))


def _number(row: Row, column: str, style: _NumberStyle) -> _Cell | None:
    """Return the number in a cell, with its digits behind the point; null for an empty one. Raises RecordError else."""
    text = plain_cell(row.value.get(column))
    if text.casefold() in ABSENT:
        return None
    plain = text.rstrip(_PERCENT).rstrip() if style.has_percent else text
    plain = plain.replace(",", ".") if style.has_comma and _COMMA.fullmatch(plain) else plain
    value = float(plain) if _NUMBER.fullmatch(plain) else math.nan
    if not math.isfinite(value):
        allowed = "a number, or an empty cell for a missing one"
        raise RecordError(f"{column} is {text[:40]!r}", where=row.place, allowed=allowed)
    return _Cell(value, len(plain.partition(".")[2]))


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
