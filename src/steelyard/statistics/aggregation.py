"""From sums by cell to reported numbers: shares of groups, means over groups, and the headline of a bench."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Booleans, Floats, generator, ratio
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject, Record
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.groups import Cell
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Estimate, Evidence, Scale, difference, interval
from steelyard.statistics.pair_counts import CORRECT, EXACT, PAIRS, PROMPTS


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

    def chosen(self, mask: Booleans) -> "Groups":
        """Return the groups where the mask, of shape (group,), is true."""
        return Groups(tuple(name for name, is_in in zip(self.names, mask, strict=True) if is_in), self.members[mask])


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
    numerator, denominator = (totals[..., column] @ groups.members.T for column in (share.numerator, share.denominator))
    # `ratio` guards against a denominator of 0 and copies all resamples; most benches have no empty group.
    return numerator / denominator if denominator.min(initial=1.0) > 0 else ratio(numerator, denominator)


def mean_over_groups(values: Floats) -> Floats:
    """Return the mean over the last axis: (…, group) to (…). NaN is ignored; NaN if all are."""
    if values.shape[-1] == 1:
        return values[..., 0]
    is_known = ~np.isnan(values)
    return ratio(np.where(is_known, values, 0.0).sum(axis=-1), is_known.sum(axis=-1, dtype=np.float64))


def macro(totals: Floats, groups: Groups, share: Share) -> Floats:
    """Return the plain mean of a measure over groups: (…, cell, column) to (…)."""
    return mean_over_groups(shares(totals, groups, share))


def estimate(
    totals: Totals,
    formula: Callable[[Floats], Floats],
    n: float,
    *,
    evidence: Evidence | None = None,
    scale: Scale = SHARE,
) -> Estimate:
    """Return a formula's value on the data with its 95% interval.

    ``evidence``: the effective sample. None: that of the strata that the value depends on (`evidence_of_formula`).
    """
    evidence = evidence or evidence_of_formula(totals, formula)
    return interval(float(formula(totals.point)), np.asarray(formula(totals.resampled)), n, evidence, scale)


def estimate_difference(totals: Totals, formula: Callable[[Floats], Floats], n: float) -> Estimate:
    """Return the estimate of a formula that is a difference of two shares of the same prompts."""
    evidence = evidence_of_formula(totals, formula)
    return difference_of_shares(float(formula(totals.point)), np.asarray(formula(totals.resampled)), n, evidence)


def difference_of_shares(value: float, resampled: Floats, n: float, evidence: Evidence) -> Estimate:
    """Return a difference of two shares; its interval, which is Student's, ends at -1 and 1."""
    estimate = difference(value, resampled, n, evidence).estimate
    if estimate.low is None or estimate.high is None:
        return estimate
    return replace(estimate, low=max(estimate.low, -1.0), high=min(estimate.high, 1.0))


def estimate_macro(totals: Totals, groups: Groups, share: Share) -> Estimate:
    """Return the plain mean of a measure over groups; n is the sum of the groups' denominators."""
    below = (groups.members @ totals.point)[..., share.denominator]
    evidence = totals.evidence(groups.members[below > 0], denominator=share.denominator, numerator=share.numerator)
    return estimate(totals, lambda sums: macro(sums, groups, share), below.sum(), evidence=evidence)


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


def evidence_of_formula(totals: Totals, formula: Callable[[Floats], Floats]) -> Evidence:
    """Return the effective sample of a formula, by a numerical test of what it depends on.

    A formula depends on a stratum, or on a column, if its value changes with these sums. Pairs then weight the units,
    and right pairs are their successes if no other column matters.
    """
    # The shifts are random, so that they do not cancel in a quotient, and seeded, so that the answer is the same in
    # every run. Adding 1 to all sums keeps denominators above 0.
    units, num_strata = totals.units, len(totals.units.sizes)
    changed = np.repeat(totals.point[None] + 1.0, num_strata + 4, axis=0)
    shifts = generator(0, "what a formula depends on").uniform(1, 2, totals.point.shape)
    for index in range(num_strata):
        cells = units.cell[units.stratum[units.row] == index]
        changed[index, cells] += shifts[cells]
    others = [column for column in range(totals.point.shape[1]) if column not in ACCURACY]
    for index, columns in enumerate(([PAIRS], [CORRECT], others), num_strata):
        changed[index][:, columns] += shifts[:, columns]
    values = np.asarray(formula(changed))
    *is_used, of_pairs, of_right, of_others = (values[:-1] != values[-1]).tolist()
    return totals.evidence(
        used=np.array(is_used, bool),
        denominator=PAIRS if of_pairs else None,
        numerator=CORRECT if of_pairs and of_right and not of_others else None,
    )


Formula = Callable[[Floats], Floats]
"""A value from sums by cell, of the prompts or of every resample: (…, cell, column) to (…)."""
LeftOut = Mapping[Cell, int]
"""The number of prompts in the bench's files without a comparable pair, by cell: present, but not in the sums."""
NONE_LEFT_OUT: LeftOut = {}


