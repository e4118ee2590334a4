"""Position bias and length bias of judges, as counts by column and the shares that follow (CHEEMS, figure 15).

Both count strict verdicts only. *Position*: is the response shown earlier preferred? By the positions of the two among
the responses shown (2, 3 or 4; more share one column). *Length*: is the longer response preferred? By the difference of
the two lengths in code points, relative to the longer one; equal lengths are counted separately.

Differs from: the paper's figure, whose axis is the signed difference between answers A and B. If both orders occur,
the name A carries no information; the axis here is the relative excess of the longer answer.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers, ratio

LENGTH_EDGES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""The upper ends of the bins of relative length difference; each bin includes its upper end."""

MOST_SHOWN = 4
POSITION_PAIRS = tuple(
    (size, early, late) for size in range(2, MOST_SHOWN + 1) for late in range(size) for early in range(late)
)
"""The number of responses shown and two positions, from 0, the earlier first."""

NUM_LENGTH = 2 * len(LENGTH_EDGES) + 1
NUM_POSITION = 2 * (len(POSITION_PAIRS) + 1)
_EQUAL = NUM_LENGTH - 1
_MORE = len(POSITION_PAIRS)
_PAIR_OF = np.full((MOST_SHOWN + 1,) * 3, _MORE)
for _index, _places in enumerate(POSITION_PAIRS):
    _PAIR_OF[_places] = _index


class Chosen(NamedTuple):
    """The number of verdicts for the side in question, and of all verdicts on it: floats of shape (…, pair)."""

    preferred: Floats
    total: Floats

    @property
    def share(self) -> Floats:
        """Return the share of strict verdicts for that side; NaN without verdicts."""
        return ratio(self.preferred, self.total)


def length_columns(better: Integers, worse: Integers) -> Integers:
    """Return the column of each strict verdict, from lengths in code points: 2 x bin + (longer preferred), or equal."""
    longer, shorter = np.maximum(better, worse), np.minimum(better, worse)
    difference = (longer - shorter) / np.maximum(longer, 1)
    column = 2 * np.searchsorted(LENGTH_EDGES, difference, side="left") + (better > worse)
    return np.where(better == worse, _EQUAL, column)


def position_columns(better: Integers, worse: Integers, num_shown: Integers) -> Integers:
    """Return the column of each strict verdict from the two positions: 2 x pair + (earlier preferred)."""
    size = np.where(num_shown > MOST_SHOWN, 0, num_shown)
    early, late = (np.where(size, place, 0) for place in (np.minimum(better, worse), np.maximum(better, worse)))
    return 2 * _PAIR_OF[size, early, late] + (better < worse)


def longer(columns: Floats) -> Chosen:
    """Count the verdicts for the longer answer by bin: (…, NUM_LENGTH) to (…, bin)."""
    return _chosen(columns[..., :_EQUAL])


def equal_length(columns: Floats) -> Floats:
    """Count the strict verdicts on two answers of equal length."""
    return columns[..., _EQUAL]


def earlier(columns: Floats) -> Chosen:
    """Count the verdicts for the earlier answer by pair of positions: (…, NUM_POSITION) to (…, pair)."""
    return _chosen(columns)


def overall(chosen: Chosen) -> Chosen:
    """Sum over all pairs or bins, into one column."""
    return Chosen(chosen.preferred.sum(axis=-1, keepdims=True), chosen.total.sum(axis=-1, keepdims=True))


def by_place(columns: Floats, num_shown: int) -> Chosen:
    """Count the verdicts for the answer at each position of those shown: (…, NUM_POSITION) to (…, num_shown)."""
    chosen = earlier(columns)
    preferred, total = (np.zeros((*columns.shape[:-1], num_shown)) for _ in range(2))
    for index, (size, early, late) in enumerate(POSITION_PAIRS):
        if size == num_shown:
            preferred[..., early] += chosen.preferred[..., index]
            preferred[..., late] += chosen.total[..., index] - chosen.preferred[..., index]
            total[..., [early, late]] += chosen.total[..., index, None]
    return Chosen(preferred, total)


def _chosen(columns: Floats) -> Chosen:
    return Chosen(columns[..., 1::2], columns[..., 0::2] + columns[..., 1::2])
