"""Sweeps: the arms over all seeds, the gain of each doubling of data or weights, and differences between starts."""

from collections.abc import Iterator, Sequence

from steelyard.evaluation.experiments import SweepSummary
from steelyard.evaluation.tables import Figure, Mark, Panel, Sentence, word
from steelyard.evaluation.vega import MODEL_COLOURS
from steelyard.report.bars import SharePoint, share_curves
from steelyard.views.experiments import (
    BEST_ARM,
    arm_panel,
    arm_record,
    bench_panels,
    difference_panels,
    experiment_sentences,
    growth_panels,
)
from steelyard.views.view import PageSources, StageRun, View


def _sentences(run: StageRun[SweepSummary]) -> Iterator[Sentence]:
    yield from experiment_sentences(run.name, run.summary.arms, run.summary.starts)


def _panels(run: StageRun[SweepSummary], sources: PageSources) -> Iterator[Panel]:
    yield from _scaling_panels(run.summary)
    yield arm_panel(run.summary.arms)
    yield from growth_panels(run.summary.growth)
    yield from difference_panels("start_differences", run.summary.starts)
    yield from bench_panels(run.summary.arms, run.summary.starts)


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


VIEW = View(
    60, "sweep", SweepSummary, "sweep", _sentences, _panels,
    records=lambda summary: map(arm_record, summary.arms), headline=BEST_ARM, lead=1,
)  # fmt: skip
