"""Agreement of raters who labelled the same items: observed, Cohen's kappa, Krippendorff's alpha, all from counts.

A label is 0 (the first response is better), 1 (the second is) or 2 (a tie); 3 is no label. An *item* is a pair of
responses of one prompt, whichever of the two was shown first: `oriented` turns every label to one direction.
Every measure is a function of sums of counts, so that its interval comes from resampling the counts of prompts.
"""

from math import isqrt
from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers, ratio
from steelyard.statistics.intervals import CORRELATION, Estimate

FIRST, SECOND, TIED, UNLABELLED = range(4)
NUM_LABELS = 3
NUM_CELLS = NUM_LABELS**2
_STRICT = np.array([0, 1, 3, 4])
_TURNED = np.array([SECOND, FIRST, TIED, UNLABELLED])
_DENSE = 64
_FEWEST = 30
"""Prompts below which an agreement beyond chance has no interval."""
KAPPA = CORRELATION._replace(fewest=_FEWEST)


class Labels(NamedTuple):
    """One entry a rater and item, sorted by item and then by rater; all arrays have shape (entry,)."""

    item: Integers
    rater: Integers
    label: Integers


class Compared(NamedTuple):
    """One entry a pair of raters (``first`` < ``second``) and item that both labelled.

    ``cell`` is the first one's label times 3 plus the second one's: the place in a confusion matrix laid flat.
    """

    item: Integers
    first: Integers
    second: Integers
    cell: Integers


def oriented(left: Integers, right: Integers, label: Integers) -> Integers:
    """The labels with every pair turned so that its lower position is the first: (b, a) is the pair (a, b)."""
    return np.where(left > right, _TURNED[label], label)


def distinct(code: Integers, bound: int) -> tuple[Integers, Integers]:
    """The sorted distinct codes, which are all below ``bound``, and where each given one stands among them."""
    if bound > _DENSE * len(code) + 4096:
        found, place = np.unique(code, return_inverse=True)
        return found, place
    # Few possible codes: marking those that occur is faster than sorting.
    is_used = np.zeros(bound, np.bool_)
    is_used[code] = True
    found = np.flatnonzero(is_used)
    place_of = np.empty(bound, np.int64)
    place_of[found] = np.arange(len(found))
    return found, place_of[code]


def vote(counts: Integers) -> Integers:
    """The label with strictly most votes, else a tie: ``[…, 3]`` counts of labels to ``[…]``."""
    first, second, tied = counts[..., FIRST], counts[..., SECOND], counts[..., TIED]
    return np.select([first > np.maximum(second, tied), second > np.maximum(first, tied)], [FIRST, SECOND], TIED)


def labels_of(item: Integers, rater: Integers, label: Integers) -> Labels:
    """One label for each rater and item: what a rater said repeatedly of one item is put to the `vote`."""
    kept = label != UNLABELLED
    item, rater, label = item[kept], rater[kept], label[kept]
    num_raters = int(rater.max(initial=0)) + 1
    code = item.astype(np.int64) * num_raters + rater
    pairs, place = distinct(code, int(code.max(initial=-1)) + 1)
    counts = np.bincount(place * NUM_LABELS + label, minlength=len(pairs) * NUM_LABELS)
    return Labels(pairs // num_raters, pairs % num_raters, vote(counts.reshape(-1, NUM_LABELS)))


def compared(labels: Labels) -> Compared:
    """All pairs of raters with a label on the same item, from labels sorted as `labels_of` sorts them."""
    item, rater, label = labels
    found: list[Compared] = []
    for shift in range(1, len(item)):
        same = item[shift:] == item[:-shift]
        if not same.any():
            break
        at = np.flatnonzero(same)
        found.append(
            Compared(item[at], rater[at], rater[at + shift], label[at] * NUM_LABELS + label[at + shift]),
        )
    none = np.zeros(0, np.int64)
    return (
        Compared(*(np.concatenate(columns) for columns in zip(*found, strict=True))) if found else Compared(*[none] * 4)
    )


def coincidences(labels: Labels, group: Integers, num_groups: int) -> Floats:
    """Krippendorff's coincidence matrices laid flat, ``[num_groups, 9]``: the sum over the items of each group.

    ``group`` has one entry a label. An item with m >= 2 labels adds each ordered pair of its labels with the weight
    1 / (m - 1); an item with one label says nothing of agreement (Krippendorff, Content Analysis, 2004, ch. 11).
    """
    start = np.flatnonzero(np.diff(labels.item, prepend=-1))
    place = np.repeat(np.arange(len(start)), np.diff(start, append=len(labels.item)))
    counts = np.bincount(place * NUM_LABELS + labels.label, minlength=len(start) * NUM_LABELS).reshape(-1, NUM_LABELS)
    several = counts.sum(axis=1) > 1
    counts, own = counts[several].astype(np.float64), group[start][several]
    pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(NUM_LABELS))
    pairs = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(-1, NUM_CELLS)
    return np.stack([np.bincount(own, column, num_groups) for column in pairs.T], axis=1).astype(np.float64)


