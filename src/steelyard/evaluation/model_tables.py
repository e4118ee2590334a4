"""Tables of models: CSV files with a row a model, and runs of several models, `leaderboard` and `languages`.

A file has a column ``model`` (or 模型; else ``name`` or ``scorer``, as the tables of `leaderboard` and `report`) with
names, and columns of numbers. A column without any number, and one of the rows' own numbers or ranks, is left out and
named; a column ``family`` has the families. Cells are those of `printed_numbers`. Columns of bounds, such as
``accuracy.low`` beside ``accuracy``, are not read unless they are named.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.core.errors import EvidenceError, Place, RecordError
from steelyard.core.names import name_key
from steelyard.core.types import Run
from steelyard.evaluation.bench_table import BenchTable
from steelyard.evaluation.language_table import LanguageTable
from steelyard.evaluation.leaderboard import LeaderboardSummary
from steelyard.evaluation.printed_numbers import NumberCell, TableRow, plain_cell, printed_number, read_numbers
from steelyard.evaluation.printed_tables import check_is_model, model_column, rows_of_table
from steelyard.io.run_folder import RUN_FILE, read_run

FAMILY_COLUMNS = ("family", "backbone", "家族", "基座")
_RANK_COLUMNS = ("", "#", "rank", "no", "no.", "index", "place", "rang", "unnamed: 0", "排名", "名次", "序号", "编号")
"""Names of columns that number the rows; values of a bench only where a user names them."""
_PERCENT = 100.0
_BOUNDS = (".low", ".high")
_FEW_SHARES = 5.0
"""The smallest ratio of the least percentage to the greatest share in a column that mixes both."""


class ModelTable(NamedTuple):
    """A table of models: its path, the name by key, the family by key, and for each column the value by key.

    ``present`` names all columns, ``empty`` has the missing cells, ``text_columns`` the columns without a
    number, or with the ranks of rows.
    """

    path: Path
    names: dict[str, str]
    families: dict[str, str]
    present: tuple[str, ...]
    columns: dict[str, dict[str, float]]
    empty: tuple[str, ...]
    text_columns: tuple[str, ...]


Numbers = dict[tuple[str, str], float | None]
"""The numbers of a run by model and column, null for a gap."""


def is_table(path: Path) -> bool:
    """Return whether a path is a table, present or not: a file, or the folder of a run of several models."""
    if path.is_dir():
        return (path / RUN_FILE).is_file() and read_run(path).stage in _RUN_TABLES
    return path.is_file() or path.suffix.lower() in (".csv", ".tsv")


def read_table(path: Path, columns: Sequence[str], excluded: Sequence[str]) -> ModelTable:
    """Read a table; ``columns`` selects among its columns, all without. Those ``excluded`` are not read."""
    return _read_run(path, columns, excluded) if path.is_dir() else _read_file(path, columns, excluded)


def _read_run(folder: Path, columns: Sequence[str], excluded: Sequence[str]) -> ModelTable:
    """Read the values of a run of several models. Raises EvidenceError where it has no models, or one twice."""
    kind, numbers_of = _RUN_TABLES[read_run(folder).stage]
    numbers = numbers_of(read_run(folder, kind).summary)
    names: dict[str, str] = {}
    for name, _ in numbers:
        if names.setdefault(name_key(name), name) != name:
            raise EvidenceError(f"{name!r} is there twice", where=str(folder), allowed="one row a model")
    present = list(dict.fromkeys(column for _, column in numbers if column not in excluded))
    values: dict[str, dict[str, float]] = {name: {} for name in present if not columns or name in columns}
    empty: list[str] = []
    for (name, column), number in numbers.items():
        if column in values and number is None:
            empty.append(f"{folder}/{RUN_FILE} {name} {column}")
        elif column in values and number is not None:
            values[column][name_key(name)] = number
    return ModelTable(folder, names, {}, tuple(present), values, tuple(empty), ())


def _numbers_of_leaderboard(summary: LeaderboardSummary) -> Numbers:
    values: Numbers = {(row.name, summary.bench): row.value for row in summary.rows}
    return values | {(each.name, summary.bench): None for each in summary.partial}


def _numbers_of_benches(summary: BenchTable) -> Numbers:
    """Return the headlines of the benches, and of a published table every column."""
    if summary.rows_are != "model":
        return {}
    wanted = [
        (place, column.key if summary.is_published else column.bench)
        for place, column in enumerate(summary.columns)
        if column.is_headline or summary.is_published
    ]
    return {
        (row.name, name): None if (estimate := row.values[place]) is None else estimate.value
        for row in summary.rows
        for place, name in wanted
    }


def _numbers_of_languages(summary: LanguageTable) -> Numbers:
    """Return the values of each language, the baseline first, and the mean over languages."""
    numbers: Numbers = {}
    for row in summary.models:
        values = {summary.baseline_language: row.english, **row.values, "mean over languages": row.mean}
        for column in (summary.baseline_language, *summary.columns, "mean over languages"):
            if column is not None:
                estimate = values.get(column)
                numbers[row.model, column] = None if estimate is None else estimate.value
    return numbers


_RUN_TABLES: Mapping[str, tuple[Any, Callable[[Any], Numbers]]] = {
    "leaderboard": (Run[LeaderboardSummary], _numbers_of_leaderboard),
    "bench_table": (Run[BenchTable], _numbers_of_benches),
    "language_table": (Run[LanguageTable], _numbers_of_languages),
}
"""The stages whose runs have several models: the type of a record, and what reads its numbers."""


def _read_file(path: Path, columns: Sequence[str], excluded: Sequence[str]) -> ModelTable:
    rows = rows_of_table(path, ())
    model = model_column([*rows[0].value], rows[0].place)
    present = list(dict.fromkeys(str(name) for row in rows for name in row.value))
    folded = [name_key(name) for name in present]
    if len(set(folded)) < len(folded):
        name = next(name for name in present if folded.count(name_key(name)) > 1)
        raise RecordError(
            f"the column {name!r} is there twice", where=Place(str(path), 1), allowed="one column a value"
        )
    family = next((name for name in present if name_key(name) in FAMILY_COLUMNS), None)
    names: dict[str, str] = {}
    lines: dict[str, Place] = {}
    for row in rows:
        name = text_of(row, model)
        key = name_key(name)
        check_is_model(name, row.place)
        if key in names:
            problem = f"{name!r} is there twice, first in {lines[key]}"
            raise RecordError(problem, where=row.place, allowed="one row a model")
        names[key], lines[key] = name, row.place
    values: dict[str, dict[str, float]] = {}
    empty: list[str] = []
    text_columns: list[str] = []
    wanted = [name for name in present if name not in (model, family) and name not in excluded]
    bounds = {name for name in wanted if name.endswith(_BOUNDS) and name.rpartition(".")[0] in wanted}
    for column in [name for name in wanted if (name in columns if columns else name not in bounds)]:
        texts = [text_of(row, column) for row in rows]
        is_rank = name_key(column) in _RANK_COLUMNS
        if not columns and (is_rank or all(printed_number(text) is None for text in texts)):
            text_columns.append(column)
            continue
        values[column], absent = _read_column(rows, column, list(names))
        empty += absent
    families = (
        {}
        if family is None
        else {key: text_of(row, family) for key, row in zip(names, rows, strict=True) if text_of(row, family)}
    )
    return ModelTable(path, names, families, tuple(wanted), values, tuple(empty), tuple(text_columns))


def _read_column(rows: Sequence[TableRow], column: str, keys: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """Return the numbers of a column by model, and its empty cells. A sign % divides a number by 100."""
    cells = [NumberCell.of(row, column) for row in rows]
    printed = dict(zip(keys, read_numbers(cells, has_thousands=True), strict=True))
    places = dict(zip(keys, (cell.place for cell in cells), strict=True))
    known = {key: number for key, number in printed.items() if number is not None}
    is_percent = any(number.is_percent for number in known.values())
    numbers = {key: number.value / _PERCENT if is_percent else number.value for key, number in known.items()}
    _check_scale(column, numbers, places, is_percent=is_percent)
    return numbers, [f"{places[key]} {column}" for key, number in printed.items() if number is None]


def _check_scale(column: str, numbers: Mapping[str, float], places: Mapping[str, Place], *, is_percent: bool) -> None:
    """Raise RecordError where some numbers look like shares and others like percentages."""
    shares = {key: value for key, value in numbers.items() if 0 < value < 1}
    larger = [value for value in numbers.values() if value > 1]
    if is_percent or not shares or not larger or not all(0 <= value <= _PERCENT for value in numbers.values()):
        return
    if min(larger) / max(shares.values()) >= _FEW_SHARES:
        few_are_shares = len(shares) <= len(larger)
        key = next(
            key for key, value in numbers.items() if (key in shares) == few_are_shares and (key in shares or value > 1)
        )
        raise RecordError(
            f"{column} is {numbers[key]:g}, and others are {'percentages' if few_are_shares else 'shares'}",
            where=places[key],
            allowed="shares or percentages in one column, not both",
            do="write the column in one unit; with the sign % in all cells it is in percent",
        )


def text_of(row: TableRow, column: str) -> str:
    """Return a cell without spaces and marks of emphasis around it; empty for none."""
    return plain_cell(row.value.get(column))
