"""Evaluations: accuracy with baselines and groups, all other measures, and the distributions of rewards."""

from collections.abc import Sequence

from steelyard.evaluation.measures.accuracy import Named
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.report.evaluation_sections import (
    accuracy_section,
    evaluation_cards,
    evaluation_sentences,
    measures_section,
)
from steelyard.report.page import CardGroup
from steelyard.report.rewards import rewards_section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[EvaluationSummary]], sources: PageSources) -> StageContents:
    evidence = [run.evidence for run in runs]
    summaries = {run.name: run.summary for run in runs}
    return StageContents(
        sections=(
            accuracy_section([Named(name, summary) for name, summary in summaries.items()], evidence),
            measures_section(summaries, evidence),
            rewards_section(sources.items, evidence),
        ),
        cards=tuple(CardGroup(name, evaluation_cards(name, summary)) for name, summary in summaries.items()),
        sentences=tuple(
            sentence for name, summary in summaries.items() for sentence in evaluation_sentences(name, summary)
        ),
    )


SECTION = StageSection(10, "evaluate", EvaluationSummary, _contents)