def kappa(cells: Floats) -> Floats:
    """Cohen's kappa of confusion matrices ``[…, cell]``: agreement beyond what the two raters' own habits would give.

    NaN where chance alone would agree always (both only ever gave one and the same label). Cohen, 1960.
    """
    matrix, total = _squares(cells), cells.sum(axis=-1)
    by_chance = (matrix.sum(axis=-1) * matrix.sum(axis=-2)).sum(axis=-1)
    return ratio(total * num_same(cells) - by_chance, total**2 - by_chance)


def alpha(cells: Floats) -> Floats:
    """Krippendorff's nominal alpha of coincidence matrices ``[…, cell]``: 1 - observed / expected disagreement.

    Any number of raters, with gaps. NaN where only one label ever occurs.
    """
    each, total = _squares(cells).sum(axis=-1), cells.sum(axis=-1)
    expected = total**2 - (each**2).sum(axis=-1)
    return 1.0 - ratio((total - 1.0) * (total - num_same(cells)), expected)


def beyond_chance(same: Estimate, coefficient: float, cells: Floats, num_units: float) -> Estimate:
    """Kappa or alpha of one matrix with an interval: that of the observed agreement, at the agreement by chance.

    Both are (observed - chance) / (1 - chance). ``same`` is the observed agreement; two prompts' worth of items are
    added to the matrix in equal parts, without which few items with one frequent label seem to agree by chance alone.
    (Percentiles of resamples cover half of what they claim at 20 prompts, and have no width where kappa is 1.)
    """
    if np.isnan(coefficient) or same.low is None or same.high is None:
        return Estimate(None, None, None, same.n)
    if num_units < _FEWEST:
        return Estimate(coefficient, None, None, same.n, why=f"an interval needs {_FEWEST} prompts")
    chance = _by_chance(cells, 2 * cells.sum() / num_units)
    low, high = ((end - chance) / (1 - chance) for end in (same.low, same.high))
    return Estimate(coefficient, max(-1.0, min(low, coefficient)), min(1.0, max(high, coefficient)), same.n)


def _by_chance(cells: Floats, added: float) -> float:
    """The agreement that the labels' frequencies alone give, with items added in equal parts to the labels in use."""
    matrix = _squares(cells)
    used = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0
    matrix = matrix[used][:, used] + added / used.sum() ** 2
    return float((matrix.sum(axis=0) * matrix.sum(axis=1)).sum() / matrix.sum() ** 2)


def num_same(cells: Floats) -> Floats:
    """On how many items both gave one label: ``[…, cell]`` to ``[…]``."""
    return np.asarray(np.trace(_squares(cells), axis1=-2, axis2=-1))


def num_same_strict(cells: Floats) -> Floats:
    """On how many items both gave one label that is no tie: ``[…, 9]`` to ``[…]``."""
    strict = cells[..., _STRICT]
    return strict[..., 0] + strict[..., 3]


def num_strict(cells: Floats) -> Floats:
    """On how many items neither said tie: ``[…, 9]`` to ``[…]``."""
    return cells[..., _STRICT].sum(axis=-1)


def _squares(cells: Floats) -> Floats:
    size = isqrt(cells.shape[-1])
    return cells.reshape(*cells.shape[:-1], size, size)
