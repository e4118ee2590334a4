"""RewardBench v1 and M-RewardBench in one language: four sections with their published weights, and their mean."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.types import Case, Scores
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import PROMPTS, Floats, Integers
from steelyard.methods.measures.headlines import Headline
from steelyard.methods.measures.resampling import Totals
from steelyard.methods.measures.strata import prompt_names
from steelyard.plugins.benches._rewardbench import PRIOR_SETS, SECTIONS, WEIGHT_SETS, Arithmetic, checked_subset


class Config(BaseConfig, frozen=True):
    """``weights``: RewardBench's own, or those of M-RewardBench (prompt counts after its filter). Never mixed."""

    weights: Literal["rewardbench", "mrewardbench"] = "rewardbench"


class Bench:
    """Sections are weighted means of subset accuracy, the overall value the plain mean of the four sections."""

    foreign: str | None = "rewardbench"

    def __init__(self, config: Config) -> None:
        self.weights = config.weights
        self.subsets = WEIGHT_SETS[config.weights]

    def subset_of(self, file_name: str) -> str | None:
        """A file's name says nothing here."""
        return None

    def prepared(self, case: Case, file_name: str) -> Case:
        """The case itself. Raises EvidenceError for a subset that RewardBench does not have."""
        return checked_subset(case, [subset.name for subset in self.subsets] + list(PRIOR_SETS), file_name)

    def names_of(self, case: Case) -> tuple[str, ...]:
        """Its id and its text: a prompt is drawn with its parallel items, and with other rows of the same text."""
        return prompt_names(case)

    def columns(self, cases: Sequence[Case], lines: Sequence[Scores], *, unscored_is_right: bool) -> Integers:
        """None of its own."""
        return np.zeros((len(cases), 0), dtype=np.int64)

    def headline(self, totals: Totals) -> Headline:
        """Overall, the plain mean of the four sections, where every subset is complete."""
        own = self._arithmetic(totals)
        about = "the plain mean of Chat, Chat Hard, Safety and Reasoning"
        return Headline("overall", about, own.overall, own.num_prompts(totals), own.missing(totals))

    def summarise(self, totals: Totals) -> dict[str, Any]:
        """``subsets``, ``sections``, and the headline.

        A section with an incomplete subset has no value: a mean over what happens to be there would be another one.
        ``overall_with_prior_sets`` = (2 * each of the four + prior sets) / 9, only with all four prior sets.
        """
        own, headline = self._arithmetic(totals), self.headline(totals)
        summary: dict[str, Any] = {
            "weights": self.weights,
            "subsets": aggregation.estimate_groups(totals, own.groups),
            "sections": own.sections(totals, headline.missing),
            **headline.record(totals),
        }
        if not headline.missing and set(PRIOR_SETS) <= set(own.groups.names):
            n = totals.point[:, PROMPTS].sum()
            with_prior = aggregation.estimate(totals, lambda sums: _with_prior_sets(sums, own), n)
            summary["overall_with_prior_sets"] = with_prior.record()
        return summary

    def _arithmetic(self, totals: Totals) -> Arithmetic:
        return Arithmetic(self.subsets, aggregation.group_cells(totals.cells, lambda cell: cell.subset))


def build(config: Config) -> Bench:
    """The bench."""
    return Bench(config)


def _with_prior_sets(sums: Floats, own: Arithmetic) -> Floats:
    prior = aggregation.shares(sums, own.groups.only(*PRIOR_SETS), aggregation.ACCURACY).mean(axis=-1)
    return (2 * len(SECTIONS) * own.overall(sums) + prior) / (2 * len(SECTIONS) + 1)
