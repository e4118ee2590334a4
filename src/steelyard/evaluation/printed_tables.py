"""Tables of published numbers as CSV: rows with a name and a kind of model, and numbers as printed, with their digits.

Shares are given in percent or from 0 to 1, all of a table alike. Cells are those of `printed_numbers`. What a column
means, and which numbers follow from others, is the business of the table's own module.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from steelyard.core.errors import FileError, Place, RecordError, choices
from steelyard.core.names import name_key
from steelyard.core.types import Record
from steelyard.evaluation.printed_numbers import ABSENT, NumberCell, PrintedNumber, TableRow, plain_cell, read_numbers
from steelyard.io.compression import data_suffix
from steelyard.io.rows import read_rows
from steelyard.plugins.reward_models import PublishedModel, published_model

MODEL_COLUMNS = ("model", "模型")
NAME_COLUMNS = ("name", "scorer", "评分器", "reward model", "模型名称")
"""Names of the column of models in a table without one of `MODEL_COLUMNS`."""
UNNAMED_COLUMNS = ("", "unnamed: 0")
"""Names of the index that a data frame saves as its first column: the models of a table without one of the above."""
KIND_COLUMNS = ("type", "kind", "kind of model", "model type", "model_type", "rm type", "模型类型", "类型")
"""The columns with the kind of a model."""
_KINDS = get_args(PublishedModel.__annotations__["kind"])
_SYNONYMS: dict[str, str] = {
    **dict.fromkeys((
        "discriminative", "sequence classifier", "seq. classifier", "custom classifier", "classifier rm",
        "分类式", "判别式",
    ), "classifier"),
    **dict.fromkeys(("generative rm", "llm-as-a-judge", "生成式"), "generative"),
    **dict.fromkeys(("dpo", "implicit rm", "隐式"), "implicit"),
}  # fmt: skip
"""Kinds of models as papers, leaderboards and pages have them, in lower case, and their names here."""
_ROUNDING = 1e-9
_MOST_PRINTED_DIGITS, _DIGITS_OF_SAVED = 4, 2
AVERAGES = (
    "avg", "avg.", "average", "averages", "mean", "mean over languages", "mean over subsets", "ø", "mittelwert",
    "durchschnitt", "moyenne", "promedio", "media", "المتوسط", "平均", "平均值", "均值", "各语言均值", "各子集均值",
)  # fmt: skip
"""Names of a row or column of averages over the others, in lower case."""
_SUMMARY_ROWS = frozenset((
    *AVERAGES, "median", "total", "totals", "sum", "summe", "合计", "总计", "总和", "合計",
))  # fmt: skip
"""Names of rows that sum up the others, in lower case."""
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

    def shown_digits(self, column: str) -> int:
        """Return the digits to show behind the point, in percent: few of a number that a program saved in full."""
        digits = self.digits[column]
        return digits if digits <= _MOST_PRINTED_DIGITS else _DIGITS_OF_SAVED

    def half(self, *columns: str) -> float:
        """Return how far the numbers of these columns may lie from the unrounded ones, together."""
        return sum(0.5 * 10.0 ** -self.digits[column] for column in columns) + _ROUNDING


def rows_of_table(path: Path, known: Sequence[str]) -> list[TableRow]:
    """Return the rows of a table, the names of columns without blanks at the ends, and ``known`` ones in lower case.

    Raises FileError for none and for a file of another form, and RecordError for a row of another length, or a column
    that is there twice.
    """
    if form := _FORMS.get(data_suffix(path)):
        raise FileError(f"the table is {form}", where=str(path), allowed="CSV, TSV, Parquet or JSON lines", do=_AS_CSV)
    rows = list(read_rows(path))
    if not rows:
        raise FileError("the table has no rows", where=str(path), allowed="a row for each model")
    names = {name: plain_cell(name) for row in rows for name in row.value}
    names = {name: text.casefold() if text.casefold() in known else text for name, text in names.items()}
    for name in [name for name, text in names.items() if text.casefold() in UNNAMED_COLUMNS]:
        # The index of a data frame numbers its rows from 0.
        if len(rows) > 1 and [plain_cell(row.value.get(name)) for row in rows] == [*map(str, range(len(rows)))]:
            del names[name]
    if len({*names.values()}) < len(names):
        twice = next(text for text in names.values() if [*names.values()].count(text) > 1)
        raise RecordError(f"the header has {twice!r} twice", where=Place(str(path), 1), allowed="names that are unique")
    first = next(iter(names), "")
    if (len(names) < 2 and first.startswith(("|", "\\"))) or first.endswith("\\\\") or first.count("|") > 1:
        raise RecordError("the first line is not one of CSV", where=Place(str(path), 1), do=_AS_CSV)
    return [TableRow(row.place, {names[name]: row.value[name] for name in names if name in row.value}) for row in rows]


def model_column(names: Sequence[str], place: Place) -> str:
    """Return the column with the names of models. Raises RecordError for none or several."""
    keys = {name_key(name) for name in names}
    known = next((known for known in (MODEL_COLUMNS, NAME_COLUMNS, UNNAMED_COLUMNS) if keys & {*known}), MODEL_COLUMNS)
    return only_column(names, known, "names of the models", place)


def only_column(names: Sequence[str], known: Sequence[str], kind: str, place: Place) -> str:
    """Return the one of these names that is known. Raises RecordError for none or several."""
    matches = [name for name in names if name_key(name) in known]
    if len(matches) != 1:
        problem = f"{len(matches)} columns have" if matches else "no column has"
        where = Place(place.file, 1)
        raise RecordError(f"{problem} the {kind}", where=where, allowed=f"a column {' or '.join(map(repr, known))}")
    return matches[0]


def check_is_model(name: str, place: Place) -> None:
    """Raise RecordError for a row without a name, and for one that sums up the others."""
    if not name:
        raise RecordError("a row without the name of a model", where=place, allowed="one row a model")
    if name.casefold() in _SUMMARY_ROWS:
        raise RecordError(f"{name!r} sums up the other rows", where=place, allowed="one row a model", do="leave it out")


def printed_table(rows: Sequence[TableRow], header: PrintedHeader) -> PrintedTable:
    """Return the names and numbers of a table.

    Raises RecordError, with file and line, for a cell without a number or with one out of bounds, for a row without a
    name, for a name that is there twice, and where no row has all its numbers.
    """
    rules = header.numbers
    numbers_in_order = iter(
        read_numbers(
            [NumberCell.of(row, name, is_squared=rule.is_squared) for row in rows for name, rule in rules.items()]
        )
    )
    cells = [{name: cell for name in rules if (cell := next(numbers_in_order)) is not None} for row in rows]
    has_percent = any(cell.is_percent for each in cells for cell in each.values())
    # A table of shares has no value above 1, and one of percentages of many models has one.
    is_share = not has_percent and all(
        abs(cell.value) <= 1 for each in cells for name, cell in each.items() if math.isfinite(rules[name].high)
    )
    scales = {name: (1e4 if rule.is_squared else 100.0) if is_share else 1.0 for name, rule in rules.items()}
    if not is_share and not has_percent:
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
                where = row.lines.get(column, row.place)
                raise RecordError(problem, where=where, allowed=rules[column].allowed)
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
        where = rows[0].lines.get(column, rows[0].place)
        raise RecordError(f"{column} is {shown}", where=where, allowed="a number in at least one row")
    digits = {
        name: max((each[name].digits for each in cells if name in each), default=0) - round(math.log10(scale))
        for name, scale in scales.items()
    }
    return PrintedTable(tuple(printed.values()), digits, is_share, incomplete)


def _check_scale(
    rows: Sequence[TableRow], cells: Sequence[Mapping[str, PrintedNumber]], rules: Mapping[str, NumberRule]
) -> None:
    """Raise RecordError where a column has shares, and other cells of the table look like percentages."""
    plain = [name for name, rule in rules.items() if rule.low >= 0 and math.isfinite(rule.high)]
    columns = {name: [each[name].value for each in cells if name in each] for name in plain}
    larger = [value for values in columns.values() for value in values if value > 1]
    shares = {name: max(values) for name, values in columns.items() if 0 < max(values, default=0) < 1}
    if not larger or not shares or min(larger) / max(shares.values()) < _LEAST_GAP:
        return
    place, column, value = next(
        (row.lines.get(name, row.place), name, each[name].value)
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


def _kind(row: TableRow, model: str, column: str | None) -> str | None:
    """Return the kind of a model: as the table says, or as the papers' tables have it."""
    text = "" if column is None else plain_cell(row.value.get(column))
    kind = _SYNONYMS.get(text.casefold(), text.casefold())
    if kind in ABSENT:
        kind = ""
    if kind and kind not in _KINDS:
        raise RecordError(f"{column} is {text!r}", where=row.place, allowed=choices(text, (*_KINDS, *_SYNONYMS)))
    published = published_model(model)
    return kind or (None if published is None else published.kind)


def column_of(names: Sequence[str], known: Sequence[str]) -> str | None:
    """Return the first of these names that is known."""
    return next((name for name in names if name in known), None)
