"""The table of items in a terminal: ids are whole, so that they can be copied; narrow terminals get a list."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.core.types import JsonObject
from steelyard.io.terminal_text import (
    EMPTY,
    INDENT,
    Line,
    Span,
    Style,
    clipped,
    joined_lines,
    padded,
    text_lines,
    visible_line,
    width_of,
)
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.report.case_analysis import CaseAnalysis

_PREVIEW = 400
_LEAST_PREVIEW = 16
_TITLES = ("responses", "judgments", "conflicts", "tiers")
_HEADS = ("answers", "judgments", "conflicts", "tiers")
_GAP = "  "


class ItemRow(NamedTuple):
    """One item: ``conflicts`` are judgments that contradict its tiers; ``tiers`` is null where it has no ranking."""

    id: str
    language: str | None
    responses: int
    judgments: int
    conflicts: int
    tiers: int | None
    preview: str


class ItemList(NamedTuple):
    """One page of items: ``num_found`` of ``num_items`` match, and the first here is number ``first`` of them.

    ``opened_by`` is the command that opens one when ``--id`` is added. ``looked_up`` names the files that were read.
    """

    opened_by: str
    rows: tuple[ItemRow, ...]
    num_items: int
    num_found: int
    first: int
    next_page: int | None
    looked_up: tuple[str, ...]


def list_lines(items: ItemList, width: int) -> list[Line]:
    """Return how to open an item, what was read, the table and the next page, in lines of at most ``width`` cells."""
    last = items.first + len(items.rows) - 1
    of_all = "" if items.num_found == items.num_items else f"; {items.num_items:,} in all"
    counted = f"items {items.first:,} to {last:,} of {items.num_found:,}{of_all}" if items.rows else f"no item{of_all}"
    further = [f"more: --page {items.next_page}"] if items.next_page is not None else []
    return [
        *text_lines(f"open one: {_command(items)}", width, style="good"),
        *(line for sentence in items.looked_up for line in text_lines(sentence, width, style="quiet")),
        EMPTY,
        *(table_lines(items.rows, width) if items.rows else []),
        *joined_lines([counted, *further], width),
    ]


def list_record(items: ItemList) -> JsonObject:
    """Return the page of items as one record."""
    return {**items._asdict(), "rows": [row._asdict() for row in items.rows], "open_one": _command(items)}


def _command(items: ItemList) -> str:
    """Return a command that works when pasted, for the first item of the page."""
    if not items.rows:
        return f"{items.opened_by} --id ID"
    row = items.rows[0]
    in_several = sum(other.id == row.id for other in items.rows) > 1
    language = f" --language {shlex.quote(row.language or NO_LANGUAGE)}" if in_several else ""
    return f"{items.opened_by} --id {shlex.quote(row.id)}{language}"


def item_row(analysis: CaseAnalysis) -> ItemRow:
    """Return the row of a case; the preview is the last message of the prompt."""
    case = analysis.case
    messages = [message.content for message in case.prompt.messages if message.role != "system"]
    return ItemRow(
        id=case.prompt.id,
        language=case.prompt.language,
        responses=len(case.responses),
        judgments=len(case.judgments),
        conflicts=analysis.num_conflicting,
        tiers=len(analysis.ranking) if analysis.ranking else None,
        preview=messages[-1][:_PREVIEW] if messages else "",
    )


def table_lines(rows: Sequence[ItemRow], width: int) -> list[Line]:
    """Return the rows in lines of at most ``width`` cells, in columns where these and some of the prompt fit."""
    ids = [visible_line(row.id) for row in rows]
    languages = [visible_line(row.language or "-") for row in rows]
    columns = [["id", *ids], ["lang", *languages], *map(list, zip(_HEADS, *map(_counted, rows), strict=True))]
    sizes = [max(map(width_of, column)) for column in columns]
    room = width - sum(sizes) - len(_GAP) * len(columns)
    if room < _LEAST_PREVIEW:
        return [line for row in rows for line in _stacked(row, width)]
    previews = ["asked", *(_preview(row, room) for row in rows)]
    lines: list[Line] = []
    for place, (name, language, *numbers, preview) in enumerate(zip(*columns, previews, strict=True)):
        has_conflicts = place > 0 and rows[place - 1].conflicts > 0
        style: Style = "plain" if place else "quiet"
        cells = [padded(name, sizes[0]), padded(language, sizes[1])]
        spans = [Span(cell + _GAP, style) for cell in cells]
        for title, number, size in zip(_HEADS, numbers, sizes[2:], strict=True):
            is_bad = has_conflicts and title == "conflicts"
            spans.append(Span(number.rjust(size) + _GAP, "bad" if is_bad else style))
        lines.append((*spans, Span(preview, "quiet")))
    return lines


def _preview(row: ItemRow, width: int) -> str:
    return clipped(" ".join(visible_line(row.preview).split()), width)


def _counted(row: ItemRow) -> tuple[str, ...]:
    """Return the numbers in the order of their titles."""
    numbers = (row.responses, row.judgments, row.conflicts, row.tiers)
    return tuple("-" if number is None else str(number) for number in numbers)


def _stacked(row: ItemRow, width: int) -> list[Line]:
    counted = [f"{title} {number}" for title, number in zip(_TITLES, _counted(row), strict=True)]
    return [
        *text_lines(row.id, width, style="title"),
        *joined_lines([row.language or "", *counted], width, style="bad" if row.conflicts else "plain", indent=INDENT),
        *text_lines(_preview(row, width - len(INDENT)), width, style="quiet", indent=INDENT),
    ]
