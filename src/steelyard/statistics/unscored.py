"""Whether a difference of two models stands, whatever the pairs are worth that only one of them has no score for.

Pairs without a score count as wrong. Where the worse model alone has none, they are counted as right for it, the other
way round: a difference that is gone then is one of limits or failures, and not of what the models prefer. Pairs that
neither has scored are left as they are, the same for both.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from steelyard.statistics.pair_counts import CORRECT, EXACT, NUM_COLUMNS, Integers

Pair = tuple[str, str]


class Unscored(NamedTuple):
    """The pairs that a model has no score or verdict for, by row of its table of statistics.

    ``if_right``: EXACT and the bench's own columns of these rows if all of them were right.
    """

    pairs: Mapping[int, frozenset[Pair]] = {}
    if_right: Mapping[int, tuple[int, ...]] = {}


def favoured(table: Integers, own: Unscored, other: Unscored) -> Integers | None:
    """Return a model's table with every pair right that it alone has no score for; null where there is none.

    ``other``: of the model that it is compared with. Exact match and the bench's own columns of a row with such a pair
    are those of all its unscored pairs right.
    """
    alone = {row: len(pairs - other.pairs.get(row, frozenset())) for row, pairs in own.pairs.items()}
    rows = [row for row, number in alone.items() if number]
    if not rows:
        return None
    found = table.copy()
    found[rows, CORRECT] += np.array([alone[row] for row in rows])
    for row in rows:
        found[row, [EXACT, *range(NUM_COLUMNS, table.shape[1])]] = own.if_right[row]
    return found
