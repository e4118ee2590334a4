"""Keep CPU memory flat over varying sequence lengths: cap the oneDNN kernel cache and trim the malloc heap."""

import ctypes
import os
import sys
import time

_KERNELS_KEPT = "128"
_SECONDS_APART = 1.0
_MMAP_THRESHOLD, _LARGE = -3, 2**20
"""M_MMAP_THRESHOLD of mallopt(3), and the size in bytes from which a tensor gets pages of its own."""


def keep_few_kernels() -> None:
    """Let oneDNN keep 128 of its compiled kernels, one a shape and up to 4 MB each: its 1,024 take gigabytes.

    Call it before the first matrix product. A value that the user has set is kept.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", _KERNELS_KEPT)


class Heap:
    """The C library's heap, which keeps freed memory: with tensors of varying sizes, in holes."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform.startswith("linux") else None

    def give_back(self) -> None:
        """Return whole free pages to the system, at most once a second; nothing where the C library cannot."""
        now = time.monotonic()
        if self._trim is not None and now - self._last >= _SECONDS_APART:
            self._trim(0)
            self._last = now


def close_holes() -> bool:
    """Give large tensors pages of their own, which leave no holes; false where the C library has no such setting."""
    try:
        return bool(ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE))
    except AttributeError:
        return False
