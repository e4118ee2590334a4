"""Interim analyses of growing series: a test that a page shows at every opening, with one rate of false alarms.

A test after every answer finds a change sooner or later where there is none: of people whose accuracy never changes, a
test of 5% on each of 60 days marked a third. Here a series is tested only at certain numbers of values, four in every
doubling. Each analysis has a share of the level, and the shares of all analyses sum to the level (alpha spending: Lan
and DeMets, Biometrika 70, 1983, here with Bonferroni's inequality). Between two analyses the last result holds.
"""

from math import ceil
from typing import NamedTuple

ANALYSES_PER_DOUBLING = 4


class InterimAnalysis(NamedTuple):
    """An analysis of the first ``size`` values; its p-value is multiplied by ``factor``."""

    size: int
    factor: float


def latest_interim_analysis(number: int, *, first: int) -> InterimAnalysis | None:
    """Return the latest analysis of a series that has ``number`` values; None before the ``first`` ones have come.

    Analyses are at ``first`` times 2 to the power of j / 4, j = 0, 1, 2…. One of the d-th doubling, from 0, has the
    share 1 / (4 (d + 1) (d + 2)) of the level: over all analyses these sum to 1.
    """
    if number < first:
        return None
    place = 0
    while _size(place + 1, first) <= number:
        place += 1
    doubling = place // ANALYSES_PER_DOUBLING
    return InterimAnalysis(_size(place, first), float(ANALYSES_PER_DOUBLING * (doubling + 1) * (doubling + 2)))


def _size(place: int, first: int) -> int:
    # Rounded before it is rounded up: 2 ** (4 / 4) has to double.
    return ceil(round(first * 2 ** (place / ANALYSES_PER_DOUBLING), 9))
