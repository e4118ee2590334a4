"""The headline of a bench: the one number by which it is told, and by which models are ranked on it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from steelyard.methods.measures.accuracy import PAIRS, Floats
from steelyard.methods.measures.aggregation import ACCURACY, by_category, estimate, macro
from steelyard.methods.measures.resampling import Totals


class Headline(NamedTuple):
    """``name``: under which the estimate stands in a summary; ``about``: what it is the mean of.

    ``formula`` maps sums by cell, (…, cell, column), to the value, (…): of the prompts, and of every resample. ``n``
    stands behind it. ``missing``: what keeps it away, part by part, with the reason; then the formula is not asked.
    """

    name: str
    about: str
    formula: Callable[[Floats], Floats]
    n: float
    missing: Mapping[str, str] = {}

    def record(self, totals: Totals) -> dict[str, Any]:
        """The part of a summary: the name as ``headline`` with the estimate under it; or null, and ``missing``."""
        if self.missing:
            return {"headline": None, "missing": dict(self.missing)}
        return {"headline": self.name, self.name: estimate(totals, self.formula, self.n).record()}


def mean_accuracy(totals: Totals) -> Headline:
    """The headline of a bench that has none of its own: accuracy, the mean over first-tier categories."""
    categories = by_category(totals.cells)
    about = "the mean over first-tier categories; a tied score is wrong"
    return Headline(
        "accuracy", about, lambda sums: macro(sums, categories, ACCURACY), float(totals.point[:, PAIRS].sum())
    )
