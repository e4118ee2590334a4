"""Position bias and length bias of judges, as counts by column and the shares that follow (CHEEMS, figure 15).

Both look at strict verdicts only. *Position*: of two responses, is the one shown earlier preferred? By the two places
within what was shown (2, 3 or 4 answers; more are one column). *Length*: is the longer answer preferred? By the
difference of the two lengths in code points, relative to the longer one; equal lengths are counted apart.

Differs from: the paper's figure, whose axis is the signed difference between answers A and B; which of two answers is
A says nothing where both orders occur, so here the longer one is asked for, and its gain in length is relative.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers, ratio

LENGTH_EDGES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
"""The upper ends of the bins of relative length difference; a difference on an end belongs to the bin below it."""

MOST_SHOWN = 4
POSITION_PAIRS = tuple(
    (size, one, two) for size in range(2, MOST_SHOWN + 1) for two in range(size) for one in range(two)
)
"""How many were shown, and the two places, from 0; the earlier first."""

NUM_LENGTH = 2 * len(LENGTH_EDGES) + 1
NUM_POSITION = 2 * (len(POSITION_PAIRS) + 1)
_EQUAL = NUM_LENGTH - 1
_MORE = len(POSITION_PAIRS)
_PAIR_OF = np.full((MOST_SHOWN + 1,) * 3, _MORE)
for _index, _places in enumerate(POSITION_PAIRS):
    _PAIR_OF[_places] = _index


class Chosen(NamedTuple):
    """How often the asked-for side was preferred, and how often each was to be had: floats of shape (…, pair)."""

    preferred: Floats
    given: Floats

    @property
    def share(self) -> Floats:
        """The share of strict verdicts for the asked-for side; NaN where there are none."""
        return ratio(self.preferred, self.given)


def length_columns(better: Integers, worse: Integers) -> Integers:
    """The column of each strict verdict, from two lengths in code points: 2 x bin + (longer preferred), or equal."""
    longer, shorter = np.maximum(better, worse), np.minimum(better, worse)
    difference = (longer - shorter) / np.maximum(longer, 1)
    column = 2 * np.searchsorted(LENGTH_EDGES, difference, side="left") + (better > worse)
    return np.where(better == worse, _EQUAL, column)


def position_columns(better: Integers, worse: Integers, num_shown: Integers) -> Integers:
    """The column of each strict verdict, from the two places in what was shown: 2 x pair + (earlier preferred)."""
    size = np.where(num_shown > MOST_SHOWN, 0, num_shown)
    one, two = (np.where(size, place, 0) for place in (np.minimum(better, worse), np.maximum(better, worse)))
    return 2 * _PAIR_OF[size, one, two] + (better < worse)


def longer(columns: Floats) -> Chosen:
    """How often the longer answer is preferred, by bin: ``[…, NUM_LENGTH]`` to ``[…, bin]``."""
    return _chosen(columns[..., :_EQUAL])


def equal_length(columns: Floats) -> Floats:
    """How many strict verdicts are on two answers of one length."""
    return columns[..., _EQUAL]


def earlier(columns: Floats) -> Chosen:
    """How often the earlier shown answer is preferred, by pair of places: ``[…, NUM_POSITION]`` to ``[…, pair]``."""
    return _chosen(columns)


def overall(chosen: Chosen) -> Chosen:
    """The same over all pairs or bins, with one column."""
    return Chosen(chosen.preferred.sum(axis=-1, keepdims=True), chosen.given.sum(axis=-1, keepdims=True))


def by_place(columns: Floats, num_shown: int) -> Chosen:
    """How often the answer at each place is preferred to another of what was shown: to ``[…, num_shown]``."""
    chosen = earlier(columns)
    preferred, given = (np.zeros((*columns.shape[:-1], num_shown)) for _ in range(2))
    for index, (size, one, two) in enumerate(POSITION_PAIRS):
        if size == num_shown:
            preferred[..., one] += chosen.preferred[..., index]
            preferred[..., two] += chosen.given[..., index] - chosen.preferred[..., index]
            given[..., [one, two]] += chosen.given[..., index, None]
    return Chosen(preferred, given)


def _chosen(columns: Floats) -> Chosen:
    return Chosen(columns[..., 1::2], columns[..., 0::2] + columns[..., 1::2])
