"""Published tables of many models by language, read from CSV: the numbers as printed, and those that do not add up.

A table has a row a model with columns ``model``, ``type`` (classifier, generative or implicit), ``avg`` and ``var`` as
printed, and its values: languages by their codes or names, subsets of the translation task (``easy_de_en``), or
sections (``chat``, ``chat_hard``), whose values are changes from English. Shares are given in percent or from 0 to 1. A
row of the name ``Average`` is the printed mean over the other rows. A model that lacks a value is left out and named.
A table with a row a language and a column a model is read as its transpose. An index of a data frame, ``std``, and the
words of leaderboards for kinds of models are read, too.
"""

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError, Place, RecordError, choices
from steelyard.core.languages import english_name, language_key
from steelyard.core.names import name_key
from steelyard.core.remedies import FILE, Advice, Command, Remedy
from steelyard.evaluation.language_groups import baseline_of, compared_languages, english_of, kin_of
from steelyard.evaluation.language_table import (
    AveragedOver,
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
from steelyard.evaluation.published_columns import is_by_bench, is_by_language
from steelyard.plugins.benches.rewardbench import SECTIONS
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS, translation_subset
from steelyard.statistics.intervals import Estimate

_VARIANCE = ("var", "var.", "variance", "variance, points²", "方差", "方差（百分点²）")
_DEVIATION = ("std", "std.", "sd", "stdev", "standard deviation", "标准差")
_LARGEST_CHANGE = 50.0
"""The largest change from English, in points, that a table of sections without a negative number may have."""
_OVERALL = "overall"
_SECTION_NAMES = (*(name.casefold() for name in SECTIONS), _OVERALL)


class _Header(NamedTuple):
    """The columns of a table: the models, their values, of one kind, and those of what is printed about a row."""

    model: str
    kind: str | None
    of: Columns
    values: tuple[str, ...]
    mean: str | None
    variance: str | None
    deviation: str | None
    baseline: str | None


class _Table(NamedTuple):
    """A table with the meaning of its columns; ``averages`` is the row of the printed means over the others."""

    header: _Header
    rows: tuple[PrintedRow, ...]
    averages: PrintedRow | None
    printed: PrintedTable


def read_published(path: Path, languages: Sequence[str] | None = None, baseline: str | None = None) -> LanguageTable:
    """Read a published table; ``languages`` selects columns of it, and ``baseline`` is one other than English.

    Printed means, variances and deviations are those of the whole table, and are left out of a selection.
    Raises FileError, RecordError or EvidenceError, with file and line, for a broken one.
    """
    table = _read(path, languages, baseline)
    header = table.header
    others = tuple(name for name in header.values if name != header.baseline)
    if len(others) < (1 if header.baseline else 2):
        problem = f"the only {header.of.removesuffix('s')} is {', '.join(others) or header.baseline}"
        raise EvidenceError(problem, where=Place(str(path), 1), do="give a column for each of several")
    sample = TableSample(others, kin_of(others) if header.of == "languages" else {})
    draws = [
        ModelDraws(
            row.name,
            row.kind,
            np.array([[row.numbers[name] for name in others]]) / 100,
            np.array([row.numbers[header.baseline]]) / 100 if header.baseline else None,
        )
        for row in table.rows
    ]
    computed = language_table(draws, sample, bench=path.name, baseline=header.baseline)
    by_name = {row.model: row for row in computed.models}
    rows = tuple(_as_printed(by_name[row.name], row, header) for row in table.rows)
    # A variance over subsets says nothing, nor does a mean of changes.
    kinds = {} if header.of == "sections" else computed.kinds
    if header.of == "subsets":
        kinds = {name: replace(means, variance=None) for name, means in kinds.items()}
    # The change of the whole score is no section of it.
    averaged_over, slips = _averaged_columns(table, [name for name in others if name.casefold() != _OVERALL])
    of_rows = (header.mean, header.variance, header.deviation)
    return replace(
        computed,
        of=header.of,
        is_published=True,
        decimals=max(0, *(table.printed.shown_digits(name) for name in header.values)),
        models=rows,
        kinds=kinds,
        averaged_over=averaged_over,
        slips=(*slips, *_slips_of_averages(table)),
        num_checked=sum(name in row.numbers for row in table.rows for name in of_rows)
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


def _averaged_columns(table: _Table, others: Sequence[str]) -> tuple[AveragedOver, list[Slip]]:
    """Return which columns the printed means are over, and the rows that do not follow from them.

    Most tables have the mean of the columns without English, Chinese in two scripts averaged first. Other columns are
    selected where they explain more rows.
    """
    header, kin = table.header, kin_of(others) if table.header.of == "languages" else {}
    every = (*others, *([header.baseline] if header.baseline else ()))
    samples: dict[AveragedOver, TableSample] = {
        "columns": TableSample(tuple(others), kin),
        "languages": TableSample(tuple(others), {}),
        "columns_and_baseline": TableSample(every, kin),
        "languages_and_baseline": TableSample(every, {}),
    }
    slips = {name: list(_slips(table, sample)) for name, sample in samples.items()}
    # Of equal numbers the first.
    best = min(slips, key=lambda name: len(slips[name]))
    return best, slips[best]


def _slips(table: _Table, sample: TableSample) -> Iterator[Slip]:
    """Yield the printed numbers that no unrounded values give which round to the printed ones."""
    header = table.header
    widest = max(sample.languages, key=lambda name: -table.printed.digits[name])
    half = table.printed.half(widest)
    for row in table.rows:
        values = sample.column_values(np.array([row.numbers[name] for name in sample.languages]))
        mean, number = float(values.mean()), len(values)
        computed = [(header.mean, mean, half)]
        if number > 1:
            variance = float(values.var(ddof=1))
            # Each value may be off by half a digit, in the direction that moves the variance most.
            reach = (2 * half * float(np.abs(values - mean).sum()) + number * half**2) / (number - 1)
            computed.append((header.variance, variance, reach))
            computed.append((header.deviation, math.sqrt(variance), half * math.sqrt(number / (number - 1))))
        for column, value, reach in computed:
            if column in row.numbers and abs(value - row.numbers[column]) > table.printed.half(column) + reach:
                yield Slip(model=row.name, column=column, printed=row.numbers[column], computed=value)


def _slips_of_averages(table: _Table) -> Iterator[Slip]:
    """Yield the printed means over models that do not follow from the rows."""
    # The printed means may be over the rows that are left out, too.
    if (averages := table.averages) is None or table.printed.incomplete:
        return
    for name in (name for name in table.header.values if name in averages.numbers):
        mean = float(np.mean([row.numbers[name] for row in table.rows]))
        if abs(mean - averages.numbers[name]) > table.printed.half(name, name):
            yield Slip(model=averages.name, column=name, printed=averages.numbers[name], computed=mean)


def _read(path: Path, languages: Sequence[str] | None, baseline: str | None) -> _Table:
    rows = rows_of_table(path, (*KIND_COLUMNS, *AVERAGES, *_VARIANCE, *_DEVIATION))
    _check_has_no_benches(rows[0])
    rows = _rows_of_models(rows)
    names = tuple(rows[0].value)
    header = _select(_header(names, rows[0]), languages, baseline, str(path))
    value = NumberRule(-100.0, allowed="-100 to 100, or shares") if header.of == "sections" else NumberRule()
    rules = dict.fromkeys(header.values, value)
    if header.mean is not None:
        rules[header.mean] = value._replace(may_lack=True)
    if header.variance is not None:
        allowed = "a variance of at least 0"
        rules[header.variance] = NumberRule(0.0, math.inf, allowed, is_squared=True, may_lack=True)
    if header.deviation is not None:
        rules[header.deviation] = NumberRule(0.0, math.inf, "a deviation of at least 0", may_lack=True)
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


def _check_has_no_benches(first: TableRow) -> None:
    """Raise RecordError for a table of benches, with the verb that reads it."""
    benches = [name for name in first.value if is_by_bench(name)]
    if benches and not any(is_by_language(name) for name in first.value):
        problem = f"the column {benches[0]!r} is of a benchmark, and none is of a language"
        do = Advice("numbers by benchmark: ", Command("leaderboard", (), (Remedy("table", FILE),)))
        raise RecordError(problem, where=Place(first.place.file, 1), do=do)


def _rows_of_models(rows: list[TableRow]) -> list[TableRow]:
    """Return a row for each model: of a table with a row for each language, the transpose."""
    names = [*rows[0].value]
    cells = {name: [plain_cell(row.value.get(name)) for row in rows] for name in names}
    languages = {name: [cell for cell in cells[name] if _is_language(cell)] for name in names}
    summaries = (*AVERAGES, *_VARIANCE, *_DEVIATION, *KIND_COLUMNS)
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
    return name.casefold() not in (*AVERAGES, *_VARIANCE, *_DEVIATION) and english_name(name) is not None


def _select(header: _Header, languages: Sequence[str] | None, baseline: str | None, where: str) -> _Header:
    """Return the columns of the chosen languages, with the baseline: English unless another is chosen."""
    if header.of != "languages":
        if languages or baseline:
            raise EvidenceError(f"the columns are {header.of}", where=where, do="leave the choice of languages out")
        return header
    values = header.values
    if languages is not None:
        chosen = compared_languages({*values}, languages, where=where)
        values = tuple(name for name in values if name in chosen)
    english = next(iter(english_of(values)), None)
    selected = english if baseline is None else baseline_of(dict.fromkeys(values, 0), baseline, where=where)
    if values != header.values or selected != english:
        header = header._replace(values=values, mean=None, variance=None, deviation=None)
    return header._replace(baseline=selected)


def _header(names: Sequence[str], first: TableRow) -> _Header:
    """Return the columns of a table. Raises RecordError for unknown ones, and for values of several kinds."""
    place = Place(first.place.file, 1)
    model = model_column(names, place)
    kind, mean, variance, deviation = (
        column_of(names, known) for known in (KIND_COLUMNS, AVERAGES, _VARIANCE, _DEVIATION)
    )
    values = [name for name in names if name not in {model, kind, mean, variance, deviation}]
    kinds: dict[Columns, list[str]] = {
        "languages": [name for name in values if _is_language(name)],
        "subsets": [name for name in values if translation_subset(name) is not None],
        "sections": [name for name in values if re.sub("[_-]", " ", name.casefold()) in _SECTION_NAMES],
    }
    known = {name for names_of_kind in kinds.values() for name in names_of_kind}
    unknown = [name for name in values if name not in known]
    if unknown:
        allowed = ("model", "type", "avg", "var", "std", *TRANSLATION_SUBSETS, *_SECTION_NAMES)
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
    for name in kinds["languages"]:
        same = [repr(other) for other in values if language_key(other) == language_key(name)]
        if len(same) > 1:
            raise RecordError(f"{' and '.join(same)} are one language", where=place, allowed="one column a language")
    return _Header(model, kind, present[0], tuple(values), mean, variance, deviation, None)
