"""A file resolved in batches: the rankings of a batch with its sums, and the summary of all sums."""

from typing import NamedTuple

import msgspec

from steelyard.core.types import Ranking
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.author_strength import author_strengths
from steelyard.ranking.conflicts import NO_SUMS, GroupedSums, add_sums, conflict_tables
from steelyard.ranking.dawid_skene import RaterFit
from steelyard.ranking.judge_quality import JudgeQualityCounts, judge_quality_counts
from steelyard.ranking.judge_reliability import PanelCollector
from steelyard.ranking.judge_summary import QualityTables, add_intervals, agreement_summary, judge_summary
from steelyard.ranking.judgment_table import JudgmentTable, integers
from steelyard.ranking.panel_counts import PanelCounts, panel_counts
from steelyard.ranking.resolution import Config, ResolveCounts, ResolveSummary, resolve_table
from steelyard.statistics.groups import PromptUnits


class BatchSums(NamedTuple):
    """The sums of a batch. ``names`` are the `prompt_names` of its cases, where judges are measured."""

    conflicts: GroupedSums
    counts: ResolveCounts
    names: tuple[tuple[str, ...], ...]
    quality: JudgeQualityCounts | None
    panel: PanelCounts | None


def resolve_and_sum(
    table: JudgmentTable, traits: TraitCollector, config: Config, raters: RaterFit | None
) -> tuple[tuple[Ranking | None, ...], BatchSums]:
    """Return the ranking of every case of a batch, and the sums of the batch."""
    resolution = resolve_table(table, config.vote, raters)
    names, quality, panel = (), None, None
    if config.quality:
        known = traits.traits(table)
        quality = judge_quality_counts(table, resolution.graphs, known, config.vote)
        names, panel = known.names, panel_counts(table, known)
    return resolution.rankings, BatchSums(resolution.sums, resolution.counts, names, quality, panel)


class ResolveTotals:
    """The sums of all batches."""

    def __init__(self) -> None:
        self.counts = ResolveCounts()
        self._conflicts = NO_SUMS
        self._quality = QualityTables()
        self._panel = PanelCollector()
        self._units = PromptUnits()

    @property
    def has_judgments(self) -> bool:
        """True where any judgment counted."""
        return bool(self._conflicts.overall)

    def add(self, batch: BatchSums) -> None:
        """Add the sums of a batch; batches come in the order of the file."""
        self._conflicts = add_sums(self._conflicts, batch.conflicts)
        self.counts = add_sums(self.counts, batch.counts)
        unit = integers(map(self._units.of_names, batch.names))
        if batch.quality is not None:
            self._quality.add(batch.quality, unit)
        if batch.panel is not None:
            self._panel.add(batch.panel, unit)

    def summary(self, config: Config, raters: RaterFit | None) -> ResolveSummary:
        """Return the summary of the file."""
        conflicts = conflict_tables(self._conflicts)
        counts = self.counts
        summary = ResolveSummary(
            conflicts=conflicts,
            unranked_responses=counts.unranked_responses,
            rater_model=raters.summary() if raters else None,
            share_ordered_by_majority=(
                counts.ordered_by_majority / conflicts.overall.num_pairs if counts.several_judges else None
            ),
        )
        if not config.quality:
            return summary
        draws = self._quality.draw(seed=config.seed)
        judges = judge_summary(draws)
        return msgspec.structs.replace(
            summary,
            conflicts=add_intervals(conflicts, judges, draws.graphs),
            judges=judges,
            agreement=agreement_summary(draws.agreement),
            reliability=self._panel.reliability(seed=config.seed),
            authors=author_strengths(draws.authors, ties=config.author_ties),
        )
