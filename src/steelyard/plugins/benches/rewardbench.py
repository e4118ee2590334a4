"""RewardBench v1 and M-RewardBench in one language: four sections with their published weights, and their mean."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Scores
from steelyard.plugins.benches._rewardbench import (
    PRIOR_SETS,
    SECTIONS,
    WEIGHT_SETS,
    breakdown_of,
    checked_subset,
    section_records,
)
from steelyard.statistics import aggregation
from steelyard.statistics.groups import prompt_names
from steelyard.statistics.headline import (
    NONE_LEFT_OUT,
    Breakdown,
    Headline,
    LeftOut,
    missing_parts,
    num_prompts,
    subset_of,
)
from steelyard.statistics.pair_counts import Floats, Integers
from steelyard.statistics.resampling import Totals


class Config(BaseConfig, frozen=True):
    """``weights``: RewardBench's own, or those of M-RewardBench (prompt counts after its filter). Never mixed."""

    weights: Literal["rewardbench", "mrewardbench"] = "rewardbench"
    """The weights of the subsets: prompt counts of RewardBench, or of M-RewardBench after its filter."""


class Bench:
    """Sections are weighted means of subset accuracy, the overall value the plain mean of the four sections."""

    source_format: str | None = "rewardbench"
    counts_halves = True

    def __init__(self, config: Config) -> None:
        self.weights = config.weights
        self.subsets = WEIGHT_SETS[config.weights]

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def normalize(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for a subset that RewardBench does not have."""
        return checked_subset(case, [subset.name for subset in self.subsets] + list(PRIOR_SETS), file_name)

    def resample_ids(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: a prompt is drawn with its parallel items, and with other rows of the same text."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def breakdown(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Breakdown:
        """The four sections and their plain mean."""
        return breakdown_of(totals, self.subsets, left_out)

    def headline(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> Headline:
        """Overall, the plain mean of the four sections, where every subset is complete."""
        own = self.breakdown(totals, left_out)
        about = "the plain mean of Chat, Chat Hard, Safety and Reasoning"
        return Headline("overall", about, own.overall.formula, own.overall.n, own.missing)

    def summarise(self, totals: Totals, left_out: LeftOut = NONE_LEFT_OUT) -> dict[str, Any]:
        """``subsets``, ``sections``, and the headline.

        A section with an incomplete subset has no value: a mean over what happens to be there would be another one.
        ``overall_with_prior_sets`` = (2 * each of the four + prior sets) / 9, only with all four prior sets complete.
        """
        own, headline = self.breakdown(totals, left_out), self.headline(totals, left_out)
        groups = aggregation.group_cells(totals.cells, subset_of)
        summary: dict[str, Any] = {
            "weights": self.weights,
            "subsets": aggregation.estimate_groups(totals, groups),
            "sections": section_records(totals, own, self.subsets),
            **headline.record(totals),
        }
        counts = num_prompts(totals, subset_of, left_out)
        missing = missing_parts(counts, PRIOR_SETS)
        if missing and any(counts[name] for name in PRIOR_SETS):
            summary["prior_sets_missing"] = missing
        if not missing and not headline.missing:
            n = own.overall.n + sum(PRIOR_SETS.values())
            with_prior = aggregation.estimate(totals, lambda sums: _with_prior_sets(sums, groups, own), n)
            summary["overall_with_prior_sets"] = with_prior.record()
        return summary


def build(config: Config) -> Bench:
    """The bench."""
    return Bench(config)


def _with_prior_sets(sums: Floats, groups: aggregation.Groups, own: Breakdown) -> Floats:
    prior = aggregation.shares(sums, groups.only(*PRIOR_SETS), aggregation.ACCURACY).mean(axis=-1)
    return (2 * len(SECTIONS) * own.overall.formula(sums) + prior) / (2 * len(SECTIONS) + 1)
