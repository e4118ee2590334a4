"""Which items people should see first: where a committee of reward models and LLM judges is unsure or divided.

Each member of the committee gives a probability that the first response of a pair is better. The priority of a pair is
the entropy of the mean of these probabilities, in bits: soft vote entropy, or consensus entropy, of query by committee
(Seung, Opper and Sompolinsky, 1992; Settles, "Active learning literature survey", 2009, section 3.2). It is the sum of
two parts: the mean entropy of the members (their uncertainty) and their mean Kullback-Leibler divergence from the mean
(their disagreement; McCallum and Nigam, 1998). A pair on which all are sure and agree has 0, one on which sure members
contradict each other has 1 bit, as one on which all are at 0.5.

The priority of an item is the mean over the pairs that its tasks compare, which is what an answer is expected to tell.
A share of the items keeps its place by chance, drawn before any priority is known: statistics over a data set that was
chosen by priority are biased, those over this share are unbiased.
"""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers, ratio, sigmoid
from steelyard.statistics.steepness import fit_steepness

FEWEST_LABELS = 30
"""Labelled pairs from which on a member's probabilities are fitted to them."""
NUM_DECILES = 10


class MemberProbabilities(NamedTuple):
    """A member's probability that the first response of each pair is better, (pair,); NaN where it says nothing.

    ``num_labels``: the labelled pairs that they are fitted to, 0 where there were too few of them. ``fitted``: the
    steepness of a model's margins, or the accuracy of a judge's verdicts; null without labels.
    """

    probability: Floats
    num_labels: int
    fitted: float | None


class Consensus(NamedTuple):
    """The priority of each pair in bits, (pair,), and its two parts; NaN where no member says anything."""

    priority: Floats
    uncertainty: Floats
    disagreement: Floats


class QueueOrder(NamedTuple):
    """The items from the first to the last of the queue, and for each item whether its place is by chance."""

    items: Integers
    is_random: Booleans


def probabilities_of_margins(margin: Floats, label: Floats) -> MemberProbabilities:
    """Turn differences of scores into probabilities of the Bradley-Terry model.

    ``margin`` (pair,) is NaN without both scores; ``label`` (pair,) is 1 where people found the first response better,
    -1 where worse, NaN or 0 otherwise. With `FEWEST_LABELS` labels the steepness of the margins is fitted to them, with
    one right and one wrong pair of the mean margin added (Laplace's rule), so that it stays finite. With fewer the
    scale of the scores is unknown, and the probability is (1 + s F) / 2 for the sign s of the margin and the share F of
    all margins that are smaller: an order of the pairs, not a calibrated probability.
    """
    is_labelled = np.isfinite(margin) & (np.abs(label) == 1)
    num_labels = int(is_labelled.sum())
    size = float(np.abs(margin[is_labelled]).mean()) if num_labels else 0.0
    if num_labels >= FEWEST_LABELS and size > 0:
        steepness = fit_steepness(np.append(margin[is_labelled] * label[is_labelled], [size, -size])).value
        return MemberProbabilities(sigmoid(steepness * margin), num_labels, steepness)
    return MemberProbabilities((1 + np.sign(margin) * _shares_below(np.abs(margin))) / 2, 0, None)


def probabilities_of_verdicts(counts: Floats, label: Floats) -> MemberProbabilities:
    """Turn the verdicts of a judge on each pair into probabilities.

    ``counts`` (pair, 3): how often the first response won, lost and tied, over both orders and repetitions; a pair
    without verdicts has NaN. Contradictory verdicts count as 0.5. With `FEWEST_LABELS` labels a
    verdict is worth the judge's accuracy on them, (right + 1) / (n + 2); with fewer (wins + ties / 2 + 1 / 2) / (n + 1)
    (the estimate of Krichevsky and Trofimov, 1981), 0.75 for one verdict.
    """
    won, lost, tied = np.asarray(counts, np.float64).T
    number = won + lost + tied
    probability = ratio(won + tied / 2 + 0.5, number + 1)
    probability[number == 0] = np.nan
    is_divided = (won > 0) & (lost > 0)
    probability[is_divided] = 0.5
    side = np.sign(won - lost)
    is_labelled = (number > 0) & (np.abs(label) == 1) & (side != 0) & ~is_divided
    num_labels = int(is_labelled.sum())
    if num_labels < FEWEST_LABELS:
        return MemberProbabilities(probability, 0, None)
    accuracy = (float((side == label)[is_labelled].sum()) + 1) / (num_labels + 2)
    is_strict = (number > 0) & ~is_divided & (side != 0)
    probability[is_strict] = np.where(side[is_strict] > 0, accuracy, 1 - accuracy)
    return MemberProbabilities(probability, num_labels, accuracy)


