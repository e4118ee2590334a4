"""Reliability of raters from rankings and pairs with ties: discrimination and tie inclination, with their uncertainty.

Strengths of responses are integrated out (`strengths`). Raters share a population: a rater with few answers counts as
an average one.

The raters' parameters maximise the marginal likelihood, in which the strengths are integrated out (Bock and Aitkin,
1981). Its gradient is the expected gradient of the complete likelihood (Fisher's identity) over the posterior of an
item's strengths: points around the closest normal, weighted by prior and likelihood (Pinheiro and Bates, 1995). Steps
and standard errors follow from the outer products of the items' gradients (Berndt, Hall, Hall and Hausman, 1974).

A rater who answers several tasks of an item repeats one view of it. Where this is usual, each rater sees strengths of
their own, which differ from the item's by a fixed variance; otherwise such a difference counts as noise.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from steelyard.annotation.plackett_luce import Choices, Raters, choice_gradients
from steelyard.annotation.strengths import ItemStrengths, RaterUtilities, contrasts
from steelyard.core.numerics import Floats, Integers

_CLOSE_RATERS = 0.02
"""The largest move of a rater's parameter, in standard errors, at which the fit has converged."""
_LONGEST_MOVE = 0.5
_MOST_STEPS = 60
RATER_SPREAD = np.array([0.75, 1.0])
"""Standard deviations of discriminations and tie inclinations in the population of raters."""
_POPULATION = np.array([1.5, -1.0])
_POPULATION_SPREAD = np.array([1.0, 1.5])
"""The prior of the population's means."""
_RATER_ITEM_VARIANCE = 0.5
"""The variance of views around their items where raters answer several tasks of an item."""
_SHARE_OF_REPEATS = 0.2
"""The share of views with several answers from which a rater-item variance is estimated."""
_LARGEST = 6.0
"""The largest discrimination: answers without any error would make it infinite."""
_POSTERIOR_NODES = {1: 15, 2: 7}
"""Nodes in each dimension of an item's posterior, by the number of dimensions: two and three responses."""
_WIDER = 1.2
"""The deviation of the points over that of the closest normal: the posterior has longer tails."""


class PanelFit(NamedTuple):
    """Raters with the ``covariance`` (2 * rater, 2 * rater) of all discriminations, then all tie inclinations.

    ``population`` are the means of the raters' parameters.
    """

    raters: Raters
    covariance: Floats
    population: Floats

    def standard_errors(self) -> Raters:
        """Return the standard errors of the parameters.

        Beside a bootstrap over items they are up to 1.4 times as large; with three raters one was 3.5 times.
        """
        number = len(self.raters.tie)
        errors = np.sqrt(np.diag(self.covariance))
        return Raters(errors[:number], errors[number:])


def fit_raters(
    choices: Sequence[Choices],
    *,
    num_raters: int,
    num_items: int,
    width: int,
) -> PanelFit:
    """Fit discriminations and tie inclinations of raters.

    Raters are fitted to items that at least two of them answered: alone, noise looks like responses that are alike.
    Seconds for 10,000 items of five responses by 30 raters.
    """
    values = np.repeat(_POPULATION[:, None], num_raters, axis=1)
    precision = _prior_precision(num_raters)
    covariance: Floats = np.asarray(np.linalg.inv(precision), np.float64)
    step, moved = 0, np.inf
    scale, before = 1.0, np.zeros(2 * num_raters)
    shared = _shared_items(choices, num_items)
    # One answer of a rater to an item does not tell a rater-item effect from noise: all of it then counts as noise.
    rater_item_variance = _RATER_ITEM_VARIANCE if _has_repeats(shared, num_raters) else 0.0
    views = RaterUtilities(shared, Raters(values[0], values[1], rater_item_variance), num_items, width)
    while step < _MOST_STEPS and moved > _CLOSE_RATERS:
        # Two steps for the items with each of the raters: both converge together.
        views.converge(Raters(values[0], values[1], rater_item_variance), most_steps=6 if step == 0 else 2)
        step += 1
        gradient, information = marginal_slopes(views, Raters(values[0], values[1], rater_item_variance))
        covariance = np.asarray(np.linalg.inv(information + precision), np.float64)
        move = covariance @ (gradient - precision @ (values - _POPULATION[:, None]).reshape(-1))
        moved = np.abs(move / np.sqrt(np.diag(covariance))).max(initial=0.0)
        # Outer products of few or equal items are a poor curvature: where steps go to and fro they are too long.
        scale = scale / 2 if move @ before < 0 else min(1.0, 1.5 * scale)
        before = move
        values = values + np.clip(scale * move, -_LONGEST_MOVE, _LONGEST_MOVE).reshape(2, -1)
        values = np.clip(values, -_LARGEST, _LARGEST)
    raters = Raters(values[0], values[1], rater_item_variance)
    # The means of the population given the raters: theirs, with the weight of the prior.
    weight, prior = num_raters / RATER_SPREAD**2, 1 / _POPULATION_SPREAD**2
    population = (values.mean(axis=1) * weight + _POPULATION * prior) / (weight + prior)
    return PanelFit(raters, covariance, population)


