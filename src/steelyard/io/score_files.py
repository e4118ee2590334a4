"""``scores.jsonl``: its lines with their places, checked against their cases, and both files read in step."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from steelyard.core.errors import EvidenceError, Place, RecordError
from steelyard.core.scores import checked_scores
from steelyard.core.types import Case, Scores
from steelyard.io.lines import check_keys, check_utf8, read_batches

_decoder = msgspec.json.Decoder(Scores)
_Key = tuple[str, str | None]
Line = TypeVar("Line", bound=msgspec.Struct)


class Scored(NamedTuple):
    """A case and its line of scores, checked against it."""

    case: Case
    scores: Scores


def read_scored(cases: Iterable[Case], path: Path) -> Iterator[Scored]:
    """Each case with its line of the scores file, in the order of the cases.

    The lines should be in that order, as `score` writes them; lines that are not are kept until their case comes.
    Raises RecordError, with file and line, for a case without a line, a line without a case, one given twice, or one
    that does not score its case's responses; the languages must be equal too.
    """
    waiting: dict[_Key, tuple[Place, Scores]] = {}
    lines = placed_lines(path, Scores)
    num_cases = 0
    for case in cases:
        num_cases += 1
        while case.key not in waiting:
            placed = next(lines, None)
            if placed is None:
                raise _missing(case, path, waiting)
            _keep(placed, waiting)
        place, given = waiting.pop(case.key)
        yield Scored(case, checked_line(case, given, place))
    left = next(iter(waiting.values()), None) or next(lines, None)
    if left is not None:
        raise RecordError(
            f"scores prompt id {left[1].prompt!r}, language {left[1].language!r}, "
            f"which is none of the {num_cases} cases, or was scored already",
            where=left[0],
            do="score the same case file: steelyard score",
        )


def resumed_lines(path: Path, cases: Iterable[Case]) -> list[Scores]:
    """The lines of an unfinished file that score the first cases, in order; the file is cut behind the last good one.

    A line that was being written when its writer was killed, and all behind it, will be scored again.
    """
    if not path.is_file():
        return []
    found: list[Scores] = []
    end = 0
    with path.open("r+b") as file:
        for line, case in zip(file, cases, strict=False):
            try:
                given = _decoder.decode(line)
                checked = checked_scores(case, given, by="the line")
            except (msgspec.DecodeError, UnicodeDecodeError, EvidenceError):
                break
            if not line.endswith(b"\n") or (given.prompt, given.language) != case.key:
                break
            found.append(checked)
            end += len(line)
        file.truncate(end)
    return found


def placed_lines(path: Path, kind: type[Line]) -> Iterator[tuple[Place, Line]]:
    """The lines of a file of scores or of results, each with its place. Raises RecordError for one that is broken."""
    decoder = msgspec.json.Decoder(kind)
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(batch.file, number)
            yield place, _decoded(line, place, decoder)


def decode_scores(line: bytes, place: Place) -> Scores:
    """One line of a file of scores. Raises RecordError or FileError with the place for one that is broken."""
    return _decoded(line, place, _decoder)


def _decoded(line: bytes, place: Place, decoder: msgspec.json.Decoder[Line]) -> Line:
    try:
        read = decoder.decode(line)
        check_keys(line, msgspec.json.decode(line), place)
    except msgspec.ValidationError as error:
        allowed = '{"prompt": id, "language": code or null, "scores": {response id: number or null}}'
        raise RecordError(str(error), where=place, allowed=allowed) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        check_utf8(line, place)
        raise RecordError(f"the line is not JSON, or cut off ({error})", where=place) from error
    return read


def checked_line(case: Case, given: Scores, place: Place) -> Scores:
    """The line, which scores this case. Raises RecordError, with its place, where it does not."""
    try:
        return checked_scores(case, given, by="the line")
    except EvidenceError as error:
        raise RecordError(error.problem, where=place, allowed=error.allowed) from error


def _keep(placed: tuple[Place, Scores], waiting: dict[_Key, tuple[Place, Scores]]) -> None:
    place, line = placed
    key = (line.prompt, line.language)
    if key in waiting:
        found = f"prompt id {line.prompt!r}, language {line.language!r}, has its scores at {waiting[key][0]} already"
        raise RecordError(found, where=place)
    waiting[key] = placed


def _missing(case: Case, path: Path, waiting: dict[_Key, tuple[Place, Scores]]) -> RecordError:
    found = f"no line scores prompt id {case.prompt.id!r}, language {case.prompt.language!r}"
    others = sorted(str(language) for prompt, language in waiting if prompt == case.prompt.id)
    if others:
        return RecordError(f"{found}; it is scored in language {', '.join(others)}", where=str(path))
    return RecordError(found, where=str(path), do="score the same case file: steelyard score")
