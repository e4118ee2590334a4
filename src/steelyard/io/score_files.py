"""Score files (``scores.jsonl``): lines with their places, checked against their cases, and both files read in step."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from steelyard.core.checks import checked_scores
from steelyard.core.errors import EvidenceError, Place, RecordError
from steelyard.core.types import Case, Scores
from steelyard.io.lines import check_keys, check_utf8, read_batches

_decoder = msgspec.json.Decoder(Scores)
_Key = tuple[str, str | None]
Line = TypeVar("Line", bound=msgspec.Struct)


class ScoredCase(NamedTuple):
    """A case and its line of scores, which was checked against it."""

    case: Case
    scores: Scores


def read_scored(cases: Iterable[Case], path: Path) -> Iterator[ScoredCase]:
    """Yield each case with its line of the score file, in the order of the cases.

    `score` writes the lines in that order; a line that comes earlier than its case waits in memory. Raises RecordError,
    with file and line, for a case without a line, a line without a case, a repeated line, or a line that does not
    score its case's responses. The languages must be equal too.
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
        place, line = waiting.pop(case.key)
        yield ScoredCase(case, checked_line(case, line, place))
    left = next(iter(waiting.values()), None) or next(lines, None)
    if left is not None:
        raise RecordError(
            f"scores prompt id {left[1].prompt!r}, language {left[1].language!r}, "
            f"which is none of the {num_cases} cases, or was scored already",
            where=left[0],
            do="score the same case file: steelyard score",
        )


def resumed_lines(path: Path, cases: Iterable[Case]) -> list[Scores]:
    """Return the lines of an unfinished file that score the first cases, and truncate the file after the last good one.

    A line that was cut off by a kill, and every line after it, is scored again.
    """
    if not path.is_file():
        return []
    lines: list[Scores] = []
    end = 0
    with path.open("r+b") as file:
        for encoded, case in zip(file, cases, strict=False):
            try:
                line = _decoder.decode(encoded)
                checked = checked_scores(case, line, by="the line")
            except (msgspec.DecodeError, UnicodeDecodeError, EvidenceError):
                break
            if not encoded.endswith(b"\n") or (line.prompt, line.language) != case.key:
                break
            lines.append(checked)
            end += len(encoded)
        file.truncate(end)
    return lines


def placed_lines(path: Path, kind: type[Line]) -> Iterator[tuple[Place, Line]]:
    """Yield the lines of a file of scores or item results with their places. Raises RecordError for a broken line."""
    decoder = msgspec.json.Decoder(kind)
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(batch.file, number)
            yield place, _decoded(line, place, decoder)


def decode_scores(line: bytes, place: Place) -> Scores:
    """Decode one line of a score file. Raises RecordError or FileError with its place if it is broken."""
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


def checked_line(case: Case, line: Scores, place: Place) -> Scores:
    """Return the line if it scores this case. Raises RecordError with its place otherwise."""
    try:
        return checked_scores(case, line, by="the line")
    except EvidenceError as error:
        raise RecordError(error.problem, where=place, allowed=error.allowed) from error


def _keep(placed: tuple[Place, Scores], waiting: dict[_Key, tuple[Place, Scores]]) -> None:
    place, line = placed
    key = (line.prompt, line.language)
    if key in waiting:
        problem = f"prompt id {line.prompt!r}, language {line.language!r}, has its scores at {waiting[key][0]} already"
        raise RecordError(problem, where=place)
    waiting[key] = placed


def _missing(case: Case, path: Path, waiting: dict[_Key, tuple[Place, Scores]]) -> RecordError:
    problem = f"no line scores prompt id {case.prompt.id!r}, language {case.prompt.language!r}"
    others = sorted(str(language) for prompt, language in waiting if prompt == case.prompt.id)
    if others:
        return RecordError(f"{problem}; it is scored in language {', '.join(others)}", where=str(path))
    return RecordError(problem, where=str(path), do="score the same case file: steelyard score")
