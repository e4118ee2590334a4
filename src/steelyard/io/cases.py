"""Read and write case files: one case a line (``.jsonl``) or a row (``.parquet``), checked, and written atomically."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.checks import check_case
from steelyard.core.errors import FileError, Place, RecordError
from steelyard.core.types import Case, Ranking
from steelyard.io.atomic import atomic_write
from steelyard.io.lines import LineBatch, bounded_decoding, check_keys, check_readable, check_utf8, read_batches
from steelyard.io.tables import is_parquet, read_parquet, write_parquet

_decoder = msgspec.json.Decoder(Case)
_encoder = msgspec.json.Encoder()
_TRUNCATED = re.compile(r"truncated|Input data was truncated")


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
        raise _translated(str(error), place) from error
    except msgspec.DecodeError as error:
        check_utf8(line, place)
        cut = "the line is cut off" if _TRUNCATED.search(str(error)) else f"the line is not JSON ({error})"
        raise RecordError(cut, where=place, allowed="one JSON object a line") from error
    except UnicodeDecodeError as error:
        check_utf8(line, place)
        raise FileError("the line is not UTF-8", where=place) from error
    except RecursionError as error:
        raise RecordError("lists within lists, too deep to be read", where=place) from error
    except RecordError as error:
        raise error.at(place) from error


def decode_batch(batch: LineBatch) -> list[Case]:
    """Decode and check every case of a batch of lines."""
    return [
        decode_case(line, Place(batch.file, number)) for number, line in zip(batch.numbers, batch.lines, strict=True)
    ]


def encode_case(case: Case) -> bytes:
    """Encode a case as one line, with its newline."""
    return _encoder.encode(case) + b"\n"


def read_cases(path: Path | str) -> Iterator[Case]:
    """Yield the checked cases of one file, in order. Raises RecordError for a repeated key."""
    places: dict[tuple[str, str | None], Place] = {}
    for place, case in _placed_cases(Path(path)):
        if case.key in places:
            name = f"prompt id {case.prompt.id!r}, language {case.prompt.language!r}"
            problem = f"{name}, is already used at {places[case.key]}"
            raise RecordError(problem, where=place, do="give each case its own id, or use `steelyard merge`")
        places[case.key] = place
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


def _placed_cases(path: Path) -> Iterator[tuple[Place, Case]]:
    if is_parquet(path):
        check_readable(path)
        for number, row in enumerate(read_parquet(path), 1):
            place = Place(str(path), number)
            yield place, decode_case(_encoder.encode(row), place)
        return
    for batch in read_batches(path):
        for number, line in zip(batch.numbers, batch.lines, strict=True):
            place = Place(batch.file, number)
            yield place, decode_case(line, place)


def _translated(message: str, place: Place) -> RecordError:
    problem, _, path = message.partition(" - at `$")
    inside = path.rstrip("`").lstrip(".")
    if problem.startswith("Expected `object`, got `array`") and not inside:
        do = "make a case file of a JSON array: steelyard convert IN OUT --to cases"
        return RecordError("an array where a case should be", where=place, allowed="one case a line", do=do)
    allowed = None
    if "Invalid enum value" in problem and inside.endswith("verdict"):
        problem, allowed = problem.replace("Invalid enum value", "unknown verdict"), "left, right, tie, none"
    return RecordError(problem, where=place._replace(path=inside or None), allowed=allowed)
