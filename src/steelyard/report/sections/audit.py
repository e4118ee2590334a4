"""Data to check: labels that a model disputes, conflicts, duplicates, and lengths."""

from collections.abc import Sequence

from steelyard.curation.data_checks import AuditSummary
from steelyard.report.data_checks import data_section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[AuditSummary]], sources: PageSources) -> StageContents:
    summaries = {run.name: run.summary for run in runs}
    return StageContents((data_section(summaries, sources.cases, [run.evidence for run in runs]),))


SECTION = StageSection(85, "audit", AuditSummary, _contents)
