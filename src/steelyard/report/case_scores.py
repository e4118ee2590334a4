"""The scores of one case: its line in a file of scores, and its counts in the evaluation that wrote the file."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from steelyard.core.checks import checked_scores
from steelyard.core.errors import EvidenceError, Place
from steelyard.core.types import Case, Scores
from steelyard.evaluation.items import ScoredItem
from steelyard.io.cases import placed_lines
from steelyard.io.scored_cases import is_score_table, placed_scores, with_every_response

Line = TypeVar("Line", Scores, ScoredItem)


class CaseScores(NamedTuple):
    """The scores of the case in one file, and its counts in the evaluation that wrote the file, if any."""

    name: str
    scores: Scores
    outcome: ScoredItem | None = None


def find_scores(path: Path, case: Case, items: Path | None = None) -> tuple[CaseScores | None, str]:
    """Return the scores of the case with its line of ``items``, and a sentence that names both places, or the problem.

    Raises RecordError, with the line, for a file that is broken, and FileError for one that is not there.
    """
    match = _line_of(placed_scores(path), case)
    if match is None:
        return None, f"scores: {path} has no line for this item"
    place, line = match
    try:
        whole = with_every_response(case, line) if is_score_table(path) else line
        scores = checked_scores(case, whole, by="it")
    except EvidenceError as error:
        return None, f"scores: {place} does NOT FIT this item: {error.problem}"
    outcome = None if items is None else _line_of(placed_lines(items, ScoredItem), case)
    sentence = f"scores: {place}" + (f"; its result: {outcome[0]}" if outcome else "")
    return CaseScores(str(path), scores, outcome[1] if outcome else None), sentence


def _line_of(lines: Iterable[tuple[Place, Line]], case: Case) -> tuple[Place, Line] | None:
    """Return the line of this prompt and language; one without a language counts where no line names it."""
    other: tuple[Place, Line] | None = None
    for place, line in lines:
        if line.prompt != case.prompt.id:
            continue
        if line.language == case.prompt.language:
            return place, line
        if line.language is None:
            other = other or (place, line)
    return other
