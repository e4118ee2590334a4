"""From totals by cell to the numbers that are reported: shares of groups, means over groups, and their intervals."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.arrays import Floats
from steelyard.core.seeds import generator
from steelyard.statistics.bootstrap import Items, Totals, difference_items, resample
from steelyard.statistics.groups import Cell
from steelyard.statistics.intervals import SHARE, Difference, Estimate, Evidence, Scale, difference, interval
from steelyard.statistics.pair_counts import CORRECT, EXACT, PAIRS, PROMPTS

UNCATEGORISED = "uncategorised"


class Share(NamedTuple):
    """A measure that is one column of the statistics divided by another."""

    numerator: int
    denominator: int

    def shifted(self, columns: int) -> "Share":
        """The same measure of the model whose statistics stand so many columns further on."""
        return Share(self.numerator + columns, self.denominator + columns)


ACCURACY = Share(CORRECT, PAIRS)
EXACT_MATCH = Share(EXACT, PROMPTS)


class Groups(NamedTuple):
    """Named groups of cells: ``members`` has shape (group, cell), 1 where the cell belongs to the group."""

    names: tuple[str, ...]
    members: Floats

    def select(self, *names: str) -> "Groups":
        """The groups of these names, in this order."""
        return Groups(names, self.members[[self.names.index(name) for name in names]])


def group_cells(cells: Sequence[Cell], name_of: Callable[[Cell], str | None]) -> Groups:
    """Groups of cells by a name, sorted; a cell named None belongs to no group."""
    given = [name_of(cell) for cell in cells]
    names = tuple(sorted({name for name in given if name is not None}))
    members = np.array([[own == name for own in given] for name in names], dtype=np.float64)
    return Groups(names, members.reshape(len(names), len(cells)))


def by_category(cells: Sequence[Cell], *, subset: str | None = None) -> Groups:
    """The first-tier categories, of one subset or of all."""
    return group_cells(cells, lambda cell: cell.category if subset in (None, cell.subset) else None)


def all_cells(cells: Sequence[Cell]) -> Groups:
    """One group of everything."""
    return group_cells(cells, lambda _: "all")


def shares(totals: Floats, groups: Groups, share: Share) -> Floats:
    """The measure of each group: (…, cell, column) to (…, group). NaN where nothing stands in the denominator."""
    above, below = (totals[..., column] @ groups.members.T for column in (share.numerator, share.denominator))
    if below.min(initial=1.0) > 0:
        return above / below
    return np.where(below > 0, above, np.nan) / np.where(below > 0, below, 1.0)


def mean_over_groups(values: Floats, weights: Floats | None = None) -> Floats:
    """The mean over the last axis, weighted if asked: (…, group) to (…). NaN (nothing to measure) is passed over."""
    if values.shape[-1] == 1 and weights is None:
        return values[..., 0]
    known = ~np.isnan(values)
    weighed = known * (np.ones(values.shape[-1]) if weights is None else weights)
    below = weighed.sum(axis=-1)
    above = (np.where(known, values, 0.0) * weighed).sum(axis=-1)
    return np.where(below > 0, above, np.nan) / np.where(below > 0, below, 1.0)


def macro(totals: Floats, groups: Groups, share: Share) -> Floats:
    """The plain mean of a measure over groups: (…, cell, column) to (…)."""
    return mean_over_groups(shares(totals, groups, share))


def estimate(
    totals: Totals, formula: Callable[[Floats], Floats], n: float, *, groups: Groups | None = None, scale: Scale = SHARE
) -> Estimate:
    """A formula's value on the data and its interval over the resamples.

    ``groups``: those of which it is a plain mean; null: of the strata on which its value depends.
    """
    evidence = _evidence(totals, formula, groups)
    return interval(float(formula(totals.point)), np.asarray(formula(totals.resampled)), n, evidence, scale)


def estimate_difference(totals: Totals, formula: Callable[[Floats], Floats], n: float) -> Estimate:
    """The same of a difference of two shares of the same prompts."""
    evidence = _evidence(totals, formula, None)
    return difference(float(formula(totals.point)), np.asarray(formula(totals.resampled)), n, evidence).estimate


def _evidence(totals: Totals, formula: Callable[[Floats], Floats], groups: Groups | None) -> Evidence:
    if groups is not None:
        return totals.evidence(groups.members)
    # A stratum matters to a formula if the value changes with its sums, whatever they are.
    changed = np.repeat(totals.point[None] + 1.0, len(totals.support) + 1, axis=0)
    shifts = generator(0, "what a formula depends on").uniform(1, 2, totals.point.shape)
    for place, own in enumerate(totals.support):
        changed[place, own.cells] += shifts[own.cells]
    values = np.asarray(formula(changed))
    return totals.evidence(used=values[:-1] != values[-1])


def estimate_groups(totals: Totals, groups: Groups) -> dict[str, dict[str, Any]]:
    """Accuracy and exact match of each group by its name."""
    found = {}
    for name in groups.names:
        own = groups.select(name)
        found[name] = {
            "accuracy": estimate_macro(totals, own, ACCURACY).record(),
            "exact_match": estimate_macro(totals, own, EXACT_MATCH).record(),
        }
    return found


def estimate_macro(totals: Totals, groups: Groups, share: Share) -> Estimate:
    """The plain mean of a measure over groups; n sums what stands in the groups' denominators."""
    below = (groups.members @ totals.point)[..., share.denominator]
    present = Groups(groups.names, groups.members[below > 0])
    return estimate(totals, lambda sums: macro(sums, groups, share), below.sum(), groups=present)


def means(totals: Totals) -> dict[str, Any]:
    """Accuracy and exact match as the mean over first-tier categories, both over everything, and by category."""
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


def share_difference(both: Items, share: Share, *, seed: int) -> Difference:
    """A measure (mean over categories) of the first model minus the second's, whose statistics stand side by side.

    Prompts are drawn once for both (a paired bootstrap). Asserts that both have the same denominators.
    """
    return mean_difference(
        resample(difference_items(both, shared=[share.denominator], compared=[share.numerator]), seed=seed)
    )


def mean_difference(totals: Totals) -> Difference:
    """The mean over categories of a paired difference; the columns are those of `difference_items`, one compared."""
    categories = by_category(totals.cells)
    drawn = np.asarray(macro(totals.resampled, categories, Share(1, 0)))
    return difference(
        float(macro(totals.point, categories, Share(1, 0))),
        drawn,
        totals.point[:, 0].sum(),
        totals.evidence(categories.members),
        discordance=float(macro(totals.point, categories, Share(2, 0))),
    )
