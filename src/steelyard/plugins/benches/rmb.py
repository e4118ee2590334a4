"""RMB: helpfulness and harmlessness, each as pairs and as best of N, and the plain mean of the four."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import Floats, Integers
from steelyard.methods.measures.resampling import Items, resample

GOALS = ("Helpfulness", "Harmlessness")
SETS = {"Pairwise_set": "pairwise", "BoN_set": "best of N"}


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A prompt is right when its best answer scores above every other: with one other, that is accuracy."""

    foreign: str | None = "rmb"

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for one of another set or goal."""
        goal = case.prompt.category[0] if case.prompt.category else None
        if case.prompt.subset not in SETS or goal not in GOALS:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r} and category {goal!r}",
                where=file_name,
                allowed=f"subset {' or '.join(SETS)}, first category {' or '.join(GOALS)}",
            )
        return case

    def unit_of(self, case: Case) -> str:
        """Each prompt is drawn for itself."""
        return case.prompt.id

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own: exact match says all."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """``sections``: the four means over prompts; ``overall``: their plain mean, as in the paper's table."""
        totals = resample(items, seed=seed)
        groups = aggregation.group_cells(totals.cells, lambda cell: _section(cell.category, cell.subset))
        wanted = [_section(goal, name) for goal in GOALS for name in SETS]
        sections = {
            name: aggregation.estimate_macro(totals, groups.only(name), aggregation.EXACT_MATCH).record()
            for name in groups.names
        }
        absent = [name for name in wanted if name not in groups.names]
        if absent:
            return {"sections": sections, "missing": dict.fromkeys(absent, "no cases of it")}

        def overall(sums: Floats) -> Floats:
            return aggregation.macro(sums, groups, aggregation.EXACT_MATCH)

        n = sum(own["n"] for own in sections.values())
        return {"sections": sections, "overall": aggregation.estimate(totals, overall, n).record()}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _section(category: str, subset: str | None) -> str:
    return f"{category}, {SETS.get(subset or '', str(subset))}"
