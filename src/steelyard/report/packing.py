"""The items of the page within its budget: a line each, and the whole of as many as fit, in pages of their own."""

import base64
import gzip
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from steelyard.report.items import Known, detail, edges_of, index_line, is_of_interest

ITEMS_A_PAGE = 25


class Packed(NamedTuple):
    """``lines`` has a line an item, encoded, which ends in its place ``[page, position]`` or null.

    ``pages`` are packed; ``num_whole`` items have a place.
    """

    lines: list[bytes]
    pages: list[str]
    num_whole: int


def pack(items: Sequence[Known], *, budget: int) -> Packed:
    """All items by line, and whole ones up to ``budget`` bytes of the page: errors and conflicts first."""
    lines: list[bytes] = []
    first: list[int] = []
    others: list[int] = []
    for at, known in enumerate(items):
        edges = edges_of(known)
        lines.append(msgspec.json.encode(index_line(known, edges)))
        (first if is_of_interest(known, edges) else others).append(at)
    order = first + others
    places: dict[int, tuple[int, int]] = {}
    pages: list[str] = []
    spent = 0
    for start in range(0, len(order), ITEMS_A_PAGE):
        chosen = order[start : start + ITEMS_A_PAGE]
        page = packed_text([detail(known, edges_of(known)) for known in map(items.__getitem__, chosen)])
        spent += len(page)
        if spent > budget:
            break
        places |= {at: (len(pages), position) for position, at in enumerate(chosen)}
        pages.append(page)
    placed = [line[:-1] + b"," + msgspec.json.encode(places.get(at)) + b"]" for at, line in enumerate(lines)]
    return Packed(placed, pages, len(places))


def packed_text(value: Any) -> str:
    """A value as JSON, compressed, in Base64: small, and nothing in it can end a script element."""
    return base64.b64encode(gzip.compress(msgspec.json.encode(value), 6, mtime=0)).decode()
