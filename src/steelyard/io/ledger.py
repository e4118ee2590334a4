"""The ledger of replies: a SQLite file that grows while requests are sent, so that no answered request is repeated.

It has one writer. A reply is stored as soon as it arrives. A failed request is stored apart, never as a reply, so that
it is sent again. The tokens of failed replies are billed, and stay, as do tries without an answer: those of all runs
are added up.
"""

import itertools
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from steelyard.core.comparison import Reply
from steelyard.core.errors import FileError, OutputError, UserError
from steelyard.core.remedies import Advice, Remedy
from steelyard.io.atomic import create_private
from steelyard.io.batch_marks import TABLES, BatchMarks

LEDGER_FILE = "replies.sqlite"

_TABLES = """
CREATE TABLE IF NOT EXISTS replies (request TEXT PRIMARY KEY, reply TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failures (request TEXT PRIMARY KEY, detail TEXT NOT NULL, times INTEGER NOT NULL)
  WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failed_tokens (request TEXT PRIMARY KEY, prompt INTEGER NOT NULL, reply INTEGER NOT NULL,
  cached INTEGER NOT NULL, cache_written INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unanswered_tries (request TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
"""
_INSERT = "INSERT OR REPLACE INTO replies VALUES (?, ?)"
_FORGET_FAILURE = "DELETE FROM failures WHERE request = ?"
_COUNT_FAILURE = """INSERT INTO failures VALUES (?, ?, 1)
  ON CONFLICT (request) DO UPDATE SET detail = excluded.detail, times = times + 1"""
_ADD_TOKENS = """INSERT INTO failed_tokens VALUES (?, ?, ?, ?, ?)
  ON CONFLICT (request) DO UPDATE SET prompt = prompt + excluded.prompt, reply = reply + excluded.reply,
  cached = cached + excluded.cached, cache_written = cache_written + excluded.cache_written"""
_ADD_UNANSWERED = """INSERT INTO unanswered_tries VALUES (?, ?)
  ON CONFLICT (request) DO UPDATE SET number = number + excluded.number"""
_decoder = msgspec.json.Decoder(Reply)


class Ledger:
    """An open ledger. Use `open_ledger`."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path
        self._set_numbers = itertools.count()
        self._is_together = False
        self.batches = BatchMarks(connection)

    def add(self, reply: Reply) -> None:
        """Store the reply or its failure; it survives a kill of this process once this returns.

        Raises OutputError if the file was removed: SQLite would continue to write to the deleted file.
        """
        if self._path is not None and not self._path.exists():
            do = "run the same again, and leave the folder alone until it has ended"
            raise OutputError("the ledger was removed while replies were written to it", where=str(self._path), do=do)
        if reply.failure == "failed":
            self._connection.execute(_COUNT_FAILURE, (reply.request, reply.detail or "failed"))
            counts = (reply.prompt_tokens, reply.reply_tokens, reply.cached_tokens, reply.cache_write_tokens)
            if any(counts):
                self._connection.execute(_ADD_TOKENS, (reply.request, *(number or 0 for number in counts)))
        else:
            self._connection.execute(_INSERT, (reply.request, msgspec.json.encode(reply).decode()))
            self._connection.execute(_FORGET_FAILURE, (reply.request,))
        if reply.unanswered_tries:
            self._connection.execute(_ADD_UNANSWERED, (reply.request, reply.unanswered_tries))
        self._commit()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Store what the block adds, marks of batches among it, together at its end; nothing where it raises.

        Once the block has ended, its changes survive a kill and a loss of power.
        """
        self._connection.execute("PRAGMA synchronous = FULL")
        self._is_together = True
        try:
            yield
            self._connection.commit()
        except BaseException:
            self._connection.rollback()
            raise
        finally:
            self._is_together = False
            self._connection.execute("PRAGMA synchronous = NORMAL")

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

    def known(self, request: str) -> Reply | None:
        """Return the stored reply; null without one."""
        stored = self._first("SELECT reply FROM replies WHERE request = ?", request)
        return None if stored is None else _decoder.decode(stored)

    def failed_tokens(self, request: str) -> Reply | None:
        """Return a failed reply with the token counts of all failed replies to a request; null without any."""
        query = "SELECT prompt, reply, cached, cache_written FROM failed_tokens WHERE request = ?"
        row = self._connection.execute(query, (request,)).fetchone()
        if row is None:
            return None
        prompt, written, cached, cache_written = row
        return Reply(
            request=request,
            failure="failed",
            prompt_tokens=prompt,
            reply_tokens=written,
            cached_tokens=cached,
            cache_write_tokens=cache_written,
        )

    def unanswered_tries(self, request: str) -> int:
        """Return the number of tries of a request, in all runs, that may be billed without an answer."""
        query = "SELECT number FROM unanswered_tries WHERE request = ?"
        row = self._connection.execute(query, (request,)).fetchone()
        return 0 if row is None else row[0]

    def has_failed(self, request: str) -> bool:
        """Return whether the last try of a request, in any run, failed."""
        return self._first("SELECT detail FROM failures WHERE request = ?", request) is not None

    def failures(self) -> dict[str, int]:
        """Count the requests without a reply by the first words of their failure."""
        rows = self._connection.execute("SELECT detail FROM failures")
        return dict(sorted(Counter(detail.partition(":")[0] for (detail,) in rows).items()))

    def example_failure(self) -> str:
        """Return the detail of one of the most frequent failures; empty without any."""
        query = "SELECT detail FROM failures GROUP BY detail ORDER BY COUNT(*) DESC, detail LIMIT 1"
        row = self._connection.execute(query).fetchone()
        return row[0] if row else ""

    def replies(self) -> Iterator[Reply]:
        """Yield every stored reply in the order of the request ids."""
        for (reply,) in self._connection.execute("SELECT reply FROM replies ORDER BY request"):
            yield _decoder.decode(reply)

    def new_ids(self) -> Callable[[str], bool]:
        """Return an empty set of ids: the function adds one, and returns whether it was new.

        A temporary table, on disk beyond two megabytes: a million ids would take a hundred megabytes of memory.
        """
        name = f"ids_{next(self._set_numbers)}"
        self._connection.execute(f"CREATE TEMP TABLE {name} (id TEXT PRIMARY KEY) WITHOUT ROWID")
        insert = f"INSERT OR IGNORE INTO {name} VALUES (?)"
        return lambda id_: self._connection.execute(insert, (id_,)).rowcount > 0

    def unique(self, ids: Iterable[str]) -> Iterator[str]:
        """Yield each id once, where it comes first."""
        return filter(self.new_ids(), ids)

    def __len__(self) -> int:
        return self._connection.execute("SELECT COUNT(*) FROM replies").fetchone()[0]

    def _commit(self) -> None:
        if not self._is_together:
            self._connection.commit()

    def _first(self, query: str, request: str) -> str | None:
        row = self._connection.execute(query, (request,)).fetchone()
        return None if row is None else row[0]


