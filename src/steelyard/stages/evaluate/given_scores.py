"""Scores made elsewhere: a line a case, joined to the bench by ids, and refused where the two do not fit."""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from steelyard.core.errors import EvidenceError, Place, RecordError, choices
from steelyard.core.types import Case, Scores
from steelyard.files.lines import check_utf8, read_batches
from steelyard.methods.measures.scores import checked_scores

_decoder = msgspec.json.Decoder(Scores)


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
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(batch.file, number)
            given = _decoded(line, place)
            index = _case_of(given, cases, places_of_id, place)
            if index in found:
                raise RecordError(f"prompt id {given.prompt!r} has its scores at {line_of[index]} already", where=place)
            line_of[index] = place
            found[index] = _checked(cases[index], given, place)
    for index, case in enumerate(cases):
        if index not in found:
            raise RecordError(
                f"no line for prompt id {case.prompt.id!r}, language {case.prompt.language!r} "
                f"({len(cases) - len(found)} of {len(cases)} cases have none)",
                where=Place(str(path)),
                do="score every case of the bench; what could not be scored is null with its reason",
            )
    return tuple(found[index] for index in range(len(cases)))


def _decoded(line: bytes, place: Place) -> Scores:
    try:
        given = _decoder.decode(line)
        json.loads(line, object_pairs_hook=lambda pairs: _once(pairs, place))
    except msgspec.ValidationError as error:
        raise RecordError(
            str(error), where=place, allowed='{"prompt": id, "scores": {response id: number or null}}'
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        check_utf8(line, place)
        raise RecordError(f"the line is not JSON, or cut off ({error})", where=place) from error
    return given


def _once(pairs: list[tuple[str, Any]], place: Place) -> dict[str, Any]:
    """The object; a JSON reader would keep the last of two equal keys without a word."""
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise RecordError(f"{key!r} is given twice", where=place)
        read[key] = value
    return read


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


def _checked(case: Case, given: Scores, place: Place) -> Scores:
    try:
        return checked_scores(case, given, by="the line")
    except EvidenceError as error:
        raise RecordError(error.found, where=place, allowed=error.allowed) from error
