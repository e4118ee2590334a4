"""When a ranking is sure enough, from the beliefs about an item's strengths."""

from math import isqrt
from typing import NamedTuple

import numpy as np

from steelyard.annotation.strengths import ItemStrengths, pair_beliefs
from steelyard.core.numerics import Floats, Integers


class Sureness(NamedTuple):
    """For every two responses, in the order of `numpy.triu_indices`, the probability that the means order them right.

    ``of_pairs`` is 0.5 where nothing is known.
    """

    of_pairs: Floats

    def of_tasks(self, item: Integers, places: Integers) -> Floats:
        """Return the mean over the pairs of the responses that each task shows, (task,).

        ``item`` (task,), and ``places`` (task, shown) of its responses.
        """
        # An item of n responses has n (n - 1) / 2 pairs.
        width = (1 + isqrt(1 + 8 * self.of_pairs.shape[1])) // 2
        first, second = np.triu_indices(places.shape[1], 1)
        low, high = np.sort(np.stack([places[:, first], places[:, second]]), axis=0)
        number = low * (2 * width - low - 1) // 2 + high - low - 1
        return self.of_pairs[item[:, None], number].mean(axis=1)


def sureness(items: ItemStrengths) -> Sureness:
    """Return how sure the order of every two responses of each item is, (item, pair)."""
    better = pair_beliefs(items).first_is_better
    return Sureness(np.maximum(better, 1 - better))
