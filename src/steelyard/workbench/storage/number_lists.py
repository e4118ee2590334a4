"""Conditions on many numbers as one value of a statement, and numbers of items that are drawn ahead.

Databases limit the values of one statement: SQLite to 32,766, PostgreSQL to 65,535. A list of numbers is therefore sent
as one text in JSON, which both databases read as a table.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from sqlalchemy import BigInteger, ColumnElement, Text, cast, func, literal, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import InstrumentedAttribute, Session
from sqlalchemy.sql.functions import FunctionElement

from steelyard.workbench.storage.tables import StoredItem


class _ListedValues(FunctionElement[Any]):
    """The values of a text in JSON, a list, as rows with a column ``value``."""

    name = "json_each"
    inherit_cache = True


@compiles(_ListedValues)
def _in_sqlite(element: _ListedValues, compiler: Any, **options: Any) -> str:
    return f"json_each({compiler.process(element.clauses, **options)})"


@compiles(_ListedValues, "postgresql")
def _in_postgresql(element: _ListedValues, compiler: Any, **options: Any) -> str:
    return f"json_array_elements_text(CAST({compiler.process(element.clauses, **options)} AS JSON))"


def is_among(column: InstrumentedAttribute[Any], values: Iterable[int] | Iterable[str]) -> ColumnElement[bool]:
    """Return the condition that a column has one of the values, however many there are."""
    text = msgspec.json.encode(list(values)).decode()
    listed = _ListedValues(literal(text, Text)).table_valued("value")
    return column.in_(select(cast(listed.c.value, column.type)))


def next_item_numbers(session: Session, number: int) -> list[int]:
    """Return numbers for new items, in ascending order, that no other item gets.

    SQLite counts on from the largest number: that of the last one has to become an item.
    """
    if session.get_bind().dialect.name == "sqlite":
        first = (session.scalar(select(func.max(StoredItem.id))) or 0) + 1
        return list(range(first, first + number))
    drawn = select(func.nextval(func.pg_get_serial_sequence("items", "id"), type_=BigInteger())).select_from(
        func.generate_series(1, number).table_valued("place")
    )
    return sorted(session.scalars(drawn))