def consensus(probability: Floats) -> Consensus:
    """Return the priority of each pair from the probabilities of the members, (member, pair)."""
    is_said = np.isfinite(probability)
    number = is_said.sum(axis=0).astype(np.float64)
    mean = ratio(np.where(is_said, probability, 0.0).sum(axis=0), number)
    uncertainty = ratio(np.where(is_said, _entropy(probability), 0.0).sum(axis=0), number)
    priority = _entropy(mean)
    return Consensus(priority, uncertainty, np.maximum(priority - uncertainty, 0.0))


def item_means(value: Floats, item: Integers, num_items: int) -> Floats:
    """Return the mean of the pairs of each item, (item,), past pairs that are NaN; NaN without any other."""
    is_known = np.isfinite(value)
    total = np.bincount(item[is_known], weights=value[is_known], minlength=num_items).astype(np.float64)
    return ratio(total, np.bincount(item[is_known], minlength=num_items).astype(np.float64))


def queue_order(priority: Floats, draw: Floats, *, random_share: float) -> QueueOrder:
    """Order items by priority, the highest first, with a share of them by chance, evenly spread over the queue.

    ``draw`` (item,) is a number between 0 and 1 that an item keeps for ever (a permanent random number, Ohlsson, 1995):
    items below ``random_share`` come by chance, the smallest first. However often the queue is
    ordered anew, those of them that were done are a simple random sample of all items. Items without a priority (NaN)
    come last of those that do not come by chance.
    """
    is_random = draw < random_share
    by_chance, by_priority = np.flatnonzero(is_random), np.flatnonzero(~is_random)
    by_chance = by_chance[np.argsort(draw[by_chance], kind="stable")]
    known = np.where(np.isfinite(priority), priority, -np.inf)
    by_priority = by_priority[np.lexsort((draw[by_priority], -known[by_priority]))]
    # The n-th of a group that makes a share s of the queue belongs at about place n / s.
    place = np.concatenate([
        (np.arange(len(by_chance)) + 0.5) / max(random_share, 1e-12),
        (np.arange(len(by_priority)) + 0.5) / max(1 - random_share, 1e-12),
    ])  # fmt: skip
    return QueueOrder(np.concatenate([by_chance, by_priority])[np.argsort(place, kind="stable")], is_random)


def deciles(priority: Floats) -> Integers:
    """Return the tenth of the items that each belongs to by priority, (item,): 1 the highest, 10 the lowest.

    Items without a priority have 0.
    """
    is_known = np.isfinite(priority)
    number = int(is_known.sum())
    rank = np.empty(number, np.int64)
    rank[np.argsort(-priority[is_known], kind="stable")] = np.arange(number)
    decile = np.zeros(len(priority), np.int64)
    decile[is_known] = rank * NUM_DECILES // max(number, 1) + 1
    return decile


def _entropy(probability: Floats) -> Floats:
    """Return the entropy of an event in bits; NaN for NaN."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(share > 0, -share * np.log2(share), 0.0) for share in (probability, 1 - probability)]
    return np.where(np.isfinite(probability), terms[0] + terms[1], np.nan)


def _shares_below(size: Floats) -> Floats:
    """Return for each number the share of all that are smaller, equal ones counted half; NaN for NaN."""
    known = np.sort(size[np.isfinite(size)])
    below, upto = np.searchsorted(known, size, "left"), np.searchsorted(known, size, "right")
    return np.where(np.isfinite(size), (below + upto) / 2 / max(len(known), 1), np.nan)
