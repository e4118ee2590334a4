"""Scores made elsewhere: a line a case, joined to the bench by ids, and refused where the two do not fit."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from steelyard.core.errors import Place, RecordError, choices
from steelyard.core.types import Case, Scores
from steelyard.files.scores import checked_line, placed_lines


def read_scores(path: Path, cases: Sequence[Case]) -> tuple[Scores, ...]:
    """The line of each case, in the order of the cases.

    A line's language may be left out where the prompt's id is unique among the cases. Raises RecordError, with file
    and line, for an id that is unknown, given twice or missing, and for a score that is not a finite number.
    """
    places_of_id: dict[str, list[int]] = defaultdict(list)
    for index, case in enumerate(cases):
        places_of_id[case.prompt.id].append(index)
    found: dict[int, Scores] = {}
    line_of: dict[int, Place] = {}
    for place, given in placed_lines(path, Scores):
        index = _case_of(given, cases, places_of_id, place)
        if index in found:
            raise RecordError(f"prompt id {given.prompt!r} has its scores at {line_of[index]} already", where=place)
        line_of[index] = place
        found[index] = checked_line(cases[index], given, place)
    for index, case in enumerate(cases):
        if index not in found:
            raise RecordError(
                f"no line for prompt id {case.prompt.id!r}, language {case.prompt.language!r} "
                f"({len(cases) - len(found)} of {len(cases)} cases have none)",
                where=Place(str(path)),
                do="score every case of the bench; what could not be scored is null with its reason",
            )
    return tuple(found[index] for index in range(len(cases)))


def _case_of(given: Scores, cases: Sequence[Case], places_of_id: dict[str, list[int]], place: Place) -> int:
    named = places_of_id.get(given.prompt)
    if named is None:
        raise RecordError(
            f"unknown prompt id {given.prompt!r}", where=place, do=_nearest(given.prompt, list(places_of_id))
        )
    if given.language is None and len(named) == 1:
        return named[0]
    languages = {cases[index].prompt.language: index for index in named}
    if given.language not in languages:
        raise RecordError(
            f"prompt id {given.prompt!r} has no item of language {given.language!r}",
            where=place,
            allowed=", ".join(sorted(str(language) for language in languages)),
        )
    return languages[given.language]


def _nearest(given: str, known: list[str]) -> str:
    hint, mark, _ = choices(given, known).partition("? ")
    return f"{hint}? the ids are those of the bench's cases" if mark else "the ids are those of the bench's cases"
