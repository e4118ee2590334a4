"""A full disk, said plainly: the libraries that write weights each hide it in an error of their own."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

from steelyard.core.errors import OutputError

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def room_on_disk(path: Path) -> Iterator[None]:
    """Raises OutputError where the block finds the disk full; what stood at the path must be untouched by then."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:
        if not _is_full(error):
            raise
        raise OutputError(
            "the disk is full: what stood there before is untouched",
            where=str(path),
            do="free some space, and run the same command again: it goes on from the last checkpoint",
        ) from error


def _is_full(error: BaseException) -> bool:
    # torch fails a second time when it closes its archive: the first error stands behind that one.
    causes = (error, error.__context__, error.__cause__)
    is_told = any(isinstance(cause, OSError) and cause.errno in _FULL for cause in causes)
    return is_told or (isinstance(error, SafetensorError) and any(f"(os error {code})" in str(error) for code in _FULL))
