"""From totals by cell to reported numbers: shares of groups, means over groups, and their intervals."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, generator, ratio
from steelyard.core.types import JsonObject
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.groups import Cell
from steelyard.statistics.intervals import SHARE, Estimate, Evidence, Scale, difference, interval
from steelyard.statistics.pair_counts import CORRECT, EXACT, PAIRS, PROMPTS

UNCATEGORISED = "uncategorised"


class Share(NamedTuple):
    """A measure that is one column of the statistics divided by another."""

    numerator: int
    denominator: int

    def shifted(self, columns: int) -> "Share":
        """Return the same measure of the model whose statistics begin after that number of columns."""
        return Share(self.numerator + columns, self.denominator + columns)


ACCURACY = Share(CORRECT, PAIRS)
EXACT_MATCH = Share(EXACT, PROMPTS)


class Groups(NamedTuple):
    """Named groups of cells: ``members`` has shape (group, cell), 1 if the cell belongs to the group."""

    names: tuple[str, ...]
    members: Floats

    def select(self, *names: str) -> "Groups":
        """Return the groups of these names, in this order."""
        return Groups(names, self.members[[self.names.index(name) for name in names]])


def group_cells(cells: Sequence[Cell], name_of: Callable[[Cell], str | None]) -> Groups:
    """Group cells by a name, sorted; a cell named None belongs to no group."""
    cell_names = [name_of(cell) for cell in cells]
    names = tuple(sorted({name for name in cell_names if name is not None}))
    members = np.array([[cell_name == name for cell_name in cell_names] for name in names], dtype=np.float64)
    return Groups(names, members.reshape(len(names), len(cells)))


def by_category(cells: Sequence[Cell], *, subset: str | None = None) -> Groups:
    """Return the first-tier categories, of one subset or of all."""
    return group_cells(cells, lambda cell: cell.category if subset in (None, cell.subset) else None)


def all_cells(cells: Sequence[Cell]) -> Groups:
    """Return one group of all cells."""
    return group_cells(cells, lambda _: "all")


def shares(totals: Floats, groups: Groups, share: Share) -> Floats:
    """Return the measure of each group: (…, cell, column) to (…, group). NaN for a denominator of 0."""
    above, below = (totals[..., column] @ groups.members.T for column in (share.numerator, share.denominator))
    return above / below if below.min(initial=1.0) > 0 else ratio(above, below)


def mean_over_groups(values: Floats, weights: Floats | None = None) -> Floats:
    """Return the mean over the last axis, optionally weighted: (…, group) to (…). NaN is ignored."""
    if values.shape[-1] == 1 and weights is None:
        return values[..., 0]
    is_known = ~np.isnan(values)
    known_weights = is_known * (np.ones(values.shape[-1]) if weights is None else weights)
    return ratio((np.where(is_known, values, 0.0) * known_weights).sum(axis=-1), known_weights.sum(axis=-1))


def macro(totals: Floats, groups: Groups, share: Share) -> Floats:
    """Return the plain mean of a measure over groups: (…, cell, column) to (…)."""
    return mean_over_groups(shares(totals, groups, share))


def estimate(
    totals: Totals, formula: Callable[[Floats], Floats], n: float, *, groups: Groups | None = None, scale: Scale = SHARE
) -> Estimate:
    """Return a formula's value on the data and its interval over the resamples.

    ``groups``: the groups whose plain mean it is; None: the strata that its value depends on.
    """
    evidence = _evidence(totals, formula, groups)
    return interval(float(formula(totals.point)), np.asarray(formula(totals.resampled)), n, evidence, scale)


def estimate_difference(totals: Totals, formula: Callable[[Floats], Floats], n: float) -> Estimate:
    """Return the estimate of a formula that is a difference of two shares of the same prompts."""
    evidence = _evidence(totals, formula, None)
    return difference(float(formula(totals.point)), np.asarray(formula(totals.resampled)), n, evidence).estimate


def estimate_macro(totals: Totals, groups: Groups, share: Share) -> Estimate:
    """Return the plain mean of a measure over groups; n is the sum of the groups' denominators."""
    below = (groups.members @ totals.point)[..., share.denominator]
    present = Groups(groups.names, groups.members[below > 0])
    return estimate(totals, lambda sums: macro(sums, groups, share), below.sum(), groups=present)


def estimate_groups(totals: Totals, groups: Groups) -> JsonObject:
    """Return accuracy and exact match of each group by its name."""
    return {
        name: {
            "accuracy": estimate_macro(totals, groups.select(name), ACCURACY).record(),
            "exact_match": estimate_macro(totals, groups.select(name), EXACT_MATCH).record(),
        }
        for name in groups.names
    }


def means(totals: Totals) -> JsonObject:
    """Return accuracy and exact match as the mean over first-tier categories, over all pairs, and by group."""
    categories, everything = by_category(totals.cells), all_cells(totals.cells)
    languages = group_cells(totals.cells, lambda cell: cell.language or "unknown")
    return {
        "accuracy": estimate_macro(totals, categories, ACCURACY).record(),
        "exact_match": estimate_macro(totals, categories, EXACT_MATCH).record(),
        "accuracy_micro": estimate_macro(totals, everything, ACCURACY).record(),
        "exact_match_micro": estimate_macro(totals, everything, EXACT_MATCH).record(),
        "by_category": estimate_groups(totals, categories),
        "by_language": estimate_groups(totals, languages),
    }


def _evidence(totals: Totals, formula: Callable[[Floats], Floats], groups: Groups | None) -> Evidence:
    if groups is not None:
        return totals.evidence(groups.members)
    # A formula depends on a stratum if its value changes with the stratum's sums, whatever these are.
    changed = np.repeat(totals.point[None] + 1.0, len(totals.support) + 1, axis=0)
    shifts = generator(0, "what a formula depends on").uniform(1, 2, totals.point.shape)
    for index, support in enumerate(totals.support):
        changed[index, support.cells] += shifts[support.cells]
    values = np.asarray(formula(changed))
    return totals.evidence(used=values[:-1] != values[-1])
