"""The database of a workbench: opened by address, migrated, read and written in transactions, copied while it runs.

SQLite (a file, for a person or a small team) and PostgreSQL (for a team) run the same statements. A transaction that
another one stood in the way of is run again as a whole: `Database.write` therefore takes a function.
"""

import json
import random
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import msgspec
from alembic import command
from alembic.config import Config as MigrationConfig
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, func, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError, DisconnectionError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

from steelyard.core.errors import ConfigError, FileError, OutputError
from steelyard.core.remedies import Advice, Remedy
from steelyard.io.atomic import create_private
from steelyard.workbench.storage.audit_log import append_recorded
from steelyard.workbench.storage.database_errors import (
    first_line,
    is_passing,
    is_without_room,
    no_room,
    remedy,
    user_error,
)

ResultT = TypeVar("ResultT")
DATABASE_FILE = "workbench.db"
"""The database of a folder: of simulated people, and by default that of a server."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_TRIES = 8
"""Number of times that a transaction is run which others block."""
_BUSY_SECONDS = 10.0
_CONNECT_SECONDS = 10
_CONNECTIONS = 20
_REST_SECONDS = 5.0
"""After how long without use a connection is tried before it is used: the server may have closed it."""
_OURS = {"projects", "items", "tasks", "answers"}
"""Tables that every version of a workbench has."""
_MIGRATION_LOCK = 0x57656967
"""The number of the lock under which one process at a time changes the tables of a PostgreSQL database."""
_NOT_SAID = (None,) * 5
"""Sizes and precisions of a column, which nobody asks for."""
_NUM_KEPT = 200
"""Number of rows read last that a writing transaction holds on to."""


class Database:
    """The engine of one workbench. ``address``: a SQLAlchemy URL; the password in it is never shown."""

    def __init__(self, address: str) -> None:
        self.engine = _engine(address)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        # Connections to SQLite begin no transaction by themselves: `_prepare_sqlite`.
        self._single = self.engine if self.is_sqlite else self.engine.execution_options(isolation_level="AUTOCOMMIT")
        # SQLite has one writer at a time, for any table.
        self._turn = FairTurn() if self.is_sqlite else None

    @property
    def shown_address(self) -> str:
        """The address without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    def migrate(self) -> str:
        """Bring the tables to the version of this program, from nothing or from an older one. Returns the version.

        All of it or nothing, and by one process at a time. Raises FileError for a database that a newer program has
        migrated or that belongs to another program, and OutputError where it cannot be opened.
        """
        newest = ScriptDirectory(str(_MIGRATIONS)).get_current_head() or ""
        try:
            with self.engine.connect() as connection:
                if self._checked_version(connection, newest) != newest:
                    self._lock_whole(connection)
                    # Another process may have been faster.
                    if self._checked_version(connection, newest) != newest:
                        settings = MigrationConfig()
                        settings.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
                        settings.attributes["connection"] = connection
                        command.upgrade(settings, "head")
                    connection.commit()
        except DatabaseError as error:
            if is_without_room(error):
                raise no_room(error, self.shown_address) from None
            # Also for a file that is something else, or that another program has changed.
            problem = f"cannot be opened: {first_line(error)}"
            raise OutputError(problem, where=self.shown_address, do=remedy(error)) from None
        return newest

    def _checked_version(self, connection: Connection, newest: str) -> str | None:
        """Return the version of the tables; null for none yet. Raises FileError for tables of another program."""
        present = MigrationContext.configure(connection).get_current_revision()
        tables = set(inspect(connection).get_table_names()) - {"alembic_version"}
        if tables and not tables >= _OURS:
            raise FileError(
                f"has tables of another program: {', '.join(sorted(tables)[:3])}",
                where=self.shown_address,
                allowed="a workbench, or an empty database",
                do="name a new file, or make a database of its own: createdb workbench",
            )
        scripts = ScriptDirectory(str(_MIGRATIONS)).walk_revisions()
        if present is not None and present not in {script.revision for script in scripts}:
            raise FileError(
                f"was migrated to version {present} by a newer program",
                where=self.shown_address,
                allowed=f"version {newest} or older",
                do="start it with that program, or restore a backup",
            )
        return present

    def _lock_whole(self, connection: Connection) -> None:
        """Begin a transaction that keeps other processes from migrating, and in which SQLite changes tables, too."""
        if self.is_sqlite:
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        else:
            connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """Give a session that reads one state of the database; what it would change is undone.

        What it has read stays readable afterwards. Raises NoRoomError where sorting needs a full disk, and
        UnavailableError for a database that does not answer or is damaged.
        """
        with self._reporting(), Session(self.engine, expire_on_commit=False) as session:
            if self.is_sqlite:
                session.connection().exec_driver_sql("BEGIN")
            else:
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session
            session.expunge_all()
            session.rollback()

    @contextmanager
    def looking_up(self) -> Iterator[Session]:
        """Give a session whose statements read without a transaction: one round trip where `reading` has three."""
        with self._reporting(), Session(self._single) as session:
            yield session

    def write(self, work: Callable[[Session], ResultT]) -> ResultT:
        """Run ``work`` in one transaction and return its result; nothing is kept if it raises.

        ``work`` is run again, in a fresh session, where the database was busy or undid it for another transaction: it
        must have no effect besides the session. Raises as `reading`, and ConfigError for a value that cannot be stored.
        """
        for number in range(1, _TRIES + 1):
            try:
                with self._place(), _WritingSession(self.engine, expire_on_commit=False) as session:
                    if self.is_sqlite:
                        # A writer from the start: a reader that wants to write later could only fail.
                        session.connection().exec_driver_sql("BEGIN IMMEDIATE")
                    result = work(session)
                    append_recorded(session)
                    session.commit()
                    return result
            except DBAPIError as error:
                if number == _TRIES or not is_passing(error):
                    raise (user_error(error, self.shown_address) or error) from error
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
                where="database",
                do="pg_dump copies PostgreSQL",
            )
        if path.exists():
            raise OutputError("exists already", where=str(path), do="name a file that does not")
        unfinished = path.with_name(f"{path.name}.unfinished")
        unfinished.unlink(missing_ok=True)
        create_private(unfinished)
        try:
            with sqlite3.connect(source) as original, sqlite3.connect(unfinished) as copied:
                original.backup(copied)
            copied.close()
            unfinished.replace(path)
        except (sqlite3.Error, OSError) as error:
            unfinished.unlink(missing_ok=True)
            do = "free some space there, or name a file on another disk" if is_without_room(error) else None
            raise OutputError(f"cannot be written: {error}", where=str(path), do=do) from None

    def forget_traces(self) -> None:
        """Empty the log beside a SQLite file, which has former states of rows, as far as nobody reads from it now."""
        if self.is_sqlite:
            with self._reporting(), self.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def _place(self) -> AbstractContextManager[None]:
        return nullcontext() if self._turn is None else self._turn.taken()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise (user_error(error, self.shown_address) or error) from error