@contextmanager
def open_ledger(path: Path | None) -> Iterator[Ledger]:
    """Open the ledger in that file, which is created if absent; without a path, a ledger in memory.

    After a UserError a file without replies and marks of batches is removed again, so that the corrected call can use
    the folder. Raises OutputError while another run writes it, FileError for a file that is not a ledger.
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
            is_needed = len(ledger) > 0 or bool(ledger.batches.names())
            raise
        except sqlite3.OperationalError as error:
            raise _unwritable(error, path) from error
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            problem = f"the ledger of replies is damaged ({error})"
            raise FileError(
                problem,
                where=str(path),
                do=Advice("name another ", Remedy("out"), ", or say ", Remedy("force", value=True), " to start again"),
            ) from error
    finally:
        if connection is not None:
            connection.close()
            if path is not None and not path.with_name(f"{path.name}-wal").exists():
                # The index that a reader of a killed run left: a single writer neither uses nor removes it.
                path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
        if path is not None and not is_needed:
            path.unlink(missing_ok=True)


@contextmanager
def read_ledger(path: Path) -> Iterator[Ledger | None]:
    """Open a ledger to read it only; null where there is none, or where a run is writing it."""
    if not path.is_file():
        yield None
        return
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, timeout=0.5)) as connection:
        try:
            connection.execute("SELECT 1 FROM replies LIMIT 1")
        except sqlite3.DatabaseError:
            ledger = None
        else:
            ledger = Ledger(connection, path)
        yield ledger


def _opened(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        create_private(path)
    connection = sqlite3.connect(":memory:" if path is None else path, timeout=0.5)
    try:
        # One writer: with EXCLUSIVE a second run is refused instead of sending every request twice.
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(f"BEGIN EXCLUSIVE; {_TABLES}{TABLES} COMMIT;")
    except BaseException:
        connection.close()
        raise
    return connection


def _opening_error(error: sqlite3.DatabaseError, path: Path | None) -> UserError:
    if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        problem = f"another run is writing the ledger ({error})"
        return OutputError(problem, where=str(path), do=Advice("wait for it, or name another ", Remedy("out")))
    if isinstance(error, sqlite3.OperationalError):
        return _unwritable(error, path)
    return FileError(f"not a ledger of replies ({error})", where=str(path), do=Advice("name another ", Remedy("out")))


def _unwritable(error: sqlite3.OperationalError, path: Path | None) -> OutputError:
    do = "make room there, and run the same again: every answer so far is stored"
    return OutputError(f"the ledger cannot be written ({error})", where=str(path), do=do)
