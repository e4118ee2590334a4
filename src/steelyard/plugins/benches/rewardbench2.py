"""RewardBench 2: six subsets, best of four, and Ties, whose score is a published formula of margins."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import NUM_COLUMNS, Floats, Integers
from steelyard.methods.measures.resampling import Items, Totals, resample
from steelyard.plugins.benches._rewardbench2 import (
    BOTH,
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

    def unit_of(self, case: Case) -> str:
        """The two prompts of Ties that share a number are drawn together: the formula takes them in pairs."""
        key = tie_key(case)
        return case.prompt.id if key is None else f"{TIES}/{key[1]}"

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """The statistics of `_rewardbench2`."""
        return statistics(cases, lines, unscored_is_right=unscored_is_right)

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """``sections``: the score of each subset; ``overall``: their plain mean, where all six are complete."""
        totals = resample(items, seed=seed)
        found = {name: _own_sums(totals, name) for name in SUBSETS}
        counts = {name: int(_counts(point)) for name, (point, _) in found.items()}
        sections = {name: _estimate(*found[name], name).record() for name in SUBSETS if counts[name]}
        missing = {
            name: f"{counts[name]} prompts, published with {number}"
            for name, number in SUBSETS.items()
            if counts[name] != number
        }
        if missing:
            return {"sections": sections, "missing": missing}
        values = np.mean([_value(point, name) for name, (point, _) in found.items()], axis=0)
        drawn = np.mean([_value(own, name) for name, (_, own) in found.items()], axis=0)
        overall = aggregation.interval(float(values), drawn, sum(counts.values()))
        return {"sections": sections, "overall": overall.record()}


def build(config: Config) -> Bench:
    """The bench."""
    return Bench()


def _own_sums(totals: Totals, subset: str) -> tuple[Floats, Floats]:
    """The bench's own columns of one subset, of the prompts, (column,), and of each resample, (resample, column)."""
    own = [index for index, cell in enumerate(totals.cells) if cell.subset == subset]
    return totals.point[own, NUM_COLUMNS:].sum(axis=0), totals.resampled[:, own, NUM_COLUMNS:].sum(axis=1)


def _counts(sums: Floats) -> float:
    return sums[ITEMS] + sums[REF] + sums[TIED]


def _value(sums: Floats, subset: str) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        return ties_score(sums) if subset == TIES else sums[..., SCORE] / PARTS / sums[..., ITEMS]


def _estimate(point: Floats, resampled: Floats, subset: str) -> aggregation.Estimate:
    n = int(_counts(point))
    if subset == TIES and not point[BOTH]:
        return aggregation.Estimate(None, None, None, n)
    return aggregation.interval(float(_value(point, subset)), _value(resampled, subset), n)
