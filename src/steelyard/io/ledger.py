"""The ledger of replies: a SQLite file that grows while a judge is asked, so that after a kill nothing is asked twice.

It has one writer. A reply is kept as soon as it is there; a request that failed is noted apart and never as a reply,
so that it is asked again.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from steelyard.core.comparison import Reply
from steelyard.core.errors import FileError, OutputError, UserError

LEDGER_FILE = "replies.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS replies (request TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (request TEXT PRIMARY KEY, detail TEXT NOT NULL, times INTEGER NOT NULL)
  WITHOUT ROWID;
"""
_KEEP = "INSERT OR REPLACE INTO replies VALUES (?, ?)"
_FORGIVE = "DELETE FROM failures WHERE request = ?"
_NOTE = """INSERT INTO failures VALUES (?, ?, 1)
  ON CONFLICT (request) DO UPDATE SET detail = excluded.detail, times = times + 1"""
_decoder = msgspec.json.Decoder(Reply)


class Ledger:
    """An open ledger. Use `open_ledger`."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path

    def keep(self, reply: Reply) -> None:
        """Writes the reply, or that there was none: when this returns, a kill of this process loses nothing of it.

        Raises OutputError where the file was removed: SQLite would go on writing to what nobody can open again.
        """
        if self._path is not None and not self._path.exists():
            do = "run the same command again, and leave the folder alone until it has ended"
            raise OutputError("the ledger was removed while replies were written to it", where=str(self._path), do=do)
        if reply.failure == "failed":
            self._connection.execute(_NOTE, (reply.request, reply.detail or "failed"))
        else:
            self._connection.execute(_KEEP, (reply.request, msgspec.json.encode(reply).decode()))
            self._connection.execute(_FORGIVE, (reply.request,))
        self._connection.commit()

    def has(self, request: str) -> bool:
        """Whether the request was answered."""
        return self._first("SELECT 1 FROM replies WHERE request = ?", request) is not None

    def reply(self, request: str) -> Reply:
        """The reply; where there is none yet, one that says ``failed``, and why."""
        found = self._first("SELECT reply FROM replies WHERE request = ?", request)
        if found is not None:
            return _decoder.decode(found)
        why = self._first("SELECT detail FROM failures WHERE request = ?", request)
        return Reply(request=request, failure="failed", detail=why or "not asked")

    def failures(self) -> dict[str, int]:
        """How many requests have no reply yet, by the first words of what went wrong."""
        rows = self._connection.execute("SELECT detail FROM failures")
        return dict(sorted(Counter(detail.partition(":")[0] for (detail,) in rows).items()))

    def replies(self) -> Iterator[Reply]:
        """Every reply that is kept, by the order of their requests' ids."""
        for (reply,) in self._connection.execute("SELECT reply FROM replies ORDER BY request"):
            yield _decoder.decode(reply)

    def __len__(self) -> int:
        return self._connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]

    def _first(self, query: str, request: str) -> str | None:
        row = self._connection.execute(query, (request,)).fetchone()
        return None if row is None else row[0]


@contextmanager
def open_ledger(path: Path | None) -> Iterator[Ledger]:
    """The ledger in that file, made if it is not there; without a path, one that lives in memory only.

    A file that has no reply yet goes again where a user's error ends its use: the corrected call finds its place free.
    Raises OutputError while another run writes it, and FileError for a file that is no ledger.
    """
    is_wanted = path is not None and path.exists()
    connection: sqlite3.Connection | None = None
    try:
        try:
            connection = _opened(path)
        except sqlite3.DatabaseError as error:
            raise _opening_error(error, path) from error
        ledger = Ledger(connection, path)
        is_wanted = True
        try:
            yield ledger
        except UserError:
            is_wanted = len(ledger) > 0
            raise
        except sqlite3.OperationalError as error:
            raise _unwritable(error, path) from error
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            found = f"the ledger of replies is damaged ({error})"
            raise FileError(found, where=str(path), do="name another --out, or say --force to ask anew") from error
    finally:
        if connection is not None:
            connection.close()
        if path is not None and not is_wanted:
            path.unlink(missing_ok=True)


def _opened(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:" if path is None else path, timeout=0.5)
    try:
        # Nobody else may write; with EXCLUSIVE a second run is refused instead of asking everything twice.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(f"BEGIN EXCLUSIVE; {_TABLES} COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection


def _opening_error(error: sqlite3.DatabaseError, path: Path | None) -> UserError:
    if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        found = f"another run is writing the ledger ({error})"
        return OutputError(found, where=str(path), do="wait for it, or name another --out")
    if isinstance(error, sqlite3.OperationalError):
        return _unwritable(error, path)
    return FileError(f"not a ledger of replies ({error})", where=str(path), do="name another --out")


def _unwritable(error: sqlite3.OperationalError, path: Path | None) -> OutputError:
    do = "make room there, and run the same command again: what was answered is kept"
    return OutputError(f"the ledger cannot be written ({error})", where=str(path), do=do)
