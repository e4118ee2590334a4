"""When a ranking is sure enough, and which comparison tells most: from the beliefs about an item's strengths.

The error of a ranking is the expected share of pairs of responses whose order by the mean strengths is wrong. A further
answer is worth the error that it is expected to take away: over the answers that the model predicts, by the normal
approximation (the preposterior analysis of Raiffa and Schlaifer, 1961).
"""

from math import isqrt
from typing import NamedTuple

import numpy as np

from steelyard.annotation.plackett_luce import Choices, Raters, strength_slopes
from steelyard.annotation.strengths import ItemStrengths, pair_beliefs
from steelyard.core.numerics import Floats, Integers

_NODES = 9
_TINY = 1e-12


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


def task_values(tasks: Choices, raters: Raters, items: ItemStrengths) -> Floats:
    """Return for each task the pairs of its item that one more answer of its rater is expected to set right, (task,).

    ``tasks`` are first choices: the item, who would answer, and the responses shown.
    """
    from scipy.special import ndtr

    information = _information(tasks, raters, items)
    covariance = items.covariance[tasks.item]
    rows = np.take_along_axis(covariance, tasks.places[:, :, None], axis=1)
    inner = np.take_along_axis(rows, tasks.places[:, None, :], axis=2)
    # Woodbury: the covariance after an answer with this information about the responses shown.
    size = tasks.places.shape[1]
    gain = np.linalg.solve(np.eye(size) + information @ inner, information)
    lower = covariance - rows.transpose(0, 2, 1) @ gain @ rows
    before = pair_beliefs(ItemStrengths(items.mean[tasks.item], covariance))
    after = pair_beliefs(ItemStrengths(items.mean[tasks.item], lower)).deviation
    moved = np.sqrt(np.maximum(before.deviation**2 - after**2, 0.0))
    wrong = ndtr(-np.abs(before.difference) / np.maximum(before.deviation, _TINY))
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    expected = np.zeros_like(wrong)
    for node, weight in zip(nodes, weights / weights.sum(), strict=True):
        later = before.difference + moved * node
        expected += weight * ndtr(-np.abs(later) / np.maximum(after, _TINY))
    return (wrong - expected).sum(axis=1)


def _information(tasks: Choices, raters: Raters, items: ItemStrengths) -> Floats:
    """Return the information of one answer about the strengths of the responses shown, (task, shown, shown).

    That of the first choice at the means, raised to all choices of a ranking: each of the size - 1 is about as much.
    """
    at_mean = items.mean[None, tasks.item[:, None], tasks.places]
    return strength_slopes(tasks, at_mean, raters).curvature * (tasks.places.shape[1] - 1)
