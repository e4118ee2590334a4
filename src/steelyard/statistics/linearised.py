"""Ratios of sums over prompts in many groups at once, with the variance of a linearised ratio instead of resamples.

The variance of p = Σ w / Σ n over the G units of a group is that of Σ (w - p n) / Σ n, within strata as the bootstrap
draws them. With one stratum it is G / (G - 1) · Σ (w - p n)² / (Σ n)² (Cochran, Sampling Techniques, 1977, section
6.4). A report has thousands of groups, for which resampling would be slow.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.statistics.groups import Layout, UnitWeights, evidence_of_groups
from steelyard.statistics.intervals import Estimate, Evidence, one_sample, score_interval

_LEAST_REMAINING = 1e-6
"""The least share of a variance that remains beside a unit that dominates its group."""


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


class Strata(NamedTuple):
    """The stratum of each unit, shape (unit,), the units of each stratum, and those of the pool for strata of one."""

    stratum: Integers
    sizes: Floats
    num_sources: int = 0


def units_and_strata(layout: Layout) -> tuple[Integers, Strata]:
    """Return the unit of each prompt, numbered stratum after stratum, and the strata of the units."""
    first = np.cumsum([0, *(stratum.num_units for stratum in layout.strata)])
    unit = np.empty(len(layout.cell), np.int64)
    for stratum, start in zip(layout.strata, first[:-1], strict=True):
        unit[stratum.rows] = start + stratum.unit
    owner = np.repeat(np.arange(len(layout.strata)), np.diff(first))
    return unit, Strata(owner, layout.sizes, layout.pool.num_sources)


def group_ratios(
    group: Integers,
    unit: Integers,
    numerator: Floats,
    denominator: Floats,
    num_groups: int,
    *,
    strata: Strata | None = None,
) -> tuple[GroupRatio, ...]:
    """Return the ratio of each group; every array has shape (row,), and rows of one unit belong together.

    ``strata``: None for one stratum. ``distance`` sums the absolute numerators of units. The evidence is that of a
    share by resamples (`evidence_of_groups`), so that both have one interval. Asserts positive denominators of groups.
    """
    num_units = int(unit.max(initial=-1)) + 1
    keys, place = np.unique(group.astype(np.int64) * num_units + unit, return_inverse=True)
    group_of, unit_of = np.divmod(keys, max(num_units, 1))
    above, below = (np.bincount(place, column, len(keys)).astype(np.float64) for column in (numerator, denominator))
    total, size, distance = (np.bincount(group_of, column, num_groups) for column in (above, below, np.abs(above)))
    assert (size > 0).all(), "every group has something to measure"
    strata = strata or Strata(np.zeros(num_units, np.int64), np.array([float(len(np.unique(unit)))]))
    stratum = strata.stratum[unit_of]
    share = below / size[group_of]
    part = above / size[group_of]
    variance = _variances(group_of, stratum, share, part, sizes=strata.sizes, num_groups=num_groups)
    ratios: list[GroupRatio] = []
    ends = np.searchsorted(group_of, np.arange(num_groups + 1)).tolist()
    for (start, end), *columns in zip(pairwise(ends), total, size, distance, variance, strict=True):
        of_group, row = slice(start, end), np.arange(end - start)
        among, index = np.unique(stratum[of_group], return_inverse=True)
        sizes, successes = below[of_group], above[of_group]
        weights = UnitWeights(row, np.zeros_like(row), sizes, index, np.ones_like(row), successes)
        evidence = evidence_of_groups(weights, strata.sizes[among], strata.num_sources)
        numerator_sum, denominator_sum, distance_sum, spread = map(float, columns)
        ratios.append(GroupRatio(numerator_sum, denominator_sum, distance_sum, len(row), spread, evidence))
    return tuple(ratios)


def _variances(
    group: Integers, stratum: Integers, share: Floats, part: Floats, *, sizes: Floats, num_groups: int
) -> Floats:
    """Return the variance of the ratio of each group, (group,), corrected for units that draw it to themselves.

    Arrays have shape (unit of a group,): ``share`` is its part of the group's denominator, ``part`` the numerator over
    the denominator of the group. The correction is the exact one for independent quotients of equal variance.
    """
    keys, place = np.unique(group * len(sizes) + stratum, return_inverse=True)
    group_of, size = keys // len(sizes), sizes[keys % len(sizes)]

    def in_strata(column: Floats) -> Floats:
        return np.bincount(place, column, len(keys)).astype(np.float64)

    # A stratum of one unit draws from others: differences between strata count as noise.
    several = size > 1
    factor = np.where(several, size / np.maximum(size - 1, 1), 1.0)
    centered = np.where(several, 1 / size, 0.0)
    residual = part - np.bincount(group, part, num_groups)[group] * share
    variance = factor * (in_strata(residual**2) - centered * in_strata(residual) ** 2)
    first, second, third = (in_strata(share**power) for power in (1, 2, 3))
    whole = np.bincount(group_of, second, num_groups)
    squares = second - 2 * third + whole[group_of] * second
    of_sums = second - 2 * first * second + first**2 * whole[group_of]
    remaining = np.bincount(group_of, factor * (squares - centered * of_sums), num_groups) / whole
    variance = np.maximum(np.bincount(group_of, variance, num_groups), 0.0)
    return variance / np.where(remaining > _LEAST_REMAINING, remaining, 1.0)


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
