"""One change of the mean of an ordered series: where it lies, both means, and a p-value for any change at all.

Every place where the series may change is tested by Student's two-sample test with one variance for both parts (the
hypothesis is that nothing changes), and the smallest p-value is multiplied by the number of places (Bonferroni). The
places overlap in most of their values, so the corrected p-value is conservative.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.statistics.intervals import Estimate, one_sample, score_interval

MOST_PLACES = 19
"""The most places that are tested; of many more those nearest to equal steps through the series."""
FEWEST_VALUES = 10
"""The fewest values on either side of a change."""


class ChangePoint(NamedTuple):
    """A possible change before the value at ``place``. ``p`` is corrected for the number of places."""

    place: int
    before: Estimate
    after: Estimate
    p: float


def change_point(values: Floats, block: Integers) -> ChangePoint | None:
    """Return the most likely change of the mean of values in [0, 1], shape (value,), in their order.

    ``block`` does not decrease; values of one block have no order among them, so that changes lie between blocks.
    None if no place has enough values on both sides.
    """
    from scipy.special import stdtr

    places = _places(block)
    if not len(places):
        return None
    number = len(values)
    total, squares = float(values.sum()), float((values**2).sum())
    num_before = places.astype(np.float64)
    before = np.cumsum(values)[places - 1] / num_before
    after = (total - before * num_before) / (number - num_before)
    within = np.maximum(squares - num_before * before**2 - (number - num_before) * after**2, 0.0)
    # A prior of one value that is wrong by one: without any variance within the parts the test would have no error.
    error = np.sqrt((within + 1.0) / (number - 1) * (1 / num_before + 1 / (number - num_before)))
    best = int(np.argmax(np.abs(after - before) / error))
    place = int(places[best])
    t = float((after - before)[best] / error[best])
    p = min(1.0, len(places) * float(2 * stdtr(number - 2, -abs(t))))
    return ChangePoint(place, _mean(values[:place]), _mean(values[place:]), p)


def _places(block: Integers) -> Integers:
    """Return the places at which a block begins, with enough values on both sides, at most `MOST_PLACES`."""
    starts = np.flatnonzero(np.diff(block)) + 1
    starts = starts[(starts >= FEWEST_VALUES) & (starts <= len(block) - FEWEST_VALUES)]
    if len(starts) <= MOST_PLACES:
        return starts
    wanted = np.arange(1, MOST_PLACES + 1) * len(block) / (MOST_PLACES + 1)
    return np.unique(starts[np.abs(starts[:, None] - wanted).argmin(axis=0)])


def _mean(values: Floats) -> Estimate:
    mean, evidence = float(values.mean()), one_sample(len(values))
    low, high = score_interval(mean, float(values.var(ddof=1)) / len(values), evidence)
    return Estimate(mean, min(low, mean), max(high, mean), len(values))
