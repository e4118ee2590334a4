"""One model by language: values, drops from English, and agreement with it."""

from collections.abc import Sequence

from steelyard.evaluation.languages import LanguagesSummary
from steelyard.report.comparison import languages_section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[LanguagesSummary]], sources: PageSources) -> StageContents:
    return StageContents((languages_section([run.summary for run in runs], [run.evidence for run in runs]),))


SECTION = StageSection(40, "languages", LanguagesSummary, _contents)
