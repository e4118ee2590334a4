"""The database of a workbench: opened by address, migrated, read and written in transactions, copied while it runs.

SQLite (a file, for a person or a small team) and PostgreSQL (for a team) run the same statements. A transaction that
another one stood in the way of is run again as a whole: `Database.write` therefore takes a function.
"""

import errno
import json
import random
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import TypeVar

import msgspec
from alembic import command
from alembic.config import Config as MigrationConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, DisconnectionError, NoSuchModuleError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from steelyard.core.errors import ConfigError, FileError, OutputError
from steelyard.workbench.audit_log import append_recorded

ResultT = TypeVar("ResultT")
_MIGRATIONS = Path(__file__).parent / "migrations"
_TRIES = 8
"""How often a transaction is run that others stand in the way of."""
_BUSY_SECONDS = 10.0
_CONNECTIONS = 20
_REST_SECONDS = 5.0
"""After how long without use a connection is tried before it is used: the server may have closed it."""
_NUM_KEPT = 200
"""How many of the rows that it read last a transaction that writes holds on to."""


class NoRoomError(OutputError):
    """The disk of the database takes nothing more: what was sent is not stored, and may be sent again."""


class Database:
    """The engine of one workbench. ``address``: a SQLAlchemy URL; the password in it is never shown."""

    def __init__(self, address: str) -> None:
        self.engine = _engine(address)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        # SQLite has one writer at a time. Waiting here is fair; its own waiting lets late ones pass early ones.
        self._turn: AbstractContextManager[object] = FairTurn() if self.is_sqlite else nullcontext()

    @property
    def shown_address(self) -> str:
        """The address without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def migrate(self) -> str:
        """Bring the tables to the version of this program, from nothing or from an older one. Returns the version.

        Raises FileError for a database that a newer program has migrated, and OutputError where it cannot be opened.
        """
        newest = ScriptDirectory(str(_MIGRATIONS)).get_current_head() or ""
        try:
            with self.engine.connect() as connection:
                present = MigrationContext.configure(connection).get_current_revision()
                if present is not None and present not in _revisions():
                    raise FileError(
                        f"was migrated to version {present} by a newer program",
                        where=self.shown_address,
                        allowed=f"version {newest} or older",
                        do="start it with that program, or restore a backup",
                    )
                if present != newest:
                    settings = MigrationConfig()
                    settings.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
                    settings.attributes["connection"] = connection
                    command.upgrade(settings, "head")
                    connection.commit()
        except DatabaseError as error:
            if _is_without_room(error):
                raise self._no_room(error) from None
            # Also for a file that is something else, or that another program has changed.
            raise OutputError(f"cannot be opened: {_first_line(error)}", where=self.shown_address) from None
        return newest

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that reads one state of the database; what it would change is undone.

        What it has read stays readable afterwards. Raises NoRoomError where sorting needs a full disk.
        """
        with self._told_of_no_room(), Session(self.engine, expire_on_commit=False) as session:
            if self.is_sqlite:
                session.connection().exec_driver_sql("BEGIN")
            else:
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session
            session.expunge_all()
            session.rollback()

    def write(self, work: Callable[[Session], ResultT]) -> ResultT:
        """Run ``work`` in one transaction and return its result; nothing is kept if it raises.

        ``work`` is run again, in a fresh session, where the database was busy or undid it for another transaction: it
        must have no effect besides the session. Raises NoRoomError where the disk is full.
        """
        for number in range(1, _TRIES + 1):
            try:
                with self._turn, _WritingSession(self.engine, expire_on_commit=False) as session:
                    if self.is_sqlite:
                        # A writer from the start: a reader that wants to write later could only fail.
                        session.connection().exec_driver_sql("BEGIN IMMEDIATE")
                    result = work(session)
                    append_recorded(session)
                    session.commit()
                    return result
            except DBAPIError as error:
                if _is_without_room(error):
                    raise self._no_room(error) from error
                if number == _TRIES or not _is_passing(error):
                    raise
            time.sleep(random.uniform(0, 0.02 * 2**number))
        raise AssertionError("the last try returns or raises")

    def backup(self, path: Path) -> None:
        """Copy a SQLite database to a new file while it is in use. Raises ConfigError for a server's database.

        The copy is one state of the database. A server has its own tool for it: ``pg_dump``.
        """
        source = self.engine.url.database
        if not self.is_sqlite or not source:
            raise ConfigError(
                f"{self.shown_address} is not a file",
                where="--database",
                do="pg_dump copies PostgreSQL",
            )
        if path.exists():
            raise OutputError("exists already", where=str(path), do="name a file that does not")
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        try:
            with sqlite3.connect(source) as original, sqlite3.connect(unfinished) as copied:
                original.backup(copied)
            copied.close()
            unfinished.replace(path)
        except (sqlite3.Error, OSError) as error:
            unfinished.unlink(missing_ok=True)
            do = "free some space there, or name a file on another disk" if _is_without_room(error) else None
            raise OutputError(f"cannot be written: {error}", where=str(path), do=do) from None

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    @contextmanager
    def _told_of_no_room(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            if _is_without_room(error):
                raise self._no_room(error) from error
            raise

    def _no_room(self, error: DBAPIError) -> NoRoomError:
        problem = f"nothing more can be stored ({_first_line(error)}); what was stored before is intact"
        do = "free some space on the disk of the database, and do the same again"
        return NoRoomError(problem, where=self.shown_address, do=do)


class _WritingSession(Session):
    """A session that looks a row up once: `Session` alone forgets rows that no variable holds, and asks again."""


@event.listens_for(_WritingSession, "loaded_as_persistent")
def _keep(session: Session, row: object) -> None:
    recent_rows = session.info.get("rows")
    if recent_rows is None:
        recent_rows = session.info["rows"] = deque(maxlen=_NUM_KEPT)
    recent_rows.append(row)


class FairTurn:
    """A lock for ``with`` that is handed on, when it is let go, to whoever has waited longest.

    `threading.Lock` lets any waiting thread go next, and mostly the one that has just been there: with twenty people at
    one SQLite file some would wait for seconds while others are served at once.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()
        self._is_taken = False

    @property
    def num_waiting(self) -> int:
        """The number of threads that wait for the turn."""
        return len(self._waiting)

    def __enter__(self) -> None:
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            gate = Lock()
            gate.acquire()
            self._waiting.append(gate)
        # Opened by whoever hands the turn on, which stays taken in between.
        gate.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_taken = False


def _engine(address: str) -> Engine:
    try:
        url = make_url(address)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
            engine = create_engine(url, pool_size=_CONNECTIONS, max_overflow=_CONNECTIONS, json_deserializer=_decoded)
            event.listen(engine, "checkin", _note_use)
            event.listen(engine, "checkout", _try_rested)
            return engine
        if url.get_backend_name() == "sqlite" and url.database:
            if not Path(url.database).parent.is_dir():
                raise OutputError("is not a folder", where=str(Path(url.database).parent), do="create it first")
            engine = create_engine(
                url, connect_args={"timeout": _BUSY_SECONDS}, pool_size=_CONNECTIONS, json_deserializer=_decoded
            )
            event.listen(engine, "connect", _prepare_sqlite)
            return engine
    except (ArgumentError, NoSuchModuleError):
        pass
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{error.name} is not installed", where="--database", do="pip install psycopg[binary]"
        ) from None
    # The address may hold a password: it is not repeated.
    raise ConfigError(
        "no address of a database",
        where="--database",
        allowed="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME",
    )


def _decoded(text: str | bytes) -> object:
    """Return the value of a stored JSON text: a page or an export reads thousands, and `json` takes thrice as long."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # What `json` wrote and nobody else reads, half of a surrogate pair for one.
        return json.loads(text)


def _prepare_sqlite(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    # Transactions are begun by us: Python's module would begin them only at the first change.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # What was answered must survive a power cut, not only a crash of the program.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")


def _note_use(_: object, entry: ConnectionPoolEntry) -> None:
    entry.info["used_at"] = time.monotonic()


def _try_rested(connection: DBAPIConnection, entry: ConnectionPoolEntry, _: object) -> None:
    """Try a connection that has rested for a while. To try each one would double the round trips of short requests."""
    if time.monotonic() - entry.info.get("used_at", time.monotonic()) < _REST_SECONDS:
        return
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute("SELECT 1")
        connection.rollback()
    except Exception as error:
        # The pool then opens another one.
        raise DisconnectionError from error


def _is_passing(error: DBAPIError) -> bool:
    """Tell whether the same transaction may succeed later: busy files, deadlocks, serialisation, a lost connection."""
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    # 40001 serialisation failure, 40P01 deadlock, 55P03 lock not available (PostgreSQL, appendix A).
    return state in ("40001", "40P01", "55P03") or "database is locked" in str(error.orig)


def _is_without_room(error: Exception) -> bool:
    """Tell whether the disk is full: 53100 and 53400 of PostgreSQL, and of SQLite also a file over its allowed size."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if getattr(original, "sqlstate", None) in ("53100", "53400"):
        return True
    if isinstance(original, OSError):
        return original.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    # The lowest byte is the kind of error: SQLITE_IOERR_WRITE is one of SQLITE_IOERR.
    code = getattr(original, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def _revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory(str(_MIGRATIONS)).walk_revisions()}


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
