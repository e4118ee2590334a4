"""Sweeps: the arms over all seeds, the gain of each doubling of data or weights, and differences between starts."""

from collections.abc import Sequence

from steelyard.evaluation.experiments import SweepSummary
from steelyard.evaluation.tables import Figure, Mark, Panel, isolate, word
from steelyard.evaluation.vega import MODEL_COLOURS
from steelyard.report.bars import SharePoint, share_curves
from steelyard.report.experiment_panels import arm_panel, difference_panels, experiment_sentences, growth_panels
from steelyard.report.page import Section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[SweepSummary]], sources: PageSources) -> StageContents:
    panels: list[Panel] = []
    for run in runs:
        prefix = f"{isolate(run.name)} · " if len(runs) > 1 else ""
        made = [
            *_scaling_panels(run.summary),
            arm_panel(run.summary.arms),
            *growth_panels(run.summary.growth),
            *difference_panels("start_differences", run.summary.starts),
        ]
        panels += [panel._replace(title=prefix + panel.title) for panel in made]
    sentences = tuple(
        sentence for run in runs for sentence in experiment_sentences(run.name, run.summary.arms, run.summary.starts)
    )
    return StageContents((Section("sweep", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _scaling_panels(summary: SweepSummary) -> list[Panel]:
    """Return accuracy over the pairs of the data, and over the weights at the largest share, where these differ."""
    panels: list[Panel] = []
    if len({arm.share for arm in summary.arms}) > 1:
        points = [SharePoint(arm.model, arm.num_pairs, arm.accuracy) for arm in summary.arms]
        panels.append(Panel(word("by_pairs"), _curves(points, "pairs"), (), "note_scaling"))
    if len({arm.num_weights for arm in summary.arms}) > 1:
        largest = max(arm.share for arm in summary.arms)
        points = [
            SharePoint(arm.start or word("all"), arm.num_weights, arm.accuracy)
            for arm in summary.arms
            if arm.share == largest
        ]
        panels.append(Panel(word("by_weights"), _curves(points, "num_weights"), (), "note_scaling"))
    return panels


def _curves(points: Sequence[SharePoint], title: str) -> Figure:
    names = list(dict.fromkeys(point.series for point in points))
    marks = [Mark(name, MODEL_COLOURS[place % len(MODEL_COLOURS)], "circle") for place, name in enumerate(names)]
    return share_curves("scaling", points, marks, x=title, y="accuracy", line=None)


SECTION = StageSection(60, "sweep", SweepSummary, _contents)
