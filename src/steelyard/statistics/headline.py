"""The headline of a bench: its sections, the number over them, and the published parts that are missing."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats
from steelyard.core.types import JsonObject, Record
from steelyard.statistics.aggregation import ACCURACY, by_category, estimate, estimate_difference, macro
from steelyard.statistics.bootstrap import Totals
from steelyard.statistics.groups import Cell
from steelyard.statistics.intervals import UNBOUNDED, Estimate
from steelyard.statistics.pair_counts import PAIRS, PROMPTS

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
    return lambda sums: np.mean([formula(sums) for formula in formulas], axis=0)


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


def missing_parts(counts: Mapping[str | None, int], published: Mapping[str, int]) -> dict[str, str]:
    """Return every part whose number of prompts differs from the published one, with both numbers."""
    return {
        name: f"{counts.get(name, 0):,} prompts, published with {number:,}"
        for name, number in published.items()
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


def by_language(totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, LanguageTotals]:
    """Return the totals of each language, in the order of their codes; cells without a language are left out."""
    languages = {}
    for name in sorted({cell.language for cell in totals.cells if cell.language is not None}):
        place = [index for index, cell in enumerate(totals.cells) if cell.language == name]
        languages[name] = LanguageTotals(
            totals.select(place), {cell: n for cell, n in left_out.items() if cell.language == name}, place
        )
    return languages


class Drop(Record, frozen=True, kw_only=True):
    """How far a value lies below its reference, ``absolute`` and ``relative`` to the reference."""

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
