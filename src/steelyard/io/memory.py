"""A limit to what decoding one line, array or batch may take: a small file can stand for more than any machine has."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.core.errors import FileError, Place

MOST_DECODED_BYTES = 4 * 2**30
_STATM = Path("/proc/self/statm")


@contextmanager
def bounded_memory(place: Place | str, *, limit: int = MOST_DECODED_BYTES) -> Iterator[None]:
    """Let the block take at most ``limit`` bytes more than the process has. Raises FileError where it wants more.

    The limit is the kernel's, on the address space, so that it holds for what C libraries take too. Elsewhere than on
    Linux there is none.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(_STATM.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    soft = [value for value in (taken + limit, *before) if value != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min(soft), before[1]))
    try:
        yield
    except MemoryError as error:
        raise FileError(
            f"decoded, this takes more than {limit / 2**30:.3g} GiB",
            where=place,
            do="look at what it holds; write it anew in smaller rows",
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
