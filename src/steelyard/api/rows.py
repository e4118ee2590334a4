"""Tables of results: flat rows, their Arrow table and their view in notebooks, and the main table of each summary.

An estimate takes four columns: ``accuracy``, ``accuracy_low``, ``accuracy_high``, ``accuracy_n``.
"""

import html
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import msgspec
from msgspec import UNSET

from steelyard.annotation.case_answers import RatersSummary
from steelyard.core.types import JsonObject, Record
from steelyard.curation.debiasing import DebiasSummary
from steelyard.curation.filter_study import FilterStudySummary
from steelyard.curation.splits import SplitSummary
from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.evaluation.experiments import AblationSummary, SweepSummary
from steelyard.evaluation.languages import LanguagesSummary
from steelyard.evaluation.leaderboard import LeaderboardRow, LeaderboardSummary
from steelyard.evaluation.measures.accuracy import GroupResult
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.supervisor import SupervisionSummary
from steelyard.prompts.description import GROUPINGS, DescribeSummary
from steelyard.ranking.resolution import ResolveSummary
from steelyard.statistics.intervals import Estimate

if TYPE_CHECKING:
    from pyarrow import Table

_SHOWN = 20


class Rows:
    """An immutable table: dictionaries with the same keys. polars, pandas, DuckDB and pyarrow read it directly.

    >>> rows = sy.evaluate("longer", cases).items
    >>> rows.columns[:4]
    ('prompt', 'language', 'category', 'subset')
    """

    # Not a subclass of Sequence: polars reads those item by item, before it looks for an Arrow table.
    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        listed = list(rows)
        names = dict.fromkeys(name for row in listed for name in row)
        self._rows = tuple({name: row.get(name) for name in names} for row in listed)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._rows[0]) if self._rows else ()

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[JsonObject]:
        return iter(self._rows)

    @overload
    def __getitem__(self, index: int) -> JsonObject: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    def __getitem__(self, index: int | slice) -> "JsonObject | Rows":
        """Return one row, or the rows of a slice."""
        return Rows(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __repr__(self) -> str:
        return f"Rows({len(self):,} x {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(f"<tr>{''.join(map(_cell, row.values()))}</tr>" for row in self._rows[:_SHOWN])
        more = f"<p>… {len(self) - _SHOWN:,} more</p>" if len(self) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def to_dicts(self) -> list[JsonObject]:
        """Return the rows as dictionaries."""
        return list(self._rows)

    def to_arrow(self) -> "Table":
        """Return a pyarrow Table; a dictionary in a cell is JSON text."""
        import pyarrow

        return pyarrow.table({name: [_arrow_cell(row[name]) for row in self._rows] for name in self.columns})

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def summary_rows(summary: Record) -> Rows:
    """Return the main table of a summary: its groups, models, languages or pairs; one row where it has no table."""
    table = _TABLES.get(type(summary))
    rows = [] if table is None else list(table(summary))
    return Rows(rows or [flat_row(summary)])


def flat_row(record: object, prefix: str = "", *, skip: Sequence[str] = ()) -> JsonObject:
    """Return a record as one row: an inner record's fields have its name before theirs; lists stay lists."""
    if isinstance(record, Estimate):
        name = prefix or "value"
        row = {name: record.value, f"{name}_low": record.low, f"{name}_high": record.high, f"{name}_n": record.n}
        fields = set(record.__struct_fields__) - set(Estimate.__struct_fields__)
        return row | {_joined(prefix, field): getattr(record, field) for field in sorted(fields)}
    values = record if isinstance(record, Mapping) else msgspec.structs.asdict(record)  # pyright: ignore[reportArgumentType]
    row: JsonObject = {}
    for key, value in values.items():
        name = _joined(prefix, str(key))
        if value is UNSET or key in skip:
            continue
        if isinstance(value, Record | Mapping):
            row |= flat_row(value, name)
        else:
            row[name] = msgspec.to_builtins(value)
    return row


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}_{name}" if prefix else name


