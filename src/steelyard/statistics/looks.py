"""Looks at figures that grow: a test that is shown whenever somebody opens a page, with one rate of false alarms.

Who tests again after every answer finds something sooner or later where nothing is: of people whose accuracy never
changes, a test of 5% on each of 60 days marked a third. Here a test looks only at certain numbers of values, four in
every doubling, and every look has its part of the level, so that all looks for ever have no more than the level
together (alpha spending: Lan and DeMets, Biometrika 70, 1983, here with Bonferroni's inequality). Between two looks the
last one holds, however often it is read.
"""

from math import ceil
from typing import NamedTuple

LOOKS_A_DOUBLING = 4


class Look(NamedTuple):
    """A look at the first ``size`` values; its p-value is multiplied by ``factor``."""

    size: int
    factor: float


def latest_look(number: int, *, first: int) -> Look | None:
    """Return the latest look at a series that has ``number`` values; None before the ``first`` ones have come.

    The looks are at ``first`` times 2 to the power of j / 4, j = 0, 1, 2…. A look of the d-th doubling, from 0, has the
    share 1 / (4 (d + 1) (d + 2)) of the level: over all looks these sum to 1.
    """
    if number < first:
        return None
    place = 0
    while _size(place + 1, first) <= number:
        place += 1
    doubling = place // LOOKS_A_DOUBLING
    return Look(_size(place, first), float(LOOKS_A_DOUBLING * (doubling + 1) * (doubling + 2)))


def _size(place: int, first: int) -> int:
    # Rounded before it is rounded up: 2 ** (4 / 4) has to double.
    return ceil(round(first * 2 ** (place / LOOKS_A_DOUBLING), 9))
