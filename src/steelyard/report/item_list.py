"""The items of a case file or run: search in files that may exceed memory, and a page of items as a terminal table."""

import difflib
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.remedies import CASES, CODE, ID, Advice, Command, Placeholder, Remedy, Wording, worded
from steelyard.core.text import number_of
from steelyard.core.types import Case, JsonObject, Message
from steelyard.io.progress import track
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
from steelyard.report.case_analysis import CaseAnalysis, analyze_case
from steelyard.report.case_sources import CaseFile, Rule

_PREVIEW = 400
_LEAST_PREVIEW = 16
_TITLES = ("responses", "judgments", "conflicts", "tiers")
_GAP = "  "
_MOST_NEAREST = 5
_MOST_COMPARED = 50_000


class ItemFilter(BaseConfig, frozen=True):
    """The items of a list: those that contain ``search`` anywhere, of one ``language``, ``limit`` on a page."""

    search: str | None = None
    """A text that an item must contain."""
    language: str | None = None
    """The language of the items."""
    limit: int = 20
    """The number of items on a page."""
    page: int = 1
    """The page, from 1."""

    def check(self) -> None:
        """Raise ConfigError for a limit or a page below 1."""
        for name, number in (("limit", self.limit), ("page", self.page)):
            if number < 1:
                raise ConfigError(Advice(Remedy(name, number)), allowed="1 or more")


class FoundItem(NamedTuple):
    """A case with its file and its position there, from 1."""

    case: Case
    file: CaseFile
    position: int


_INSPECT = Command("inspect", (CASES,))


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

    ``opened_by`` is the command that opens one when its id is added. ``looked_up`` names the files that were read.
    """

    opened_by: Command
    rows: tuple[ItemRow, ...]
    num_items: int
    num_found: int
    first: int
    next_page: int | None
    looked_up: tuple[str, ...]


def find_item(files: Sequence[CaseFile], item: str, language: str | None) -> FoundItem:
    """Return the item of this id in the first file that has it.

    Raises EvidenceError for an unknown id, with the nearest, for one of several languages when none is named, and for
    a language that it does not have.
    """
    seen: set[str | None] = set()
    for file in files:
        hits = list(_hits(file, item, language, seen))
        if len(hits) > 1:
            raise EvidenceError(
                f"id {item!r} exists in {number_of(len(hits), 'language')} of {file.path}",
                allowed=visible_line(", ".join(sorted(language_name(hit.case.prompt.language) for hit in hits))),
                do=Advice("name one: ", Remedy("language", CODE)),
            )
        if hits:
            return hits[0]
    where = ", ".join(str(file.path) for file in files)
    if seen:
        allowed = visible_line(choices(language or "", map(language_name, seen)))
        raise EvidenceError(f"id {item!r} has no item of language {language!r}", where=where, allowed=allowed)
    near = nearest_ids(item, (case.prompt.id for file in files for case in file.cases()))
    hint = choices(visible_line(item), map(visible_line, near)) if near else None
    search = Remedy("search", Placeholder("TEXT"))
    do = Advice("without ", Remedy("id"), " the command lists the items; ", search, " finds some")
    raise EvidenceError(f"there is no item with id {item!r}", where=where, allowed=hint, do=do)


def list_items(
    files: Sequence[CaseFile],
    item_filter: ItemFilter,
    rule: Rule,
    *,
    opened_by: Command = _INSPECT,
    looked_up: tuple[str, ...] = (),
) -> ItemList:
    """Return one page of the items. Raises ConfigError for a limit below 1 and for a page that does not exist."""
    item_filter.check()
    rows: list[ItemRow] = []
    first = (item_filter.page - 1) * item_filter.limit
    num_items = num_found = 0
    for case in (case for file in files for case in track(file.cases(), f"reading {file.path.name}")):
        num_items += 1
        if not _passes(case, item_filter):
            continue
        if first <= num_found < first + item_filter.limit:
            rows.append(item_row(analyze_case(case, only=rule.only, aggregate=rule.aggregate)))
        num_found += 1
    num_pages = max(1, math.ceil(num_found / item_filter.limit))
    if item_filter.page > num_pages:
        raise ConfigError(
            f"there is no page {item_filter.page} of {number_of(num_found, 'item')}", allowed=f"1 to {num_pages}"
        )
    next_page = item_filter.page + 1 if item_filter.page < num_pages else None
    return ItemList(opened_by, tuple(rows), num_items, num_found, first + 1, next_page, looked_up)


def language_name(language: str | None) -> str:
    """Return the language's name, or the name for an unspecified one."""
    return NO_LANGUAGE if language is None else language


