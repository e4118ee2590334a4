"""Rater models beside CHEEMS, algorithm 1: what the truth about each pair probably is, given who said what.

All take the same votes and answer about any pairs of the same prompts: ``[pair, 3]`` probabilities that the first is
better, that the second is, that they are equal. A row of NaN means that the model has nothing to say of the pair.
"""

from typing import NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Floats
from steelyard.methods.measures.agreement import FIRST, NUM_LABELS, SECOND, TIED, distinct
from steelyard.methods.ranking.graph import Aggregate, Integers, Verdicts, edges_of
from steelyard.methods.ranking.tiers import tiers_of

_SWAPPED = np.array([SECOND, FIRST, TIED])
_CLOSE = 1e-7
_TINY = 1e-300


class Pairs(NamedTuple):
    """Pairs of responses: the prompt's number, and the positions of the two, ``first`` < ``second``."""

    prompt: Integers
    first: Integers
    second: Integers


class Votes(NamedTuple):
    """One entry a verdict on a pair: whose it is, and whether the first is better (0), the second (1), or a tie (2)."""

    pairs: Pairs
    rater: Integers
    label: Integers

    @property
    def num_raters(self) -> int:
        """One more than the highest number of a rater."""
        return int(self.rater.max(initial=-1)) + 1


class DawidSkene(NamedTuple):
    """Answers; each rater's ``confusion`` [rater, truth, label]; the ``share`` of each truth; how long it took."""

    answers: Floats
    confusion: Floats
    share: Floats
    num_steps: int


class AccurateRaters(NamedTuple):
    """Answers, how often each rater follows the strengths rather than their reverse, and the strengths themselves."""

    answers: Floats
    accuracy: Floats
    strength: Floats
    num_steps: int


def by_majority(votes: Votes, asked: Pairs) -> Floats:
    """The share of each label among the votes on the pair itself."""
    items, place, known = _items(votes.pairs, asked)
    counts = _counted(place, votes.label, len(items))
    return _looked_up(counts / counts.sum(axis=1, keepdims=True), items, known)


def by_tiers(votes: Votes, asked: Pairs, aggregate: Aggregate = "none") -> Floats:
    """CHEEMS, algorithm 1: 1 for the response in the higher tier; two in one tier are equal; NaN if one is unranked."""
    pairs = votes.pairs
    num_prompts = int(max(pairs.prompt.max(initial=-1), asked.prompt.max(initial=-1))) + 1
    sizes = np.zeros(num_prompts, np.int64)
    for each in (pairs, asked):
        np.maximum.at(sizes, each.prompt, each.second + 1)
    tiers = tiers_of(edges_of(Verdicts(pairs.prompt, pairs.first, pairs.second, votes.label), aggregate), sizes)
    first, second = tiers[asked.prompt, asked.first], tiers[asked.prompt, asked.second]
    answers = np.stack([first < second, first > second, first == second], axis=1).astype(np.float64)
    answers[(first < 0) | (second < 0)] = np.nan
    return answers


def by_dawid_skene(votes: Votes, asked: Pairs, *, shrinkage: float = 1.0, most_steps: int = 500) -> DawidSkene:
    """Expectation maximisation over the unknown truth of each voted pair and each rater's confusions.

    A rater's confusions are drawn to those of all raters together with the weight of ``shrinkage`` verdicts for each
    truth, so that a rater with one verdict is taken as an ordinary one. Dawid and Skene, 1979.
    Differs from: their model, in which labels have names. Which response stands first means nothing here, so a rater
    mistakes the first for the second as often as the second for the first, and both are equally often the better one.
    """
    items, place, known = _items(votes.pairs, asked)
    counts = _counted(place, votes.label, len(items)).astype(np.float64)
    truth = counts / counts.sum(axis=1, keepdims=True)
    confusion, share, step = np.zeros((votes.num_raters, NUM_LABELS, NUM_LABELS)), np.zeros(NUM_LABELS), 0
    while step < most_steps:
        step += 1
        share, confusion = _maximised(votes, truth[place], truth, shrinkage)
        before, truth = truth, _expected(votes, place, share, confusion)
        if np.abs(truth - before).max(initial=0.0) < _CLOSE:
            break
    return DawidSkene(_looked_up(truth, items, known), confusion, share, step)


