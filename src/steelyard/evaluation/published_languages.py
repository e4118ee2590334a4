"""Published tables of many models by language, read from CSV: the numbers as printed, and those that do not add up.

A table has a row a model with columns ``model``, ``type`` (classifier, generative or implicit), ``avg`` and ``var`` as
printed, and its values: languages by their codes or names, subsets of the translation task (``easy_de_en``), or
sections (``chat``, ``chat_hard``), whose values are changes from English. Shares are given in percent or from 0 to 1. A
row of the name ``Average`` is the printed mean over the other rows. A model that lacks a value is left out and named.
A table with a row a language and a column a model is read as its transpose.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError, Place, RecordError, choices
from steelyard.core.languages import english_name, language_key
from steelyard.core.names import name_key
from steelyard.evaluation.language_groups import english_of, kin_of
from steelyard.evaluation.language_table import (
    Columns,
    LanguageTable,
    ModelDraws,
    ModelRow,
    TableSample,
    language_table,
)
from steelyard.evaluation.printed_numbers import TableRow, plain_cell
from steelyard.evaluation.printed_tables import (
    AVERAGES,
    KIND_COLUMNS,
    MODEL_COLUMNS,
    NAME_COLUMNS,
    NumberRule,
    PrintedHeader,
    PrintedRow,
    PrintedTable,
    Slip,
    column_of,
    model_column,
    printed_table,
    rows_of_table,
)
from steelyard.plugins.benches.rewardbench import SECTIONS
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS, translation_subset
from steelyard.statistics.intervals import Estimate

_VARIANCE = ("var", "var.", "variance", "variance, points²", "方差", "方差（百分点²）")
_LARGEST_CHANGE = 50.0
"""The largest change from English, in points, that a table of sections without a negative number may have."""
_SECTION_NAMES = tuple(name.casefold() for name in SECTIONS)


class _Header(NamedTuple):
    """The columns of a table: the models, their values, of one kind, and those of what is printed about a row."""

    model: str
    kind: str | None
    of: Columns
    values: tuple[str, ...]
    mean: str | None
    variance: str | None


class _Table(NamedTuple):
    """A table with the meaning of its columns; ``averages`` is the row of the printed means over the others."""

    header: _Header
    rows: tuple[PrintedRow, ...]
    averages: PrintedRow | None
    printed: PrintedTable


def read_published(path: Path) -> LanguageTable:
    """Read a published table. Raises FileError, RecordError or EvidenceError, with file and line, for a broken one."""
    table = _read(path)
    header = table.header
    english = english_of(header.values) if header.of == "languages" else []
    others = tuple(name for name in header.values if name not in english)
    if len(others) < 2:
        problem = f"the only {header.of.removesuffix('s')} is {', '.join(others) or 'English'}"
        raise EvidenceError(problem, where=Place(str(path), 1), do="give a column for each of several")
    sample = TableSample(others, kin_of(others) if header.of == "languages" else {})
    draws = [
        ModelDraws(
            row.name,
            row.kind,
            np.array([[row.numbers[name] for name in others]]) / 100,
            np.array([row.numbers[english[0]]]) / 100 if english else None,
        )
        for row in table.rows
    ]
    computed = language_table(draws, sample, bench=path.name, baseline=next(iter(english), None))
    by_name = {row.model: row for row in computed.models}
    rows = tuple(_as_printed(by_name[row.name], row, header) for row in table.rows)
    # A variance over subsets says nothing, nor does a mean of changes.
    kinds = {} if header.of == "sections" else computed.kinds
    if header.of == "subsets":
        kinds = {name: replace(means, variance=None) for name, means in kinds.items()}
    return replace(
        computed,
        of=header.of,
        is_published=True,
        decimals=max(0, *(table.printed.digits[name] for name in header.values)),
        models=rows,
        kinds=kinds,
        slips=tuple(_slips(table, others)),
        num_checked=sum(name in row.numbers for row in table.rows for name in (header.mean, header.variance))
        + (0 if table.averages is None or table.printed.incomplete else len(table.averages.numbers)),
        incomplete=table.printed.incomplete,
    )


def _as_printed(row: ModelRow, printed: PrintedRow, header: _Header) -> ModelRow:
    """Return a row with its mean and variance as printed, and those that the table does not print where it has values.

    Sections and subsets have no variance of their own.
    """
    mean = row.mean
    if header.mean in printed.numbers and mean is not None:
        mean = Estimate(printed.numbers[header.mean] / 100, None, None, mean.n, why=mean.why)
    variance = row.variance if header.of == "languages" else None
    if header.variance in printed.numbers:
        variance = printed.numbers[header.variance]
    is_ranked = header.of != "sections"
    return replace(
        row,
        mean=mean if is_ranked or header.mean in printed.numbers else None,
        variance=variance,
        best=row.best if is_ranked else (),
        worst=row.worst if is_ranked else (),
    )


def _slips(table: _Table, others: Sequence[str]) -> Iterator[Slip]:
    """Yield the printed numbers that no unrounded values give which round to the printed ones."""
    header, kin = table.header, kin_of(others) if table.header.of == "languages" else {}
    columns = TableSample(tuple(others), kin).column_values
    widest = max(others, key=lambda name: -table.printed.digits[name])
    for row in table.rows:
        values = columns(np.array([row.numbers[name] for name in others]))
        mean, number = float(values.mean()), len(values)
        if header.mean in row.numbers and abs(mean - row.numbers[header.mean]) > table.printed.half(
            header.mean, widest
        ):
            yield Slip(model=row.name, column=header.mean, printed=row.numbers[header.mean], computed=mean)
        if header.variance in row.numbers:
            variance, half = float(values.var(ddof=1)), table.printed.half(widest)
            # Each value may be off by half a digit, in the direction that moves the variance most.
            reach = (2 * half * float(np.abs(values - mean).sum()) + number * half**2) / (number - 1)
            printed = row.numbers[header.variance]
            if abs(variance - printed) > table.printed.half(header.variance) + reach:
                yield Slip(model=row.name, column=header.variance, printed=printed, computed=variance)
    # The printed means may be over the rows that are left out, too.
    if (averages := table.averages) is None or table.printed.incomplete:
        return
    for name in (name for name in header.values if name in averages.numbers):
        mean = float(np.mean([row.numbers[name] for row in table.rows]))
        if abs(mean - averages.numbers[name]) > table.printed.half(name, name):
            yield Slip(model=averages.name, column=name, printed=averages.numbers[name], computed=mean)


def _read(path: Path) -> _Table:
    rows = _rows_of_models(rows_of_table(path, (*KIND_COLUMNS, *AVERAGES, *_VARIANCE)))
    names = tuple(rows[0].value)
    header = _header(names, rows[0])
    value = NumberRule(-100.0, allowed="-100 to 100, or shares") if header.of == "sections" else NumberRule()
    rules = dict.fromkeys(header.values, value)
    if header.mean is not None:
        rules[header.mean] = value._replace(may_lack=True)
    if header.variance is not None:
        allowed = "a variance of at least 0"
        rules[header.variance] = NumberRule(0.0, math.inf, allowed, is_squared=True, may_lack=True)
    printed = printed_table(rows, PrintedHeader(header.model, header.kind, rules, frozenset(AVERAGES)))
    averages = [row for row in printed.rows if row.name.casefold() in AVERAGES]
    models = tuple(row for row in printed.rows if row not in averages)
    if not models:
        raise EvidenceError("the table has no row of a model", where=str(path))
    for name in header.values:
        # `id` and `no` are Indonesian and Norwegian, and names of columns that number the rows.
        if len(models) > 1 and [row.numbers[name] for row in models] == [*range(1, len(models) + 1)]:
            place = Place(str(path), 1)
            raise RecordError(f"the column {name!r} numbers the rows", where=place, do="leave it out")
    changes = [row.numbers[name] for row in models for name in header.values]
    if header.of == "sections" and min(changes) >= 0 and max(changes) > _LARGEST_CHANGE:
        problem = "the columns of sections have scores, not changes from English"
        do = "write how far each model is above its score in English, negative where it is below"
        raise EvidenceError(problem, where=Place(str(path), 1), do=do)
    return _Table(header, models, next(iter(averages), None), printed)


def _rows_of_models(rows: list[TableRow]) -> list[TableRow]:
    """Return a row for each model: of a table with a row for each language, the transpose."""
    names = [*rows[0].value]
    cells = {name: [plain_cell(row.value.get(name)) for row in rows] for name in names}
    languages = {name: [cell for cell in cells[name] if _is_language(cell)] for name in names}
    summaries = (*AVERAGES, *_VARIANCE, *KIND_COLUMNS)
    of_languages = [
        name
        for name in names
        if len(languages[name]) > 1 and all(_is_language(cell) or cell.casefold() in summaries for cell in cells[name])
    ]
    if any(name_key(name) in (*MODEL_COLUMNS, *NAME_COLUMNS) for name in names):
        return rows
    if not of_languages:
        for name in names:
            others = [place for place, cell in enumerate(cells[name]) if cell not in languages[name]]
            if len(languages[name]) > len(others):
                problem = f"{cells[name][others[0]]!r} is not a known language"
                raise RecordError(problem, where=rows[others[0]].place, allowed="codes or names of languages")
        return rows
    heads = [text.casefold() if text.casefold() in summaries else text for text in cells[of_languages[0]]]
    twice = [number for number, head in enumerate(heads) if head in heads[:number]]
    if twice:
        problem = f"{heads[twice[0]]!r} is there twice"
        raise RecordError(problem, where=rows[twice[0]].place, allowed="one row a language")
    lines = dict(zip(heads, (row.place for row in rows), strict=True))
    place = Place(rows[0].place.file, 1)
    return [
        TableRow(
            place, {"model": name} | {head: row.value.get(name) for head, row in zip(heads, rows, strict=True)}, lines
        )
        for name in names
        if name not in of_languages
    ]


def _is_language(name: str) -> bool:
    return name.casefold() not in (*AVERAGES, *_VARIANCE) and english_name(name) is not None


def _header(names: Sequence[str], first: TableRow) -> _Header:
    """Return the columns of a table. Raises RecordError for unknown ones, and for values of several kinds."""
    place = Place(first.place.file, 1)
    model = model_column(names, place)
    kind, mean, variance = (column_of(names, known) for known in (KIND_COLUMNS, AVERAGES, _VARIANCE))
    values = [name for name in names if name not in {model, kind, mean, variance}]
    kinds: dict[Columns, list[str]] = {
        "languages": [name for name in values if _is_language(name)],
        "subsets": [name for name in values if translation_subset(name) is not None],
        "sections": [name for name in values if name.casefold().replace("_", " ") in _SECTION_NAMES],
    }
    known = {name for names_of_kind in kinds.values() for name in names_of_kind}
    unknown = [name for name in values if name not in known]
    if unknown:
        allowed = ("model", "type", "avg", "var", *TRANSLATION_SUBSETS, *_SECTION_NAMES)
        raise RecordError(
            f"the column {unknown[0]!r} is unknown",
            where=first.lines.get(unknown[0], place),
            allowed=f"codes or names of languages, or {choices(unknown[0], allowed)}",
            do="write a column for each language"
            if first.value[unknown[0]] and _is_language(plain_cell(first.value[unknown[0]]))
            else "leave it out, if it is about something else",
        )
    present: list[Columns] = [of for of, names_of_kind in kinds.items() if names_of_kind]
    if len(present) != 1:
        problem = f"columns of {' and '.join(present)} in one table" if present else "no column has values"
        raise RecordError(problem, where=place, allowed="values of languages, of subsets or of sections")
    identities = [language_key(name) for name in kinds["languages"]]
    if len(set(identities)) < len(identities):
        name = next(name for name in values if identities.count(language_key(name)) > 1)
        raise RecordError(f"the language of {name!r} has two columns", where=place, allowed="one column a language")
    return _Header(model, kind, present[0], tuple(values), mean, variance)
