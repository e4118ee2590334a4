"""Tiers of preference graphs by compiled loops, for up to 32 responses: used by `tiers` where numba is installed.

Up to five responses a graph is 20 bits, and its tiers are looked up in a table of all 2^20 graphs; beyond, each graph
is closed and peeled on 32-bit masks. Numba is optional: without it, and for wider graphs, `tiers` uses numpy. Compiled
code is cached next to this file, like bytecode.
"""

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.numerics import Integers
from steelyard.ranking.judgment_table import Edges

WIDEST = 32
_TABLED = 5
_BITS_A_TIER = 3
"""A tier in a table entry, 0 to 4, is stored plus one: 0 marks a response without edges."""
_WORTH_COMPILING = 100_000_000
"""The work (graphs times squared width) from which the compiled loops save more than they take to load."""


def is_worth_compiling(num_graphs: int, width: int) -> bool:
    """Return whether numba is installed and the compiled loops, which take half a second to load, would be faster."""
    return width <= WIDEST and num_graphs * width**2 >= _WORTH_COMPILING and _has_numba()


@cache
def _has_numba() -> bool:
    return find_spec("numba") is not None


class _Loops(NamedTuple):
    """The compiled loops."""

    codes: Callable[..., Any]
    look_up: Callable[..., Any]
    masks: Callable[..., Any]
    close: Callable[..., Any]
    peel: Callable[..., Any]


def compiled_tiers(
    edges: Edges, num_graphs: int, width: int, plain: Callable[[Edges, Integers], NDArray[np.int32]]
) -> NDArray[np.int32]:
    """Return the tiers, (graph, width), as `tiers.tiers_of` gives them. Asserts a width of at most 32.

    ``plain`` computes the table of five responses, once.
    """
    assert width <= WIDEST, "wider graphs do not fit the masks"
    loops = _loops()
    tiers = np.empty((num_graphs, width), np.int32)
    if width <= _TABLED:
        codes = np.zeros(num_graphs, np.uint32)
        loops.codes(*edges, codes)
        loops.look_up(codes, _table(plain), tiers)
    else:
        masks = np.zeros((num_graphs, width), np.uint32)
        loops.masks(*edges, masks)
        loops.close(masks)
        loops.peel(masks, tiers)
    return tiers


@cache
def _table(plain: Callable[[Edges, Integers], NDArray[np.int32]]) -> NDArray[np.uint16]:
    """Return the tiers of all 2^20 graphs of five responses, three bits per response. A bit of a graph is an edge."""
    pairs = [(worse, better) for worse in range(_TABLED) for better in range(_TABLED) if worse != better]
    number = 1 << len(pairs)
    graph, bit = np.nonzero(np.arange(number)[:, None] >> np.arange(len(pairs)) & 1)
    worse, better = np.array(pairs)[bit].T
    tiers = plain(Edges(graph, better, worse), np.full(number, _TABLED))
    shifts = _BITS_A_TIER * np.arange(_TABLED)
    return ((tiers + 1) << shifts).sum(axis=1).astype(np.uint16)


@cache
def _loops() -> _Loops:
    import numba

    compiling: Any = numba.njit(cache=True, nogil=True)
    return _Loops(*map(compiling, (_codes, _look_up, _masks, _close, _peel)))


def _codes(graph: Any, better: Any, worse: Any, codes: Any) -> None:
    """Set the bit of each edge: four bits for every worse response, in the order of the others."""
    for edge in range(len(graph)):
        up, down = better[edge], worse[edge]
        place = 4 * down + up - (1 if up > down else 0)
        codes[graph[edge]] |= np.uint32(1) << np.uint32(place)


def _look_up(codes: Any, table: Any, tiers: Any) -> None:
    """Set the tiers of graphs from the entries of their codes."""
    for graph in range(len(codes)):
        entry = table[codes[graph]]
        for response in range(tiers.shape[1]):
            tiers[graph, response] = np.int32(entry >> (3 * response) & 7) - 1


def _masks(graph: Any, better: Any, worse: Any, masks: Any) -> None:
    """Set bit b of a response's mask where b beats it."""
    for edge in range(len(graph)):
        masks[graph[edge], worse[edge]] |= np.uint32(1) << np.uint32(better[edge])


def _close(masks: Any) -> None:
    """Close every graph transitively (Warshall)."""
    number, width = masks.shape
    for graph in range(number):
        above = masks[graph]
        for middle in range(width):
            through = above[middle]
            for response in range(width):
                # All ones where the middle one beats the response, else zero: avoids a branch.
                bit = above[response] >> np.uint32(middle) & np.uint32(1)
                above[response] |= through & (np.uint32(0) - bit)


def _peel(masks: Any, tiers: Any) -> None:
    """Compute tiers from closed masks: merge the responses of a cycle, then remove the unbeaten ones in rounds."""
    number, width = masks.shape
    below = np.zeros(32, np.uint32)
    for graph in range(number):
        above = masks[graph]
        below[:width] = above
        below[width:] = 0
        # Transpose the matrix of 32 by 32 bits in five rounds of swaps.
        step, mask = 16, np.uint32(0x0000FFFF)
        while step:
            row = 0
            while row < 32:
                moved = (below[row] >> np.uint32(step) ^ below[row + step]) & mask
                below[row] ^= moved << np.uint32(step)
                below[row + step] ^= moved
                row = (row + step + 1) & ~step
            step >>= 1
            mask ^= mask << np.uint32(step)
        for response in range(width):
            tiers[graph, response] = 0 if above[response] | below[response] else -1
            above[response] &= ~below[response]
        remaining = np.uint32(0xFFFFFFFF)
        while remaining:
            left = np.uint32(0)
            for response in range(width):
                if above[response] & remaining:
                    tiers[graph, response] += 1
                    left |= np.uint32(1) << np.uint32(response)
            remaining = left
