"""The share of prompts without a wrong label, from the answers of several people to all pairs of a prompt.

A model that is always right matches a prompt exactly if none of its labels is wrong. Nobody knows the true order of a
prompt's responses. With every order equally likely beforehand, and an answer against it phi times as likely as one for
it, an order that contradicts c answers has a probability in proportion to phi^c (Mallows, 1957, for whole rankings;
independent errors of pairs, phi = e / (1 - e), for answers by pair). The labels of a prompt are right with the
probability of all orders that agree with them. A prompt of two responses has the label error of a pair.

How often two people contradict each other tells phi: it is the one at which two rankings of as many responses, drawn
for one true order, contradict each other as often. A person who ranks five responses at once contradicts himself
nowhere, and makes other errors than one who answers ten pairs. A pair has therefore the number of responses that it was
ranked among, which is 2 for answers by pair.

As for single pairs, people err independently and alike on all prompts. If errors gather on hard prompts, fewer prompts
have a wrong label than single labels let expect, and more of these are shared by both people; the two add up to less
than either, but the share holds for equal prompts only.
"""

from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers, ratio, sigmoid
from steelyard.statistics.bootstrap import Blocks, Terms, add_up, evidence_of
from steelyard.statistics.intervals import Estimate, interval
from steelyard.statistics.label_error import FEWEST_PROMPTS, Shares, complement_of, distance_to_perfect, logit
from steelyard.statistics.prompt_means import by_category

MOST_RESPONSES = 7
"""Responses of a prompt beyond which its orders are too many to go through."""
_PHI = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 127)])
"""The grid of phi, between whose values all functions of it are interpolated."""
_CELLS_AT_A_TIME = 2_000_000
_WRONG, _SPLIT, _RIGHT = 0, 1, 2
_NUM_SUMS = 4
TOO_FEW_ANSWERED = "too few prompts answered whole"
"""The reason for a category without a value of its own."""


class AnsweredPrompts(NamedTuple):
    """Prompts of equally many responses whose pairs all have as many answers, two or more.

    ``prompt``: the row of each in the blocks, (prompt,). ``votes``: answers for the first and for the second response
    of each pair, (prompt, pair, 2), pairs in the order of `combinations`. ``label``: 0 where the first is the better
    one, 1 where the second is, -1 without a label; ``among``: how many responses a person ranked when he answered;
    (prompt, pair). ``is_right``: whether the model is right on all labels, (prompt,). A prompt without a label tells
    only how often people contradict each other.
    """

    num_responses: int
    prompt: Integers
    votes: Integers
    label: Integers
    among: Integers
    is_right: Booleans


class WholePrompts(NamedTuple):
    """The share of prompts that a perfect model matches exactly, and what this model lacks, by category and in all."""

    groups: tuple[str, ...]
    exact_match: Shares
    exact_distance: Shares


