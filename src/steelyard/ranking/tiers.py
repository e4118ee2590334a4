"""Tiers of many preference graphs at once: CHEEMS, algorithm 1, on bit masks.

The strong components of `scipy.sparse.csgraph` over all graphs at once take 1.4 to 2.4 times as long as closure and
tiers together take here (graphs of 5, 8 and 30 responses).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from steelyard.core.numerics import Integers
from steelyard.core.types import Ranking
from steelyard.ranking.judgment_table import Edges
from steelyard.ranking.tiers_numba import compiled_tiers, is_worth_compiling

_WIDTHS: tuple[tuple[int, type], ...] = (
    (5, np.uint8),
    (8, np.uint8),
    (16, np.uint16),
    (32, np.uint32),
    (64, np.uint64),
)
"""The widths of response sets, each with the narrowest word of as many bits: five responses fill the table of
`tiers_numba`, eight the smallest word."""
_CACHED_BYTES = 2**16
"""The masks processed at a time, so that all passes over them stay in the cache of one core."""


def tiers_of(edges: Edges, num_responses: Integers) -> NDArray[np.int32]:
    """Return the tier of every response, 0 is best, -1 without an edge: (graph, largest number of responses).

    ``num_responses``, one entry a graph, bounds the graph's positions. Responses in one cycle are merged; a tier is
    the set that no remaining response beats. Graphs are grouped by the number of bits of their widest response set:
    up to 64 responses the masks are machine words, beyond they are Python integers, which are slower but as exact.
    """
    widest = int(num_responses.max(initial=0))
    tiers = np.full((len(num_responses), widest), -1, np.int32)
    lower = 0
    for bits, word in (*_WIDTHS, (widest, object)):
        members = np.flatnonzero((num_responses > lower) & (num_responses <= bits))
        if len(members):
            width = int(num_responses[members].max())
            renumbered = _renumber(edges, members, len(tiers))
            if is_worth_compiling(len(members), width):
                tiers[members, :width] = compiled_tiers(*renumbered, width, tiers_of)
            else:
                tiers[members, :width] = _peel(_beaters(renumbered, width, word)).T
        lower = bits
    return tiers


def ranking_of(responses: Sequence[str], tiers: Sequence[int]) -> Ranking | None:
    """Return a row of tiers as a ranking of response ids; ids in a tier keep their order. None if none is ranked."""
    return tuple([tuple([responses[place] for place in tier]) for tier in _places(tuple(tiers))]) or None


@lru_cache(maxsize=1024)
def _places(tiers: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the positions in each tier. Cached: the orders of a handful of responses recur."""
    ranked: list[list[int]] = [[] for _ in range(max(tiers, default=-1) + 1)]
    for place, tier in enumerate(tiers):
        if tier >= 0:
            ranked[tier].append(place)
    return tuple(map(tuple, ranked))


def _renumber(edges: Edges, members: Integers, num_graphs: int) -> tuple[Edges, int]:
    """Return the edges of the member graphs, with graphs numbered by their place among the members."""
    if len(members) == num_graphs:
        return edges, num_graphs
    place = np.full(num_graphs, -1)
    place[members] = np.arange(len(members))
    graph = place[edges.graph]
    inside = graph >= 0
    return Edges(graph[inside], edges.better[inside], edges.worse[inside]), len(members)


def _beaters(numbered: tuple[Edges, int], width: int, word: type) -> NDArray:
    """Return which responses beat which, (response, graph): bit b of a mask is set where b beats the response."""
    edges, num_graphs = numbered
    masks = np.zeros(width * num_graphs, word)
    bit = np.array([1 << position for position in range(width)], word)
    np.bitwise_or.at(masks, edges.worse.astype(np.int64) * num_graphs + edges.graph, bit[edges.better])
    return masks.reshape(width, num_graphs)


def _peel(beaters: NDArray) -> NDArray[np.int32]:
    """Return the tiers, (response, graph), computed for as many graphs at a time as fit the processor's cache."""
    width, num_graphs = beaters.shape
    tiers = np.empty(beaters.shape, np.int32)
    step = max(1, _CACHED_BYTES // (width * beaters.itemsize))
    for start in range(0, num_graphs, step):
        tiers[:, start : start + step] = _peel_block(beaters[:, start : start + step].copy())
    return tiers


def _peel_block(above: NDArray) -> NDArray[np.int32]:
    """Close the relation transitively (Warshall), then remove in each round the responses that none remaining beats."""
    width, word = len(above), above.dtype
    position = np.arange(width).astype(word)[:, None]
    bit = np.array([1 << index for index in range(width)], word)[:, None]
    for middle in range(width):
        # A response that `middle` beats is also beaten by all that beat `middle`; the product selects without a branch.
        above |= (above >> middle & 1) * above[middle]
    below = np.zeros_like(above)
    for index in range(width):
        below |= (above[index] >> position & 1) * bit[index]
    # A response both above and below is in one strongly connected component with it: the two are one merged node.
    strictly_above = above & ~below
    tiers = np.where((above | below) != 0, 0, -1).astype(np.int32)
    remaining = np.full(above.shape[1], (1 << width) - 1, word)
    while remaining.any():
        beaten = (strictly_above & remaining) != 0
        tiers += beaten
        # The beaten ones remain; each round adds 1 to their tiers, and the unbeaten ones keep theirs.
        remaining = np.bitwise_or.reduce(np.where(beaten, bit, np.zeros_like(bit)), axis=0)
    return tiers
