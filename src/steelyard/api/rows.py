"""Tables of results: flat rows, their Arrow table and their view in notebooks."""

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

import msgspec

from steelyard.core.types import JsonObject, Run
from steelyard.evaluation.tables import DASH
from steelyard.views.records import flat_row
from steelyard.views.view import view_of

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


def summary_rows(run: Run[Any]) -> Rows:
    """Return the main table of a run: its groups, models, languages or pairs; one row where it has no table."""
    view = view_of(run.stage)
    rows = [] if view is None else list(view.records(run.summary))
    return Rows(rows or [flat_row(run.summary)])


def _arrow_cell(value: Any) -> Any:
    is_nested = isinstance(value, Mapping) or (
        isinstance(value, list) and any(isinstance(v, Mapping | list) for v in value)
    )
    return msgspec.json.encode(value).decode() if is_nested else value


def _cell(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:z.3f}"
    elif value is None:
        text = DASH
    else:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f'<td dir="auto" style="text-align: start">{html.escape(text)}</td>'