def right_prompts(blocks: Blocks, answered: Sequence[AnsweredPrompts]) -> WholePrompts | None:
    """Estimate the share of prompts without a wrong label; null with few prompts.

    A category with few prompts has the phi of all categories and no value of its own; one without a label is left out.
    """
    prompt = np.concatenate([np.zeros(0, np.int64), *(part.prompt for part in answered)])
    if len(prompt) < FEWEST_PROMPTS:
        return None
    grouping = by_category(blocks)
    labelled = np.concatenate([(part.label >= 0).any(axis=1) for part in answered]).astype(np.float64)
    chosen = np.unique(grouping.group[prompt[labelled > 0]])
    is_in = np.isin(grouping.group[prompt], chosen)
    if is_in.sum() < FEWEST_PROMPTS:
        return None
    group = np.searchsorted(chosen, grouping.group[prompt[is_in]])
    number = np.bincount(group)
    right = np.concatenate([part.is_right for part in answered]) * labelled
    chances = np.concatenate([chances_of_right(part) for part in answered]) * labelled[:, None]
    split = np.concatenate([_contradiction(part.votes) for part in answered])
    expected = np.concatenate([expected_contradiction(part.among) for part in answered])
    table = np.column_stack([np.ones(len(prompt)), labelled, right, split, expected, chances])[is_in]
    prompt, labelled = prompt[is_in], labelled[is_in]
    sums = add_up(blocks, Terms(prompt, group, [*table.T]), len(chosen))
    curves = sums.point[:, _NUM_SUMS : _NUM_SUMS + len(_PHI)] / sums.point[:, :1]
    curves = curves, sums.point[:, _NUM_SUMS + len(_PHI) :] / sums.point[:, 1:2]
    tables = [_by_group(part, number < FEWEST_PROMPTS) for part in sums]
    exacts, distances = [], []
    for weights in (*np.eye(len(chosen)), np.full(len(chosen), 1 / len(chosen)), sums.point[:, 1] / labelled.sum()):
        total = int(number[weights > 0].sum())
        if total < FEWEST_PROMPTS:
            exacts.append(Estimate(None, None, None, total, why=TOO_FEW_ANSWERED))
            distances.append(exacts[-1])
            continue
        parts = []
        for has_part in (np.ones(len(prompt)), labelled):
            used = np.zeros(len(grouping.group))
            used[prompt] = (weights / np.bincount(group, has_part))[group] * has_part
            parts.append(evidence_of(blocks, np.where(used > 0, 0, -1), used))
        point, drawn = (np.moveaxis(table, -2, -1) @ weights for table in tables)
        contradicted = interval(float(point[_SPLIT]), drawn[:, _SPLIT], total, parts[0])
        wrong = _follow(point, drawn, contradicted, weights @ curves[0], weights @ curves[1])
        accuracy = interval(float(point[_RIGHT]), drawn[:, _RIGHT], total, parts[1])
        exacts.append(complement_of(wrong))
        distances.append(distance_to_perfect(wrong, accuracy, drawn[:, _WRONG], drawn[:, _RIGHT]))
    names = tuple(grouping.names[at] for at in chosen.tolist())
    return WholePrompts(names, _as_shares(exacts), _as_shares(distances))


