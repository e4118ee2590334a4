"""RewardBench 2: six subsets, best of four, and Ties, whose score is a published formula of margins."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case, Scores
from steelyard.plugins.benches._rewardbench2 import (
    ITEMS,
    PARTS,
    SCORE,
    SUBSETS,
    TIES,
    statistics,
    tie_key,
    ties_score,
)
from steelyard.statistics import aggregation
from steelyard.statistics.groups import Cell, prompt_names
from steelyard.statistics.headline import (
    NONE_LEFT_OUT,
    Breakdown,
    Formula,
    Headline,
    LeftOut,
    Part,
    mean_of_sections,
    missing_parts,
    num_prompts,
    subset_of,
)
from steelyard.statistics.pair_counts import NUM_COLUMNS, Floats, Integers
from steelyard.statistics.resampling import Totals


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A prompt scores 1 where a right answer has the top score, shared among the answers tied there."""

    source_format: str | None = "rewardbench2"
    counts_halves = False

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for another subset, another shape, or ids of Ties that do not pair."""
        if case.prompt.subset not in SUBSETS:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r}, which RewardBench 2 does not have",
                where=file_name,
                allowed=choices(case.prompt.subset or "", SUBSETS),
            )
        if len(case.ranking or ()) != 2:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} has not two tiers, the right answers and the wrong ones", where=file_name
            )
        if case.prompt.subset == TIES and tie_key(case) is None:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} of Ties", where=file_name, allowed="ids ref:NUMBER and tied:NUMBER"
            )
        return case

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """The two prompts of Ties that share a number are drawn together: the formula takes them in pairs."""
        key = tie_key(case)
        return prompt_names(case) if key is None else (f"{TIES}/{key[1]}", *prompt_names(case))

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """The statistics of `_rewardbench2`."""
        return statistics(cases, lines, unscored_is_right=unscored_is_right)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """The score of each subset and their plain mean."""
        counts = num_prompts(totals, subset_of, left_out)
        sections = {name: Part(_score_of(totals.cells, name), counts[name]) for name in SUBSETS if counts[name]}
        n = sum(part.n for part in sections.values())
        return Breakdown(sections, Part(mean_of_sections(sections), n), missing_parts(counts, SUBSETS))

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the plain mean of the six subsets, where all are complete."""
        own = self.breakdown(totals, left_out)
        return Headline("overall", "the plain mean of the six subsets", *own.overall, own.missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``sections``: the score of each subset; and the headline."""
        sections = {
            name: aggregation.estimate(totals, *part).record()
            for name, part in self.breakdown(totals, left_out).sections.items()
        }
        return {"sections": sections, **self.headline(totals, left_out).record(totals)}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _score_of(cells: Sequence[Cell], subset: str) -> Formula:
    """The score of one subset; NaN where nothing can be told: Ties without a pair of prompts."""
    place = [index for index, cell in enumerate(cells) if cell.subset == subset]

    def score(sums: Floats) -> Floats:
        own = sums[..., place, NUM_COLUMNS:].sum(axis=-2)
        with np.errstate(invalid="ignore", divide="ignore"):
            return ties_score(own) if subset == TIES else own[..., SCORE] / PARTS / own[..., ITEMS]

    return score
