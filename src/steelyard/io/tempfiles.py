"""Temporary files of one command: a copy of a pipe, and lines stored on disk by key.

A stage reads its input several times, to check, recognise and hash it. A pipe can be read only once, so that it is
copied to disk first. Lines of one key that lie far apart in their files are stored until they can be joined.
"""

import os
import re
import select
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import FileError, OutputError
from steelyard.io.progress import bar, log

SECONDS_TO_WAIT = 10.0
"""Time for which a named pipe may have no writer."""
BYTES_LEFT_FREE = 256 * 2**20
"""The disk space that a copy leaves to others."""
_SECONDS_BETWEEN_POLLS = 0.1
_BLOCK_BYTES = 2**20
_INHERITED_DESCRIPTOR = re.compile(r"/dev/stdin|/(?:dev|proc/self)/fd/(\d+)")

_TABLE = (
    "CREATE TABLE lines (place INTEGER PRIMARY KEY, key BLOB NOT NULL, source INTEGER NOT NULL, line BLOB NOT NULL)"
)
_INDEX = "CREATE INDEX IF NOT EXISTS by_key ON lines (key)"
_INSERT = "INSERT INTO lines (key, source, line) VALUES (?, ?, ?)"
_SELECT_KEYS = "SELECT key FROM lines GROUP BY key ORDER BY MIN(place)"
_SELECT_SORTED = "SELECT line FROM lines ORDER BY key, place"
_SELECT_LINES = "SELECT source, line FROM lines WHERE key = ? ORDER BY place"


def is_pipe(path: Path) -> bool:
    """Return whether the path is a named pipe, or a pipe or socket that this process was started with."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or (stat.S_ISSOCK(mode) and _inherited_descriptor(path) is not None)


def copy_pipe(
    path: Path, folder: Path, *, seconds_to_wait: float = SECONDS_TO_WAIT, bytes_left_free: int = BYTES_LEFT_FREE
) -> Path:
    """Copy everything from a pipe into a file of its name in the folder, and return the file.

    Raises FileError if no writer opens a named pipe in time, OutputError if the disk is nearly full.
    """
    copy = folder / path.name
    inherited = _inherited_descriptor(path)
    # Without O_NONBLOCK opening the pipe would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if inherited is None else os.dup(inherited)
    try:
        with copy.open("wb") as file, bar(f"reading {path} (MiB)") as progress:
            for block in _blocks(descriptor, path, seconds_to_wait, has_writer=inherited is not None):
                if shutil.disk_usage(folder).free < len(block) + bytes_left_free:
                    raise OutputError(
                        f"{path} gives more than the disk can take",
                        where=str(folder),
                        do="write it to a file on a larger disk, or set TMPDIR to a folder there",
                    )
                file.write(block)
                progress.advance(len(block) / 2**20)
    finally:
        os.close(descriptor)
    return copy


class StoredLine(NamedTuple):
    """A line and the number of its source."""

    source: int
    line: bytes


class LineStore:
    """Lines on disk by key, returned in the order in which they were added. Use `open_line_store`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def add(self, key: bytes, source: int, line: bytes) -> None:
        """Store a line."""
        self._connection.execute(_INSERT, (key, source, line))

    def index(self) -> None:
        """Index the stored lines by key. One index at the end is faster than one kept up to date line by line."""
        self._connection.execute(_INDEX)

    def lines(self, key: bytes) -> list[StoredLine]:
        """Return the lines with this key, in the order in which they were added."""
        return [StoredLine(source, line) for source, line in self._connection.execute(_SELECT_LINES, (key,))]

    def groups(self) -> Iterator[list[StoredLine]]:
        """Yield the lines key by key, in the order in which the keys first appeared. Call `index` before."""
        for (key,) in self._connection.execute(_SELECT_KEYS):
            yield self.lines(key)

    def sorted_lines(self) -> Iterator[bytes]:
        """Yield the lines one by one, those of equal keys together. Call `index` before."""
        for (line,) in self._connection.execute(_SELECT_SORTED):
            yield line


@contextmanager
def open_line_store(folder: Path) -> Iterator[LineStore]:
    """Open an empty store in a file of the folder, which is removed at the end; after a kill the next run removes it.

    Raises OutputError when the disk is full.
    """
    path = folder / ".lines.sqlite.part"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # The store need not survive a kill: no journal, and no waiting for the disk.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_TABLE)
        connection.execute("BEGIN")
        yield LineStore(connection)
    except sqlite3.OperationalError as error:
        problem = f"temporary lines cannot be written ({error})"
        raise OutputError(problem, where=str(folder), do="free some space, and run the same again") from error
    finally:
        connection.close()
        path.unlink(missing_ok=True)


def _inherited_descriptor(path: Path) -> int | None:
    match = _INHERITED_DESCRIPTOR.fullmatch(str(path))
    return int(match.group(1) or 0) if match else None


def _blocks(descriptor: int, path: Path, seconds_to_wait: float, *, has_writer: bool) -> Iterator[bytes]:
    """Yield blocks until the last writer closes. An empty read means the end only after there was a writer."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    deadline, is_logged = time.monotonic() + seconds_to_wait, False
    while True:
        is_ready = bool(poll.poll(1000 * _SECONDS_BETWEEN_POLLS))
        if has_writer and not is_ready and not is_logged and time.monotonic() > deadline:
            log(f"waiting for {path} to be written")
            is_logged = True
        if not is_ready and has_writer and os.get_blocking(descriptor):
            continue
        try:
            block = os.read(descriptor, _BLOCK_BYTES)
        except BlockingIOError:
            has_writer = True
            continue
        if block:
            has_writer = True
            yield block
        elif has_writer:
            return
        elif time.monotonic() > deadline:
            problem = f"nobody has opened this pipe for writing in {seconds_to_wait:.0f} s"
            raise FileError(problem, where=str(path), do="start its writer first, or name a file")
