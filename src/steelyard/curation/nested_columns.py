"""Columns inside the objects and lists of a row: ``info.post`` is the field ``post`` of ``info``.

In a list, a number is a place, from 0: ``summaries.1.text``.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from steelyard.core.types import JsonObject

_BETWEEN = "."


def is_nested(name: str) -> bool:
    """Return whether the name of a column may be that of a nested one."""
    return _BETWEEN in name


def has_column(rows: Iterable[JsonObject], name: str) -> bool:
    """Return whether any row has a field of this name, or a nested one."""
    return any(name in row or _without(row, name.split(_BETWEEN))[0] is not ... for row in rows)


def with_nested(row: JsonObject, names: Iterable[str]) -> JsonObject:
    """Return the row with each nested column under its name, taken out of its object."""
    for name in names:
        if name not in row and is_nested(name):
            cell, rest = _without(row, name.split(_BETWEEN))
            row = row if cell is ... else rest | {name: cell}
    return row


def without_nested(row: JsonObject, names: Iterable[str]) -> JsonObject:
    """Return the row with each nested column in its object again."""
    for name in names:
        if name in row and is_nested(name):
            rest = {key: value for key, value in row.items() if key != name}
            row = _with(rest, name.split(_BETWEEN), row[name])
    return row


def _without(value: Any, path: Sequence[str]) -> tuple[Any, Any]:
    """Return the nested value, ``...`` where there is none, and the object or list without it.

    An item of a list leaves null, so that the others keep their places.
    """
    key, *below = path
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        place = int(key)
        cell, rest = _without(value[place], below) if below else (value[place], None)
        return cell, [*value[:place], rest, *value[place + 1 :]]
    if not isinstance(value, dict) or key not in value:
        return ..., value
    if not below:
        return value[key], {name: item for name, item in value.items() if name != key}
    cell, rest = _without(value[key], below)
    return cell, value | {key: rest}


def _with(value: Any, path: Sequence[str], cell: Any) -> Any:
    """Return the object or list with the nested value; absent ones are made, lists for places."""
    if not path:
        return cell
    key, *below = path
    if isinstance(value, list) or (value is None and key.isdecimal()):
        items = [*(value or ())]
        items += [None] * (int(key) + 1 - len(items))
        items[int(key)] = _with(items[int(key)], below, cell)
        return items
    fields = value if isinstance(value, dict) else {}
    return fields | {key: _with(fields.get(key), below, cell)}
