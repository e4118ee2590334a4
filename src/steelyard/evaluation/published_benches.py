"""Published tables of many models on several benches, read from CSV: as printed, with the rows that do not add up.

A table has a row a ``model``, ``dataset`` or ``training_data``; columns ``type`` (classifier, generative, implicit) and
``language``; and as values the kinds of benches (``rewardbench``), accuracy and exact match on the subsets of
CheemsBench (``open_accuracy``, ``human_exact_match``), and ``overall``, the mean of these four.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.core.errors import EvidenceError, Place, RecordError, choices
from steelyard.core.names import name_key
from steelyard.core.plugins import kinds
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.evaluation.bench_table import BenchColumn, BenchRow, BenchTable, lacking_benches
from steelyard.evaluation.benches import CASE_KINDS
from steelyard.evaluation.language_table import NO_ITEMS
from steelyard.evaluation.printed_numbers import plain_cell
from steelyard.evaluation.printed_tables import (
    KIND_COLUMNS,
    MODEL_COLUMNS,
    NAME_COLUMNS,
    UNNAMED_COLUMNS,
    NumberRule,
    PrintedHeader,
    PrintedRow,
    PrintedTable,
    Slip,
    column_of,
    printed_table,
    rows_of_table,
)
from steelyard.evaluation.published_columns import is_by_language
from steelyard.plugins.benches.subset_benches import CHEEMS_PUBLISHED
from steelyard.statistics.intervals import Estimate

_CHEEMS, _OVERALL, _LANGUAGE = "cheemsbench", "overall", "language"
_NAMES = ("model", "dataset", "training_data")
_SUBSETS = {name.partition("_")[0]: name for name in CHEEMS_PUBLISHED}
_PARTS = {
    f"{word}_{measure}": BenchColumn(bench=_CHEEMS, subset=subset, measure=measure)
    for word, subset in _SUBSETS.items()
    for measure in ("accuracy", "exact_match")
}
"""The four columns of CheemsBench whose mean is its headline."""


def read_published_benches(path: Path) -> BenchTable:
    """Read a published table. Raises FileError, RecordError or EvidenceError, with file and line, for a broken one."""
    rows = rows_of_table(path, (*_NAMES, *KIND_COLUMNS, *kinds("benches"), *_PARTS, _OVERALL, _LANGUAGE))
    names = tuple(rows[0].value)
    columns = _columns(names, Place(str(path), 1))
    identity = _identity(names)[0]
    rows_are = identity if identity in _NAMES else "model"
    header = PrintedHeader(identity, column_of(names, KIND_COLUMNS), dict.fromkeys(columns, NumberRule(may_lack=True)))
    table = printed_table(rows, header)
    for row in table.rows:
        if not row.numbers:
            place = next(each.place for each in rows if plain_cell(each.value.get(identity)) == row.name)
            raise EvidenceError(f"{row.name!r} has no number", where=place, do="leave the row out")
    printed = [
        BenchRow(
            name=row.name,
            kind=row.kind if rows_are == "model" else None,
            language=row.cells.get(_LANGUAGE) or None,
            values=tuple(
                Estimate(row.numbers[name] / 100, None, None, 0, why=NO_ITEMS) if name in row.numbers else None
                for name in columns
            ),
            ranks={
                column.bench: rank for name, column in columns.items()
                if column.is_headline and (rank := _rank(row, name, table.rows)) is not None
            },
        )
        for row in table.rows
    ]  # fmt: skip
    return BenchTable(
        source=path.name,
        rows_are=rows_are,
        is_published=True,
        decimals=tuple(table.shown_digits(name) for name in columns),
        is_share=table.is_share,
        columns=tuple(columns.values()),
        rows=tuple(printed),
        lacking=lacking_benches(tuple(columns.values()), printed),
        slips=tuple(_slips(table)),
    )


def _columns(names: Sequence[str], place: Place) -> dict[str, BenchColumn]:
    """Return the columns of values by their name in the file. Raises RecordError for unknown or missing ones."""
    identities = _identity(names)
    if len(identities) != 1:
        problem = "no column has the names of the rows" if not identities else f"two columns of names: {identities}"
        raise RecordError(problem, where=place, allowed=f"one column of {', '.join(_NAMES)}")
    benches = [name for name in kinds("benches") if name not in (_CHEEMS, *CASE_KINDS)]
    known = {name: BenchColumn(bench=name, measure=_OVERALL, is_headline=True) for name in benches} | _PARTS
    known[_OVERALL] = BenchColumn(bench=_CHEEMS, measure=_OVERALL, is_headline=True)
    values = [name for name in names if name not in (*identities, *KIND_COLUMNS, _LANGUAGE)]
    unknown = [name for name in values if name not in known]
    if unknown:
        allowed = choices(unknown[0], (*_NAMES, *KIND_COLUMNS, _LANGUAGE, *known))
        of_languages = Advice("numbers by language: ", Command("languages", (), (Remedy("table", FILE),)))
        do = of_languages if any(map(is_by_language, unknown)) else None
        raise RecordError(f"the column {unknown[0]!r} is unknown", where=place, allowed=allowed, do=do)
    if not values:
        raise RecordError("no column has values", where=place, allowed=choices("", known))
    missing = [name for name in _PARTS if name not in values]
    if missing and len(missing) < len(_PARTS):
        present = next(name for name in _PARTS if name in values)
        problem = f"the column {missing[0]!r} is missing beside {present!r}"
        raise RecordError(problem, where=place, allowed=f"all of {', '.join(_PARTS)}")
    return {name: known[name] for name in values}


def _identity(names: Sequence[str]) -> list[str]:
    """Return the columns with the names of the rows: ``model`` and the like before other words, then an index."""
    groups = ((*_NAMES, *MODEL_COLUMNS), NAME_COLUMNS, UNNAMED_COLUMNS)
    return next(filter(None, ([name for name in names if name_key(name) in known] for known in groups)), [])


def _rank(row: PrintedRow, column: str, rows: Sequence[PrintedRow]) -> tuple[int, int] | None:
    """Return the place of a printed number in its column: equal numbers share their places."""
    if column not in row.numbers:
        return None
    others = [each.numbers[column] for each in rows if column in each.numbers]
    above = sum(number > row.numbers[column] for number in others)
    return above + 1, above + others.count(row.numbers[column])


def _slips(table: PrintedTable) -> Iterator[Slip]:
    """Yield every headline that no unrounded values give which round to the printed ones."""
    for row in table.rows:
        if _OVERALL not in row.numbers or not row.numbers.keys() >= _PARTS.keys():
            continue
        mean = sum(row.numbers[name] for name in _PARTS) / len(_PARTS)
        # Four values may each be off by half a digit, and so may their mean.
        reach = table.half(_OVERALL) + sum(table.half(name) for name in _PARTS) / len(_PARTS)
        if abs(mean - row.numbers[_OVERALL]) > reach:
            yield Slip(model=row.name, column=_OVERALL, printed=row.numbers[_OVERALL], computed=mean)
