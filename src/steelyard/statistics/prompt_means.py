"""Measures that are one sum over another: over all prompts, as the mean over categories, and by group.

Each has its interval from the same drawing of blocks of prompts (`blocks.draw_blocks`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.statistics.aggregation import mean_over_groups
from steelyard.statistics.blocks import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.estimates import UNBOUNDED, Estimate, Evidence, Scale, difference, interval
from steelyard.statistics.pair_counts import Floats, Integers
from steelyard.statistics.tallies import ratio

UNKNOWN_LANGUAGE = "unknown"


class Ratio(NamedTuple):
    """What is summed and by what it is divided, both of shape (prompt,).

    ``scale``: the values that it can take by prompt. ``is_difference``: of two shares of the same things.
    """

    above: Floats
    below: Floats
    scale: Scale = UNBOUNDED
    is_difference: bool = False


class Grouping(NamedTuple):
    """Named groups of prompts; ``group`` has shape (prompt,)."""

    names: tuple[str, ...]
    group: Integers


def mean_of(values: Floats, scale: Scale = UNBOUNDED) -> Ratio:
    """The mean over the prompts that have a value; NaN is none."""
    known = ~np.isnan(values)
    return Ratio(np.where(known, values, 0.0), known.astype(np.float64), scale)


def by_category(blocks: Blocks) -> Grouping:
    """The first-tier categories of the prompts."""
    return _grouping([cell.category for cell in blocks.layout.cells], blocks)


def by_language(blocks: Blocks) -> Grouping:
    """The languages of the prompts."""
    return _grouping([cell.language or UNKNOWN_LANGUAGE for cell in blocks.layout.cells], blocks)


def summarise(blocks: Blocks, ratios: Mapping[str, Ratio], *, with_groups: bool = True) -> dict[str, Any]:
    """``macro`` (the plain mean over categories), ``micro`` (over all), and each category and language by name."""
    found: dict[str, Any] = {name: {} for name in ratios}
    categories, languages = by_category(blocks), by_language(blocks)
    for name, own, sums in _summed(blocks, ratios, categories):
        found[name] |= {
            "macro": _estimated(blocks, own, sums, categories.group).record(),
            "micro": _estimated(blocks, own, _in_all(sums), one_group(len(categories.group))).record(),
        }
        if with_groups:
            found[name]["by_category"] = _each(blocks, own, sums, categories)
    for name, own, sums in _summed(blocks, ratios, languages) if with_groups else ():
        found[name]["by_language"] = _each(blocks, own, sums, languages)
    return found


def estimate_ratio(sums: Sums, n: float, evidence: Evidence, scale: Scale) -> Estimate:
    """Column 0 over column 1, the plain mean of it over all groups."""
    point, drawn = (mean_over_groups(ratio(own[..., 0], own[..., 1])) for own in sums)
    return interval(float(point), np.asarray(drawn), n, evidence, scale)


def _grouping(names: Sequence[str], blocks: Blocks) -> Grouping:
    distinct = tuple(sorted(set(names)))
    place = np.array([distinct.index(name) for name in names], np.int64)
    return Grouping(distinct, place[blocks.layout.cell])


def _summed(blocks: Blocks, ratios: Mapping[str, Ratio], grouping: Grouping) -> list[tuple[str, Ratio, Sums]]:
    """Of each ratio the sums above, below, and of what is above without its sign."""
    columns = [column for own in ratios.values() for column in (own.above, own.below, np.abs(own.above))]
    terms = Terms(np.arange(len(grouping.group)), grouping.group, columns)
    sums = add_up(blocks, terms, len(grouping.names))
    return [
        (name, own, Sums(*(part[..., 3 * place : 3 * place + 3] for part in sums)))
        for place, (name, own) in enumerate(ratios.items())
    ]


def _in_all(sums: Sums) -> Sums:
    return Sums(*(own.sum(axis=-2, keepdims=True) for own in sums))


def _estimated(blocks: Blocks, own: Ratio, sums: Sums, group: Integers) -> Estimate:
    """The plain mean over the groups of ``sums``, with what stands behind it; ``group`` has shape (prompt,)."""
    n = sums.point[:, 1].sum()
    evidence = evidence_of(blocks, group, own.below > 0)
    if not own.is_difference:
        return estimate_ratio(sums, n, evidence, own.scale)
    point, drawn = (mean_over_groups(ratio(part[..., 0], part[..., 1])) for part in sums)
    apart = float(mean_over_groups(ratio(sums.point[:, 2], sums.point[:, 1])))
    return difference(float(point), np.asarray(drawn), n, evidence, discordance=apart).estimate


def _each(blocks: Blocks, own: Ratio, sums: Sums, grouping: Grouping) -> dict[str, Any]:
    found = {}
    for place, name in enumerate(grouping.names):
        if sums.point[place, 1] > 0:
            part = Sums(sums.point[place : place + 1], sums.resampled[:, place : place + 1])
            found[name] = _estimated(blocks, own, part, np.where(grouping.group == place, 0, -1)).record()
    return found
