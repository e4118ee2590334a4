"""Published tables of many models by language, read from CSV: the numbers as printed, and those that do not add up.

A table has a row a model with columns ``model``, ``type`` (classifier, generative or implicit), ``avg`` and ``var`` as
printed, and its values: languages by their codes, subsets of the translation task (``easy_de_en``), or sections
(``chat``, ``chat_hard``), whose values are changes from English. Shares are given in percent or from 0 to 1. A row of
the name ``Average`` is the printed mean over the other rows. A model that lacks a value is left out and named.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError, Place, RecordError, choices
from steelyard.core.languages import language_key
from steelyard.evaluation.language_groups import english_of, kin_of, known_languages
from steelyard.evaluation.language_table import (
    Columns,
    LanguageTable,
    ModelDraws,
    ModelRow,
    TableSample,
    language_table,
)
from steelyard.evaluation.printed_tables import (
    KIND_COLUMNS,
    NumberRule,
    PrintedHeader,
    PrintedRow,
    PrintedTable,
    Slip,
    column_of,
    printed_table,
    rows_of_table,
)
from steelyard.plugins.benches.rewardbench import SECTIONS
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS, translation_subset
from steelyard.statistics.intervals import Estimate

_MODEL = "model"
_AVERAGE_ROWS = frozenset(("average", "averages", "avg", "avg.", "mean", "平均", "平均值", "均值"))
_MEAN = ("avg", "average", "mean")
_VARIANCE = ("var", "variance")
_SECTION_NAMES = tuple(name.casefold() for name in SECTIONS)


class _Header(NamedTuple):
    """The columns of a table: those of its values, of one kind, and those of what is printed about a row."""

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
        best=row.best if is_ranked else None,
        worst=row.worst if is_ranked else None,
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
    rows = rows_of_table(path, (_MODEL, *KIND_COLUMNS, *_MEAN, *_VARIANCE))
    names = tuple(rows[0].value)
    header = _header(names, Place(str(path), 1))
    value = NumberRule(-100.0, allowed="-100 to 100, or shares") if header.of == "sections" else NumberRule()
    rules = dict.fromkeys(header.values, value)
    if header.mean is not None:
        rules[header.mean] = value._replace(may_lack=True)
    if header.variance is not None:
        allowed = "a variance of at least 0"
        rules[header.variance] = NumberRule(0.0, math.inf, allowed, is_squared=True, may_lack=True)
    printed = printed_table(rows, PrintedHeader(_MODEL, column_of(names, KIND_COLUMNS), rules, _AVERAGE_ROWS))
    averages = [row for row in printed.rows if row.name.casefold() in _AVERAGE_ROWS]
    models = tuple(row for row in printed.rows if row not in averages)
    if not models:
        raise EvidenceError("the table has no row of a model", where=str(path))
    return _Table(header, models, next(iter(averages), None), printed)


def _header(names: Sequence[str], place: Place) -> _Header:
    """Return the columns of a table. Raises RecordError for unknown ones, and for values of several kinds."""
    if _MODEL not in names:
        raise RecordError("no column has the names of the models", where=place, allowed=f"a column {_MODEL!r}")
    kind, mean, variance = (column_of(names, known) for known in (KIND_COLUMNS, _MEAN, _VARIANCE))
    values = [name for name in names if name not in {_MODEL, kind, mean, variance}]
    languages = known_languages(values)
    kinds: dict[Columns, list[str]] = {
        "languages": [name for name in values if name in languages],
        "subsets": [name for name in values if translation_subset(name) is not None],
        "sections": [name for name in values if name.casefold().replace("_", " ") in _SECTION_NAMES],
    }
    known = {name for names_of_kind in kinds.values() for name in names_of_kind}
    unknown = [name for name in values if name not in known]
    if unknown:
        allowed = (_MODEL, *KIND_COLUMNS, *_MEAN, *_VARIANCE, *TRANSLATION_SUBSETS, *_SECTION_NAMES)
        raise RecordError(
            f"the column {unknown[0]!r} is unknown",
            where=place,
            allowed=f"codes of languages, or {choices(unknown[0], allowed)}",
        )
    present: list[Columns] = [of for of, names_of_kind in kinds.items() if names_of_kind]
    if len(present) != 1:
        problem = f"columns of {' and '.join(present)} in one table" if present else "no column has values"
        raise RecordError(problem, where=place, allowed="values of languages, of subsets or of sections")
    identities = [language_key(name) for name in kinds["languages"]]
    if len(set(identities)) < len(identities):
        name = next(name for name in values if identities.count(language_key(name)) > 1)
        raise RecordError(f"the language of {name!r} has two columns", where=place, allowed="one column a language")
    return _Header(present[0], tuple(values), mean, variance)
