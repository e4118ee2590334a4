"""The items of the page within its budget: a line each, and the whole of as many as fit, in pages of their own."""

import gzip
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from steelyard.methods.reporting.items import Known, detail, edges_of, index_line, is_of_interest

ITEMS_A_PAGE = 25
_BASE64 = 4 / 3


class Packed(NamedTuple):
    """``lines`` has a line an item, ending in its place ``[page, position]`` or null; ``num_whole`` have a place."""

    lines: list[list[Any]]
    pages: list[list[dict[str, Any]]]
    num_whole: int


def pack(items: Sequence[Known], *, budget: int) -> Packed:
    """All items by line, and whole ones up to ``budget`` bytes of the page: errors and conflicts first."""
    edges = [edges_of(known) for known in items]
    order = sorted(range(len(items)), key=lambda at: not is_of_interest(items[at], edges[at]))
    places: dict[int, list[int]] = {}
    pages: list[list[dict[str, Any]]] = []
    spent = 0.0
    for start in range(0, len(order), ITEMS_A_PAGE):
        chosen = order[start : start + ITEMS_A_PAGE]
        page = [detail(items[at], edges[at]) for at in chosen]
        spent += len(gzip.compress(msgspec.json.encode(page), 1)) * _BASE64
        if spent > budget:
            break
        places |= {at: [len(pages), position] for position, at in enumerate(chosen)}
        pages.append(page)
    lines = [[*index_line(known, edges[at]), places.get(at)] for at, known in enumerate(items)]
    return Packed(lines, pages, len(places))
