"""Two models on the same pairs: how many only one of them has right, with the interval of the difference.

A pair is shared if both evaluations count it and both models have a score for it. The difference in the share of right
pairs has the interval of paired outcomes (`statistics/intervals.difference`): with one pair per prompt its test is
McNemar's.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Integers
from steelyard.evaluation.failures import MarginColumns, prompt_units
from steelyard.statistics.intervals import Difference, difference_of
from steelyard.statistics.linearised import group_ratios


class DisagreedPair(NamedTuple):
    """One pair that only one of two models has right: its prompt in the report, and its number in `item_pairs`.

    ``gap`` is the difference of the two margins, each divided by the scale of its model.
    """

    position: int
    number: int
    is_first_right: bool
    gap: float


class Disagreement(NamedTuple):
    """Two models on the pairs that both have scored.

    ``difference``: the share of right pairs of the first minus that of the second. ``only_first_prompts`` and
    ``only_second_prompts``: the positions of the prompts with a pair that only this model has right. ``largest``: the
    pair with the largest gap of each prompt, largest first.
    """

    first: int
    second: int
    num_both: int
    num_only_first: int
    num_only_second: int
    num_neither: int
    difference: Difference
    only_first_prompts: Integers
    only_second_prompts: Integers
    largest: tuple[DisagreedPair, ...]


def disagreements(models: Sequence[MarginColumns], *, most: int) -> tuple[Disagreement, ...]:
    """Return every two models with shared pairs; ``most`` is the number of pairs with the largest gaps."""
    compared = (_disagreement(models, pair, most) for pair in combinations(range(len(models)), 2))
    return tuple(each for each in compared if each is not None)


def _disagreement(models: Sequence[MarginColumns], pair: tuple[int, int], most: int) -> Disagreement | None:
    """Return two models on their shared pairs, in the order of the first; null without any."""
    first, second = (models[index] for index in pair)
    scored = [np.flatnonzero(~np.isnan(pairs.margin)) for pairs in (first, second)]
    _, left, right = np.intersect1d(
        first.identity[scored[0]], second.identity[scored[1]], assume_unique=True, return_indices=True
    )
    if not len(left):
        return None
    order = np.argsort(left)
    left, right = scored[0][left[order]], scored[1][right[order]]
    is_left, is_right = first.margin[left] > 0, second.margin[right] > 0
    position = first.positions[first.prompt[left]]
    gain = is_left.astype(np.float64) - is_right
    unit, strata = prompt_units(first)
    group = np.zeros(len(left), np.int64)
    (ratio,) = group_ratios(group, unit[first.prompt[left]], gain, np.ones(len(left)), 1, strata=strata)
    tested = difference_of(
        ratio.value, ratio.variance, ratio.denominator, ratio.evidence, discordance=ratio.distance / ratio.denominator
    )
    gap = np.abs(first.confidence[left] - second.confidence[right])
    apart = np.flatnonzero(is_left != is_right)
    apart = apart[np.argsort(-gap[apart], kind="stable")]
    _, leading = np.unique(position[apart], return_index=True)
    return Disagreement(
        *pair,
        num_both=int((is_left & is_right).sum()),
        num_only_first=int((is_left & ~is_right).sum()),
        num_only_second=int((is_right & ~is_left).sum()),
        num_neither=int((~is_left & ~is_right).sum()),
        difference=tested,
        only_first_prompts=np.unique(position[is_left & ~is_right]),
        only_second_prompts=np.unique(position[is_right & ~is_left]),
        largest=tuple(
            DisagreedPair(int(position[at]), int(first.number[left[at]]), bool(is_left[at]), float(gap[at]))
            for at in apart[np.sort(leading)[:most]]
        ),
    )
