"""Atomic writing, and locks that end with their process.

A file is written under a temporary name in the folder of its target, flushed, then renamed: no reader sees half a
file. The kernel holds the locks (``flock``), so that a kill releases them: one process at a time writes to a folder,
and the leftovers of killed runs are detected. A file system without ``flock`` has no locks.
"""

import errno
import filecmp
import glob
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TypeVar

from steelyard.core.errors import OutputError
from steelyard.core.remedies import FOLDER, Advice, Remedy

ResultT = TypeVar("ResultT")
LOCK_FILE = ".lock"
_UNSUPPORTED = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.ENOSYS, errno.EBADF)
_FULL = "the disk is full", "free some space, and run the same again"
_NO_ROOM = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: ("the file is larger than allowed", "raise the file size limit (ulimit -f), or choose another path"),
}
"""Problem and remedy of a write that found no room, by error number: the system's own error names no file."""
_ATTEMPTS_AT_A_WRITER, _MOST_ATTEMPTS = 4, 500


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces ``path`` when the block succeeds and is removed when it fails.

    Raises OutputError if the path is a folder, a pipe or a device, if the disk is full, and if the file gets too large.
    """
    if path.exists() and not path.is_file():
        raise OutputError("not a regular file, so it cannot be replaced", where=str(path), do="name a new file")
    descriptor, part = _make_part(path)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            move_into_place(part, path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        number = error.errno if isinstance(error, OSError) else None
        if number in _NO_ROOM:
            problem, do = _NO_ROOM[number]
            unchanged = "; the previous file is unchanged" if path.is_file() else ""
            raise OutputError(f"{problem}{unchanged}", where=str(path), do=do) from error
        raise


def write_once(path: Path, write: Callable[[Path], ResultT], *, force: bool = False) -> tuple[ResultT, bool]:
    """Write a file by ``write(place)``; one that is there already stays if its content is equal.

    Returns what ``write`` returns, and whether the file is new. Raises OutputError, and changes nothing, where the path
    is not a regular file, and without ``force`` where it holds something else.
    """
    sweep_parts(path)
    if not path.exists() or (force and path.is_file()):
        return write(path), True
    if not path.is_file():
        raise OutputError("not a regular file, so it cannot be replaced", where=str(path), do="name a new file")
    with part_folder(path) as folder:
        again = folder / path.name
        try:
            result = write(again)
        except OutputError as error:
            # The user knows the file by its name, not by that of the one that is compared with it.
            raise error.at(str(path)) if error.where == str(again) else error from None
        if not filecmp.cmp(again, path, shallow=False):
            problem = "there is a file already, and it holds something else"
            raise OutputError(
                problem,
                where=str(path),
                do=Advice("name another, or say ", Remedy("force", value=True), " to replace it"),
            )
    return result, False


def write_folder_once(path: Path, write: Callable[[Path], ResultT]) -> tuple[ResultT, bool]:
    """Write a folder whole by ``write(place)``; one that is there already stays if its files are equal.

    Returns what ``write`` returns, and whether the folder is new; one without content is replaced. Raises OutputError,
    and changes nothing, where the path is a file, and where the folder holds something else.
    """
    sweep_parts(path)
    if path.exists() and not path.is_dir():
        raise OutputError("is a file", where=str(path), do=Advice("name a new folder: ", Remedy("out", FOLDER)))
    with part_folder(path) as folder:
        whole = folder / path.name
        whole.mkdir()
        result = write(whole)
        is_new = not path.exists() or not any(path.iterdir())
        if is_new:
            if path.exists():
                path.rmdir()
            whole.rename(path)
        elif not _equal_folders(whole, path):
            problem = "there is a folder already, and it holds something else"
            raise OutputError(problem, where=str(path), do=Advice("name a new folder: ", Remedy("out", FOLDER)))
    return result, is_new


def _equal_folders(first: Path, second: Path) -> bool:
    """Return whether two folders have the same files and folders with the same bytes."""
    names = [sorted(path.relative_to(folder) for path in folder.rglob("*")) for folder in (first, second)]
    return names[0] == names[1] and all(
        (second / name).is_file() and filecmp.cmp(first / name, second / name, shallow=False)
        if (first / name).is_file()
        else (second / name).is_dir()
        for name in names[0]
    )


def sweep_parts(path: Path) -> None:
    """Remove the temporary files of ``path`` that killed processes left; files locked by a running process stay."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if part.is_symlink():
            remove(part)
            continue
        with suppress(FileNotFoundError):  # another process was faster
            descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                # Removed while it is locked: a process that has just made it then makes another one.
                if lock(descriptor):
                    remove(part)
            finally:
                os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, a folder with its content, or a link, which is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move_into_place(source: Path, path: Path) -> None:
    """Rename a finished file to its name, with the permissions of an ordinary file instead of a temporary one."""
    mask = os.umask(0)
    os.umask(mask)
    source.chmod(0o666 & ~mask)
    source.replace(path)


