"""Read and write case files and lines of score files, checked. `scored_cases` reads both in step.

A case file has one case a line (``.jsonl``) or a row (``.parquet``); a score file has one line for each case.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from steelyard.core.checks import STOPPED, check_case, checked_scores
from steelyard.core.errors import EvidenceError, Place, RecordError
from steelyard.core.iteration import batched
from steelyard.core.remedies import Advice, Command, Placeholder, Remedy
from steelyard.core.types import Case, Ranking, Scores
from steelyard.io.atomic import atomic_write
from steelyard.io.compression import data_suffix
from steelyard.io.encodings import check_utf8
from steelyard.io.json_text import bounded_decoding, check_keys, decode_json, json_error
from steelyard.io.lines import LineBatch, read_batches, read_lines
from steelyard.io.tables import is_parquet, read_parquet, write_parquet

_decoder = msgspec.json.Decoder(Case)
_encoder = msgspec.json.Encoder()
Line = TypeVar("Line", bound=msgspec.Struct)
CASE_SUFFIXES = (".jsonl", ".parquet")
"""The endings of case files."""
_MESSAGES = '"messages": [{"role": "user", "content": "Why?"}]'
_RESPONSES = '"responses": [{"id": "a", "text": "Because."}, {"id": "b", "text": "No idea."}]'
_EXAMPLES = {
    "prompt": f'"prompt": {{"id": "1", {_MESSAGES}}}',
    "responses": _RESPONSES,
    "judgments": '"judgments": [{"left": "a", "right": "b", "verdict": "left", "judge": "Li", "kind": "human"}]',
    "ratings": '"ratings": [{"response": "a", "rater": "Li", "kind": "human", "dimension": "overall", "value": 4, '
    '"range": [1, 5]}]',
    "pairs": '"pairs": [{"better": "a", "worse": "b"}]',
    "": f'{{"prompt": {{"id": "1", {_MESSAGES}}}, {_RESPONSES}}}',
}
"""Examples of the parts of a case, and of a whole one."""


def decode_case(line: bytes, place: Place, check: Callable[[Case], Case] = check_case) -> Case:
    """Decode and check one line. Raises RecordError or FileError with the line and the path inside it."""
    try:
        with bounded_decoding(len(line), place):
            case = _decoder.decode(line)
            # A line in our own encoding, spaces aside, holds no key that decoding could have lost.
            encoded = encode_case(case)
            if encoded != line and encoded[:-1] != msgspec.json.format(line, indent=-1):
                check_keys(line, msgspec.json.decode(line), place)
        return check(case)
    except msgspec.ValidationError as error:
        # A row of another format and encoding: the encoding comes first.
        check_utf8(line, place)
        raise _translated(str(error), line, place) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        broken = json_error(line, place, error)
        if data_suffix(Path(place.file)) in (".csv", ".tsv", ".txt"):
            broken.do = _conversion(place)
        raise broken from error
    except RecordError as error:
        raise error.at(place) from error


def decode_batch(batch: LineBatch) -> list[Case]:
    """Decode and check every case of a batch of lines."""
    return [decode_case(line, place) for place, line in batch.placed()]


def encode_case(case: Case) -> bytes:
    """Encode a case as one line, with its newline."""
    return _encoder.encode(case) + b"\n"


def read_cases(path: Path | str) -> Iterator[Case]:
    """Yield the checked cases of one file, in order. Raises RecordError for a repeated key."""
    return (case for _, case in read_placed_cases(path))


def read_placed_cases(path: Path | str) -> Iterator[tuple[Place, Case]]:
    """Yield the cases of one file as `read_cases` does, each with its place."""
    places: dict[tuple[str, str | None], Place] = {}
    for place, case in _placed_cases(Path(path)):
        if case.key in places:
            name = f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}"
            problem = f"{name}, is already used at {places[case.key]}"
            raise RecordError(
                problem, where=place, do=Advice("give each case its own id, or use `", Command("merge"), "`")
            )
        places[case.key] = place
        yield place, case


class FileCases:
    """The checked cases of one file, read anew by each iteration."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Case]:
        return read_cases(self.path)


def read_case_files(files: Sequence[Path]) -> Iterator[Case]:
    """Yield the checked cases of several files, in order. Raises RecordError for a key in two of them."""
    if len(files) == 1:
        yield from read_cases(files[0])
        return
    origins: dict[tuple[str, str | None], Path] = {}
    for path in files:
        for case in read_cases(path):
            if case.key in origins:
                problem = f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}, is also in"
                do = Advice("give each case its own id, or use `", Command("merge"), "`")
                raise RecordError(f"{problem} {origins[case.key]}", where=str(path), do=do)
            origins[case.key] = path
            yield case


def write_cases(path: Path | str, cases: Iterable[Case]) -> int:
    """Write a case file in the format of its suffix; return the number of cases."""
    path = Path(path)
    if is_parquet(path):
        return write_parquet(path, (msgspec.to_builtins(case) for case in cases))
    number = 0
    with atomic_write(path) as file:
        for case in cases:
            file.write(encode_case(case))
            number += 1
    return number


class SplitLine(NamedTuple):
    """A line split around its ranking: its first ``num_prefix`` bytes, then ``start``; ``end`` follows the ranking."""

    num_prefix: int
    start: bytes
    end: bytes


