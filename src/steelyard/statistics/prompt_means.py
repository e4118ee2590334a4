"""Ratios of sums over prompts: over all prompts, as the mean over categories, by group, and paired between two models.

A ratio estimator resamples numerator and denominator together. All intervals use the same drawing of prompts
(`bootstrap.draw_blocks`).
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers, ratio
from steelyard.core.types import JsonObject
from steelyard.statistics.aggregation import mean_over_groups
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import UNBOUNDED, Estimate, Evidence, Scale, difference, interval

UNKNOWN_LANGUAGE = "unknown"


class Ratio(NamedTuple):
    """Numerator and denominator by prompt, both of shape (prompt,).

    ``scale``: the values that the quotient of one prompt can take. ``is_difference``: whether the quotient is the
    difference of two shares with one denominator.
    """

    numerator: Floats
    denominator: Floats
    scale: Scale = UNBOUNDED
    is_difference: bool = False


class Grouping(NamedTuple):
    """Named groups of prompts; ``group`` has shape (prompt,)."""

    names: tuple[str, ...]
    group: Integers


class PairedMean(NamedTuple):
    """The first model's mean over categories minus the second's, with the two-sided ``p`` of the interval's test.

    Prompts without a value of one of the two are left out for both; n is the number that remains. ``p`` is None if none
    remain.
    """

    difference: Estimate
    p: float | None


def mean_of(values: Floats, scale: Scale = UNBOUNDED) -> Ratio:
    """Return the mean over the prompts that have a value (are not NaN), as a ratio."""
    is_known = ~np.isnan(values)
    return Ratio(np.where(is_known, values, 0.0), is_known.astype(np.float64), scale)


def by_category(blocks: Blocks) -> Grouping:
    """Return the first-tier categories of the prompts."""
    return _grouping([cell.category for cell in blocks.layout.cells], blocks)


def by_language(blocks: Blocks) -> Grouping:
    """Return the languages of the prompts."""
    return _grouping([cell.language or UNKNOWN_LANGUAGE for cell in blocks.layout.cells], blocks)


def summarise(blocks: Blocks, ratios: Mapping[str, Ratio], *, with_groups: bool = True) -> JsonObject:
    """Return ``macro`` (the plain mean over categories), ``micro`` (over all), and each category and language."""
    summary: JsonObject = {name: {} for name in ratios}
    categories, languages = by_category(blocks), by_language(blocks)
    for name, measure, sums in _summed(blocks, ratios, categories):
        in_all = Sums(*(part.sum(axis=-2, keepdims=True) for part in sums))
        summary[name] |= {
            "macro": _estimate(blocks, measure, sums, categories.group).record(),
            "micro": _estimate(blocks, measure, in_all, one_group(len(categories.group))).record(),
        }
        if with_groups:
            summary[name]["by_category"] = _estimate_each(blocks, measure, sums, categories)
    for name, measure, sums in _summed(blocks, ratios, languages) if with_groups else ():
        summary[name]["by_language"] = _estimate_each(blocks, measure, sums, languages)
    return summary


def estimate_ratio(sums: Sums, n: float, evidence: Evidence, scale: Scale) -> Estimate:
    """Return column 0 over column 1, as the plain mean over all groups."""
    point, drawn = (mean_over_groups(ratio(part[..., 0], part[..., 1])) for part in sums)
    return interval(float(point), np.asarray(drawn), n, evidence, scale)


def paired_mean(blocks: Blocks, first: Ratio, second: Ratio) -> PairedMean:
    """Return the paired difference over the prompts that have a value of both. Asserts equal denominators there."""
    both = (first.denominator > 0) & (second.denominator > 0)
    grouping = by_category(blocks)
    assert (first.denominator[both] == second.denominator[both]).all(), "the same denominators"
    distance = np.abs(first.numerator - second.numerator)
    columns = [first.numerator, second.numerator, distance, first.denominator]
    terms = Terms(np.flatnonzero(both), grouping.group[both], [column[both] for column in columns])
    sums = add_up(blocks, terms, len(grouping.names))
    point, drawn = (
        mean_over_groups(ratio(part[..., 0], part[..., 3])) - mean_over_groups(ratio(part[..., 1], part[..., 3]))
        for part in sums
    )
    tested = difference(
        float(point),
        np.asarray(drawn),
        first.denominator[both].sum(),
        evidence_of(blocks, grouping.group, np.where(both, first.denominator, 0.0)),
        discordance=float(mean_over_groups(ratio(sums.point[:, 2], sums.point[:, 3]))),
        largest=float((distance[both] / first.denominator[both]).max(initial=0.0)) or 1.0,
    )
    return PairedMean(tested.estimate, None if tested.estimate.value is None else tested.p)


def _grouping(names: Sequence[str], blocks: Blocks) -> Grouping:
    distinct = tuple(sorted(set(names)))
    place = np.array([distinct.index(name) for name in names], np.int64)
    return Grouping(distinct, place[blocks.layout.cell])


def _summed(blocks: Blocks, ratios: Mapping[str, Ratio], grouping: Grouping) -> list[tuple[str, Ratio, Sums]]:
    """Return the sums of each ratio's numerators, denominators, and absolute numerators."""
    columns = [
        column for each in ratios.values() for column in (each.numerator, each.denominator, np.abs(each.numerator))
    ]
    terms = Terms(np.arange(len(grouping.group)), grouping.group, columns)
    sums = add_up(blocks, terms, len(grouping.names))
    return [
        (name, measure, Sums(*(part[..., 3 * place : 3 * place + 3] for part in sums)))
        for place, (name, measure) in enumerate(ratios.items())
    ]


def _estimate(blocks: Blocks, measure: Ratio, sums: Sums, group: Integers) -> Estimate:
    """Return the plain mean over the groups of ``sums`` with its interval; ``group`` has shape (prompt,)."""
    n = sums.point[:, 1].sum()
    evidence = evidence_of(blocks, group, measure.denominator)
    if not measure.is_difference:
        return estimate_ratio(sums, n, evidence, measure.scale)
    point, drawn = (mean_over_groups(ratio(part[..., 0], part[..., 1])) for part in sums)
    # A prompt's discordance is the absolute difference; the categories are averaged like the difference itself.
    discordance = float(mean_over_groups(ratio(sums.point[:, 2], sums.point[:, 1])))
    return difference(float(point), np.asarray(drawn), n, evidence, discordance=discordance).estimate


def _estimate_each(blocks: Blocks, measure: Ratio, sums: Sums, grouping: Grouping) -> JsonObject:
    """Return the estimate of each group that has something to measure."""
    groups = {}
    for place, name in enumerate(grouping.names):
        if sums.point[place, 1] > 0:
            part = Sums(sums.point[place : place + 1], sums.resampled[:, place : place + 1])
            members = np.where(grouping.group == place, 0, -1)
            groups[name] = _estimate(blocks, measure, part, members).record()
    return groups
