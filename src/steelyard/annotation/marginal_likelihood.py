"""The likelihood of raters alone: what they say of the same responses, whose strengths are integrated out.

Responses that several raters ranked together are a *set*. Its strengths are integrated over fixed points of their
normal prior that contain every permutation of each other: raters who never err then have the likelihood that they
should have, where points around a posterior add a little for every set. Several sets of an item count as independent.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from itertools import permutations
from typing import NamedTuple

import numpy as np

from steelyard.annotation.plackett_luce import Choices, RankingAnswer, Raters, choice_gradients, choices_of
from steelyard.annotation.strengths import contrasts
from steelyard.core.numerics import Booleans, Floats, Integers

_NUM_BASES = {2: 40, 3: 32, 4: 16, 5: 8}
"""Points before they are permuted, by the number of responses of a set."""
_BLOCK = 400_000
"""Products of sets and points that are in memory at once."""

_Tiers = tuple[tuple[int, ...], ...]


class _Sets(NamedTuple):
    """Sets of equally many responses: ``row`` (answer,) numbers what was said, set by set; ``length`` (set,).

    What was said is a rater with a ranking: ``choices`` have its number as their item, ``rater`` (row,) who said it.
    """

    points: Floats
    choices: Sequence[Choices]
    rater: Integers
    row: Integers
    length: Integers

    def where(self, mask: Booleans) -> "_Sets":
        remaining, row = np.unique(self.row[np.repeat(mask, self.length)], return_inverse=True)
        number = np.full(len(self.rater), -1)
        number[remaining] = np.arange(len(remaining))
        blocks = [block.where(number[block.item] >= 0) for block in self.choices]
        choices = [block._replace(item=number[block.item]) for block in blocks if len(block.item)]
        return _Sets(self.points, choices, self.rater[remaining], row, self.length[mask])


class MarginalLikelihood:
    """The likelihood of raters given their answers; ``num_answers`` (rater,) are those to sets that others ranked."""

    def __init__(self, sets: Sequence[_Sets], num_raters: int) -> None:
        self._sets, self._num_raters = sets, num_raters
        raters = [each.rater[each.row] for each in sets]
        self.num_answers = np.bincount(np.concatenate([np.zeros(0, np.int64), *raters]), minlength=num_raters)

    def of_rater(self, rater: int) -> "MarginalLikelihood":
        """Return the likelihood of the sets that a rater ranked."""
        remaining = []
        for each in self._sets:
            start = np.cumsum(each.length) - each.length
            remaining.append(each.where(np.logical_or.reduceat(each.rater[each.row] == rater, start)))
        return MarginalLikelihood([each for each in remaining if len(each.length)], self._num_raters)

    def slopes(self, raters: Raters) -> tuple[float, Floats, Floats]:
        """Return the log likelihood, its gradient (2 * rater,) and information (2 * rater, 2 * rater).

        First all discriminations, then all tie inclinations; the information is the outer products of the sets'
        gradients.
        """
        number = 2 * self._num_raters
        value, gradient, information = 0.0, np.zeros(number), np.zeros((number, number))
        for sets in self._sets:
            # What was said at each point: (row, point), and its gradient (2, row, point).
            likelihoods = np.zeros((len(sets.rater), len(sets.points)))
            slopes = np.zeros((2, *likelihoods.shape))
            for block in sets.choices:
                of_choices, bends = choice_gradients(block, sets.points[:, block.places], raters)
                # A ranking has one choice of each size at most: no row recurs in a block.
                likelihoods[block.item] += of_choices.T
                slopes[:, block.item] += bends.transpose(2, 1, 0)
            size = max(1, _BLOCK // len(sets.points))
            ends = np.cumsum(sets.length)
            for first in range(0, len(ends), size):
                last = min(first + size, len(ends))
                row = sets.row[ends[first] - sets.length[first] : ends[last - 1]]
                at_points = (likelihoods[row], [slope[row] for slope in slopes], sets.rater[row])
                log_mean, of_set = _of_sets(*at_points, sets.length[first:last], self._num_raters)
                value += log_mean
                gradient += of_set.sum(axis=0)
                information += of_set.T @ of_set
        return value, gradient, information


def marginal_likelihood(answers: Sequence[RankingAnswer], num_raters: int) -> MarginalLikelihood:
    """Return the likelihood of the raters of answers: of sets that one rater alone ranked nothing can be learned.

    Items of at most three responses are one set, whichever of them an answer ranks.
    """
    items: dict[int, set[int]] = defaultdict(set)
    for answer in answers:
        items[answer.item].update(response for tier in answer.tiers for response in tier)
    sets: dict[tuple[int, ...], list[tuple[int, _Tiers]]] = defaultdict(list)
    for answer in answers:
        ranked = items[answer.item]
        if len(ranked) > 3:
            ranked = {response for tier in answer.tiers for response in tier}
        place = {response: number for number, response in enumerate(sorted(ranked))}
        tiers = tuple(tuple(sorted(place[response] for response in tier)) for tier in answer.tiers)
        sets[(answer.item, *sorted(ranked))].append((answer.rater, tiers))
    sized: dict[int, list[list[tuple[int, _Tiers]]]] = defaultdict(list)
    for key, rankings in sets.items():
        if len(key) > 2 and len({rater for rater, _ in rankings}) > 1:
            sized[len(key) - 1].append(rankings)
    return MarginalLikelihood([_sets_of(size, rankings) for size, rankings in sorted(sized.items())], num_raters)


def _sets_of(size: int, sets: Sequence[Sequence[tuple[int, _Tiers]]]) -> _Sets:
    rows: dict[tuple[int, _Tiers], int] = {}
    row = np.array([rows.setdefault(each, len(rows)) for rankings in sets for each in rankings], np.int64)
    choices = choices_of([RankingAnswer(number, rater, tiers) for (rater, tiers), number in rows.items()])
    rater = np.array([rater for rater, _ in rows], np.int64)
    return _Sets(_points(size), choices, rater, row, np.array([len(rankings) for rankings in sets], np.int64))


def _of_sets(
    log_likelihood: Floats, slopes: Sequence[Floats], rater: Integers, length: Integers, num_raters: int
) -> tuple[float, Floats]:
    """Return the log likelihood of some sets together, and the gradient of each, (set, 2 * rater).

    ``log_likelihood`` and both ``slopes`` (answer, point), and ``rater`` (answer,), are set by set.
    """
    number, set_of = len(length), np.repeat(np.arange(len(length)), length)
    weight = np.add.reduceat(log_likelihood, np.cumsum(length) - length, axis=0)
    highest = weight.max(axis=1)
    weight = np.exp(weight - highest[:, None])
    total = weight.sum(axis=1)
    weight /= total[:, None]
    mine = weight[set_of]
    gradient = np.zeros(number * 2 * num_raters)
    for parameter, slope in enumerate(slopes):
        expected = np.einsum("ap,ap->a", mine, slope)
        at = set_of * 2 * num_raters + parameter * num_raters + rater
        gradient += np.bincount(at, expected, len(gradient))
    return float((np.log(total / weight.shape[1]) + highest).sum()), gradient.reshape(number, -1)


@cache
def _points(size: int) -> Floats:
    """Return points of equal weight of the differences between ``size`` responses, (point, response)."""
    from scipy.special import ndtri
    from scipy.stats import qmc

    number = _NUM_BASES[size]
    if size == 2:
        half = ndtri(0.5 + (np.arange(number) + 0.5) / (2 * number)) / np.sqrt(2)
        return np.concatenate([np.stack([half, -half], axis=1), np.stack([-half, half], axis=1)])
    drawn = ndtri(qmc.Sobol(size - 1, scramble=True, rng=0).random(number))
    drawn *= np.sqrt((size - 1) * number / (drawn**2).sum())
    base = drawn @ contrasts(size).T
    turned = [base[:, list(order)] for order in permutations(range(size))]
    return np.concatenate([*turned, *(-each for each in turned)])
