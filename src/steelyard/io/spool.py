"""A spool: lines laid aside on disk by key and taken up again in the order in which they were laid there."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import OutputError

_TABLE = (
    "CREATE TABLE lines (place INTEGER PRIMARY KEY, key BLOB NOT NULL, source INTEGER NOT NULL, line BLOB NOT NULL)"
)
_INDEX = "CREATE INDEX IF NOT EXISTS by_key ON lines (key)"
_KEEP = "INSERT INTO lines (key, source, line) VALUES (?, ?, ?)"
_KEYS = "SELECT key FROM lines GROUP BY key ORDER BY MIN(place)"
_TAKE = "SELECT source, line FROM lines WHERE key = ? ORDER BY place"


class Spooled(NamedTuple):
    """A line, and the number of the source that it is from."""

    source: int
    line: bytes


class Spool:
    """An open spool. Use `open_spool`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def keep(self, key: bytes, source: int, line: bytes) -> None:
        """Lays a line aside."""
        self._connection.execute(_KEEP, (key, source, line))

    def index(self) -> None:
        """What was laid aside can be found from now on; it is sorted once instead of line by line."""
        self._connection.execute(_INDEX)

    def take(self, key: bytes) -> list[Spooled]:
        """The lines with this key, in the order in which they were laid aside."""
        return [Spooled(source, line) for source, line in self._connection.execute(_TAKE, (key,))]

    def groups(self) -> Iterator[list[Spooled]]:
        """Yield the lines key by key, in the order in which the keys first appeared. Call `index` before."""
        for (key,) in self._connection.execute(_KEYS):
            yield self.take(key)


@contextmanager
def open_spool(folder: Path) -> Iterator[Spool]:
    """An empty spool in a file of its own in the folder, which is removed at the end; a kill leaves it to be swept.

    Raises OutputError when the disk is full.
    """
    path = folder / ".spool.sqlite.part"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # Nothing of it outlives the run, so that it need not survive a kill: no journal, and no waiting for the disk.
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(_TABLE)
        connection.execute("BEGIN")
        yield Spool(connection)
    except sqlite3.OperationalError as error:
        found = f"what is laid aside while the run lasts cannot be written ({error})"
        raise OutputError(found, where=str(folder), do="free some space, and run the same command again") from error
    finally:
        connection.close()
        path.unlink(missing_ok=True)
