"""Read text files, as lines in batches of raw bytes or as TOML; report every way in which a file can be broken."""

import io
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import NamedTuple

from steelyard.core.config import parse_toml, toml_line
from steelyard.core.errors import ConfigError, FileError, Place
from steelyard.core.types import JsonObject
from steelyard.io.compression import open_unpacked
from steelyard.io.encodings import BYTE_ORDER_MARK, check_narrow, check_utf8, is_plain_text, open_text
from steelyard.io.file_types import DATA_FORMATS, START_BYTES, is_binary, type_of

MAX_LINE_BYTES = 64 * 2**20
MAX_DECODED_BYTES = 4 * 2**30
MAX_BATCH_BYTES = 8 * 2**20
_LFS_POINTER = b"version https://git-lfs"
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

    ``number`` is the 1-based number of the first line; ``num_lines`` counts the lines that are not blank. ``content``
    holds the lines of a file that cannot be read from its middle: a compressed one, or one in UTF-16.
    """

    file: str
    number: int
    start: int
    num_bytes: int
    num_lines: int
    content: bytes | None = None

    def read(self) -> LineBatch:
        """Read the lines that are not blank."""
        content = self.content
        if content is None:
            with Path(self.file).open("rb") as file:
                file.seek(self.start)
                content = file.read(self.num_bytes)
        # Not `splitlines`, which would also end lines at a carriage return.
        numbered = enumerate(io.BytesIO(content.removeprefix(BYTE_ORDER_MARK) if not self.start else content))
        lines = [(self.number + place, line) for place, line in numbered if not line.isspace()]
        return LineBatch(self.file, tuple(number for number, _ in lines), tuple(line for _, line in lines))


class LineRanges:
    """Cuts a file into ranges of lines from its start, without keeping the lines of a plain file.

    Raises FileError with the line that is too long, and for a file that is not text.
    """

    def __init__(self, path: Path) -> None:
        check_text(path)
        self._path = path
        self._lines = _raw_lines(path, MAX_LINE_BYTES)
        self._is_plain = is_plain_text(path)
        self._number, self._start = 1, 0

    def take(self, num_lines: int, *, max_bytes: float = inf) -> LineRange:
        """Return the next lines; fewer at the end of the file, or where they reach ``max_bytes``."""
        number, start = self._number, self._start
        num_taken, content = 0, bytearray()
        while num_taken < num_lines and self._start - start < max_bytes and (line := next(self._lines, None)):
            text = line.removeprefix(BYTE_ORDER_MARK) if self._number == 1 else line
            num_taken += bool(text) and not text.isspace()
            self._number += 1
            self._start += len(line)
            content += b"" if self._is_plain else line
        packed = None if self._is_plain else bytes(content)
        return LineRange(str(self._path), number, start, self._start - start, num_taken, packed)


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
    refuse_pointer(path)


def refuse_pointer(path: Path) -> None:
    """Raise FileError for a pointer of git-LFS in place of the file, which was not fetched."""
    if _start(path) == _LFS_POINTER:
        do = "run `git lfs pull` where it came from"
        raise FileError("this is a git-LFS pointer, not the data", where=str(path), do=do)


def check_regular(path: Path) -> None:
    """Raise FileError for a pipe, a device or a socket: a second reading would return other bytes, or never end."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        kind = "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
        do = "write its output to a file, and name the file"
        raise FileError(f"this is a {kind}, not a file", where=str(path), do=do)


def check_text(path: Path, encoding: str | None = None) -> None:
    """Raise FileError for what `check_readable` refuses, and for a file whose content begins like a binary format.

    ``encoding`` is that of `open_text`, here and below.
    """
    check_readable(path)
    with open_unpacked(path) as file:
        start = file.read(START_BYTES)
    if not start:
        raise FileError("the file is empty", where=str(path))
    if (kind := type_of(path, start)) is not None:
        raise FileError(f"this is {kind.name}, not {kind.lacks}", where=str(path), do=kind.do)
    if encoding is None:
        check_narrow(start, path)
        if is_binary(start):
            raise FileError("this is binary, not text in UTF-8", where=str(path), do=DATA_FORMATS)


def read_batches(
    path: Path, *, size: int = 512, max_line_bytes: int = MAX_LINE_BYTES, encoding: str | None = None
) -> Iterator[LineBatch]:
    """Yield the non-blank lines in batches of ``size`` lines; a batch of long lines ends earlier, at 8 MiB.

    Raises FileError with the line that is too long, and for a file that is not text or has only blank lines.
    """
    check_text(path, encoding)
    numbers: list[int] = []
    lines: list[bytes] = []
    num_bytes = num_lines = 0
    for number, line in numbered_lines(path, max_line_bytes, encoding=encoding):
        if not line or line.isspace():
            continue
        num_lines += 1
        numbers.append(number)
        lines.append(line)
        num_bytes += len(line)
        if len(lines) == size or num_bytes >= MAX_BATCH_BYTES:
            yield LineBatch(str(path), tuple(numbers), tuple(lines))
            numbers, lines, num_bytes = [], [], 0
    if lines:
        yield LineBatch(str(path), tuple(numbers), tuple(lines))
    if not num_lines:
        raise FileError("the file has blank lines only", where=str(path))


def read_lines(path: Path, encoding: str | None = None) -> Iterator[tuple[Place, bytes]]:
    """Yield each line that is not blank with its place. Raises the errors of `read_batches`."""
    for batch in read_batches(path, encoding=encoding):
        yield from batch.placed()


def read_toml(path: Path) -> JsonObject:
    """Read the settings in a TOML file. Raises FileError if it is not text, ConfigError with the line that is wrong."""
    check_text(path)
    content = read_whole(path)
    return parse_toml(check_utf8(content, Place(str(path))), where=str(path))


@contextmanager
def toml_places(path: Path) -> Iterator[None]:
    """Give a ConfigError about a TOML file, or about a part of it as ``FILE at a.b``, the line of its table or key."""
    try:
        yield
    except ConfigError as error:
        file, _, part = str(error.where).partition(" at ")
        if file != str(path) or not path.is_file():
            raise
        name = ".".join(filter(None, (part, error.key)))
        line = toml_line(read_whole(path).decode(errors="replace"), name)
        if line is None:
            raise
        raise error.at(Place(file, line, part or None)) from error


def read_whole(path: Path, encoding: str | None = None) -> bytes:
    """Return the content of a text file in UTF-8, unpacked, without a byte order mark."""
    with open_text(path, encoding) as file, bounded_memory(str(path)):
        return file.read().removeprefix(BYTE_ORDER_MARK)


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


def _raw_lines(path: Path, max_line_bytes: int, encoding: str | None = None) -> Iterator[bytes]:
    """Yield every line, unchanged. Raises FileError for one that is too long."""
    with open_text(path, encoding) as file:
        number = 0
        while line := file.readline(max_line_bytes + 1):
            number += 1
            if len(line) > max_line_bytes:
                problem = f"the line is longer than {max_line_bytes // 2**20} MiB"
                raise FileError(problem, where=Place(str(path), number), do="check that each record is one line")
            yield line


def numbered_lines(
    path: Path, max_line_bytes: int = MAX_LINE_BYTES, *, encoding: str | None = None
) -> Iterator[tuple[int, bytes]]:
    """Yield every line with its number, without a byte order mark. Raises FileError for one that is too long."""
    for number, raw in enumerate(_raw_lines(path, max_line_bytes, encoding), 1):
        yield number, raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
