"""One type for each column of written rows: turns in all rows where a row has turns, and a margin in all or in none.

``datasets``, polars and Parquet refuse a column of texts and lists, and a trainer that looks at the first row alone
would train the other rows in its form.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.types import JsonObject

MARGIN = "margin"
Path = tuple[str, ...]


class UniformColumns:
    """The types of the columns of some rows, and the change that makes them one. A nested object has columns too."""

    def __init__(self) -> None:
        self._texts: set[Path] = set()
        self._roles: dict[Path, str] = {}
        self._num_rows = self._num_margins = 0

    def watch(self, rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Yield the rows unchanged, and note the type of each value."""
        for row in rows:
            self._num_rows += 1
            self._num_margins += isinstance(row.get(MARGIN), int | float)
            self._watch_values(row, ())
            yield row

    @property
    def differ(self) -> bool:
        """Return whether a column has values of two types."""
        return bool(self._texts & self._roles.keys()) or 0 < self._num_margins < self._num_rows

    def uniform(self, row: JsonObject) -> JsonObject:
        """Return the row with turns instead of a text where another row has turns, and margin 0 instead of none."""
        values = self._uniform_values(row, ())
        return values | {MARGIN: values.get(MARGIN) or 0.0} if self._num_margins else values

    def _watch_values(self, values: JsonObject, path: Path) -> None:
        for key, value in values.items():
            at = (*path, key)
            if isinstance(value, str):
                self._texts.add(at)
            elif isinstance(value, dict):
                self._watch_values(value, at)
            elif at not in self._roles and (role := _role_of(value)):
                self._roles[at] = role

    def _uniform_values(self, values: JsonObject, path: Path) -> JsonObject:
        changed: JsonObject = {}
        for key, value in values.items():
            at = (*path, key)
            if isinstance(value, str) and at in self._roles:
                changed[key] = [{"role": self._roles[at], "content": value}]
            else:
                changed[key] = self._uniform_values(value, at) if isinstance(value, dict) else value
        return changed


def _role_of(value: Any) -> str | None:
    """Return the role of a text in the place of these turns: answers begin with the assistant, prompts do not."""
    first = value[0] if isinstance(value, list) and value else None
    if not isinstance(first, dict) or not {"role", "content"} <= first.keys():
        return None
    return "assistant" if first["role"] == "assistant" else "user"


def with_uniform_columns(rows: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the rows with columns of one type."""
    columns = UniformColumns()
    seen = list(columns.watch(rows))
    return list(map(columns.uniform, seen)) if columns.differ else seen
