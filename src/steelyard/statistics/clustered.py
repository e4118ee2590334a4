"""Shares of entries under several choices at once, drawn together: intervals of each share and of every difference.

A bootstrap over units (prompts), with the intervals of `estimates`; all choices see the same draws, so differences are
paired.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.seeds import generator
from steelyard.curation.supervision import Floats
from steelyard.statistics.estimates import SHARE, Estimate, difference, interval, one_sample
from steelyard.statistics.tallies import Integers

_NUM_RESAMPLES = 2000
_NUMBERS_AT_A_TIME = 20_000_000


class Shares(NamedTuple):
    """For each choice (column) the share, its resamples of shape (resample, column), and what it is the share of.

    ``above`` and ``below`` are the right and the counted entries of each unit, shape (unit, column).
    """

    value: Floats
    drawn: Floats
    total: Floats
    above: Floats
    below: Floats

    def of(self, column: int) -> Estimate:
        """The share of one choice."""
        evidence = one_sample(float((self.below[:, column] > 0).sum()))
        return interval(float(self.value[column]), self.drawn[:, column], round(self.total[column]), evidence, SHARE)

    def minus(self, column: int, other: int) -> Estimate:
        """The share of one choice minus that of another; n is how many entries the first has."""
        pair = [column, other]
        weighed = self.above[:, pair] / np.maximum(self.below[:, pair].sum(axis=0), 1.0)
        num_units = float((self.below[:, pair] > 0).any(axis=1).sum())
        return difference(
            float(self.value[column] - self.value[other]),
            self.drawn[:, column] - self.drawn[:, other],
            round(self.total[column]),
            one_sample(num_units),
            discordance=min(1.0, float(np.abs(weighed[:, 0] - weighed[:, 1]).sum())),
        ).estimate


def shares(unit: Integers, counted: NDArray, right: NDArray, *, seed: int) -> Shares:
    """The share of right among counted: ``counted`` has shape (entry, column); ``right`` too, or is one column for all.

    ``right`` may be a fraction. Entries of one unit are drawn together.
    """
    below = _by_unit(unit, counted)
    above = _by_unit(unit, counted * (right if right.ndim > 1 else right[:, None]))
    drawn = [_divided(counts @ above, counts @ below) for counts in _counts(len(below), below.shape[1], seed)]
    value = _divided(above.sum(0), below.sum(0))
    return Shares(value, np.concatenate(drawn), counted.sum(0).astype(np.float64), above, below)


def area(unit: Integers, margin: Floats, is_right: NDArray[np.bool_], *, seed: int) -> Estimate:
    """The area under the ROC curve: how likely a right entry has a larger margin than a wrong one, a tie counting half.

    Null where all are right, or none. ``margin`` must be finite.
    """
    order = np.argsort(margin, kind="stable")
    _, start = np.unique(margin[order], return_index=True)
    right, owner = is_right[order], unit[order]
    num_units = int(unit.max(initial=-1)) + 1
    if right.all() or not right.any():
        return Estimate(None, None, None, len(margin))

    def areas(counts: Floats) -> Floats:
        weight = counts[:, owner]
        good = np.add.reduceat(weight * right, start, axis=1)
        bad = np.add.reduceat(weight * ~right, start, axis=1)
        below = np.cumsum(bad, axis=1) - bad / 2
        return _divided((good * below).sum(1), good.sum(1) * bad.sum(1))

    drawn = np.concatenate([areas(counts) for counts in _counts(num_units, len(margin), seed)])
    return interval(float(areas(np.ones((1, num_units)))[0]), drawn, len(margin), one_sample(num_units), SHARE)


def _counts(num_units: int, width: int, seed: int) -> Iterator[Floats]:
    """How often each unit is drawn in each resample: (resample, unit), some resamples at a time."""
    random = generator(seed, "bootstrap of units")
    step = max(1, _NUMBERS_AT_A_TIME // max(num_units, width, 1))
    for start in range(0, _NUM_RESAMPLES, step):
        size = min(step, _NUM_RESAMPLES - start)
        yield random.multinomial(num_units, np.full(num_units, 1 / num_units), size=size).astype(np.float64)


def _by_unit(unit: Integers, values: NDArray) -> Floats:
    found = np.zeros((int(unit.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(found, unit, values)
    return found


def _divided(above: Floats, below: Floats) -> Floats:
    return np.where(below > 0, above, np.nan) / np.where(below > 0, below, 1.0)
