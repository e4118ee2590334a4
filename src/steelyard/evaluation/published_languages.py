"""Published tables of many models by language, read from CSV: the numbers as printed, and those that do not add up.

A table has a row a model with columns ``model``, ``type`` (classifier, generative or implicit), ``avg`` and ``var`` as
printed, and its values: languages by their codes, subsets of the translation task (``easy_de_en``), or sections
(``chat``, ``chat_hard``), whose values are changes from English. Shares are given in percent or from 0 to 1. A row of
the name ``Average`` is the printed mean over the other rows.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError, FileError, Place, RecordError, choices
from steelyard.core.languages import language_key
from steelyard.core.protocols import Row
from steelyard.evaluation.language_groups import english_of, kin_of, known_languages
from steelyard.evaluation.language_table import (
    Columns,
    KindMeans,
    LanguageTable,
    ModelDraws,
    ModelRow,
    Slip,
    TableSample,
    language_table,
)
from steelyard.io.rows import read_rows
from steelyard.plugins.benches.rewardbench import SECTIONS
from steelyard.plugins.benches.subset_benches import TRANSLATION_SUBSETS, translation_subset
from steelyard.plugins.reward_models import PublishedModel, published_model
from steelyard.statistics.intervals import Estimate

_MODEL, _AVERAGE_ROW = "model", "average"
_KIND = ("type", "kind")
_MEAN = ("avg", "average", "mean")
_VARIANCE = ("var", "variance")
_KINDS = get_args(PublishedModel.__annotations__["kind"])
_SECTION_NAMES = tuple(name.casefold() for name in SECTIONS)
_ROUNDING = 1e-9


class _Header(NamedTuple):
    """The columns of a table: those of its values, of one kind, and those of what is printed about a row."""

    of: Columns
    values: tuple[str, ...]
    kind: str | None
    mean: str | None
    variance: str | None

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns of numbers."""
        return (*filter(None, (self.mean, self.variance)), *self.values)


class _Printed(NamedTuple):
    """One row of a table: its model, the kind of the model, and its numbers by column, in percent."""

    model: str
    kind: str | None
    numbers: dict[str, float]


class _Table(NamedTuple):
    """The rows of a table, the printed means over them, and the digits behind the point of each column, in percent."""

    header: _Header
    rows: tuple[_Printed, ...]
    averages: _Printed | None
    digits: dict[str, int]

    def half(self, *columns: str) -> float:
        """Return how far the numbers of these columns may lie from the unrounded ones, together."""
        return sum(0.5 * 10.0 ** -self.digits[column] for column in columns) + _ROUNDING


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
    draws = [_draws(row, others, english) for row in table.rows]
    computed = language_table(draws, sample, bench=path.name, baseline=next(iter(english), None))
    by_name = {row.model: row for row in computed.models}
    rows = tuple(_as_printed(by_name[row.model], row, header) for row in table.rows)
    return replace(
        computed,
        of=header.of,
        is_published=True,
        decimals=max(table.digits[name] for name in header.values),
        models=rows,
        kinds=_kinds(computed, header),
        slips=tuple(_slips(table, others)),
    )


def _draws(row: _Printed, others: Sequence[str], english: Sequence[str]) -> ModelDraws:
    values = np.array([[row.numbers[name] for name in others]]) / 100
    baseline = np.array([row.numbers[english[0]]]) / 100 if english else None
    return ModelDraws(row.model, row.kind, values, baseline)


def _as_printed(row: ModelRow, printed: _Printed, header: _Header) -> ModelRow:
    """Return a row with its mean and variance as printed, and those that the table does not print where it has values.

    Sections and subsets have no variance of their own.
    """
    mean = row.mean
    if header.mean is not None and mean is not None:
        mean = Estimate(printed.numbers[header.mean] / 100, None, None, mean.n, why=mean.why)
    variance = row.variance if header.of == "languages" else None
    if header.variance is not None:
        variance = printed.numbers[header.variance]
    is_ranked = header.of != "sections"
    return replace(
        row,
        mean=mean if is_ranked or header.mean is not None else None,
        variance=variance,
        best=row.best if is_ranked else None,
        worst=row.worst if is_ranked else None,
    )


def _kinds(table: LanguageTable, header: _Header) -> dict[str, KindMeans]:
    """Return the means of each kind of model; a variance over subsets says nothing, nor does a mean of changes."""
    if header.of == "sections":
        return {}
    kinds = table.kinds.items()
    return {name: means if header.of == "languages" else replace(means, variance=None) for name, means in kinds}


