"""Lines of a file in batches of raw bytes, with every way in which a file can be broken said clearly."""

import json
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.errors import FileError, Place, RecordError, repeated
from steelyard.io.memory import bounded_memory

MAX_LINE_BYTES = 64 * 2**20
_LONG_BYTES = 2**20
_READ_AHEAD_BYTES = 2**18
_MOST_BATCH_BYTES = 8 * 2**20
_SPACED_KEY = re.compile(rb'"[ \t\r\n]+:')
_LFS_POINTER = b"version https://git-lfs"
_NO_TEXT = {
    b"\x1f\x8b": ("gzip", "unpack it first: gunzip FILE"),
    b"BZh": ("bzip2", "unpack it first: bunzip2 FILE"),
    b"\xfd7zXZ": ("xz", "unpack it first: unxz FILE"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unpack it first: unzstd FILE"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    b"PAR1": ("Parquet", "cases and tables may be Parquet, under a name that ends in .parquet"),
    b"\xff\xfe": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
    b"\xfe\xff": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE"),
}


class Batch(NamedTuple):
    """Consecutive lines of one file: what a worker is given. ``numbers`` are 1-based line numbers of the lines."""

    file: str
    numbers: tuple[int, ...]
    lines: tuple[bytes, ...]


def check_readable(path: Path) -> None:
    """Raises FileError if the file is absent, closed to us, no regular file, empty, or a git-LFS pointer."""
    place = str(path)
    try:
        if not path.exists():
            raise FileError("there is no such file", where=place, do="check the path")
        if path.is_dir():
            raise FileError("this is a folder", where=place, do="name a file in it")
        check_regular(path)
        start = _start(path)
    except PermissionError as error:
        raise FileError("this file may not be read", where=place, do="ask for the right to read it") from error
    if not start:
        raise FileError("the file is empty", where=place)
    if start == _LFS_POINTER:
        raise FileError(
            "this is a git-LFS pointer, not the data", where=place, do="run `git lfs pull` where it came from"
        )


def check_regular(path: Path) -> None:
    """Raises FileError for a pipe, a device or a socket: each time it is read it gives something else, or no end."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        do = "write what it gives to a file, and name the file"
        raise FileError(f"this is a {kind}, not a file", where=str(path), do=do)


def check_text(path: Path) -> None:
    """Raises FileError for what `check_readable` refuses, and for a file whose first bytes say that it is no text."""
    check_readable(path)
    start = _start(path)
    for mark, (found, do) in _NO_TEXT.items():
        if start.startswith(mark):
            raise FileError(f"this is {found}, not text in UTF-8", where=str(path), do=do)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_LFS_POINTER))


def read_batches(path: Path, *, size: int = 512, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[Batch]:
    """The non-blank lines in batches of ``size``, less where lines are long: a batch ends when it has 8 MiB.

    Raises FileError with the line that is too long, and for a file that is no text or has nothing but blank lines.
    """
    check_text(path)
    numbers: list[int] = []
    lines: list[bytes] = []
    num_bytes = number = 0
    for number, line in _numbered(path, max_line_bytes):
        numbers.append(number)
        lines.append(line)
        num_bytes += len(line)
        if len(lines) == size or num_bytes >= _MOST_BATCH_BYTES:
            yield Batch(str(path), tuple(numbers), tuple(lines))
            numbers, lines, num_bytes = [], [], 0
    if lines:
        yield Batch(str(path), tuple(numbers), tuple(lines))
    if not number:
        raise FileError("the file has blank lines only", where=str(path))


def check_utf8(line: bytes, place: Place) -> str:
    """The line as text. Raises FileError naming the first byte that is not UTF-8."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        found = f"byte {error.start + 1} is not UTF-8 (0x{line[error.start]:02x})"
        raise FileError(found, where=place, do="convert the file to UTF-8, for example with iconv") from error


def check_keys(line: bytes, value: Any, place: Place) -> None:
    """Raise RecordError where an object in the line has a key twice: a reader would keep one of the two in silence.

    ``value`` is the decoded line. Only where counting does not prove that no key was lost, the line is parsed anew.
    """
    if not _has_all_keys(line, value):
        json.loads(line, object_pairs_hook=partial(_check_object, place), parse_int=len, parse_float=len)


def _has_all_keys(line: bytes, value: Any) -> bool:
    """Whether the line has no more keys than the value that it decodes to. False where that cannot be told.

    A key ends in ``":``. Inside a string the same two bytes follow a backslash, and stand in the line and in what the
    value encodes to alike, unless the line escapes them by number. What a repeated key loses is missing in the second.
    """
    if b"\\u00" in line or _SPACED_KEY.search(line):
        return False
    return line.count(b'":') == msgspec.json.encode(value).count(b'":')


def _check_object(place: Place, pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise RecordError(f"{repeated(keys)!r} is given twice", where=place, allowed="each key once")


def bounded_decoding(num_bytes: int, place: Place | str) -> AbstractContextManager[None]:
    """Bound what decoding so many bytes of JSON may take, where they are many: lists of nothing take 30 times theirs.

    The context raises FileError where it takes more.
    """
    return bounded_memory(place, limit=2**30 + 8 * num_bytes) if num_bytes > _LONG_BYTES else nullcontext()


def _numbered(path: Path, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    with path.open("rb", buffering=_READ_AHEAD_BYTES) as file:
        number = 0
        while line := file.readline(max_line_bytes + 1):
            number += 1
            if len(line) > max_line_bytes:
                found = f"the line is longer than {max_line_bytes // 2**20} MiB"
                raise FileError(found, where=Place(str(path), number), do="check that records are one a line")
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line and not line.isspace():
                yield number, line
