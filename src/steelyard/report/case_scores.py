"""What files of scores and of results say of one case, found line by line."""

from pathlib import Path
from typing import TypeVar

from steelyard.core.errors import EvidenceError, Place
from steelyard.core.scores import checked_scores
from steelyard.core.types import Case, Scores
from steelyard.io.score_files import placed_lines
from steelyard.report.item_verdicts import Scored
from steelyard.report.summary_readers import Item

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
        return None, f"scores: {place} does NOT FIT this item: {error.problem}"
    outcome = None if items is None else _line_of(items, case, Item)
    sentence = f"scores: {place}" + (f"; its result: {outcome[0]}" if outcome else "")
    return Scored(str(path), checked, outcome[1] if outcome else None), sentence


def _line_of(path: Path, case: Case, kind: type[Line]) -> tuple[Place, Line] | None:
    """The line of this prompt and language; one that names no language is taken where none names it."""
    other: tuple[Place, Line] | None = None
    for place, line in placed_lines(path, kind):
        if line.prompt != case.prompt.id:
            continue
        if line.language == case.prompt.language:
            return place, line
        if line.language is None:
            other = other or (place, line)
    return other
