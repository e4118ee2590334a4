"""Iteration in batches, which `itertools` has from Python 3.12 on only."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield the items in lists of ``size``; the last list may be shorter, and none is empty.

    Items are read only when their batch is due, so that the stream may be longer than memory.
    """
    # One iterator for all batches: islice over a list would begin at its first item each time.
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch
