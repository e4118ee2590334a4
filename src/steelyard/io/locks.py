"""Locks that end with their process: one run at a time writes to a folder, and leftovers of killed runs are detected.

The kernel holds the locks (``flock``), so that a kill releases them. A file system without ``flock`` has no locks.
"""

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from steelyard.core.errors import OutputError

LOCK_FILE = ".lock"
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS, errno.EBADF)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Lock the folder, which is created if absent, as its only writing process.

    Raises OutputError at once, with the id of the other process, if one holds it. An empty folder is removed
    afterwards, and so are the parents that were created for it.
    """
    made = [folder, *(parent for parent in folder.parents if not parent.exists())]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK_FILE
    descriptor = _locked(path)
    try:
        os.truncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        # Removed while it is locked: a process that opened the old file checks whether it is still the folder's.
        path.unlink(missing_ok=True)
        os.close(descriptor)
        _remove_empty(made)


@contextmanager
def held(path: Path | str) -> Iterator[None]:
    """Lock a file or folder that this process has just created, so that no other process removes it as a leftover."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether a running process holds the file or folder; false if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not lock(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Lock an open file for this process until it is closed. Returns whether no other process holds it."""
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return True


def _locked(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        if not lock(descriptor):
            holder = os.pread(descriptor, 32, 0).decode("ascii", errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise OutputError(
                f"another run is writing here (process {holder})",
                where=str(path.parent),
                do="wait until it has ended, or name another --out",
            )
        if _is_same(descriptor, path):
            return descriptor
        os.close(descriptor)


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