def nearest_ids(item: str, ids: Iterator[str]) -> list[str]:
    """Return the ids most similar to this one, then those that contain it or are part of it; the first are compared."""
    compared = list(dict.fromkeys(islice(ids, _MOST_COMPARED)))
    folded = item.casefold()
    related = [other for other in compared if folded in other.casefold() or other.casefold() in folded]
    alike = difflib.get_close_matches(item, compared, n=_MOST_NEAREST, cutoff=0.5)
    return list(dict.fromkeys([*alike, *sorted(related, key=len)]))[:_MOST_NEAREST]


def _hits(file: CaseFile, item: str, language: str | None, seen: set[str | None]) -> Iterator[FoundItem]:
    """Yield the items of the id; with a language the search ends at the first, which is the only one."""
    for position, case in enumerate(track(file.cases(), f"looking in {file.path.name}"), 1):
        if case.prompt.id != item:
            continue
        seen.add(case.prompt.language)
        if language is None or language == language_name(case.prompt.language):
            yield FoundItem(case, file, position)
            if language is not None:
                return


def _passes(case: Case, item_filter: ItemFilter) -> bool:
    if item_filter.language is not None and item_filter.language != language_name(case.prompt.language):
        return False
    return item_filter.search is None or any(item_filter.search.casefold() in text.casefold() for text in _texts(case))


def _texts(case: Case) -> Iterator[str]:
    """Yield all texts of a case that a search covers."""
    prompt = case.prompt
    yield from (prompt.id, *prompt.category, prompt.source or "", prompt.subset or "")
    yield from _contents(prompt.messages)
    for response in case.responses:
        yield from (response.id, response.text or "", response.author or "")
        yield from _contents(response.messages or ())


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    return (message.content for message in messages)


def list_lines(items: ItemList, width: int, wording: Wording = str) -> list[Line]:
    """Return how to open an item, what was read, the table and the next page, in lines of at most ``width`` cells."""
    last = items.first + len(items.rows) - 1
    of_all = "" if items.num_found == items.num_items else f"; {items.num_items:,} in all"
    counted = f"items {items.first:,} to {last:,} of {items.num_found:,}{of_all}"
    if not items.rows:
        counted = f"none of {number_of(items.num_items, 'item')} has it" if items.num_items else "no item"
    further = [f"more: {wording(Remedy('page', items.next_page))}"] if items.next_page is not None else []
    return [
        *([(Span(visible_line(f"open one: {wording(_opens_one(items))}"), "good"),)] if items.rows else []),
        *(line for text in items.looked_up for line in text_lines(worded(text, wording), width, style="quiet")),
        EMPTY,
        *(table_lines(items.rows, width) if items.rows else []),
        *joined_lines([counted, *further], width),
    ]


def list_record(items: ItemList, wording: Wording = str) -> JsonObject:
    """Return the page of items as one record."""
    rows = [row._asdict() for row in items.rows]
    commands = {"opened_by": wording(items.opened_by), "open_one": wording(_opens_one(items))}
    looked_up = [worded(text, wording) for text in items.looked_up]
    return {**items._asdict(), "rows": rows, "looked_up": looked_up, **commands}


def _opens_one(items: ItemList) -> Command:
    """Return a command that works when pasted, for the first item of the page."""
    if not items.rows:
        return items.opened_by._replace(changes=(Remedy("id", ID),))
    row = items.rows[0]
    in_several = sum(other.id == row.id for other in items.rows) > 1
    language = (Remedy("language", row.language or NO_LANGUAGE),) if in_several else ()
    return items.opened_by._replace(changes=(Remedy("id", row.id), *language))


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
    columns = [["id", *ids], ["lang", *languages], *map(list, zip(_TITLES, *map(_counted, rows), strict=True))]
    sizes = [max(map(width_of, column)) for column in columns]
    room = width - sum(sizes) - len(_GAP) * len(columns)
    if room < _LEAST_PREVIEW:
        return [line for row in rows for line in _stacked(row, width)]
    previews = ["prompt", *(_preview(row, room) for row in rows)]
    lines: list[Line] = []
    for place, (name, language, *numbers, preview) in enumerate(zip(*columns, previews, strict=True)):
        has_conflicts = place > 0 and rows[place - 1].conflicts > 0
        style: Style = "plain" if place else "quiet"
        cells = [padded(name, sizes[0]), padded(language, sizes[1])]
        spans = [Span(cell + _GAP, style) for cell in cells]
        for title, number, size in zip(_TITLES, numbers, sizes[2:], strict=True):
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
