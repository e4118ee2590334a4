"""Folders in memory: a test's database there needs no disk, whose flushes take longer than most tests."""

import shutil
import tempfile
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 2**30
"""Bytes that have to be free: a container's memory file system often has 64 MiB, which one server fills."""


def new_folder(prefix):
    """Make a folder, in memory where there is a file system for that with enough room."""
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM
    return Path(tempfile.mkdtemp(prefix=prefix, dir=_MEMORY if has_room else None))
