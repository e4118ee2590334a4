"""Scaling: how much accuracy a doubling brings, of data or of weights, with an interval over prompts."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.statistics.aggregation import ACCURACY, Estimate, by_category, macro
from steelyard.statistics.estimates import difference
from steelyard.statistics.groups import Layout
from steelyard.statistics.pair_counts import NUM_COLUMNS, PAIRS, Floats, Integers
from steelyard.statistics.resampling import Items, resample


class Trend(NamedTuple):
    """The slope of accuracy by the logarithm of a size, base 2: what each doubling brings, and how sure that is.

    ``p``: two-sided, of the test whose interval stands beside the slope. ``sizes``: from the smallest to the largest.
    """

    per_doubling: Estimate
    p: float
    sizes: tuple[float, ...]

    def record(self) -> dict[str, Any]:
        """The trend as it is written."""
        return {"per_doubling": self.per_doubling.record(), "p": self.p, "sizes": list(self.sizes)}


def trend(
    layout: Layout, tables: Sequence[Integers], sizes: Sequence[float], *, num_resamples: int, seed: int
) -> Trend:
    """The least-squares slope over models on the same prompts; ``tables`` have shape (prompt, 4), a size each.

    Prompts are drawn once for all models, within category and subset: the interval is that of the prompts, not of the
    seeds. Asserts two different sizes above 0.
    """
    assert len(tables) == len(sizes), "a size for each model"
    assert len(set(sizes)) > 1, "a slope needs two sizes"
    assert min(sizes) > 0, "a size above 0"
    shares = _slope_weights(sizes)
    totals = resample(Items(layout, np.concatenate(list(tables), axis=1), num_resamples), seed=seed)
    categories = by_category(totals.cells)

    def slope(sums: Floats) -> Floats:
        each = [macro(sums, categories, ACCURACY.shifted(NUM_COLUMNS * index)) for index in range(len(sizes))]
        return np.stack(each, axis=-1) @ shares

    evidence = totals.evidence(categories.members)
    found = difference(float(slope(totals.point)), slope(totals.resampled), totals.point[:, PAIRS].sum(), evidence)
    return Trend(found.estimate, found.p, tuple(sorted(sizes)))


def _slope_weights(sizes: Sequence[float]) -> Floats:
    """The numbers w by which the least-squares slope over log2 of the sizes is the sum of w times accuracy."""
    doublings = np.log2(np.asarray(sizes, dtype=np.float64))
    centred = doublings - doublings.mean()
    return centred / (centred**2).sum()
