"""Filters of a judge's verdicts, and the precision of the verdicts that each keeps: precision by coverage.

The reward model's filters are compared with controls that use none of its training: length, and chance.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers, generator
from steelyard.core.types import Record
from steelyard.curation.calibration import is_kept
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import area, selection_shares

EVERY, AGREES, NOT_AGAINST, LONGER = "all", "agrees", "not confidently against", "longer"


class VerdictMargins(NamedTuple):
    """Columns with one entry for each strict verdict: prompt, the supervisor's margin, and the difference of lengths.

    The margin is NaN where a score is missing: such a verdict does not agree, and is not confidently against.
    """

    prompt: Integers
    margin: Floats
    longer: Floats

    def where(self, chosen: Booleans) -> "VerdictMargins":
        """Return the chosen entries."""
        return VerdictMargins(self.prompt[chosen], self.margin[chosen], self.longer[chosen])


class FilterPrecision(Record, frozen=True, kw_only=True):
    """One filter: coverage, precision of the verdicts it keeps and drops, and paired differences of precision.

    ``gain`` is over all verdicts, ``over_random`` over as many drawn at random, ``over_length`` over as many of those
    whose preferred answer is longest relative to the other. Intervals: a bootstrap over prompts, with fixed filters.
    """

    filter: str
    num_kept: int
    coverage: float
    precision: Estimate
    gain: Estimate
    precision_of_dropped: Estimate
    over_random: Estimate
    over_length: Estimate


class PreferencePrecision(Record, frozen=True, kw_only=True):
    """Precision of all verdicts and of those that agree, for verdicts that prefer the longer answer or do not."""

    group: str
    all: Estimate
    agrees: Estimate
    gain: Estimate


class AreaUnderCurve(Record, frozen=True, kw_only=True):
    """The area under the ROC curve for "the verdict is right": of the margin, and of the difference of lengths."""

    margin: Estimate
    length: Estimate


class PrecisionStudy(Record, frozen=True, kw_only=True):
    """Precision by coverage, over the verdicts on which people have a strict majority."""

    num_verdicts: int
    filters: tuple[FilterPrecision, ...]
    by_preference: tuple[PreferencePrecision, ...]
    area_under_curve: AreaUnderCurve


def apply_filters(verdicts: VerdictMargins, quantiles: Sequence[float]) -> dict[str, Booleans]:
    """Return which verdicts each filter keeps, by its name; labels have no part in it.

    ``agrees``: the margin is positive (and at least that quantile of all absolute margins). ``not confidently
    against``: all but those whose margin is below minus the median. ``longer``: the preferred answer is the longer one.
    """
    size = np.abs(verdicts.margin[~np.isnan(verdicts.margin)])
    filters = {EVERY: np.ones(len(verdicts.margin), bool)}
    filters[NOT_AGAINST] = ~(verdicts.margin < -_quantile(size, 0.5))
    for quantile in sorted(set(quantiles)):
        name = AGREES if quantile == 0 else f"{AGREES}, margin above {quantile:.0%}"
        filters[name] = is_kept(verdicts.margin, _quantile(size, quantile) if quantile else 0.0)
    filters[LONGER] = verdicts.longer > 0
    return filters


def _quantile(values: Floats, share: float) -> float:
    return float(np.quantile(values, share)) if len(values) else 0.0


def draw_random(num_kept: int, num_all: int, *names: str | int) -> Booleans:
    """Return ``num_kept`` of all entries, drawn by a seed and names."""
    drawn = np.zeros(num_all, bool)
    drawn[generator(0, *names).permutation(num_all)[:num_kept]] = True
    return drawn


def pick_longest(verdicts: VerdictMargins, num_kept: int) -> Booleans:
    """Return the ``num_kept`` verdicts with the largest difference of lengths: the control of equal coverage."""
    longest = np.zeros(len(verdicts.longer), bool)
    shuffled = generator(0, "ties in length").permutation(len(verdicts.longer))
    longest[shuffled[np.argsort(-verdicts.longer[shuffled], kind="stable")[:num_kept]]] = True
    return longest


def precision_of_filters(
    verdicts: VerdictMargins, is_right: Booleans, filters: dict[str, Booleans], *, seed: int
) -> tuple[FilterPrecision, ...]:
    """Return a row for each filter; all filters and controls are resampled together."""
    columns = []
    for name, flags in filters.items():
        number = int(flags.sum())
        random = draw_random(number, len(flags), seed, "as many", name)
        columns += [flags, ~flags, random, pick_longest(verdicts, number)]
    precision = selection_shares(verdicts.prompt, np.stack(columns, axis=1), is_right, seed=seed)
    every = 4 * list(filters).index(EVERY)
    return tuple(
        FilterPrecision(
            filter=name,
            num_kept=int(flags.sum()),
            coverage=float(flags.mean()),
            precision=precision.of(column),
            gain=precision.minus(column, every),
            precision_of_dropped=precision.of(column + 1),
            over_random=precision.minus(column, column + 2),
            over_length=precision.minus(column, column + 3),
        )
        for column, (name, flags) in zip(range(0, len(columns), 4), filters.items(), strict=True)
    )


def area_under_curve(verdicts: VerdictMargins, is_right: Booleans, *, seed: int) -> AreaUnderCurve:
    """Measure how well margin and difference of lengths separate right from wrong verdicts, without unscored ones."""
    has_margin = ~np.isnan(verdicts.margin)
    prompt, margin, longer = verdicts.where(has_margin)
    return AreaUnderCurve(
        margin=area(prompt, margin, is_right[has_margin], seed=seed),
        length=area(prompt, longer, is_right[has_margin], seed=seed),
    )


def precision_by_preference(
    verdicts: VerdictMargins, is_right: Booleans, agrees: Booleans, *, seed: int
) -> tuple[PreferencePrecision, ...]:
    """Return precision before and after agreement, for verdicts that prefer the longer answer and those that do not."""
    is_longer = verdicts.longer > 0
    rows = []
    for name, group in (("prefers the longer", is_longer), ("prefers one not longer", ~is_longer)):
        precision = selection_shares(verdicts.prompt, np.stack([group, group & agrees], axis=1), is_right, seed=seed)
        rows.append(
            PreferencePrecision(group=name, all=precision.of(0), agrees=precision.of(1), gain=precision.minus(1, 0))
        )
    return tuple(rows)
