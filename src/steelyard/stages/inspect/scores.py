"""What files of scores and of results say of one case, found line by line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from steelyard.core.errors import EvidenceError, Place, RecordError
from steelyard.core.types import Case, Scores
from steelyard.files.lines import check_utf8, read_batches
from steelyard.methods.measures.scores import checked_scores
from steelyard.methods.reporting.contents import Item
from steelyard.methods.reporting.item_verdicts import Scored

Line = TypeVar("Line", Scores, Item)


def find_scores(path: Path, case: Case, items: Path | None = None) -> tuple[Scored | None, str]:
    """The scores of the case with what ``items`` counts of it, and a sentence that says where they are, or why not.

    Raises RecordError, with the line, for a file that is broken, and FileError for one that is not there.
    """
    found = _line_of(path, case, Scores)
    if found is None:
        return None, f"scores: {path} has no line for this item"
    place, line = found
    try:
        checked = checked_scores(case, line, by="it")
    except EvidenceError as error:
        return None, f"scores: {place} does NOT FIT this item: {error.found}"
    outcome = None if items is None else _line_of(items, case, Item)
    sentence = f"scores: {place}" + (f"; its result: {outcome[0]}" if outcome else "")
    return Scored(str(path), checked, outcome[1] if outcome else None), sentence


def _line_of(path: Path, case: Case, kind: type[Line]) -> tuple[Place, Line] | None:
    """The line of this prompt and language; one that names no language is taken where none names it."""
    other: tuple[Place, Line] | None = None
    for place, line in _lines(path, kind):
        if line.prompt != case.prompt.id:
            continue
        if line.language == case.prompt.language:
            return place, line
        if line.language is None:
            other = other or (place, line)
    return other


def _lines(path: Path, kind: type[Line]) -> Iterator[tuple[Place, Line]]:
    decoder = msgspec.json.Decoder(kind)
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(batch.file, number)
            try:
                yield place, decoder.decode(line)
            except msgspec.ValidationError as error:
                allowed = '{"prompt": id, "scores": {response id: number or null}}'
                raise RecordError(str(error), where=place, allowed=allowed) from error
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                check_utf8(line, place)
                raise RecordError(f"the line is not JSON, or cut off ({error})", where=place) from error
