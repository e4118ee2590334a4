"""Usual lengths of answers by category and language: from which length on one is too short or too long.

Logarithms of lengths are counted in narrow bins, so that a file of any size is measured in constant memory. The bounds
are the quartiles, extended by a multiple of the distance between them (Tukey's fences), on the logarithmic scale.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from steelyard.core.text import num_characters
from steelyard.core.types import Case

_BINS_A_DOUBLING = 8
_SMALLEST_SPREAD = 0.5
"""The least distance of the quartiles of the logarithm: groups of nearly equal lengths are not pressed together."""

Group = tuple[str, str]
"""First-tier category and language; the empty string for none."""
LengthCounts = Counter[tuple[Group, int]]
"""The number of responses by group and bin of the length."""


class LengthBounds(NamedTuple):
    """The shortest and the longest usual answer, in characters."""

    shortest: float
    longest: float


def group_of(case: Case) -> Group:
    """Return the group of a case."""
    return (case.prompt.category[0] if case.prompt.category else "", case.prompt.language or "")


def count_lengths(cases: Iterable[Case]) -> LengthCounts:
    """Count the lengths of all responses by group."""
    lengths: LengthCounts = Counter()
    for case in cases:
        group = group_of(case)
        for response in case.responses:
            lengths[group, length_bin(num_characters(response))] += 1
    return lengths


def length_bin(num_characters: int) -> int:
    """Return the bin of a length; lengths in one bin differ by less than a tenth."""
    return round(_BINS_A_DOUBLING * math.log2(max(1, num_characters)))


def usual_lengths(
    counts: LengthCounts, *, spread: float, fewest: int, always_fine: LengthBounds
) -> dict[Group, LengthBounds]:
    """Return the bounds of each group. A group of fewer than ``fewest`` responses takes those of its language.

    A language with fewer takes those of the whole file, and a smaller file the fixed bounds alone. Lengths between the
    two of ``always_fine`` are never outside.
    """
    levels: dict[Group, Counter[int]] = {}
    for (group, place), number in counts.items():
        for level in {group, ("", group[1]), ("", "")}:
            levels.setdefault(level, Counter())[place] += number
    bounds: dict[Group, LengthBounds] = {}
    for group in {group for group, _ in counts}:
        chosen = next((each for each in (group, ("", group[1]), ("", "")) if levels[each].total() >= fewest), None)
        bounds[group] = (
            _bounds(levels[chosen], spread, always_fine)
            if chosen is not None
            else LengthBounds(1.0, 10 * always_fine.longest)
        )
    return bounds


def _bounds(bins: Mapping[int, int], spread: float, always_fine: LengthBounds) -> LengthBounds:
    low, high = (_quantile(bins, share) / _BINS_A_DOUBLING * math.log(2) for share in (0.25, 0.75))
    reach = spread * max(high - low, _SMALLEST_SPREAD)
    return LengthBounds(
        min(math.exp(low - reach), always_fine.shortest), max(math.exp(high + reach), always_fine.longest)
    )


def _quantile(bins: Mapping[int, int], share: float) -> int:
    wanted, number = share * sum(bins.values()), 0
    for place in sorted(bins):
        number += bins[place]
        if number >= wanted:
            return place
    raise AssertionError("a share of at most 1 is reached")