def by_accuracy(
    votes: Votes, asked: Pairs, *, spread: float = 2.0, right: float = 3.0, wrong: float = 1.0, most_steps: int = 500
) -> AccurateRaters:
    """Bradley-Terry strengths within each prompt together with each rater's accuracy, by expectation maximisation.

    P(rater prefers i to j) = a * sigmoid(s_i - s_j) + (1 - a) * sigmoid(s_j - s_i), as in Crowd-BT (Chen et al., 2013);
    a tie is half a vote each way. Strengths have a normal prior of standard deviation ``spread``, and each accuracy
    one that is worth ``right`` verdicts that follow the strengths and ``wrong`` ones that do not. Maximum a posteriori.
    """
    width = int(max(votes.pairs.second.max(initial=0), asked.second.max(initial=0))) + 1
    num_prompts = int(max(votes.pairs.prompt.max(initial=-1), asked.prompt.max(initial=-1))) + 1
    better, worse, weight, rater = _halves(votes, width)
    strength = np.zeros(num_prompts * width)
    touched = np.bincount(np.concatenate([better, worse]), np.tile(weight, 2), len(strength))
    number = np.bincount(rater, weight, votes.num_raters)
    accuracy, step = np.full(votes.num_raters, right / (right + wrong)), 0
    while step < most_steps:
        step += 1
        likely = _sigmoid(strength[better] - strength[worse])
        follows = accuracy[rater] * likely
        follows = follows / (follows + (1 - accuracy[rater]) * (1 - likely))
        accuracy = (np.bincount(rater, weight * follows, votes.num_raters) + right) / (number + right + wrong)
        pull = weight * (follows - likely)  # a verdict that does not follow counts for the other response
        slope = np.bincount(better, pull, len(strength)) - np.bincount(worse, pull, len(strength))
        # The curvature of the logistic part is at most half the number of verdicts that touch a response.
        moved = (slope - strength / spread**2) / (touched / 2 + 1 / spread**2)
        strength = strength + moved
        if np.abs(moved).max(initial=0.0) < _CLOSE:
            break
    one, other = asked.prompt * width + asked.first, asked.prompt * width + asked.second
    first = _sigmoid(strength[one] - strength[other])
    answers = np.stack([first, 1 - first, np.zeros(len(first))], axis=1)
    answers[(touched[one] == 0) | (touched[other] == 0)] = np.nan
    return AccurateRaters(answers, accuracy, strength.reshape(num_prompts, width), step)


def _items(pairs: Pairs, asked: Pairs) -> tuple[Integers, Integers, Integers]:
    """The keys of the distinct voted pairs, the place of each vote among them, and the keys of the asked pairs."""
    width = int(max(pairs.second.max(initial=0), asked.second.max(initial=0))) + 1
    key, wanted = ((each.prompt.astype(np.int64) * width + each.first) * width + each.second for each in (pairs, asked))
    items, place = distinct(key, int(key.max(initial=-1)) + 1)
    return items, place, wanted


def _looked_up(rows: Floats, items: Integers, wanted: Integers) -> Floats:
    answers = np.full((len(wanted), NUM_LABELS), np.nan)
    at = np.minimum(np.searchsorted(items, wanted), max(0, len(items) - 1))
    found = items[at] == wanted if len(items) else np.zeros(len(wanted), np.bool_)
    answers[found] = rows[at[found]]
    return answers


def _counted(place: Integers, label: Integers, size: int) -> Integers:
    return np.bincount(place * NUM_LABELS + label, minlength=size * NUM_LABELS).reshape(size, NUM_LABELS)


def _maximised(votes: Votes, truth_of_vote: Floats, truth: Floats, shrinkage: float) -> tuple[Floats, Floats]:
    """The share of each truth and each rater's confusions, given how probable each truth is; both made symmetric."""
    share = truth.mean(axis=0)
    share = (share + share[_SWAPPED]) / 2
    cell = votes.rater * NUM_LABELS + votes.label
    size = votes.num_raters * NUM_LABELS
    counts = np.stack([np.bincount(cell, column, size) for column in truth_of_vote.T], axis=1)
    counts = counts.reshape(votes.num_raters, NUM_LABELS, NUM_LABELS).transpose(0, 2, 1)  # [rater, truth, label]
    counts = counts + counts[:, _SWAPPED][:, :, _SWAPPED]
    pooled = counts.sum(axis=0) + _TINY
    counts = counts + 2 * shrinkage * pooled / pooled.sum(axis=1, keepdims=True) + _TINY
    return share, counts / counts.sum(axis=2, keepdims=True)


def _expected(votes: Votes, place: Integers, share: Floats, confusion: Floats) -> Floats:
    said = np.log(np.maximum(confusion[votes.rater, :, votes.label], _TINY))
    size = int(place.max(initial=-1)) + 1
    logs = np.stack([np.bincount(place, column, size) for column in said.T], axis=1)
    logs += np.log(np.maximum(share, _TINY))
    odds = np.exp(logs - logs.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def _halves(votes: Votes, width: int) -> tuple[Integers, Integers, Floats, Integers]:
    """Every vote as better response, worse response, weight and rater; a tie twice, half each way."""
    one, other = (votes.pairs.prompt * width + side for side in (votes.pairs.first, votes.pairs.second))
    down, up = votes.label != SECOND, votes.label != FIRST
    weight = np.where(votes.label == TIED, 0.5, 1.0)
    return (
        np.concatenate([one[down], other[up]]),
        np.concatenate([other[down], one[up]]),
        np.concatenate([weight[down], weight[up]]),
        np.concatenate([votes.rater[down], votes.rater[up]]),
    )


def _sigmoid(value: Floats) -> Floats:
    return 0.5 * (1.0 + np.tanh(value / 2))
