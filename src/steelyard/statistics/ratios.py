"""A ratio of sums over prompts, with its interval over prompts: what is measured of judgments and of pairs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from steelyard.core.seeds import generator
from steelyard.statistics.estimates import SHARE, Estimate, interval, one_sample
from steelyard.statistics.resampling import distinct_rows
from steelyard.statistics.tallies import Integers

_NUM_RESAMPLES = 1000


def share_of(unit: Integers, counted: NDArray[np.bool_], right: NDArray[np.bool_], *, seed: int) -> Estimate:
    """The share of the counted entries that are right; entries of one unit (a prompt) are drawn together."""
    num_units = int(unit.max(initial=-1)) + 1
    totals = np.bincount(unit, counted, num_units).astype(np.int64)
    hits = np.bincount(unit, counted & right, num_units).astype(np.int64)
    if not totals.any():
        return Estimate(None, None, None, 0)
    rows, counts = distinct_rows(np.stack([hits, totals], axis=1))
    drawn = generator(seed, "share of entries").multinomial(num_units, counts / num_units, size=_NUM_RESAMPLES) @ rows
    shares = drawn[drawn[:, 1] > 0]
    evidence = one_sample(float((totals > 0).sum()))
    return interval(int(hits.sum()) / int(totals.sum()), shares[:, 0] / shares[:, 1], totals.sum(), evidence, SHARE)


def numbered(names: Sequence[str]) -> Integers:
    """Each name's number, in order of first appearance."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)
