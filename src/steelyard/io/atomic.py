"""Writing so that nobody ever sees half a file: a temporary name beside the target, flushed, then renamed."""

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
    """A binary file that takes the place of ``path`` when the block ends well, and vanishes when it does not.

    Raises OutputError where the path is a folder, a pipe or a device, and where the disk is full.
    """
    if path.exists() and not path.is_file():
        raise OutputError("this is no file that could be replaced", where=str(path), do="name a new file")
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
                "the disk is full: what stood there before is untouched",
                where=str(path),
                do="free some space, and run the same command again",
            ) from error
        raise


def sweep_parts(path: Path) -> None:
    """Remove what killed processes left of ``path``, beside it; what a living one writes is locked, and stays."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if part.is_symlink() or not is_held(part):
            remove(part)


def remove(path: Path) -> None:
    """Remove a file, a folder with all in it, or a link, which is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def move_into_place(source: Path, path: Path) -> None:
    """Rename a finished file to its name, with the permissions of an ordinary file rather than a temporary one's."""
    source.chmod(0o666 & ~_umask())
    source.replace(path)


def write_text(path: Path, text: str) -> None:
    """A whole text file, atomically, in UTF-8."""
    with atomic_write(path) as file:
        file.write(text.encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
