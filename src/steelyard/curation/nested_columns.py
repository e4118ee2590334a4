"""Columns inside the objects and lists of a row: ``info.post`` is the field ``post`` of ``info``.

In a list, a number is a place, from 0: ``summaries.1.text``. Without one, ``annotations.preference`` is the field of
every item: a row has as many rows as its list has items.
"""

from collections.abc import Iterable, Iterator, Sequence
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


def rows_of_items(row: JsonObject, names: Iterable[str]) -> Iterator[JsonObject]:
    """Yield the row once for each item of the list whose fields columns name; itself where they name none.

    A row with an empty list, or null for it, is yielded with null in these columns.
    """
    paths = {name: name.split(_BETWEEN, 1) for name in names if name not in row and is_nested(name)}
    of_items = {
        name: head
        for name, (head, below) in paths.items()
        if isinstance(row.get(head, ()), list | None) and not below.split(_BETWEEN)[0].isdecimal()
    }
    head = next(iter(of_items.values()), None)
    if head is None:
        yield row
        return
    rest = {name: value for name, value in row.items() if name != head}
    for item in row[head] or ():
        of_item = with_nested({head: item}, of_items)
        yield rest | {name: value for name, value in of_item.items() if name != head or value}
    if not row[head]:
        yield rest | dict.fromkeys(of_items)


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
