"""Ablations: the arms over all seeds, and their differences from the references."""

from collections.abc import Sequence

from steelyard.evaluation.experiments import AblationSummary
from steelyard.evaluation.tables import Panel, isolate
from steelyard.report.experiment_panels import arm_panel, difference_panels, experiment_sentences
from steelyard.report.page import Section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[AblationSummary]], sources: PageSources) -> StageContents:
    panels: list[Panel] = []
    for run in runs:
        prefix = f"{isolate(run.name)} · " if len(runs) > 1 else ""
        made = [arm_panel(run.summary.arms), *difference_panels("arm_differences", run.summary.differences)]
        panels += [panel._replace(title=prefix + panel.title) for panel in made]
    sentences = tuple(
        sentence
        for run in runs
        for sentence in experiment_sentences(run.name, run.summary.arms, run.summary.differences)
    )
    return StageContents((Section("ablation", tuple(run.evidence for run in runs), tuple(panels), sentences),))


SECTION = StageSection(50, "ablate", AblationSummary, _contents)
