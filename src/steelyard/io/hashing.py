"""SHA-256 of files and folders: the files of a folder side by side, and inputs before their hashes are needed."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from threading import Event

from steelyard.core.errors import FileError
from steelyard.io.lines import check_regular

_BLOCK_BYTES = 2**24
"""Reading and hashing a block release Python's lock; getting it back takes 5 ms while another thread computes."""
_MOST_THREADS = 8
_ahead: ContextVar[Mapping[Path, Future[str]] | None] = ContextVar("hashes that threads compute ahead", default=None)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, or of the names and hashes of a folder's files.

    Raises FileError if it is absent, a pipe or device, or not readable. Within `hashed_ahead` this is the hash of the
    content at the beginning of the block, and nothing is read again.
    """
    ahead = (_ahead.get() or {}).get(path)
    return _hash(path, Event()) if ahead is None else ahead.result()


@contextmanager
def hashed_ahead(paths: Iterable[Path]) -> Iterator[None]:
    """Hash files and folders in threads from now on; within the block `file_hash` waits for them.

    It raises their errors, at the place where the hash is needed. The end of the block stops hashes that no caller has
    waited for.
    """
    # Each has an event of its own: an error in one must not stop another.
    stopped = {path: Event() for path in paths}
    with ThreadPoolExecutor(max(1, len(stopped)), thread_name_prefix="hash") as threads:
        token = _ahead.set({path: threads.submit(_hash, path, event) for path, event in stopped.items()})
        try:
            yield
        finally:
            _ahead.reset(token)
            for event in stopped.values():
                event.set()


def _hash(path: Path, stopped: Event) -> str:
    """Return the hash of a file or folder; once ``stopped``, that of the part read so far, which no caller uses."""
    if path.is_dir():
        files = sorted(item for item in path.rglob("*") if item.exists() and not item.is_dir())
        digest = hashlib.sha256()
        with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1), thread_name_prefix="hash") as threads:
            try:
                for file, content in zip(files, threads.map(partial(_hash, stopped=stopped), files), strict=True):
                    digest.update(f"{file.relative_to(path)}\x1f{content}\n".encode())
            except BaseException:
                stopped.set()  # of an interrupted run no thread reads on
                raise
        return digest.hexdigest()
    if not path.exists():
        raise FileError("there is no such file", where=str(path), do="check the path")
    digest = hashlib.sha256()
    try:
        check_regular(path)
        with path.open("rb", buffering=0) as file:
            block = memoryview(bytearray(min(_BLOCK_BYTES, path.stat().st_size + 1)))
            while not stopped.is_set() and (size := file.readinto(block)):
                digest.update(block[:size])
    except PermissionError as error:
        raise FileError("this file may not be read", where=str(path), do="ask for the right to read it") from error
    return digest.hexdigest()
