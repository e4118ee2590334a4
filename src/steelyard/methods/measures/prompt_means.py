"""Measures that are one sum over another: over all prompts, as the mean over categories, and by group.

Each has its interval from the same drawing of blocks of prompts (`blocks.draw_blocks`).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Booleans, Floats, Integers
from steelyard.methods.measures.aggregation import effective_units, mean_over_groups
from steelyard.methods.measures.blocks import Blocks, Sums, Terms, add_up
from steelyard.methods.measures.estimates import Estimate, interval, widened
from steelyard.methods.measures.tallies import ratio

UNKNOWN_LANGUAGE = "unknown"


class Ratio(NamedTuple):
    """What is summed and by what it is divided, both of shape (prompt,); ``is_share``: a share of prompts or pairs."""

    above: Floats
    below: Floats
    is_share: bool = False


class Grouping(NamedTuple):
    """Named groups of prompts; ``group`` has shape (prompt,)."""

    names: tuple[str, ...]
    group: Integers


def mean_of(values: Floats, *, is_share: bool = False) -> Ratio:
    """The mean over the prompts that have a value; NaN is none."""
    known = ~np.isnan(values)
    return Ratio(np.where(known, values, 0.0), known.astype(np.float64), is_share)


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
            "macro": _macro(blocks, own, sums, categories).record(),
            "micro": _whole(blocks, own, sums).record(),
        }
        if with_groups:
            found[name]["by_category"] = _each(blocks, own, sums, categories)
    for name, own, sums in _summed(blocks, ratios, languages) if with_groups else ():
        found[name]["by_language"] = _each(blocks, own, sums, languages)
    return found


def estimate_total(sums: Sums, n: float) -> Estimate:
    """Column 0 over column 1, both summed over all groups."""
    point, drawn = (ratio(own[..., 0].sum(-1), own[..., 1].sum(-1)) for own in sums)
    return known(float(point), drawn, n)


def known(value: float, drawn: Floats, n: float) -> Estimate:
    """A value with the percentiles of its resamples; null where there is nothing to measure."""
    return Estimate(None, None, None, int(n)) if np.isnan(value) else interval(value, drawn, n)


def num_units(blocks: Blocks, counted: Booleans) -> int:
    """How many units the counted prompts are; shape (prompt,)."""
    return len(np.unique(blocks.unit[counted]))


def _grouping(names: Sequence[str], blocks: Blocks) -> Grouping:
    distinct = tuple(sorted(set(names)))
    place = np.array([distinct.index(name) for name in names], np.int64)
    return Grouping(distinct, place[blocks.layout.cell])


def _summed(blocks: Blocks, ratios: Mapping[str, Ratio], grouping: Grouping) -> list[tuple[str, Ratio, Sums]]:
    columns = [column for own in ratios.values() for column in (own.above, own.below)]
    terms = Terms(np.arange(len(grouping.group)), grouping.group, columns)
    sums = add_up(blocks, terms, len(grouping.names))
    return [
        (name, own, Sums(*(part[..., 2 * place : 2 * place + 2] for part in sums)))
        for place, (name, own) in enumerate(ratios.items())
    ]


def _macro(blocks: Blocks, own: Ratio, sums: Sums, grouping: Grouping) -> Estimate:
    point, drawn = (mean_over_groups(ratio(part[..., 0], part[..., 1])) for part in sums)
    found = known(float(point), drawn, own.below.sum())
    if not own.is_share or found.low != found.high:
        return found
    filled = [place for place in range(len(grouping.names)) if sums.point[place, 1] > 0]
    units = [num_units(blocks, (grouping.group == place) & (own.below > 0)) for place in filled]
    return widened(found, effective_units(np.array(units, np.float64)))


def _whole(blocks: Blocks, own: Ratio, sums: Sums) -> Estimate:
    found = estimate_total(sums, own.below.sum())
    return widened(found, num_units(blocks, own.below > 0)) if own.is_share and found.low == found.high else found


def _each(blocks: Blocks, own: Ratio, sums: Sums, grouping: Grouping) -> dict[str, Any]:
    found = {}
    for place, name in enumerate(grouping.names):
        if sums.point[place, 1] > 0:
            part = Sums(sums.point[place : place + 1], sums.resampled[:, place : place + 1])
            counted = (grouping.group == place) & (own.below > 0)
            single = estimate_total(part, sums.point[place, 1])
            is_flat = own.is_share and single.low == single.high
            found[name] = (widened(single, num_units(blocks, counted)) if is_flat else single).record()
    return found