def _slips(table: _Table, others: Sequence[str]) -> Iterator[Slip]:
    """Yield the printed numbers that no unrounded values give which round to the printed ones."""
    header, kin = table.header, kin_of(others) if table.header.of == "languages" else {}
    columns = TableSample(tuple(others), kin).column_values
    widest = max(others, key=lambda name: -table.digits[name])
    for row in table.rows:
        values = columns(np.array([row.numbers[name] for name in others]))
        mean, number = float(values.mean()), len(values)
        if header.mean is not None and abs(mean - row.numbers[header.mean]) > table.half(header.mean, widest):
            yield Slip(model=row.model, column=header.mean, printed=row.numbers[header.mean], computed=mean)
        if header.variance is not None:
            variance, half = float(values.var(ddof=1)), table.half(widest)
            # Each value may be off by half a digit, in the direction that moves the variance most.
            reach = (2 * half * float(np.abs(values - mean).sum()) + number * half**2) / (number - 1)
            printed = row.numbers[header.variance]
            if abs(variance - printed) > table.half(header.variance) + reach:
                yield Slip(model=row.model, column=header.variance, printed=printed, computed=variance)
    if (averages := table.averages) is None:
        return
    for name in header.values:
        mean = float(np.mean([row.numbers[name] for row in table.rows]))
        if abs(mean - averages.numbers[name]) > table.half(name, name):
            yield Slip(model=averages.model, column=name, printed=averages.numbers[name], computed=mean)


def _read(path: Path) -> _Table:
    rows = list(read_rows(path))
    if not rows:
        raise FileError("the table has no rows", where=str(path), allowed="a row for each model")
    header = _header(tuple(rows[0].value), Place(str(path), 1))
    cells = [{name: _number(row, name) for name in header.numbers} for row in rows]
    # A table of shares has no value above 1, and one of percentages of many models has one.
    is_share = all(abs(each[name].value) <= 1 for each in cells for name in header.values)
    low = -100.0 if header.of == "sections" else 0.0
    printed: dict[str, _Printed] = {}
    for row, each in zip(rows, cells, strict=True):
        name = str(row.value.get(_MODEL, "")).strip()
        if not name or name in printed:
            problem = f"{name!r} is there twice" if name else "a row without the name of a model"
            raise RecordError(problem, where=row.place, allowed="one row a model")
        numbers = {column: cell.value * _scale(column, header, is_share=is_share) for column, cell in each.items()}
        for column, number in numbers.items():
            is_wrong = number < 0 if column == header.variance else not low <= number <= 100
            if is_wrong:
                raise RecordError(
                    f"{column} is {row.value.get(column)}",
                    where=row.place,
                    allowed="a variance of at least 0" if column == header.variance else f"{low:g} to 100, or shares",
                )
        printed[name] = _Printed(name, _kind(row, name, header), numbers)
    shift = {name: round(math.log10(_scale(name, header, is_share=is_share))) for name in header.numbers}
    digits = {name: max(0, max(each[name].digits for each in cells) - shift[name]) for name in header.numbers}
    averages = [row for name, row in printed.items() if name.casefold() == _AVERAGE_ROW]
    models = tuple(row for row in printed.values() if row not in averages)
    if not models:
        raise EvidenceError("the table has no row of a model", where=str(path))
    return _Table(header, models, next(iter(averages), None), digits)


def _scale(column: str, header: _Header, *, is_share: bool) -> float:
    """Return the factor from the numbers of a column to percent, or to squared percentage points."""
    return (1e4 if column == header.variance else 100.0) if is_share else 1.0


def _header(names: Sequence[str], place: Place) -> _Header:
    """Return the columns of a table. Raises RecordError for unknown ones, and for values of several kinds."""
    if _MODEL not in names:
        raise RecordError("no column has the names of the models", where=place, allowed=f"a column {_MODEL!r}")
    (kind, mean, variance) = (
        next((name for name in names if name in known), None) for known in (_KIND, _MEAN, _VARIANCE)
    )
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
        allowed = (_MODEL, *_KIND, *_MEAN, *_VARIANCE, *TRANSLATION_SUBSETS, *_SECTION_NAMES)
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
    return _Header(present[0], tuple(values), kind, mean, variance)


class _Cell(NamedTuple):
    value: float
    digits: int


def _number(row: Row, column: str) -> _Cell:
    """Return the number in a cell, with its digits behind the point. Raises RecordError for anything else."""
    text = str(row.value.get(column, "")).strip().replace("\N{MINUS SIGN}", "-")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        shown = repr(text[:40]) if text else "empty"
        raise RecordError(f"{column} is {shown}", where=row.place, allowed="a number")
    return _Cell(value, len(text.partition(".")[2]))


def _kind(row: Row, model: str, header: _Header) -> str | None:
    """Return the kind of a model: as the table says, or as the papers' tables have it."""
    text = "" if header.kind is None else str(row.value.get(header.kind, "")).strip()
    if text and text not in _KINDS:
        raise RecordError(f"{header.kind} is {text!r}", where=row.place, allowed=choices(text, _KINDS))
    published = published_model(model)
    return text or (None if published is None else published.kind)
