"""Atomic writing: a temporary file in the folder of the target, flushed, then renamed. No reader sees half a file."""

import errno
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from steelyard.core.errors import OutputError
from steelyard.io.locks import is_held, lock


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces ``path`` when the block succeeds and is removed when it fails.

    Raises OutputError if the path is a folder, a pipe or a device, and if the disk is full.
    """
    if path.exists() and not path.is_file():
        raise OutputError("not a regular file, so it cannot be replaced", where=str(path), do="name a new file")
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            lock(descriptor)
            yield file
            file.flush()
            os.fsync(file.fileno())
        move_into_place(Path(name), path)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OutputError(
                "the disk is full; the previous file is unchanged",
                where=str(path),
                do="free some space, and run the same command again",
            ) from error
        raise


def sweep_parts(path: Path) -> None:
    """Remove the temporary files of ``path`` that killed processes left; files locked by a running process stay."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if part.is_symlink() or not is_held(part):
            remove(part)


def remove(path: Path) -> None:
    """Remove a file, a folder with its content, or a link, which is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move_into_place(source: Path, path: Path) -> None:
    """Rename a finished file to its name, with the permissions of an ordinary file instead of a temporary one."""
    source.chmod(0o666 & ~_umask())
    source.replace(path)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