def _evaluation_rows(summary: EvaluationSummary) -> Iterator[JsonObject]:
    """Yield the headline, each baseline with the model's lead, and each category, language and subset."""
    yield {"by": "model", "name": summary.model} | _accuracy_row(summary)
    for name, baseline in summary.baselines.items():
        yield {"by": "baseline", "name": name} | _accuracy_row(baseline) | flat_row(baseline.difference, "lead")
    groups = {"category": summary.by_category, "language": summary.by_language, "subset": summary.subsets}
    for by, results in groups.items():
        for name, result in (results or {}).items():
            yield {"by": by, "name": name} | _accuracy_row(result)
    for name, section in (summary.sections or {}).items():
        yield {"by": "section", "name": name} | flat_row(section, "accuracy")


def _accuracy_row(result: GroupResult[Estimate]) -> JsonObject:
    exact = {} if result.exact_match is None else flat_row(result.exact_match, "exact_match")
    return flat_row(result.accuracy, "accuracy") | exact


def _conflict_rows(summary: ResolveSummary) -> Iterator[JsonObject]:
    """Yield the conflicts of all judgments, and of each judge, kind, category, subset and language."""
    tables = msgspec.structs.asdict(summary.conflicts)
    yield {"by": "all", "name": "all"} | flat_row(tables.pop("overall"))
    for by, records in tables.items():
        for name, record in records.items():
            yield {"by": by.removeprefix("by_"), "name": name} | flat_row(record)


def _language_rows(summary: LanguagesSummary) -> Iterator[JsonObject]:
    return ({"language": name} | flat_row(values) for name, values in summary.languages.items())


def _described_rows(summary: DescribeSummary) -> Iterator[JsonObject]:
    yield {"by": "all", "name": "all"} | flat_row(summary.overall)
    for by in GROUPINGS:
        for name, group in getattr(summary, f"by_{by}").items():
            yield {"by": by, "name": name} | flat_row(group)


def _part_rows(summary: SplitSummary) -> Iterator[JsonObject]:
    return ({"part": name, "num_cases": number} for name, number in summary.parts.items())


def _balance_rows(summary: DebiasSummary) -> Iterator[JsonObject]:
    yield {"group": "all"} | flat_row(summary.overall)
    for group in summary.groups:
        if group.group:
            yield {"group": " · ".join(group.group)} | flat_row(group, skip=("group",))


def _leaderboard_row(model: LeaderboardRow) -> JsonObject:
    row = flat_row(model, skip=("numbers", "protocol", "coverage"))
    for number in model.numbers:
        row |= flat_row(Estimate(number.value, number.low, number.high, number.n), f"{number.group}: {number.name}")
    return row


_TABLES: Mapping[type, Callable[[Any], Iterable[JsonObject]]] = {
    EvaluationSummary: _evaluation_rows,
    ResolveSummary: _conflict_rows,
    ComparisonSummary: lambda summary: map(flat_row, summary.comparisons),
    LeaderboardSummary: lambda summary: map(_leaderboard_row, summary.rows),
    LanguagesSummary: _language_rows,
    SplitSummary: _part_rows,
    DescribeSummary: _described_rows,
    RatersSummary: lambda summary: map(flat_row, summary.raters),
    SupervisionSummary: lambda summary: map(flat_row, summary.by_threshold),
    DebiasSummary: _balance_rows,
    FilterStudySummary: lambda summary: map(flat_row, summary.precision.filters if summary.precision else ()),
    AblationSummary: lambda summary: map(flat_row, summary.arms),
    SweepSummary: lambda summary: map(flat_row, summary.arms),
}


def _arrow_cell(value: Any) -> Any:
    is_nested = isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value)
    )
    return msgspec.json.encode(value).decode() if is_nested else value


def _cell(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.3f}"
    elif value is None:
        text = ""
    else:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f'<td dir="auto" style="text-align: start">{html.escape(text)}</td>'
