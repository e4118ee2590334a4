"""RMB: helpfulness and harmlessness, each as pairs and as best of N, and the plain mean of the four."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import PROMPTS, Integers
from steelyard.methods.measures.headlines import Headline
from steelyard.methods.measures.resampling import Totals
from steelyard.methods.measures.strata import prompt_names

GOALS = ("Helpfulness", "Harmlessness")
SETS = {"Pairwise_set": "pairwise", "BoN_set": "best of N"}
_SECTIONS = tuple(f"{goal}, {name}" for goal in GOALS for name in SETS.values())


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

    def names_of(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: several pairs, and a best of N, are of one conversation."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own: exact match says all."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def headline(self, totals: Totals) -> Headline:
        """Overall, the plain mean of the four sections, as in the paper's table."""
        groups = _groups(totals)
        absent = [name for name in _SECTIONS if name not in groups.names]
        return Headline(
            "overall",
            "the plain mean of helpfulness and harmlessness, each as pairs and as best of N",
            lambda sums: aggregation.macro(sums, groups, aggregation.EXACT_MATCH),
            totals.point[:, PROMPTS].sum(),
            dict.fromkeys(absent, "no cases of it"),
        )

    def summarise(self, totals: Totals) -> dict[str, Any]:
        """``sections``: the four means over prompts; and the headline."""
        groups = _groups(totals)
        sections = {
            name: aggregation.estimate_macro(totals, groups.only(name), aggregation.EXACT_MATCH).record()
            for name in groups.names
        }
        return {"sections": sections, **self.headline(totals).record(totals)}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _groups(totals: Totals) -> aggregation.Groups:
    return aggregation.group_cells(totals.cells, lambda cell: _section(cell.category, cell.subset))


def _section(category: str, subset: str | None) -> str:
    return f"{category}, {SETS.get(subset or '', str(subset))}"
