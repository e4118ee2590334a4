"""Meaning of a database's errors: one that passes, a full disk, a server that is gone, a value that nobody can store.

Each has a message with what to do, and none shows a password. Errors of our own statements are defects, and stay.
"""

import errno
import sqlite3

from sqlalchemy.exc import DataError, DBAPIError, OperationalError

from steelyard.core.errors import ConfigError, OutputError, UserError

_UNUSABLE = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOTADB,
)
# PostgreSQL, appendix A: connection exceptions, operator intervention, insufficient resources.
_GONE = ("08", "57", "53")


class NoRoomError(OutputError):
    """The disk of the database takes nothing more: what was sent is not stored, and may be sent again."""


class UnavailableError(OutputError):
    """The database does not answer, or cannot be used: what was sent is not stored, and may be sent again."""


def user_error(error: DBAPIError, where: str) -> UserError | None:
    """Return what to tell the user of an error; null where the fault is ours. ``where``: the address as it is shown."""
    if is_without_room(error):
        return no_room(error, where)
    if isinstance(error, DataError):
        return ConfigError(
            "a number is too large, or a text has characters or a length that the database does not store",
            where=where,
            do="take out NUL characters, and shorten names to 200 characters",
        )
    if _is_unavailable(error):
        problem = f"the database cannot be used ({first_line(error)}); what was stored before is intact"
        return UnavailableError(problem, where=where, do=remedy(error))
    return None


def no_room(error: DBAPIError, where: str) -> NoRoomError:
    """Return the error of a full disk."""
    problem = f"nothing more can be stored ({first_line(error)}); what was stored before is intact"
    return NoRoomError(problem, where=where, do="free some space on the disk of the database, and do the same again")


def is_passing(error: DBAPIError) -> bool:
    """Tell whether the same transaction may succeed later.

    Busy files, deadlocks, serialisation, a row that is written twice, a lost connection.
    """
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    # 40001 serialisation failure, 40P01 deadlock, 55P03 lock not available (PostgreSQL, appendix A). 23505: another
    # request has written the same row in the meantime, as a second click does; who comes again sees it.
    return state in ("40001", "40P01", "55P03", "23505") or "database is locked" in str(error.orig)


def is_without_room(error: Exception) -> bool:
    """Tell whether the disk is full: 53100 and 53400 of PostgreSQL, and of SQLite also a file over its allowed size."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if getattr(original, "sqlstate", None) in ("53100", "53400"):
        return True
    if isinstance(original, OSError):
        return original.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    # The lowest byte is the kind of error: SQLITE_IOERR_WRITE is one of SQLITE_IOERR.
    code = getattr(original, "sqlite_errorcode", None) or 0
    return code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


def remedy(error: DBAPIError) -> str:
    """Return what to do about a database that cannot be opened."""
    text = str(error.orig)
    for sign, remedy in _REMEDIES.items():
        if sign in text:
            return remedy
    return "check the address: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME"


_REMEDIES = {
    "file is not a database": "name the file of a workbench, or a new one",
    "malformed": "the file is damaged: restore a backup, and serve that",
    "readonly database": "make the file and its folder writable for the user who runs this",
    "unable to open database file": "name a file, in a folder that the user who runs this may write to",
    "database is locked": "another program is at work on it: run the same again when that has ended",
    "does not exist": "make it: createdb NAME, or createuser NAME",
    "authentication failed": "check the user and the password in the address",
    "permission denied": "let the user of the address own the database: createdb -O USER NAME",
    "closed the connection": "start the server again, and run the same again",
    "terminating connection": "start the server again, and run the same again",
    "timeout expired": "start the server, or check its host and port in the address",
    "refused": "start the server, or check its host and port in the address",
    "resolve host": "check the host in the address",
    "No such file or directory": "start the server, or add its host to the address: postgresql://USER:PASSWORD@HOST/NAME",
}
"""By what the database says: what the user can do."""


def first_line(error: DBAPIError) -> str:
    """Return the first line of what the database says."""
    return str(error.orig).strip().partition("\n")[0]


def _is_unavailable(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF in _UNUSABLE
    if error.connection_invalidated:
        return True
    state = getattr(error.orig, "sqlstate", None)
    # Without a state the connection itself failed.
    return state[:2] in _GONE if state else isinstance(error, OperationalError)
