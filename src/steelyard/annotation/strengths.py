"""Strengths of responses from rankings and pairs with ties, given the raters, each with its uncertainty.

The strengths of an item's responses have a standard normal prior, so that one answer gives no infinity, and the scale
of a discrimination is that of strengths whose standard deviation is 1. An item's strengths have the normal distribution
that is closest to their posterior (Opper and Archambeau, 2009): Laplace's steps with gradient and curvature averaged
over the distribution itself. Laplace's own approximation is too narrow for a few answers: in simulations its 95%
intervals cover 89%.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from steelyard.annotation.plackett_luce import Choices, Raters, strength_slopes
from steelyard.core.numerics import Floats, Integers

_CLOSE = 1e-4
"""The largest change of a mean or a covariance at which an item has converged."""
_NEAR = 0.05
"""The largest move of a strength at which the steps to the mode give way to those to the closest normal."""
_LONGEST_STEP = 1.5
_LEAST_PART = 1 / 64
_GROWTH = 1.35
_NODES = {2: 6, 3: 3, 4: 2, 5: 2}
"""Nodes in each dimension of the differences, by the number of responses of a choice."""


class ItemStrengths(NamedTuple):
    """The posterior of each item's strengths: ``mean`` (item, response), ``covariance`` (item, response, response).

    A response without a verdict has mean 0 and variance 1, those of the prior.
    """

    mean: Floats
    covariance: Floats


class RaterUtilities:
    """Strengths in each item to each rater: strengths of their own around those of the item, eliminated in each step.

    A rater who answers several tasks of an item repeats one view of it: however many the answers, they tell no more of
    the item than the view does. Given gradient g and curvature H of a view's likelihood at u, the view tells the item
    the precision H (1 + rater_item_variance H)^-1 and the shift (1 + rater_item_variance H)^-1 (H u + g).
    """

    def __init__(
        self,
        choices: Sequence[Choices],
        raters: Raters,
        num_items: int,
        width: int,
    ) -> None:
        self.choices, self.num_raters = [block for block in choices if len(block.item)], len(raters.tie)
        # Without rater-item variance all raters have one view of an item: that of the item.
        by_rater = int(raters.rater_item_variance > 0)
        codes = [block.item * self.num_raters + by_rater * block.rater for block in self.choices]
        keys = np.unique(np.concatenate(codes)) if codes else np.zeros(0, np.int64)
        self.item, self.view = keys // self.num_raters, [np.searchsorted(keys, code) for code in codes]
        self.items = ItemStrengths(np.zeros((num_items, width)), np.tile(np.eye(width), (num_items, 1, 1)))
        # Steps begin at nothing and go to the mode first: from there the average is a short way.
        self.is_near = False
        self.mean = self.items.mean[self.item]
        self.covariance = self.items.covariance[self.item]
        self._part = np.ones(num_items)
        self._before = ItemStrengths(np.zeros((num_items, width)), np.zeros((num_items, width, width)))
        self._whole = np.broadcast_to(np.eye(width), self.covariance.shape)

    def converge(self, raters: Raters, *, most_steps: int) -> None:
        """Take steps until items change no more, or as many as are allowed."""
        for _ in range(most_steps):
            moved, changed = (np.abs(each).max(initial=0.0) for each in self._step(raters))
            if self.is_near and max(moved, changed) < _CLOSE:
                break
            self.is_near = self.is_near or moved < _NEAR

    def _step(self, raters: Raters) -> ItemStrengths:
        """Move each item a part of the way to where its choices pull it. Returns the whole ways."""
        num_items, width = self.items.mean.shape
        gradient, curvature = self._slopes(raters)
        shrink = (
            np.linalg.inv(np.eye(width) + raters.rater_item_variance * curvature)
            if raters.rater_item_variance
            else self._whole
        )
        precision = np.tile(np.eye(width), (num_items, 1, 1))
        np.add.at(precision, self.item, curvature @ shrink)
        shift = np.zeros_like(self.items.mean)
        pull = (curvature @ self.mean[..., None])[..., 0] + gradient
        np.add.at(shift, self.item, (shrink.transpose(0, 2, 1) @ pull[..., None])[..., 0])
        covariance = np.asarray(np.linalg.inv(precision), np.float64)
        step = (covariance @ shift[..., None])[..., 0] - self.items.mean
        # Far from the mode the curvature can be nearly that of the prior: a whole step would overshoot.
        longest = np.abs(step).max(axis=1, initial=0.0, keepdims=True)
        step = step * np.minimum(1.0, _LONGEST_STEP / np.maximum(longest, 1e-300))
        way = ItemStrengths(step, covariance - self.items.covariance)
        part = self._parts(way)
        mean = self.items.mean + part[:, None] * way.mean
        covariance = self.items.covariance + part[:, None, None] * way.covariance
        self.items = ItemStrengths(mean, covariance)
        centre, part = mean[self.item], part[self.item]
        pull = (curvature @ (self.mean - centre)[..., None])[..., 0] + gradient
        seen = centre + raters.rater_item_variance * (shrink @ pull[..., None])[..., 0]
        spread = raters.rater_item_variance * shrink + shrink @ covariance[self.item] @ shrink.transpose(0, 2, 1)
        self.mean = self.mean + part[:, None] * (seen - self.mean)
        self.covariance = self.covariance + part[:, None, None] * (spread - self.covariance)
        return way

    def _parts(self, way: ItemStrengths) -> Floats:
        """Return the part of its way that each item goes, (item,): half as much once it turns back, more while not.

        Whole steps of raters who err little go to and fro about the result and never reach it.
        """
        turned = (way.mean * self._before.mean).sum(axis=1) + (way.covariance * self._before.covariance).sum((1, 2))
        self._part = np.where(
            turned < 0, np.maximum(self._part / 2, _LEAST_PART), np.minimum(1.0, _GROWTH * self._part)
        )
        self._before = way
        return self._part

    def _slopes(self, raters: Raters) -> tuple[Floats, Floats]:
        """Return gradient and curvature of each view's log likelihood, (view, response) and (view, response, response).

        At the mean, or averaged over the distribution of the view.
        """
        num_views, width = self.mean.shape
        gradient, curvature = np.zeros(num_views * width), np.zeros(num_views * width**2)
        for block, view in zip(self.choices, self.view, strict=True):
            points, weights = self.points(block, view)
            slope, bend = strength_slopes(block, points, raters, weights)
            at = view[:, None] * width + block.places
            gradient += np.bincount(at.reshape(-1), slope.reshape(-1), len(gradient))
            both = at[:, :, None] * width + block.places[:, None, :]
            curvature += np.bincount(both.reshape(-1), bend.reshape(-1), len(curvature))
        return gradient.reshape(num_views, width), curvature.reshape(num_views, width, width)

    def points(self, choices: Choices, view: Integers) -> tuple[Floats, Floats]:
        """Return strengths of the available responses, (point, choice, available), and the weights of the points.

        Gauss-Hermite points in the differences between the responses: nothing else enters a choice.
        """
        mean = self.mean[view[:, None], choices.places]
        if not self.is_near:
            return mean[None], np.ones(1)
        size = choices.places.shape[1]
        contrasts, nodes, weights = _cubature(size)
        covariance = self.covariance[view[:, None, None], choices.places[:, :, None], choices.places[:, None, :]]
        root = np.linalg.cholesky(contrasts.T @ covariance @ contrasts + 1e-12 * np.eye(size - 1))
        offsets = (contrasts @ root) @ nodes.T
        return mean + offsets.transpose(2, 0, 1), weights


@cache
def contrasts(size: int) -> Floats:
    """Return orthonormal contrasts, (response, size - 1): nothing but differences enters a choice."""
    return np.asarray(np.linalg.qr(np.eye(size) - 1 / size)[0], np.float64)[:, : size - 1]


@cache
def _cubature(size: int) -> tuple[Floats, Floats, Floats]:
    """Return orthonormal contrasts (response, size - 1), and nodes (point, size - 1) with their weights."""
    basis = contrasts(size)
    node, weight = np.polynomial.hermite_e.hermegauss(_NODES[size])
    nodes = np.array(list(product(node, repeat=size - 1)), np.float64)
    weights = np.array([np.prod(each) for each in product(weight / weight.sum(), repeat=size - 1)], np.float64)
    return basis, nodes, weights
