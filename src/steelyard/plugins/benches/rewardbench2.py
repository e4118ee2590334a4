"""RewardBench 2: six subsets, best of four, and Ties, whose score is a published formula of margins."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import NUM_COLUMNS, Floats, Integers
from steelyard.methods.measures.headlines import Headline
from steelyard.methods.measures.resampling import Totals
from steelyard.methods.measures.strata import Cell, prompt_names
from steelyard.plugins.benches._rewardbench2 import (
    ITEMS,
    PARTS,
    REF,
    SCORE,
    SUBSETS,
    TIED,
    TIES,
    statistics,
    tie_key,
    ties_score,
)


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Bench:
    """A prompt scores 1 where a right answer has the top score, shared among the answers tied there."""

    foreign: str | None = "rewardbench2"

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
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

    def names_of(self, case: Case) -> tuple[str, ...]:
        """The two prompts of Ties that share a number are drawn together: the formula takes them in pairs."""
        key = tie_key(case)
        return prompt_names(case) if key is None else (f"{TIES}/{key[1]}", *prompt_names(case))

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """The statistics of `_rewardbench2`."""
        return statistics(cases, lines, unscored_is_right=unscored_is_right)

    def headline(self, totals: Totals) -> Headline:
        """Overall, the plain mean of the six subsets, where all are complete."""
        counts = _counts(totals)
        missing = {
            name: f"{counts[name]} prompts, published with {number}"
            for name, number in SUBSETS.items()
            if counts[name] != number
        }

        def mean(sums: Floats) -> Floats:
            return np.mean([_value(_own_sums(sums, totals.cells, name), name) for name in SUBSETS], axis=0)

        return Headline("overall", "the plain mean of the six subsets", mean, sum(counts.values()), missing)

    def summarise(self, totals: Totals) -> dict[str, Any]:
        """``sections``: the score of each subset; and the headline."""
        counts = _counts(totals)
        sections = {
            name: aggregation.estimate(
                totals, lambda sums, name=name: _value(_own_sums(sums, totals.cells, name), name), counts[name]
            ).record()
            for name in SUBSETS
            if counts[name]
        }
        return {"sections": sections, **self.headline(totals).record(totals)}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _own_sums(sums: Floats, cells: Sequence[Cell], subset: str) -> Floats:
    """The bench's own columns of one subset, (…, cell, column) to (…, own column)."""
    own = [index for index, cell in enumerate(cells) if cell.subset == subset]
    return sums[..., own, NUM_COLUMNS:].sum(axis=-2)


def _counts(totals: Totals) -> dict[str, int]:
    own = {name: _own_sums(totals.point, totals.cells, name) for name in SUBSETS}
    return {name: int(sums[ITEMS] + sums[REF] + sums[TIED]) for name, sums in own.items()}


def _value(sums: Floats, subset: str) -> Floats:
    """NaN where nothing can be told: a subset without prompts, or Ties without a pair of them."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return ties_score(sums) if subset == TIES else sums[..., SCORE] / PARTS / sums[..., ITEMS]
