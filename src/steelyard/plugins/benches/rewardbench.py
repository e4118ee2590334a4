"""RewardBench v1 and M-RewardBench in one language: four sections with their published weights, and their mean."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.types import Case
from steelyard.methods.measures import aggregation
from steelyard.methods.measures.accuracy import PROMPTS, Floats
from steelyard.methods.measures.aggregation import Groups
from steelyard.methods.measures.resampling import Items, Totals, resample
from steelyard.plugins.benches._rewardbench import PRIOR_SETS, SECTIONS, WEIGHT_SETS


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
        known = [subset.name for subset in self.subsets] + list(PRIOR_SETS)
        if case.prompt.subset not in known:
            raise EvidenceError(
                f"prompt {case.prompt.id!r} is of subset {case.prompt.subset!r}, which RewardBench does not have",
                where=file_name,
                allowed=choices(case.prompt.subset or "", known),
            )
        return case

    def summarise(self, items: Items, *, seed: int) -> dict[str, Any]:
        """``subsets``, ``sections``, and ``overall`` where every subset is complete, else ``missing``.

        A section with an incomplete subset has no value: a mean over what happens to be there would be another one.
        ``overall_with_prior_sets`` = (2 * each of the four + prior sets) / 9, only with all four prior sets.
        """
        totals = resample(items, seed=seed)
        groups = aggregation.group_cells(totals.cells, lambda cell: cell.subset)
        missing = self._missing(totals, groups)
        summary: dict[str, Any] = {
            "weights": self.weights,
            "subsets": aggregation.estimate_groups(totals, groups),
            "sections": {name: self._section(totals, groups, name, missing) for name in SECTIONS},
        }
        if missing:
            return summary | {"missing": missing}
        num_prompts = self._num_prompts(totals, groups)
        overall = aggregation.estimate(totals, lambda sums: self._overall(sums, groups), num_prompts)
        summary["overall"] = overall.record()
        if set(PRIOR_SETS) <= set(groups.names):
            with_prior = aggregation.estimate(
                totals, lambda sums: self._with_prior_sets(sums, groups), totals.point[:, PROMPTS].sum()
            )
            summary["overall_with_prior_sets"] = with_prior.record()
        return summary

    def _missing(self, totals: Totals, groups: Groups) -> dict[str, str]:
        counts = dict(zip(groups.names, (groups.members @ totals.point)[:, PROMPTS].astype(int).tolist(), strict=True))
        found = {subset.name: (counts.get(subset.name, 0), subset.num_prompts) for subset in self.subsets}
        return {
            name: f"{given} prompts, published with {published}"
            for name, (given, published) in found.items()
            if given != published
        }

    def _section(self, totals: Totals, groups: Groups, section: str, missing: dict[str, str]) -> dict[str, Any]:
        names = [subset.name for subset in self.subsets if subset.section == section]
        counted = _chosen(groups, [name for name in names if name in groups.names])
        n = int((counted.members @ totals.point)[..., PROMPTS].sum())
        if any(name in missing for name in names):
            return aggregation.Estimate(None, None, None, n).record()
        return aggregation.estimate(totals, lambda sums: self._section_value(sums, groups, section), n).record()

    def _section_value(self, sums: Floats, groups: Groups, section: str) -> Floats:
        own = [subset for subset in self.subsets if subset.section == section]
        values = aggregation.shares(sums, _chosen(groups, [subset.name for subset in own]), aggregation.ACCURACY)
        return np.average(values, axis=-1, weights=[subset.weight for subset in own])

    def _overall(self, sums: Floats, groups: Groups) -> Floats:
        # Differs from: the words of the M-RewardBench paper, which call this mean weighted; its code takes a plain one.
        return np.mean([self._section_value(sums, groups, section) for section in SECTIONS], axis=0)

    def _with_prior_sets(self, sums: Floats, groups: Groups) -> Floats:
        prior = aggregation.shares(sums, _chosen(groups, PRIOR_SETS), aggregation.ACCURACY).mean(axis=-1)
        return (2 * len(SECTIONS) * self._overall(sums, groups) + prior) / (2 * len(SECTIONS) + 1)

    def _num_prompts(self, totals: Totals, groups: Groups) -> float:
        own = _chosen(groups, [subset.name for subset in self.subsets])
        return (own.members @ totals.point)[..., PROMPTS].sum()


def build(config: Config) -> Bench:
    """The bench."""
    return Bench(config)


def _chosen(groups: Groups, names: Sequence[str]) -> Groups:
    places = [groups.names.index(name) for name in names]
    return Groups(tuple(names), groups.members[places])
