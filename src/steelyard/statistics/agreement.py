"""Agreement of raters who labelled the same items: observed agreement, kappa, alpha, and tau-b of their rankings.

A label is 0 (the first response is better), 1 (the second is) or 2 (a tie); 3 means unlabelled. An *item* is a pair of
responses of one prompt, in any order of presentation: `orient_labels` gives every label one direction.
Every measure is a function of sums of counts, so that its interval follows from resampling the counts of prompts.
"""

from math import ceil, isqrt, sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats, Integers, ratio
from steelyard.statistics.intervals import Estimate, Evidence, needs_prompts, shrink_effect, student, variance_of
from steelyard.statistics.unique_rows import unique_codes

FIRST, SECOND, TIED, UNLABELLED = range(4)
NUM_LABELS = 3
NUM_CELLS = NUM_LABELS**2
# The cells of a flattened 3 x 3 matrix in which neither label is a tie.
_STRICT = np.array([0, 1, 3, 4])
_TURNED = np.array([SECOND, FIRST, TIED, UNLABELLED])
_FEWEST = 30
"""Prompts below which an agreement beyond chance has no interval."""
_FEWEST_RARE = 2.0
"""The prompts expected by chance to lack the most frequent label from both raters, which an interval needs."""
_BISECTIONS = 40
_ROUNDING = 1e-13


class Labels(NamedTuple):
    """One entry per rater and item, sorted by item and then by rater; all arrays have shape (entry,)."""

    item: Integers
    rater: Integers
    label: Integers


class RaterPairs(NamedTuple):
    """One entry per pair of raters (``first`` < ``second``) and item that both labelled.

    ``cell`` is the first rater's label times 3 plus the second's: the position in a flattened confusion matrix.
    """

    item: Integers
    first: Integers
    second: Integers
    cell: Integers


def orient_labels(left: Integers, right: Integers, label: Integers) -> Integers:
    """Return the labels as if every pair had its lower position first: (b, a) becomes (a, b)."""
    return np.where(left > right, _TURNED[label], label)


def count_labels(place: Integers, label: Integers, size: int) -> Integers:
    """Count the labels at each place below ``size``: (place, 3). ``place`` and ``label`` have one entry per label."""
    return np.bincount(place * NUM_LABELS + label, minlength=size * NUM_LABELS).reshape(size, NUM_LABELS)


def vote(counts: Integers | Floats) -> Integers:
    """Return the plurality label, a tie if no label has strictly most: counts or probabilities (…, 3) to (…)."""
    first, second, tied = counts[..., FIRST], counts[..., SECOND], counts[..., TIED]
    return np.select([first > np.maximum(second, tied), second > np.maximum(first, tied)], [FIRST, SECOND], TIED)


