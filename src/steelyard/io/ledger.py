"""The ledger of replies: a SQLite file that grows while requests are sent, so that no answered request is repeated.

It has one writer. A reply is stored as soon as it arrives. A failed request is stored apart, never as a reply, so that
it is sent again.
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
_INSERT = "INSERT OR REPLACE INTO replies VALUES (?, ?)"
_FORGET_FAILURE = "DELETE FROM failures WHERE request = ?"
_COUNT_FAILURE = """INSERT INTO failures VALUES (?, ?, 1)
  ON CONFLICT (request) DO UPDATE SET detail = excluded.detail, times = times + 1"""
_decoder = msgspec.json.Decoder(Reply)


class Ledger:
    """An open ledger. Use `open_ledger`."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path

    def add(self, reply: Reply) -> None:
        """Store the reply or its failure; it survives a kill of this process once this returns.

        Raises OutputError if the file was removed: SQLite would continue to write to the deleted file.
        """
        if self._path is not None and not self._path.exists():
            do = "run the same command again, and leave the folder alone until it has ended"
            raise OutputError("the ledger was removed while replies were written to it", where=str(self._path), do=do)
        if reply.failure == "failed":
            self._connection.execute(_COUNT_FAILURE, (reply.request, reply.detail or "failed"))
        else:
            self._connection.execute(_INSERT, (reply.request, msgspec.json.encode(reply).decode()))
            self._connection.execute(_FORGET_FAILURE, (reply.request,))
        self._connection.commit()

    def has(self, request: str) -> bool:
        """Return whether the request was answered."""
        return self._first("SELECT 1 FROM replies WHERE request = ?", request) is not None

    def reply(self, request: str) -> Reply:
        """Return the stored reply; without one, a reply with the failure ``failed`` and its reason."""
        stored = self._first("SELECT reply FROM replies WHERE request = ?", request)
        if stored is not None:
            return _decoder.decode(stored)
        reason = self._first("SELECT detail FROM failures WHERE request = ?", request)
        return Reply(request=request, failure="failed", detail=reason or "not asked")

    def failures(self) -> dict[str, int]:
        """Count the requests without a reply by the first words of their failure."""
        rows = self._connection.execute("SELECT detail FROM failures")
        return dict(sorted(Counter(detail.partition(":")[0] for (detail,) in rows).items()))

    def replies(self) -> Iterator[Reply]:
        """Yield every stored reply in the order of the request ids."""
        for (reply,) in self._connection.execute("SELECT reply FROM replies ORDER BY request"):
            yield _decoder.decode(reply)

    def __len__(self) -> int:
        return self._connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]

    def _first(self, query: str, request: str) -> str | None:
        row = self._connection.execute(query, (request,)).fetchone()
        return None if row is None else row[0]


@contextmanager
def open_ledger(path: Path | None) -> Iterator[Ledger]:
    """Open the ledger in that file, which is created if absent; without a path, a ledger in memory.

    After a UserError a file without replies is removed again, so that the corrected call can use the folder.
    Raises OutputError while another run writes it, FileError for a file that is not a ledger.
    """
    is_needed = path is not None and path.exists()
    connection: sqlite3.Connection | None = None
    try:
        try:
            connection = _opened(path)
        except sqlite3.DatabaseError as error:
            raise _opening_error(error, path) from error
        ledger = Ledger(connection, path)
        is_needed = True
        try:
            yield ledger
        except UserError:
            is_needed = len(ledger) > 0
            raise
        except sqlite3.OperationalError as error:
            raise _unwritable(error, path) from error
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            problem = f"the ledger of replies is damaged ({error})"
            raise FileError(problem, where=str(path), do="name another --out, or say --force to start again") from error
    finally:
        if connection is not None:
            connection.close()
        if path is not None and not is_needed:
            path.unlink(missing_ok=True)


def _opened(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:" if path is None else path, timeout=0.5)
    try:
        # One writer: with EXCLUSIVE a second run is refused instead of sending every request twice.
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
        problem = f"another run is writing the ledger ({error})"
        return OutputError(problem, where=str(path), do="wait for it, or name another --out")
    if isinstance(error, sqlite3.OperationalError):
        return _unwritable(error, path)
    return FileError(f"not a ledger of replies ({error})", where=str(path), do="name another --out")


def _unwritable(error: sqlite3.OperationalError, path: Path | None) -> OutputError:
    do = "make room there, and run the same command again: every answer so far is stored"
    return OutputError(f"the ledger cannot be written ({error})", where=str(path), do=do)
