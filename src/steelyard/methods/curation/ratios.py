"""A ratio of sums over prompts, with a bootstrap interval over prompts: what is measured of judgments and of pairs."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.seeds import generator
from steelyard.methods.measures.resampling import distinct_rows
from steelyard.methods.ranking.graph import Integers

_NUM_RESAMPLES = 1000


class Ratio(NamedTuple):
    """A share with the ends of its 95 % percentile interval; ``n`` is how many entries it is of. Null where none is."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def share_of(unit: Integers, counted: NDArray[np.bool_], right: NDArray[np.bool_], *, seed: int) -> Ratio:
    """The share of the counted entries that are right; entries of one unit (a prompt) are drawn together."""
    num_units = int(unit.max(initial=-1)) + 1
    totals = np.bincount(unit, counted, num_units).astype(np.int64)
    hits = np.bincount(unit, counted & right, num_units).astype(np.int64)
    if not totals.any():
        return Ratio(None, None, None, 0)
    rows, counts = distinct_rows(np.stack([hits, totals], axis=1))
    drawn = generator(seed, "share of entries").multinomial(num_units, counts / num_units, size=_NUM_RESAMPLES) @ rows
    shares = drawn[drawn[:, 1] > 0]
    low, high = np.percentile(shares[:, 0] / shares[:, 1], [2.5, 97.5]).tolist()
    return Ratio(int(hits.sum()) / int(totals.sum()), low, high, int(totals.sum()))


def numbered(names: Sequence[str]) -> Integers:
    """Each name's number, in order of first appearance."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)
