"""Read text files, as lines in batches of raw bytes or as TOML; report every way in which a file can be broken."""

import io
import json
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from steelyard.core.config import parse_toml
from steelyard.core.errors import FileError, Place, RecordError, repeated
from steelyard.core.types import JsonObject

MAX_LINE_BYTES = 64 * 2**20
MAX_DECODED_BYTES = 4 * 2**30
_LONG_BYTES = 2**20
_READ_AHEAD_BYTES = 2**18
MAX_BATCH_BYTES = 8 * 2**20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACED_KEY = re.compile(rb'"[ \t\r\n]+:')
_LFS_POINTER = b"version https://git-lfs"
_BINARY_FORMATS = {
    b"\x1f\x8b": ("gzip", "unpack it first: gunzip FILE"),
    b"BZh": ("bzip2", "unpack it first: bunzip2 FILE"),
    b"\xfd7zXZ": ("xz", "unpack it first: unxz FILE"),
    b"\x28\xb5\x2f\xfd": ("zstd", "unpack it first: unzstd FILE"),
    b"PK\x03\x04": ("a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
    b"PAR1": ("Parquet", "cases and tables may be Parquet, under a name that ends in .parquet"),
    b"\xff\xfe": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"),
    b"\xfe\xff": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8 FILE > NEW_FILE"),
}
_STATM = Path("/proc/self/statm")


class LineBatch(NamedTuple):
    """Consecutive lines of one file, the unit of work of a worker. ``numbers`` are 1-based line numbers."""

    file: str
    numbers: tuple[int, ...]
    lines: tuple[bytes, ...]

    def placed(self) -> Iterator[tuple[Place, bytes]]:
        """Yield each line with its place."""
        for number, line in zip(self.numbers, self.lines, strict=True):
            yield Place(self.file, number), line


class LineRange(NamedTuple):
    """Consecutive lines of one file by their place: what a worker is sent where it can read the file itself.

    ``number`` is the 1-based number of the first line; ``num_lines`` counts the lines that are not blank.
    """

    file: str
    number: int
    start: int
    num_bytes: int
    num_lines: int

    def read(self) -> LineBatch:
        """Read the lines that are not blank."""
        with Path(self.file).open("rb") as file:
            file.seek(self.start)
            content = file.read(self.num_bytes)
        # Not `splitlines`, which would also end lines at a carriage return.
        numbered = enumerate(io.BytesIO(content.removeprefix(BYTE_ORDER_MARK) if not self.start else content))
        lines = [(self.number + place, line) for place, line in numbered if not line.isspace()]
        return LineBatch(self.file, tuple(number for number, _ in lines), tuple(line for _, line in lines))


class LineRanges:
    """Cuts a file into ranges of lines from its start, without keeping the lines.

    Raises FileError with the line that is too long, and for a file that is not text.
    """

    def __init__(self, path: Path) -> None:
        check_text(path)
        self._path = path
        self._lines = _raw_lines(path, MAX_LINE_BYTES)
        self._number, self._start = 1, 0

    def take(self, num_lines: int, *, max_bytes: float = inf) -> LineRange:
        """Return the next lines; fewer at the end of the file, or where they reach ``max_bytes``."""
        number, start = self._number, self._start
        num_taken = 0
        while num_taken < num_lines and self._start - start < max_bytes and (line := next(self._lines, None)):
            text = line.removeprefix(BYTE_ORDER_MARK) if self._number == 1 else line
            num_taken += bool(text) and not text.isspace()
            self._number += 1
            self._start += len(line)
        return LineRange(str(self._path), number, start, self._start - start, num_taken)


def check_readable(path: Path) -> None:
    """Raise FileError if the file is absent, not readable, not a regular file, empty, or a git-LFS pointer."""
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
    """Raise FileError for a pipe, a device or a socket: a second reading would return other bytes, or never end."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        do = "write its output to a file, and name the file"
        raise FileError(f"this is a {kind}, not a file", where=str(path), do=do)


def check_text(path: Path) -> None:
    """Raise FileError for what `check_readable` refuses, and for a file that begins like a binary format."""
    check_readable(path)
    start = _start(path)
    for magic, (name, do) in _BINARY_FORMATS.items():
        if start.startswith(magic):
            raise FileError(f"this is {name}, not text in UTF-8", where=str(path), do=do)


def read_batches(path: Path, *, size: int = 512, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[LineBatch]:
    """Yield the non-blank lines in batches of ``size`` lines; a batch of long lines ends earlier, at 8 MiB.

    Raises FileError with the line that is too long, and for a file that is not text or has only blank lines.
    """
    check_text(path)
    numbers: list[int] = []
    lines: list[bytes] = []
    num_bytes = number = 0
    for number, line in _numbered(path, max_line_bytes):
        numbers.append(number)
        lines.append(line)
        num_bytes += len(line)
        if len(lines) == size or num_bytes >= MAX_BATCH_BYTES:
            yield LineBatch(str(path), tuple(numbers), tuple(lines))
            numbers, lines, num_bytes = [], [], 0
    if lines:
        yield LineBatch(str(path), tuple(numbers), tuple(lines))
    if not number:
        raise FileError("the file has blank lines only", where=str(path))


def read_lines(path: Path) -> Iterator[tuple[Place, bytes]]:
    """Yield each line that is not blank with its place. Raises the errors of `read_batches`."""
    for batch in read_batches(path):
        yield from batch.placed()


def read_toml(path: Path) -> JsonObject:
    """Read the settings in a TOML file. Raises FileError if it is not text, ConfigError with the line that is wrong."""
    check_text(path)
    content = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
    return parse_toml(check_utf8(content, Place(str(path))), where=str(path))


def check_utf8(content: bytes, place: Place) -> str:
    """Decode bytes as UTF-8. Raises FileError naming the first byte that is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8 (0x{content[error.start]:02x})"
        raise FileError(problem, where=place, do="convert the file to UTF-8, for example with iconv") from error


def check_keys(line: bytes, value: Any, place: Place) -> None:
    """Raise RecordError where an object in the line repeats a key: a decoder would silently keep one of the two.

    ``value`` is the decoded line. The line is parsed again only where counting keys cannot prove that none was lost.
    """
    if not _has_all_keys(line, value):
        json.loads(line, object_pairs_hook=partial(_check_object, place), parse_int=len, parse_float=len)


def bounded_decoding(num_bytes: int, place: Place | str) -> AbstractContextManager[None]:
    """Limit the memory for decoding a long JSON text: a list of empty lists takes 30 times its bytes.

    The context raises FileError where decoding takes more.
    """
    return bounded_memory(place, limit=2**30 + 8 * num_bytes) if num_bytes > _LONG_BYTES else nullcontext()


@contextmanager
def bounded_memory(place: Place | str, *, limit: int = MAX_DECODED_BYTES) -> Iterator[None]:
    """Let the block allocate at most ``limit`` further bytes: a small file can expand to more than the machine has.

    The kernel limits the address space, which covers C libraries too. Other systems than Linux set no limit.
    Raises FileError where the block needs more.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(_STATM.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    soft = [value for value in (used + limit, *before) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(soft), before[1]))
    try:
        yield
    except MemoryError as error:
        raise FileError(
            f"decoded, this takes more than {limit / 2**30:.3g} GiB",
            where=place,
            do="check its content; write it in smaller rows",
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_LFS_POINTER))


def _has_all_keys(line: bytes, value: Any) -> bool:
    """Return whether the line has as many keys as the value decoded from it. False where counting cannot tell.

    A key ends in ``":``. Inside a string these two bytes follow a backslash, and occur equally often in the line and in
    the encoded value, unless the line escapes them by number. A repeated key is missing in the encoded value.
    """
    if b"\\u00" in line or _SPACED_KEY.search(line):
        return False
    return line.count(b'":') == msgspec.json.encode(value).count(b'":')


def _check_object(place: Place, pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise RecordError(f"{repeated(keys)!r} is given twice", where=place, allowed="each key once")


def _raw_lines(path: Path, max_line_bytes: int) -> Iterator[bytes]:
    """Yield every line, unchanged. Raises FileError for one that is too long."""
    with path.open("rb", buffering=_READ_AHEAD_BYTES) as file:
        number = 0
        while line := file.readline(max_line_bytes + 1):
            number += 1
            if len(line) > max_line_bytes:
                problem = f"the line is longer than {max_line_bytes // 2**20} MiB"
                raise FileError(problem, where=Place(str(path), number), do="check that each record is one line")
            yield line


def _numbered(path: Path, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank with their numbers, without a byte order mark."""
    for number, raw in enumerate(_raw_lines(path, max_line_bytes), 1):
        line = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
        if line and not line.isspace():
            yield number, line
