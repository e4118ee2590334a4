"""Differences between models on the same prompts: paired tests, corrections for many tests, and trends over sizes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import JsonObject
from steelyard.statistics.aggregation import ACCURACY, EXACT_MATCH, Share, by_category, macro
from steelyard.statistics.bootstrap import Items, cell_sums, difference_items, resample
from steelyard.statistics.groups import Layout
from steelyard.statistics.intervals import Difference, Estimate, difference
from steelyard.statistics.pair_counts import EXACT, NUM_COLUMNS, PAIRS

NUM_RESAMPLES = 2_000
"""The resamples of a paired difference, equal in every stage so that one difference has one interval."""
_POWER_AND_LEVEL = 1.959964 + 0.841621
"""The normal quantiles of a two-sided level of 5% and of a power of 80%."""


class PairedComparison(NamedTuple):
    """The first model minus the second.

    ``p_accuracy``: two-sided, of the test that the interval of the difference belongs to. ``p_exact_match``: McNemar's
    exact test on the prompts that only one of the two has right, ``only_first`` and ``only_second``. ``detectable``:
    the smallest true difference in accuracy that this many prompts would detect in four cases out of five.
    """

    accuracy: Estimate
    exact_match: Estimate
    p_accuracy: float
    p_exact_match: float
    only_first: int
    only_second: int
    detectable: float

    def record(self) -> JsonObject:
        """Return the comparison as it is written."""
        estimates = {"accuracy": self.accuracy.record(), "exact_match": self.exact_match.record()}
        return self._asdict() | estimates


class Trend(NamedTuple):
    """The slope of accuracy over log2 of a size: the gain of each doubling.

    ``p``: two-sided, of the test that the interval of the slope belongs to. ``sizes``: in ascending order.
    """

    per_doubling: Estimate
    p: float
    sizes: tuple[float, ...]

    def record(self) -> JsonObject:
        """Return the trend as it is written."""
        return {"per_doubling": self.per_doubling.record(), "p": self.p, "sizes": list(self.sizes)}


def share_difference(both: Items, share: Share, *, seed: int) -> Difference:
    """Return a measure (mean over categories) of the first model minus the second's; their columns are side by side.

    Prompts are drawn once for both (a paired bootstrap). With the models exchanged, the interval changes its sign and
    the p-value is the same, unless the models are equal in the sum of every cell: the draws then differ, and p is 1.
    Asserts that both have the same denominators.
    """
    items = difference_items(both, shared=[share.denominator], compared=[share.numerator])
    gains = items.statistics[:, 1]
    # The draws depend on the order of the distinct rows, and thus on the sign of the gains. Drawing the better model
    # minus the other makes them independent of the order of the models.
    sums = cell_sums(items.layout, gains[:, None])[:, 0]
    is_reversed = next((total < 0 for total in (sums.sum(), *sums) if total), False)
    if is_reversed:
        np.negative(gains, out=gains)
    totals = resample(items, seed=seed)
    categories = by_category(totals.cells)
    gain, distance = Share(1, 0), Share(2, 0)
    tested = difference(
        float(macro(totals.point, categories, gain)),
        np.asarray(macro(totals.resampled, categories, gain)),
        totals.point[:, 0].sum(),
        totals.evidence(categories.members),
        discordance=float(macro(totals.point, categories, distance)),
    )
    return tested.reversed() if is_reversed else tested


def compare(layout: Layout, first: Integers, second: Integers, *, num_resamples: int, seed: int) -> PairedComparison:
    """Compare two tables of statistics, shape (prompt, 4), over the same prompts in the same order.

    Prompts are drawn once for both (a paired bootstrap), within category and subset, parallel items together.
    Each measure has drawings of its own. Asserts that both count the same pairs and prompts.
    """
    both = Items(layout, np.concatenate([first, second], axis=1), num_resamples)
    accuracy = share_difference(both, ACCURACY, seed=seed)
    exact_match = share_difference(both, EXACT_MATCH, seed=seed)
    only_first = int((first[:, EXACT] > second[:, EXACT]).sum())
    only_second = int((second[:, EXACT] > first[:, EXACT]).sum())
    return PairedComparison(
        accuracy.estimate,
        exact_match.estimate,
        accuracy.p,
        mcnemar_p(only_first, only_second),
        only_first,
        only_second,
        accuracy.error * _POWER_AND_LEVEL,
    )


def mcnemar_p(only_first: int, only_second: int) -> float:
    """Return the exact two-sided McNemar test: whether the prompts that one model alone has right split evenly."""
    from scipy.stats import binomtest

    if only_first + only_second == 0:
        return 1.0
    return float(binomtest(only_first, only_first + only_second).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for their number (Holm, 1979), in the same order."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    largest = 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected.tolist()


def significant_ranks(is_better: Booleans) -> list[tuple[int, int]]:
    """Return the best and the worst possible rank of each model, from 1.

    ``is_better``: shape (model, model), true if the model of the row is significantly better than that of the column.
    """
    number = len(is_better)
    return [(1 + int(is_better[:, row].sum()), number - int(is_better[row].sum())) for row in range(number)]


def trend(
    layout: Layout, tables: Sequence[Integers], sizes: Sequence[float], *, num_resamples: int, seed: int
) -> Trend:
    """Return the least-squares slope over models on the same prompts; ``tables`` have shape (prompt, 4), a size each.

    Prompts are drawn once for all models, within category and subset: the interval covers the choice of prompts, not
    of training seeds. Asserts two different sizes above 0.
    """
    assert len(tables) == len(sizes), "a size for each model"
    assert len(set(sizes)) > 1, "a slope needs two sizes"
    assert min(sizes) > 0, "a size above 0"
    weights = _slope_weights(sizes)
    totals = resample(Items(layout, np.concatenate(list(tables), axis=1), num_resamples), seed=seed)
    categories = by_category(totals.cells)

    def slope(sums: Floats) -> Floats:
        each = [macro(sums, categories, ACCURACY.shifted(NUM_COLUMNS * index)) for index in range(len(sizes))]
        return np.stack(each, axis=-1) @ weights

    evidence = totals.evidence(categories.members)
    tested = difference(float(slope(totals.point)), slope(totals.resampled), totals.point[:, PAIRS].sum(), evidence)
    return Trend(tested.estimate, tested.p, tuple(sorted(sizes)))


def _slope_weights(sizes: Sequence[float]) -> Floats:
    """Return the weights w for which the least-squares slope over log2 of the sizes is the sum of w times accuracy."""
    doublings = np.log2(np.asarray(sizes, dtype=np.float64))
    centred = doublings - doublings.mean()
    return centred / (centred**2).sum()
