"""Resolved judgments: their conflicts, and the quality of the judges."""

from collections.abc import Sequence

from steelyard.evaluation.tables import word
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.judges import judges_section
from steelyard.report.judgment_sections import conflict_card, conflict_section
from steelyard.report.page import CardGroup
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[ResolveSummary]], sources: PageSources) -> StageContents:
    summaries = {run.name: run.summary for run in runs}
    cards = tuple(conflict_card(name, summary) for name, summary in summaries.items())
    return StageContents(
        sections=(
            judges_section(summaries, sources.cases),
            conflict_section(summaries, [run.evidence for run in runs]),
        ),
        cards=(CardGroup(word("conflicts"), cards),),
    )


SECTION = StageSection(80, "resolve", ResolveSummary, _contents)
