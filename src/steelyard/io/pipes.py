"""Inputs that can be read only once: a pipe is copied to disk first, so that every later reading sees all of it.

A stage reads its input several times: to check it, to recognise it, to hash it. Each time a pipe would give other rows.
"""

import os
import re
import select
import shutil
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from steelyard.core.errors import FileError, OutputError
from steelyard.io.progress import bar, log

SECONDS_TO_WAIT = 10.0
"""How long a named pipe may have no writer."""
BYTES_LEFT_FREE = 256 * 2**20
"""How much of the disk a copy leaves to others."""
_SECONDS_BETWEEN_LOOKS = 0.1
_BLOCK_BYTES = 2**20
_OWN_DESCRIPTOR = re.compile(r"/dev/stdin|/(?:dev|proc/self)/fd/(\d+)")


def is_pipe(path: Path) -> bool:
    """Return whether the path is a named pipe, or a pipe or socket that this process was started with."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or (stat.S_ISSOCK(mode) and _own_descriptor(path) is not None)


def copy_pipe(
    path: Path, folder: Path, *, seconds_to_wait: float = SECONDS_TO_WAIT, bytes_left_free: int = BYTES_LEFT_FREE
) -> Path:
    """Copy all that a pipe gives into a file of its name in the folder, and return the file.

    Raises FileError for a named pipe that nobody opens for writing in time, OutputError when the disk is nearly full.
    """
    copy = folder / path.name
    own = _own_descriptor(path)
    # Without O_NONBLOCK the opening itself would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if own is None else os.dup(own)
    try:
        with copy.open("wb") as file, bar(f"reading {path} (MiB)") as shown:
            for block in _blocks(descriptor, path, seconds_to_wait, has_writer=own is not None):
                _check_room(folder, path, len(block) + bytes_left_free)
                file.write(block)
                shown.advance(len(block) / 2**20)
    finally:
        os.close(descriptor)
    return copy


def _own_descriptor(path: Path) -> int | None:
    own = _OWN_DESCRIPTOR.fullmatch(str(path))
    return int(own.group(1) or 0) if own else None


def _blocks(descriptor: int, path: Path, seconds_to_wait: float, *, has_writer: bool) -> Iterator[bytes]:
    """Yield what is read until the last writer closes. An empty read means that only if there has been a writer."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    end, is_told = time.monotonic() + seconds_to_wait, False
    while True:
        is_ready = bool(waiting.poll(1000 * _SECONDS_BETWEEN_LOOKS))
        if has_writer and not is_ready and not is_told and time.monotonic() > end:
            log(f"waiting for {path} to be written")
            is_told = True
        if not is_ready and has_writer and os.get_blocking(descriptor):
            continue
        try:
            block = os.read(descriptor, _BLOCK_BYTES)
        except BlockingIOError:
            has_writer = True
            continue
        if block:
            has_writer = True
            yield block
        elif has_writer:
            return
        elif time.monotonic() > end:
            found = f"nobody has opened this pipe for writing in {seconds_to_wait:.0f} s"
            raise FileError(found, where=str(path), do="start its writer first, or name a file")


def _check_room(folder: Path, path: Path, bytes_needed: int) -> None:
    if shutil.disk_usage(folder).free < bytes_needed:
        raise OutputError(
            f"{path} gives more than the disk can take",
            where=str(folder),
            do="write it to a file on a larger disk, or set TMPDIR to a folder there",
        )
