"""Which items of a batch a layer of review checks (CHEEMS, appendix D.1).

Delivery checks 30 % of what was annotated, operations another 30 % drawn without regard to the first. The share is
exact in every batch. What is drawn follows from a seed alone, so that it can be drawn again and proved.
"""

from collections.abc import Sequence
from math import ceil

from steelyard.annotation.pipeline import Layer
from steelyard.core.numerics import generator


def draw_for_review(items: Sequence[str], layer: Layer, *, share: float, batch: str, seed: int) -> frozenset[str]:
    """Return the items of a batch that a layer checks: the share of them, rounded up, each equally likely.

    ``items`` are names that stay the same, in any order. Layers draw independently of each other.
    """
    number = ceil(share * len(items) - 1e-9)
    order = generator(seed, "review", batch, layer).permutation(len(items))[:number]
    in_order = sorted(items)
    return frozenset(in_order[place] for place in order)