def split_line(line: bytes, case: Case) -> SplitLine:
    """Split the encoded line of a case around its ranking, so that its texts are neither encoded nor copied again.

    A line that does not end as `encode_case` writes it is encoded again (``num_prefix`` 0). An ending
    ``,"ranking":…,"pairs":…,"meta":…}`` is enough: in valid JSON the last brace closes the case itself, and the
    keys before it are those of the case.
    """
    end = b',"pairs":' + _encoder.encode(case.pairs) + b',"meta":' + _encoder.encode(case.meta) + b"}\n"
    ranking_and_end = b',"ranking":' + _encoder.encode(case.ranking) + end
    if line.endswith(ranking_and_end):
        return SplitLine(len(line) - len(ranking_and_end), b"", end)
    return SplitLine(0, encode_case(case)[: -len(ranking_and_end)], end)


def line_end(split: SplitLine, ranking: Ranking | None) -> bytes:
    """Return the bytes after the line's prefix when the case has this ranking."""
    return split.start + b',"ranking":' + _encoder.encode(ranking) + split.end


class ResumedLines(NamedTuple):
    """The lines of an unfinished file: those of the first cases, ``done``, and those of the next ones, ``begun``.

    Lines are ``begun`` from the first one with a response that was not sent (`STOPPED`).
    """

    done: list[Scores]
    begun: list[Scores]


def resumed_lines(path: Path, cases: Iterable[Case]) -> ResumedLines:
    """Return the lines of an unfinished file that score the first cases, and truncate the file after the last of them.

    A line that was cut off by a kill, and every line after it, is scored again.
    """
    resumed = ResumedLines([], [])
    if not path.is_file():
        return resumed
    end = 0
    with path.open("r+b") as file:
        for encoded, case in zip(file, cases, strict=False):
            try:
                line = msgspec.json.decode(encoded, type=Scores)
                checked = checked_scores(case, line, by="the line")
            except (msgspec.DecodeError, UnicodeDecodeError, EvidenceError):
                break
            if not encoded.endswith(b"\n") or (line.prompt, line.language) != case.key:
                break
            if resumed.begun or STOPPED in checked.unscored.values():
                resumed.begun.append(checked)
                continue
            resumed.done.append(checked)
            end += len(encoded)
        file.truncate(end)
    return resumed


def placed_lines(path: Path, kind: type[Line]) -> Iterator[tuple[Place, Line]]:
    """Yield the lines of a file of scores or item results with their places. Raises RecordError for a broken line."""
    for place, line in read_lines(path):
        yield place, decode_line(line, place, kind)


def decode_line(line: bytes, place: Place, kind: type[Line]) -> Line:
    """Decode a line of scores or of item results. Raises RecordError or FileError with its place if it is broken."""
    try:
        return decode_json(line, place, kind)
    except msgspec.ValidationError as error:
        allowed = '{"prompt": id, "language": code or null, "scores": {response id: number or null}}'
        raise RecordError(str(error), where=place, allowed=allowed) from error


def checked_line(case: Case, line: Scores, place: Place) -> Scores:
    """Return the line if it scores this case. Raises RecordError with its place otherwise."""
    try:
        return checked_scores(case, line, by="the line")
    except EvidenceError as error:
        raise RecordError(error.problem, where=place, allowed=error.allowed, do=error.do) from error


def _placed_cases(path: Path) -> Iterator[tuple[Place, Case]]:
    if is_parquet(path):
        for number, row in enumerate(read_parquet(path), 1):
            place = Place(str(path), number)
            yield place, decode_case(_encoder.encode(row), place)
        return
    for place, line in read_lines(path):
        yield place, decode_case(line, place)


def _translated(message: str, line: bytes, place: Place) -> RecordError:
    problem, _, path = message.partition(" - at `$")
    inside = path.rstrip("`").lstrip(".")
    if problem.startswith("Expected `object`, got `array`") and not inside:
        files = Placeholder("IN"), Placeholder("OUT")
        do = Advice("make a case file of a JSON array: ", Command("convert", files, (Remedy("to_kind", "cases"),)))
        return RecordError("an array where a case should be", where=place, allowed="one case a line", do=do)
    allowed = None
    if "Invalid enum value" in problem and inside.endswith("verdict"):
        problem, allowed = problem.replace("Invalid enum value", "unknown verdict"), "left, right, tie, none"
    do = _conversion(place) if _is_foreign_row(line) else None
    if do is None and problem.startswith(("Object missing required field", "Object contains unknown field")):
        part = next((part for part in _EXAMPLES if inside.startswith(part)), "")
        form = 'write "responses": [] for a prompt alone' if "`responses`" in problem else "write it in this form"
        allowed, do = _EXAMPLES[part], f"{form}; docs/formats.md documents case files and other formats"
    return RecordError(problem, where=place._replace(path=inside or None), allowed=allowed, do=do)


def _conversion(place: Place) -> str:
    return Advice("make a case file of it: ", command_for_case_file(Path(str(place.file))))


def command_for_case_file(path: Path) -> Command:
    """Return the command that converts a file to a case file of another name beside the user's files."""
    made = "cases.jsonl" if path.name != "cases.jsonl" else "converted.jsonl"
    return Command("convert", (str(path), made))


def _is_foreign_row(line: bytes) -> bool:
    """Return whether the line is an object without a case's prompt: a row of another format."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(value, dict) and not isinstance(value.get("prompt"), dict)


def read_line_batches(path: Path, *, size: int) -> Iterator[LineBatch]:
    """Yield the lines of the file in batches; the rows of a Parquet file are encoded as lines first."""
    if not is_parquet(path):
        yield from read_batches(path, size=size)
        return
    for batch in batched(enumerate(map(encode_case, read_cases(path)), 1), size):
        numbers, lines = zip(*batch, strict=True)
        yield LineBatch(str(path), numbers, lines)