def marginal_slopes(views: RaterUtilities, raters: Raters) -> tuple[Floats, Floats]:
    """Return the gradient of the log marginal likelihood, (2 * rater,), and its information by the items' parts."""
    from scipy.sparse import coo_array

    entries: list[tuple[Integers, Integers, Floats]] = []
    for block, gradient in zip(views.choices, _gradients(views, raters), strict=True):
        entries += [
            (block.item, block.rater + parameter * views.num_raters, gradient[:, parameter]) for parameter in (0, 1)
        ]
    if not entries:
        return np.zeros(2 * views.num_raters), np.zeros((2 * views.num_raters, 2 * views.num_raters))
    row, column, value = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    shape = (len(views.items.mean), 2 * views.num_raters)
    by_item = coo_array((value, (row, column)), shape=shape).tocsr()
    return np.asarray(by_item.sum(axis=0)).reshape(-1), (by_item.T @ by_item).toarray()


def _gradients(views: RaterUtilities, raters: Raters) -> list[Floats]:
    """Return the expected gradient of each choice, (choice, 2), for each block.

    Where raters share an item's view, over its posterior: over the closest normal, raters who hardly err would look
    much worse where items of two or three responses have two answers. More responses have too many dimensions; their
    several tasks make the closest normal a good one.
    """
    if raters.rater_item_variance or views.items.mean.shape[1] - 1 not in _POSTERIOR_NODES:
        return [
            np.tensordot(weights, choice_gradients(block, points, raters)[1], 1)
            for block, view in zip(views.choices, views.view, strict=True)
            for points, weights in [views.points(block, view)]
        ]
    if not views.choices:
        return []
    points, log_weight = _importance(views.items)
    log_likelihood = np.zeros_like(log_weight)
    gradients = []
    for block in views.choices:
        of_choices, gradient = choice_gradients(block, points[:, block.item[:, None], block.places], raters)
        gradients.append(gradient)
        for place, row in enumerate(of_choices):
            log_likelihood[place] += np.bincount(block.item, row, log_weight.shape[1])
    log_weight = log_weight + log_likelihood
    weight = np.exp(log_weight - log_weight.max(axis=0))
    weight /= weight.sum(axis=0)
    return [
        np.einsum("pc,pcx->cx", weight[:, block.item], gradient)
        for block, gradient in zip(views.choices, gradients, strict=True)
    ]


def _importance(items: ItemStrengths) -> tuple[Floats, Floats]:
    """Return points of each item's strengths, (point, item, response), and the logarithms of prior over density.

    The density is a normal a little wider than the closest one.
    """
    width = items.mean.shape[1]
    nodes, log_share = _posterior_nodes(width - 1)
    basis = contrasts(width)
    root = _WIDER * np.linalg.cholesky(basis.T @ items.covariance @ basis)
    offsets = np.einsum("ijk,pk->pij", root, nodes)
    centred = items.mean @ basis + offsets
    log_density = -np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1) - (nodes**2).sum(axis=1)[:, None] / 2
    log_prior = -(centred**2).sum(axis=-1) / 2
    return centred @ basis.T, log_share[:, None] + log_prior - log_density


@cache
def _posterior_nodes(dimensions: int) -> tuple[Floats, Floats]:
    """Return nodes of a standard normal, (point, dimension), with the logarithms of their weights, (point,)."""
    node, weight = np.polynomial.hermite_e.hermegauss(_POSTERIOR_NODES[dimensions])
    nodes = np.array(list(product(node, repeat=dimensions)), np.float64)
    log_weight = np.array(list(product(np.log(weight / weight.sum()), repeat=dimensions))).sum(axis=1)
    return nodes, log_weight


def _shared_items(choices: Sequence[Choices], num_items: int) -> list[Choices]:
    """Return the choices on items that have more than one rater."""
    lowest, highest = np.full(num_items, np.iinfo(np.int64).max), np.full(num_items, -1)
    for block in choices:
        np.minimum.at(lowest, block.item, block.rater)
        np.maximum.at(highest, block.item, block.rater)
    is_shared = highest > lowest
    return [block.where(is_shared[block.item]) for block in choices]


def _has_repeats(choices: Sequence[Choices], num_raters: int) -> bool:
    """Return whether many raters answered several tasks of one item: choices among equally many then recur."""
    sizes: dict[int, list[Integers]] = {}
    for block in choices:
        sizes.setdefault(block.places.shape[1], []).append(block.item * num_raters + block.rater)
    counts = [np.unique(np.concatenate(codes), return_counts=True)[1] for codes in sizes.values()]
    return any((each > 1).mean() > _SHARE_OF_REPEATS for each in counts if len(each))


def _prior_precision(num_raters: int) -> Floats:
    """Return the inverse covariance of the raters' parameters before any answer, the population's means integrated out.

    Shape (2 * rater, 2 * rater): first all discriminations, then all tie inclinations.
    """
    from scipy.linalg import block_diag

    blocks = block_diag(
        *(
            np.linalg.inv(spread**2 * np.eye(num_raters) + common**2)
            for spread, common in zip(RATER_SPREAD, _POPULATION_SPREAD, strict=True)
        )
    )
    return np.asarray(blocks, np.float64)
