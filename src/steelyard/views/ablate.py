"""Ablations: the arms over all seeds, and their differences from the references."""

from collections.abc import Iterator

from steelyard.evaluation.experiments import AblationSummary
from steelyard.evaluation.tables import Panel, Sentence
from steelyard.views.experiments import (
    BEST_ARM,
    arm_panel,
    arm_record,
    bench_panels,
    difference_panels,
    experiment_sentences,
)
from steelyard.views.view import PageSources, StageRun, View


def _sentences(run: StageRun[AblationSummary]) -> Iterator[Sentence]:
    yield from experiment_sentences(run.name, run.summary.arms, run.summary.differences)


def _panels(run: StageRun[AblationSummary], sources: PageSources) -> Iterator[Panel]:
    yield arm_panel(run.summary.arms)
    yield from difference_panels("arm_differences", run.summary.differences)
    yield from bench_panels(run.summary.arms, run.summary.differences)


VIEW = View(
    50, "ablate", AblationSummary, "ablation", _sentences, _panels,
    records=lambda summary: map(arm_record, summary.arms), headline=BEST_ARM, lead=1,
)  # fmt: skip
