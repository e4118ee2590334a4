"""Comparisons of models: values with ranks, and the paired difference of every two."""

from collections.abc import Sequence

from steelyard.evaluation.comparison import ComparisonSummary
from steelyard.report.comparison import comparison_section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[ComparisonSummary]], sources: PageSources) -> StageContents:
    section = comparison_section({run.name: run.summary for run in runs}, [run.evidence for run in runs])
    return StageContents((section,))


SECTION = StageSection(20, "compare", ComparisonSummary, _contents)