def chances_of_right(answered: AnsweredPrompts) -> Floats:
    """Return the probability that no label of a prompt is wrong at every phi of the grid; shape (prompt, phi)."""
    is_first = _orders(answered.num_responses)
    table = np.concatenate([answered.votes.reshape(len(answered.prompt), -1), answered.label], axis=1)
    rows, place = np.unique(table, axis=0, return_inverse=True)
    num_pairs = is_first.shape[1]
    chances = np.empty((len(rows), len(_PHI)))
    step = max(1, _CELLS_AT_A_TIME // len(is_first))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        votes, label = part[:, : 2 * num_pairs].reshape(len(part), num_pairs, 2), part[:, 2 * num_pairs :]
        against = votes[..., 0] @ ~is_first.T + votes[..., 1] @ is_first.T
        agrees = ((label == 0) @ ~is_first.T + (label == 1) @ is_first.T) == 0
        against = against - against.min(axis=1, keepdims=True)
        wanted, every = np.zeros((2, len(part), len(_PHI)))
        for number in range(int(against.max(initial=0)) + 1):
            is_here = against == number
            every += is_here.sum(axis=1)[:, None] * _PHI**number
            wanted += (is_here & agrees).sum(axis=1)[:, None] * _PHI**number
        chances[start : start + step] = wanted / every
    return chances[place.reshape(-1)]


def expected_contradiction(among: Integers) -> Floats:
    """Return the expected share of a prompt's pairs on which two people disagree, at every phi; (prompt, phi)."""
    sizes = np.unique(among)
    shares = np.stack([_contradiction_of_size(size) for size in sizes.tolist()])
    counts = np.stack([(among == size).mean(axis=1) for size in sizes], axis=1)
    return counts @ shares


@cache
def _orders(size: int) -> Booleans:
    """Return for all orders of responses whether the first of each pair comes before the second; (order, pair)."""
    place = np.array(list(permutations(range(size))))
    pairs = np.array(list(combinations(range(size), 2)))
    return place[:, pairs[:, 0]] < place[:, pairs[:, 1]]


@cache
def _contradiction_of_size(size: int) -> Floats:
    """Return the share of pairs on which two rankings of this size disagree, at every phi of the grid."""
    is_first = _orders(size)
    likelihood = _PHI[:, None] ** (~is_first).sum(axis=1)
    wrong = (likelihood / likelihood.sum(axis=1, keepdims=True)) @ ~is_first
    return (2 * wrong * (1 - wrong)).mean(axis=1)


def _contradiction(votes: Integers) -> Floats:
    """Return the share of a prompt's pairs on which two of its people disagree, over pairs of people; (prompt,)."""
    total = votes.sum(axis=2)
    return (2 * votes[..., 0] * votes[..., 1] / (total * (total - 1))).mean(axis=1)


def _by_group(sums: Floats, is_few: Booleans) -> Floats:
    """Return the share of wrong prompts, of contradicted pairs, and of those that the model is right on, by group.

    Groups with few prompts have the phi of all. Shape (…, group, 3).
    """
    shared = np.where(is_few[:, None], sums.sum(axis=-2, keepdims=True), sums)
    shared = ratio(shared, shared[..., :1])
    place = _place_of(shared[..., 3], shared[..., _NUM_SUMS : _NUM_SUMS + len(_PHI)])
    chances = ratio(sums[..., _NUM_SUMS + len(_PHI) :], sums[..., 1:2])
    shares = ratio(sums[..., 3], sums[..., 0]), ratio(sums[..., 2], sums[..., 1])
    return np.stack([1 - _at(chances, place), *shares], axis=-1)


def _follow(point: Floats, drawn: Floats, contradicted: Estimate, expected: Floats, chances: Floats) -> Estimate:
    """Return the share of wrong prompts with the interval that follows from that of the contradictions.

    Both are logits, and the slope is the one that the resamples show. The ``expected`` contradictions and the
    ``chances`` of a right prompt at every phi bound the share where nobody contradicts another.
    """
    value = float(point[_WRONG])
    if contradicted.low is None or contradicted.high is None:
        return Estimate(value, None, None, contradicted.n)
    if point[_SPLIT] <= 0 or value <= 0:
        place = _place_of(np.array(contradicted.high), expected)
        return Estimate(value, value, max(value, 1 - float(_at(chances, place))), contradicted.n)
    known = ((drawn[:, [_WRONG, _SPLIT]] > 0) & (drawn[:, [_WRONG, _SPLIT]] < 1)).all(axis=1)
    spread = logit(drawn[known][:, [_WRONG, _SPLIT]]).std(axis=0) if known.sum() > 1 else np.ones(2)
    slope = spread[0] / spread[1] if spread[1] > 0 else 1.0
    centre = logit(value) - slope * logit(float(point[_SPLIT]))
    low, high = (float(sigmoid(np.array(centre + slope * logit(end)))) for end in (contradicted.low, contradicted.high))
    return Estimate(value, min(low, value), max(high, value), contradicted.n)


def _place_of(split: Floats, expected: Floats) -> Floats:
    """Return the place in the grid, with fractions, at which the expected contradictions are these."""
    above = np.clip((expected < split[..., None]).sum(axis=-1), 1, len(_PHI) - 1)
    low, high = (np.take_along_axis(expected, at[..., None], axis=-1)[..., 0] for at in (above - 1, above))
    return np.clip(above - 1 + ratio(split - low, high - low), 0, len(_PHI) - 1)


def _at(values: Floats, place: Floats) -> Floats:
    """Return values, (…, phi), interpolated at places in the grid."""
    below = np.minimum(np.nan_to_num(place).astype(np.int64), len(_PHI) - 2)
    low, high = (np.take_along_axis(values, at[..., None], axis=-1)[..., 0] for at in (below, below + 1))
    return low + (high - low) * (place - below)


def _as_shares(estimates: Sequence[Estimate]) -> Shares:
    *groups, macro, micro = estimates
    return Shares(tuple(groups), macro, micro)
