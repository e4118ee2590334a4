"""Ratios of sums over prompts in many groups at once, with the variance of a linearised ratio instead of resamples.

For the ratio p = Σ w / Σ n over the G units of a group, the variance is G / (G - 1) · Σ (w - p n)² / (Σ n)² (Cochran,
Sampling Techniques, 1977, section 6.4). A report has thousands of groups, for which resampling would be slow.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.statistics.intervals import Estimate, Evidence, one_sample, score_interval


class GroupRatio(NamedTuple):
    """The ratio of one group: its sums, the number of its units, its variance, and the evidence for its interval."""

    numerator: float
    denominator: float
    distance: float
    num_units: int
    variance: float
    evidence: Evidence

    @property
    def value(self) -> float:
        """The ratio."""
        return self.numerator / self.denominator


def group_ratios(
    group: Integers, unit: Integers, numerator: Floats, denominator: Floats, num_groups: int
) -> tuple[GroupRatio, ...]:
    """Return the ratio of each group; every array has shape (row,), and rows of one unit belong together.

    ``distance`` sums the absolute numerators of units. Asserts that every group has a positive denominator.
    """
    num_units = int(unit.max(initial=-1)) + 1
    keys, place = np.unique(group.astype(np.int64) * num_units + unit, return_inverse=True)
    group_of = keys // max(num_units, 1)
    above, below = (np.bincount(place, column, len(keys)) for column in (numerator, denominator))
    total, size, square, distance, units = (
        np.bincount(group_of, column, num_groups)
        for column in (above, below, below**2, np.abs(above), np.ones(len(keys)))
    )
    assert (size > 0).all(), "every group has something to measure"
    residual = np.bincount(group_of, (above - (total / size)[group_of] * below) ** 2, num_groups)
    variance = units / np.maximum(units - 1, 1) * residual / size**2
    columns = zip(total, size, distance, units, variance, size**2 / square, strict=True)
    return tuple(
        GroupRatio(float(w), float(n), float(d), int(g), float(v), Evidence(float(effective), float(g) - 1))
        for w, n, d, g, v, effective in columns
    )


class RatioSums(NamedTuple):
    """Sums over units from which a share and its interval follow without the units: kept by a database, added up.

    ``above`` and ``below`` are numerator and denominator; the others sum squares and products of a unit's two.
    """

    num_units: int
    above: float
    below: float
    above_squared: float
    product: float
    below_squared: float

    def estimate(self, *, design_effect: float = 1.0) -> Estimate:
        """Return the share with its interval; n is the denominator. ``design_effect``: see `design_effects`."""
        if self.below <= 0:
            return Estimate(None, None, None, 0)
        share, (variance, evidence) = self.above / self.below, self.spread(design_effect=design_effect)
        low, high = score_interval(share, variance, evidence)
        return Estimate(share, min(low, share), max(high, share), round(self.below))

    def spread(self, *, design_effect: float = 1.0) -> tuple[float, Evidence]:
        """Return the variance of the share, and the effective sample behind it. The denominator is above 0."""
        share = self.above / self.below
        residual = self.above_squared - 2 * share * self.product + share**2 * self.below_squared
        variance = self.num_units / max(self.num_units - 1, 1) * max(residual, 0.0) / self.below**2
        evidence = Evidence(self.below**2 / self.below_squared, float(self.num_units) - 1)
        return variance * design_effect, _fewer_units(evidence, design_effect)


def mean_of_sums(
    number: int, total: float, squares: float, *, low: float, high: float, design_effect: float = 1.0
) -> Estimate:
    """Return the mean of values between ``low`` and ``high`` with its interval, from their number, sum and squares.

    ``design_effect``: see `design_effects`.
    """
    if not number:
        return Estimate(None, None, None, 0)
    mean, width = total / number, high - low
    variance = max(squares / number - mean**2, 0.0) / max(number - 1, 1) * design_effect
    evidence = _fewer_units(one_sample(number), design_effect)
    ends = score_interval((mean - low) / width, variance / width**2, evidence)
    return Estimate(mean, min(low + width * ends[0], mean), max(low + width * ends[1], mean), number)


def design_effects(
    group: Integers, cluster: Integers, numerator: Floats, denominator: Floats, num_groups: int
) -> Floats:
    """Return by how much rows of one cluster resemble each other: the variance of a ratio over that of free rows.

    Every array has shape (row,); the result has shape (group,). 1 where rows are independent, about the size of the
    clusters where all rows of one are equal (Kish, 1965, section 5.4), and never below 1: with few clusters a smaller
    value is noise. 1 for a group without rows, with a single cluster, or without any variance.
    """
    effects = np.ones(num_groups)
    used = denominator > 0
    if not used.any():
        return effects
    names, place = np.unique(group[used], return_inverse=True)
    rows, above, below = np.arange(int(used.sum())), numerator[used], denominator[used]
    clustered = group_ratios(place, cluster[used], above, below, len(names))
    free = group_ratios(place, rows, above, below, len(names))
    for name, clusters, units in zip(names, clustered, free, strict=True):
        if clusters.num_units > 1 and units.variance > 0:
            effects[name] = max(1.0, clusters.variance / units.variance)
    return effects


def _fewer_units(evidence: Evidence, design_effect: float) -> Evidence:
    """Return the evidence of units that resemble each other: as of fewer ones."""
    freedom = max((evidence.freedom + 1) / design_effect - 1, min(evidence.freedom, 1.0))
    return evidence._replace(units=evidence.units / design_effect, freedom=freedom)