def create_private(path: Path) -> None:
    """Create an empty file that other users of the machine cannot read. An existing file stays as it is.

    For databases: SQLite gives the files beside it the same permissions. An error is left to the opener of the file.
    """
    with suppress(OSError):
        # The target of a link, which O_EXCL does not follow.
        os.close(os.open(os.path.realpath(path), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Lock the folder, which is created if absent, as its only writing process.

    Raises OutputError at once, with the id of the other process, if one holds it. An empty folder is removed
    afterwards, and so are the parents that were created for it.
    """
    created = [folder, *(parent for parent in folder.parents if not parent.exists())]
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
        with suppress(OSError):  # a folder that is not empty, and so its parents, stay
            for made in created:
                made.rmdir()


@contextmanager
def part_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``, locked so that no other process removes it as a leftover."""
    descriptor, part = _make_part(path, is_folder=True)
    try:
        yield part
    finally:
        with suppress(FileNotFoundError):
            shutil.rmtree(part)
        os.close(descriptor)


def _make_part(path: Path, *, is_folder: bool = False) -> tuple[int, Path]:
    """Create a temporary file or folder beside ``path`` and lock it. Returns its descriptor and its path.

    Until it is locked, another process may take it for a leftover and remove it: then another one is made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    names = {"dir": path.parent, "prefix": f".{path.name}.", "suffix": ".part"}
    while True:
        if is_folder:
            name = tempfile.mkdtemp(**names)
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
        else:
            descriptor, name = tempfile.mkstemp(**names)
        with suppress(FileNotFoundError):
            if lock(descriptor) and os.path.samestat(os.fstat(descriptor), Path(name).stat()):
                return descriptor, Path(name)
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Return whether a running process holds the file or folder; false if it does not exist."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not lock(descriptor, is_shared=True)
    finally:
        os.close(descriptor)


def lock(descriptor: int, *, is_shared: bool = False) -> bool:
    """Lock an open file for this process until it is closed. Returns whether no other process holds it.

    Shared locks exclude only the others: those who ask whether a file is held are not in each other's way.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return True


def _locked_soon(descriptor: int, path: Path) -> bool:
    """Lock the file, after a few attempts if need be: a reader holds it for an instant to see whether it is held.

    On a busy machine that instant may take seconds: only who holds it against readers too is a writer.
    """
    for attempt in range(_MOST_ATTEMPTS):
        if lock(descriptor):
            return True
        if attempt >= _ATTEMPTS_AT_A_WRITER and is_held(path):
            return False
        time.sleep(0.02)
    return lock(descriptor)


def _locked(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        if not _locked_soon(descriptor, path):
            holder = os.pread(descriptor, 32, 0).decode("ascii", errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise OutputError(
                f"another run is writing here (process {holder})",
                where=str(path.parent),
                do=Advice("wait until it has ended, or name another ", Remedy("out")),
            )
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                return descriptor
        os.close(descriptor)  # its last holder has removed this file: lock the new one