class _WritingSession(Session):
    """A session that looks a row up once: `Session` alone forgets rows that no variable holds, and asks again."""


@event.listens_for(_WritingSession, "loaded_as_persistent")
def _keep(session: Session, row: object) -> None:
    recent_rows = session.info.get("rows")
    if recent_rows is None:
        recent_rows = session.info["rows"] = deque(maxlen=_NUM_KEPT)
    recent_rows.append(row)


def open_workbench(address: str, *, is_made: bool = False) -> Database:
    """Open a workbench and bring it to this version. Raises FileError for a file that is not there, unless it is made.

    Also for a database that a newer program has migrated.
    """
    database = Database(address)
    file = database.engine.url.database
    if database.is_sqlite and not is_made and file and not Path(file).exists():
        do = Advice("name the database of the workbench: ", Remedy("database"))
        raise FileError("there is no such file", where=file, do=do)
    database.migrate()
    return database


class FairTurn:
    """A place for ``with turn.taken()`` that is handed on, when it is let go, to the thread that has waited longest.

    `threading.Lock` lets any waiting thread go next, and mostly the one that has just been there: with twenty people at
    one SQLite file some would wait for seconds while others are served at once.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()
        self._is_free = True

    @property
    def num_waiting(self) -> int:
        """The number of threads that wait for the place."""
        return len(self._waiting)

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait for the place, and hand it on at the end, also after an error."""
        self._wait()
        try:
            yield
        finally:
            self._hand_on()

    def _wait(self) -> None:
        with self._guard:
            if self._is_free:
                self._is_free = False
                return
            gate = Lock()
            gate.acquire()
            self._waiting.append(gate)
        # Opened by the thread that hands the place on, which stays taken in between.
        gate.acquire()

    def _hand_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._is_free = True


