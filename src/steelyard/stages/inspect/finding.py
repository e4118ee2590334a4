"""Finding items in files that may be larger than memory: one by its id, or a page of those that hold a text."""

import difflib
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, choices
from steelyard.core.types import Case, Message
from steelyard.io.progress import track
from steelyard.io.terminal_text import visible_line
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.report.case_analysis import analyze_case
from steelyard.report.case_sources import CaseFile, Rule
from steelyard.report.case_table import ItemRow, item_row

_MOST_NEAREST = 5
_MOST_COMPARED = 50_000


class Wanted(BaseConfig, frozen=True):
    """Which items are listed: those that hold ``search`` anywhere, of one ``language``, so many on a page."""

    search: str | None = None
    """A text that an item must hold."""
    language: str | None = None
    """The language of the items."""
    limit: int = 20
    """The number of items on a page."""
    page: int = 1
    """The page, from 1."""


class Found(NamedTuple):
    """A case, the file that it stands in, and its place there, the first is 1."""

    case: Case
    file: CaseFile
    position: int


class Listing(NamedTuple):
    """One page of items; ``num_found`` of ``num_items`` in all are wanted."""

    rows: tuple[ItemRow, ...]
    num_items: int
    num_found: int


def find_item(files: Sequence[CaseFile], wanted_id: str, language: str | None) -> Found:
    """The item of this id in the first file that has it.

    Raises EvidenceError for an unknown id, with the nearest, for one of several languages when none is named, and for
    a language that it does not have.
    """
    seen: set[str | None] = set()
    for file in files:
        hits = list(_hits(file, wanted_id, language, seen))
        if len(hits) > 1:
            raise EvidenceError(
                f"id {wanted_id!r} stands in {len(hits)} languages of {file.path}",
                allowed=visible_line(", ".join(sorted(named(hit.case.prompt.language) for hit in hits))),
                do="name one: --language",
            )
        if hits:
            return hits[0]
    where = ", ".join(str(file.path) for file in files)
    if seen:
        allowed = visible_line(choices(language or "", map(named, seen)))
        raise EvidenceError(f"id {wanted_id!r} has no item of language {language!r}", where=where, allowed=allowed)
    near = nearest(wanted_id, (case.prompt.id for file in files for case in file.cases()))
    hint = choices(visible_line(wanted_id), map(visible_line, near)) if near else None
    do = "without --id the command lists the items; --search TEXT finds some"
    raise EvidenceError(f"there is no item with id {wanted_id!r}", where=where, allowed=hint, do=do)


def list_items(files: Sequence[CaseFile], wanted: Wanted, rule: Rule) -> Listing:
    """One page of the items. Raises ConfigError for a limit below 1 and for a page that there is not."""
    for name, number in (("limit", wanted.limit), ("page", wanted.page)):
        if number < 1:
            raise ConfigError(f"--{name} {number}", allowed="1 or more")
    rows: list[ItemRow] = []
    first = (wanted.page - 1) * wanted.limit
    num_items = num_found = 0
    for case in (case for file in files for case in track(file.cases(), f"reading {file.path.name}")):
        num_items += 1
        if not _is_wanted(case, wanted):
            continue
        if first <= num_found < first + wanted.limit:
            rows.append(item_row(analyze_case(case, only=rule.only, aggregate=rule.aggregate)))
        num_found += 1
    num_pages = max(1, math.ceil(num_found / wanted.limit))
    if wanted.page > num_pages:
        raise ConfigError(f"there is no page {wanted.page} of {num_found} items", allowed=f"1 to {num_pages}")
    return Listing(tuple(rows), num_items, num_found)


def named(language: str | None) -> str:
    """The language's name, with one for none."""
    return NO_LANGUAGE if language is None else language


def nearest(given: str, ids: Iterator[str]) -> list[str]:
    """The ids most like the given one: those that hold it or are held in it first; only so many are compared at all."""
    compared = list(dict.fromkeys(islice(ids, _MOST_COMPARED)))
    folded = given.casefold()
    related = [one for one in compared if folded in one.casefold() or one.casefold() in folded]
    alike = difflib.get_close_matches(given, compared, n=_MOST_NEAREST, cutoff=0.5)
    return list(dict.fromkeys([*alike, *sorted(related, key=len)]))[:_MOST_NEAREST]


def _hits(file: CaseFile, wanted_id: str, language: str | None, seen: set[str | None]) -> Iterator[Found]:
    """The items of the id, and of the language where one is named: then the first is the only one."""
    for position, case in enumerate(track(file.cases(), f"looking in {file.path.name}"), 1):
        if case.prompt.id != wanted_id:
            continue
        seen.add(case.prompt.language)
        if language is None or language == named(case.prompt.language):
            yield Found(case, file, position)
            if language is not None:
                return


def _is_wanted(case: Case, wanted: Wanted) -> bool:
    if wanted.language is not None and wanted.language != named(case.prompt.language):
        return False
    return wanted.search is None or any(wanted.search.casefold() in text.casefold() for text in _texts(case))


def _texts(case: Case) -> Iterator[str]:
    """Everything of a case that a person may look for."""
    prompt = case.prompt
    yield from (prompt.id, *prompt.category, prompt.source or "", prompt.subset or "")
    yield from _contents(prompt.messages)
    for response in case.responses:
        yield from (response.id, response.text or "", response.author or "")
        yield from _contents(response.messages or ())


def _contents(messages: Sequence[Message]) -> Iterator[str]:
    return (message.content for message in messages)