class Part(NamedTuple):
    """One number of a bench; ``n`` is the number of prompts or pairs that it is computed from."""

    formula: Formula
    n: float


class Breakdown(NamedTuple):
    """The numbers of one language by the arithmetic of its bench, over the prompts present, complete or not.

    ``overall`` is the number over ``sections``. ``missing``: every subset whose number of prompts differs from the
    published one, with both numbers.
    """

    sections: Mapping[str, Part]
    overall: Part
    missing: Mapping[str, str]


class Headline(NamedTuple):
    """The headline of a bench. ``name``: its key in a summary; ``about``: what it is the mean of.

    ``n`` is the number of prompts or pairs behind the value of ``formula``. ``missing``: the absent parts that the
    headline needs, with the reason; the formula is then not used.
    """

    name: str
    about: str
    formula: Formula
    n: float
    missing: Mapping[str, str] = {}

    def record(self, totals: Totals) -> JsonObject:
        """Return its part of a summary: ``headline``, the name, and the estimate under it; or null, and ``missing``."""
        if self.missing:
            return {"headline": None, "missing": dict(self.missing)}
        return {"headline": self.name, self.name: estimate(totals, self.formula, self.n).record()}


def mean_accuracy(totals: Totals) -> Headline:
    """Return the headline of a bench without a published one: accuracy, the mean over first-tier categories."""
    categories = by_category(totals.cells)
    about = "the mean over first-tier categories; a tied score is wrong"
    return Headline(
        "accuracy", about, lambda sums: macro(sums, categories, ACCURACY), float(totals.point[:, PAIRS].sum())
    )


def mean_of_sections(sections: Mapping[str, Part]) -> Formula:
    """Return the plain mean of sections."""
    formulas = [part.formula for part in sections.values()]
    return lambda sums: np.stack([formula(sums) for formula in formulas], axis=-1).mean(axis=-1)


def num_prompts(
    totals: Totals, name_of: Callable[[Cell], str | None], left_out: LeftOut = NONE_LEFT_OUT
) -> Counter[str | None]:
    """Count the prompts under each name, including those without a comparable pair."""
    counts = Counter[str | None]()
    for cell, number in zip(totals.cells, totals.point[:, PROMPTS].tolist(), strict=True):
        counts[name_of(cell)] += int(number)
    for cell, number in left_out.items():
        counts[name_of(cell)] += number
    return counts


def subset_of(cell: Cell) -> str | None:
    """Return the subset of a cell."""
    return cell.subset


def missing_parts(counts: Mapping[str | None, int], expected: Mapping[str, int]) -> dict[str, str]:
    """Return every part whose number of prompts differs from the published or stated one, with both numbers."""
    return {
        name: f"{number_of(counts.get(name, 0), 'prompt')}, expected {number:,}"
        for name, number in expected.items()
        if counts.get(name, 0) != number
    }


class LanguageTotals(NamedTuple):
    """The totals of one language and its prompts that are left out; ``place``: the positions of its cells among all."""

    totals: Totals
    left_out: LeftOut
    place: list[int]

    def lift(self, formula: Formula) -> Formula:
        """Return a formula of this language's sums as one of the sums of all languages."""
        return lambda sums: formula(sums[..., self.place, :])


def by_language(
    totals: Totals, left_out: LeftOut = NONE_LEFT_OUT, *, code_of: Callable[[str], str] = str
) -> dict[str, LanguageTotals]:
    """Return the totals of each language, in the order of their codes; cells without a language are left out.

    ``code_of`` returns the code of a language as the benchmark spells it.
    """
    codes = [cell.language and code_of(cell.language) for cell in totals.cells]
    languages = {}
    for name in sorted({code for code in codes if code is not None}):
        place = [index for index, code in enumerate(codes) if code == name]
        of_language = {cell: n for cell, n in left_out.items() if cell.language and code_of(cell.language) == name}
        languages[name] = LanguageTotals(totals.select(place), of_language, place)
    return languages


class Drop(Record, frozen=True, kw_only=True):
    """Drop of a value below its reference, ``absolute`` and ``relative`` to the reference."""

    absolute: Estimate
    relative: Estimate


def drop(totals: Totals, reference: Part, other: Part) -> Drop:
    """Return how far a value lies below its reference."""

    def absolute(sums: Floats) -> Floats:
        return reference.formula(sums) - other.formula(sums)

    def relative(sums: Floats) -> Floats:
        whole = reference.formula(sums)
        return np.where(whole > 0, absolute(sums), np.nan) / np.where(whole > 0, whole, 1.0)

    n = min(reference.n, other.n)
    return Drop(
        absolute=estimate_difference(totals, absolute, n), relative=estimate(totals, relative, n, scale=UNBOUNDED)
    )