def _engine(address: str) -> Engine:
    try:
        url = make_url(address)
        if "\0" in address or url.database == ":memory:":
            # What is in memory is gone when the command ends.
            url = url.set(drivername="")
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
            # An address of a machine that is off would keep the command waiting for minutes.
            waiting = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
            engine = create_engine(
                url,
                connect_args={"cursor_factory": _cursor_class(), **waiting},
                pool_size=_CONNECTIONS,
                max_overflow=_CONNECTIONS,
                json_deserializer=_decoded,
            )
            event.listen(engine, "checkin", _note_use)
            event.listen(engine, "checkout", _try_rested)
            return engine
        if url.get_backend_name() == "sqlite" and url.database and not url.query:
            file = Path(url.database)
            if not file.parent.is_dir():
                raise OutputError("is not a folder", where=str(file.parent), do="create it first")
            if file.exists() and not file.is_file():
                raise OutputError("is not a file", where=str(file), do="name the file of a workbench, or a new one")
            engine = create_engine(
                url, connect_args={"timeout": _BUSY_SECONDS}, pool_size=_CONNECTIONS, json_deserializer=_decoded
            )
            event.listen(engine, "do_connect", lambda *_: create_private(file))
            event.listen(engine, "connect", _prepare_sqlite)
            return engine
    except (ArgumentError, ValueError):
        pass
    except ModuleNotFoundError as error:
        if error.name == "psycopg":
            raise ConfigError("psycopg is not installed", where="database", do="pip install psycopg[binary]") from None
    # The address may hold a password: it is not repeated.
    raise ConfigError(
        "no address of a database",
        where="database",
        allowed="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME",
    )


def _decoded(text: str | bytes) -> object:
    """Return the value of a stored JSON text: a page or an export reads thousands, and `json` takes thrice as long."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        # What `json` wrote and nobody else reads, half of a surrogate pair for one.
        return json.loads(text)


@cache
def _cursor_class() -> type:
    """Return psycopg's cursor with a plain description of its columns: name and type, which SQLAlchemy reads.

    Its own makes an object of each column of each result: a tenth of the processor time of an annotator's request.
    """
    from psycopg import Cursor

    class PlainCursor(Cursor):
        @property
        def description(self) -> list[Any] | None:
            result = self.pgresult
            if result is None or not result.nfields:
                return None
            names = ((result.fname(place) or b"").decode() for place in range(result.nfields))
            return [(name, result.ftype(place), *_NOT_SAID) for place, name in enumerate(names)]

    return PlainCursor


def _prepare_sqlite(connection: sqlite3.Connection, _: ConnectionPoolEntry) -> None:
    # Transactions are begun by us: Python's module would begin them only at the first change.
    connection.isolation_level = None
    until = time.monotonic() + _BUSY_SECONDS
    # SQLite refuses this change without a wait while another connection makes it, as two that open a new file.
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
    # What was answered must survive a power cut, not only a crash of the program.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # The name of a person who is erased must not stay in free space of the file; not every SQLite is built that way.
    connection.execute("PRAGMA secure_delete = ON")


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
