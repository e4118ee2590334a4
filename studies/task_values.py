"""Which comparison tells most about an item: what one more answer is expected to set right.

The error of a ranking is the expected share of pairs of responses whose order by the mean strengths is wrong. A further
answer is worth the error that it is expected to take away: over the answers that the model predicts, by the normal
approximation (the preposterior analysis of Raiffa and Schlaifer, 1961).
"""

import numpy as np
from scipy.special import ndtr

from steelyard.annotation.plackett_luce import Choices, Raters, strength_slopes
from steelyard.annotation.strengths import ItemStrengths, pair_beliefs
from steelyard.core.numerics import Floats

_NODES = 9
_TINY = 1e-12


def task_values(tasks: Choices, raters: Raters, items: ItemStrengths) -> Floats:
    """Return for each task the pairs of its item that one more answer of its rater is expected to set right, (task,).

    ``tasks`` are first choices: the item, who would answer, and the responses shown.
    """
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
