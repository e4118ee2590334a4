"""RMB: helpfulness and harmlessness, each as pairs and as best of N, and the plain mean of the four."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.statistics import aggregation
from steelyard.statistics.groups import Cell, prompt_names
from steelyard.statistics.headline import (
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Headline,
    LeftOut,
    Part,
    missing_parts,
    num_prompts,
)
from steelyard.statistics.pair_counts import Integers
from steelyard.statistics.resampling import Totals

GOALS = ("Helpfulness", "Harmlessness")
SETS = {"Pairwise_set": "pairwise", "BoN_set": "best of N"}
PUBLISHED = {
    "Helpfulness, pairwise": 10_067,
    "Helpfulness, best of N": 2_109,
    "Harmlessness, pairwise": 7_064,
    "Harmlessness, best of N": 1_677,
}
"""The sections and their numbers of rows in the 98 published files (49 scenarios, each in both sets)."""


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A prompt is right when its best answer scores above every other: with one other, that is accuracy."""

    source_format: str | None = "rmb"
    counts_halves = False

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for one of another set or goal."""
        goal = case.prompt.category[0] if case.prompt.category else None
        if case.prompt.subset not in SETS or goal not in GOALS:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r} and category {goal!r}",
                where=file_name,
                allowed=f"subset {' or '.join(SETS)}, first category {' or '.join(GOALS)}",
            )
        return case

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: several pairs, and a best of N, are of one conversation."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own: exact match says all."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """Exact match of each section and their plain mean."""
        groups, counts = aggregation.group_cells(totals.cells, _section), num_prompts(totals, _section, left_out)
        sections = {name: Part(_mean(groups, [name]), counts[name]) for name in groups.names}
        overall = Part(_mean(groups, groups.names), sum(part.n for part in sections.values()))
        return Breakdown(sections, overall, missing_parts(counts, PUBLISHED))

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the plain mean of the four sections, as in the paper's table."""
        own = self.breakdown(totals, left_out)
        about = "the plain mean of helpfulness and harmlessness, each as pairs and as best of N"
        return Headline("overall", about, *own.overall, own.missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``sections``: the four means over prompts; and the headline."""
        groups = aggregation.group_cells(totals.cells, _section)
        sections = {
            name: aggregation.estimate_macro(totals, groups.only(name), aggregation.EXACT_MATCH).record()
            for name in groups.names
        }
        return {"sections": sections, **self.headline(totals, left_out).record(totals)}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _section(cell: Cell) -> str:
    return f"{cell.category}, {SETS.get(cell.subset or '', str(cell.subset))}"


def _mean(groups: aggregation.Groups, chosen: Sequence[str]) -> Formula:
    return lambda sums: aggregation.macro(sums, groups.only(*chosen), aggregation.EXACT_MATCH)