def unique_labels(item: Integers, rater: Integers, label: Integers) -> Labels:
    """Return one label for each rater and item: the `vote` of the rater's repeated labels, without unlabelled ones."""
    is_labelled = label != UNLABELLED
    item, rater, label = item[is_labelled], rater[is_labelled], label[is_labelled]
    num_raters = int(rater.max(initial=0)) + 1
    code = item.astype(np.int64) * num_raters + rater
    pairs, place = unique_codes(code, int(code.max(initial=-1)) + 1)
    return Labels(pairs // num_raters, pairs % num_raters, vote(count_labels(place, label, len(pairs))))


def pair_raters(labels: Labels) -> RaterPairs:
    """Return every pair of raters that labelled the same item, from labels in the order of `unique_labels`."""
    item, rater, label = labels
    parts: list[RaterPairs] = []
    # Labels are sorted by item: two raters of one item are `shift` entries apart, for some shift below its number of
    # raters. The loop ends at the largest number of raters of an item.
    for shift in range(1, len(item)):
        same = item[shift:] == item[:-shift]
        if not same.any():
            break
        at = np.flatnonzero(same)
        parts.append(
            RaterPairs(item[at], rater[at], rater[at + shift], label[at] * NUM_LABELS + label[at + shift]),
        )
    if not parts:
        return RaterPairs(*[np.zeros(0, np.int64)] * 4)
    return RaterPairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def coincidences(labels: Labels, group: Integers, num_groups: int) -> Floats:
    """Return Krippendorff's coincidence matrices, flattened (group, 9): the sums over the items of each group.

    ``group`` has one entry per label. An item with m >= 2 labels adds each ordered pair of its labels with the weight
    1 / (m - 1); an item with one label carries no information (Krippendorff, Content Analysis, 2004, ch. 11).
    """
    start = np.flatnonzero(np.diff(labels.item, prepend=-1))
    place = np.repeat(np.arange(len(start)), np.diff(start, append=len(labels.item)))
    counts = count_labels(place, labels.label, len(start))
    several = counts.sum(axis=1) > 1
    counts, item_group = counts[several].astype(np.float64), group[start][several]
    # Ordered pairs of different labels of an item: n_a n_b, and n_a (n_a - 1) on the diagonal.
    pairs = counts[:, :, None] * (counts[:, None, :] - np.eye(NUM_LABELS))
    pairs = (pairs / (counts.sum(axis=1) - 1)[:, None, None]).reshape(-1, NUM_CELLS)
    return np.stack([np.bincount(item_group, column, num_groups) for column in pairs.T], axis=1).astype(np.float64)


def kappa(cells: Floats) -> Floats:
    """Return Cohen's kappa (1960) of confusion matrices (…, cell): agreement beyond chance, given each rater's labels.

    NaN if chance alone would always agree (both raters gave only one and the same label).
    """
    matrix, total = _matrices(cells), cells.sum(axis=-1)
    by_chance = (matrix.sum(axis=-1) * matrix.sum(axis=-2)).sum(axis=-1)
    return ratio(total * num_same(cells) - by_chance, total**2 - by_chance)


def alpha(cells: Floats) -> Floats:
    """Return Krippendorff's nominal alpha of coincidence matrices (…, cell): 1 - observed / expected disagreement.

    For any number of raters, with missing labels (Krippendorff, Content Analysis, 2004, ch. 11). NaN if only one label
    occurs.
    """
    each, total = _matrices(cells).sum(axis=-1), cells.sum(axis=-1)
    expected = total**2 - (each**2).sum(axis=-1)
    # The factor is n - 1 and not n: expected disagreement is that of pairs drawn without replacement.
    return 1.0 - ratio((total - 1.0) * (total - num_same(cells)), expected)


def tau_b(first: Floats, second: Floats) -> Floats:
    """Compute Kendall's tau-b (1945) of each row of two tables (ranking, response); higher is better in both.

    (concordant - discordant) / sqrt(pairs that differ in the first x pairs that differ in the second). NaN where all
    values of a row are equal in one of the tables.
    """
    left, right = np.triu_indices(first.shape[-1], 1)
    by_first = np.sign(first[..., left] - first[..., right])
    by_second = np.sign(second[..., left] - second[..., right])
    product = ((by_first != 0).sum(axis=-1) * (by_second != 0).sum(axis=-1)).astype(np.float64)
    return ratio((by_first * by_second).sum(axis=-1).astype(np.float64), np.sqrt(product))


def beyond_chance(value: float, tables: Floats, n: float, evidence: Evidence, effect: float) -> Estimate:
    """Return kappa or alpha with its interval, or the mean of several; ``tables``: (table, cell), one a coefficient.

    The score interval: all coefficients k whose distance from the value is at most t times the standard error that the
    value has if k is true, given the frequencies of the labels (compare Donner and Eliasziw, 1992). ``effect``: the
    variance of the value relative to that of independent prompts (`linear_effect`). None with too few prompts, or one
    label so frequent that fewer than `_FEWEST_RARE` prompts are expected without it from both raters by chance.
    """
    # Differs from: percentiles of the resampled coefficient, which have half their nominal coverage at 20 prompts, and
    # no width if kappa is 1.
    bare = Estimate(None if np.isnan(value) else value, None, None, round(float(n)))
    if bare.value is None:
        return bare
    rows, columns = _frequencies(tables)
    most = (rows + columns).argmax(axis=-1)[:, None]
    rest = [1 - np.take_along_axis(each, most, axis=-1)[:, 0] for each in (rows, columns)]
    rare = float((rest[0] * rest[1]).mean())
    if rare <= 0:
        return bare.without_interval("one label is that of all items")
    fewest = max(_FEWEST, ceil(_FEWEST_RARE / rare))
    if evidence.units < fewest:
        return bare.without_interval(needs_prompts(fewest))
    differing = 1 - float((num_same(tables) / tables.sum(axis=-1)).mean())
    reach = student(evidence.freedom) * sqrt(
        shrink_effect(effect, min(differing, 1 - differing), evidence) / evidence.units
    )
    ends: list[float] = []
    for bound in (-1.0, 1.0):
        inside, outside = value, bound
        for _ in range(_BISECTIONS):
            middle = (inside + outside) / 2
            is_inside = abs(value - middle) <= reach * sqrt(_variance_at(middle, rows, columns))
            inside, outside = (middle, outside) if is_inside else (inside, middle)
        ends.append(inside)
    return replace(bare, low=ends[0], high=ends[1])


def linear_effect(value: float, tables: Floats, resampled: Floats, evidence: Evidence) -> float:
    """Return the variance of a mean of kappas or alphas over that of independent prompts with the same frequencies.

    ``tables``: (table, cell), ``resampled``: (resample, table, cell). The variance is that of the linearised mean: the
    coefficients of resamples are far from normal where one label is frequent.
    """
    if np.isnan(value):
        return 1.0
    rows, columns = _frequencies(tables)
    expected = _variance_at(value, rows, columns)
    shares = ratio(tables, tables.sum(axis=-1, keepdims=True))
    gradient = _gradient(_matrices(shares), (rows * columns).sum(axis=-1)).reshape(tables.shape)
    drawn = ratio((resampled * gradient).sum(axis=-1), resampled.sum(axis=-1)).mean(axis=-1)
    variance = variance_of(drawn, evidence)
    return variance * evidence.units / expected if min(variance, expected) > _ROUNDING else 1.0


def _frequencies(tables: Floats) -> tuple[Floats, Floats]:
    """Return the shares of each label from the first and from the second rater: (table, label) each."""
    matrices = _matrices(tables) / tables.sum(axis=-1)[:, None, None]
    return matrices.sum(axis=-1), matrices.sum(axis=-2)


def _gradient(matrices: Floats, chance: Floats) -> Floats:
    """Return the derivatives of kappa by the shares of cells, (table, label, label); ``chance``: (table,)."""
    same = np.trace(matrices, axis1=-2, axis2=-1)
    by_label = matrices.sum(axis=-2)[..., :, None] + matrices.sum(axis=-1)[..., None, :]
    missing = (1 - chance)[..., None, None]
    return np.eye(matrices.shape[-1]) / missing - (1 - same)[..., None, None] / missing**2 * by_label


def _variance_at(value: float, rows: Floats, columns: Floats) -> float:
    """Return the variance of one item's part of kappa if kappa is ``value`` in every table, the mean over tables."""
    both = (rows + columns) / 2
    independent = rows[:, :, None] * columns[:, None, :]
    # Below 0 a label cannot be more frequent on different items than its frequencies allow.
    cells = np.maximum((1 - value) * independent + value * both[:, :, None] * np.eye(rows.shape[-1]), 0.0)
    cells /= cells.sum(axis=(-2, -1), keepdims=True)
    parts = _gradient(cells, (cells.sum(axis=-1) * cells.sum(axis=-2)).sum(axis=-1))
    mean = (cells * parts).sum(axis=(-2, -1))
    return float(np.maximum((cells * parts**2).sum(axis=(-2, -1)) - mean**2, 0.0).mean())


def num_same(cells: Floats) -> Floats:
    """Count the items with the same label from both: (…, cell) to (…)."""
    return np.asarray(np.trace(_matrices(cells), axis1=-2, axis2=-1))


def num_same_strict(cells: Floats) -> Floats:
    """Count the items with the same strict label from both: (…, 9) to (…)."""
    strict = cells[..., _STRICT]
    return strict[..., 0] + strict[..., 3]


def num_strict(cells: Floats) -> Floats:
    """Count the items with strict labels from both: (…, 9) to (…)."""
    return cells[..., _STRICT].sum(axis=-1)


def _matrices(cells: Floats) -> Floats:
    """Unflatten: (…, size²) to (…, size, size)."""
    size = isqrt(cells.shape[-1])
    return cells.reshape(*cells.shape[:-1], size, size)
