"""Trainings: loss and accuracy on held-out prompts over the steps."""

from collections.abc import Sequence

from steelyard.report.sources import curve_of
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection
from steelyard.report.training_curves import training_section, training_sentences
from steelyard.training.config import TrainingSummary


def _contents(runs: Sequence[StageRun[TrainingSummary]], sources: PageSources) -> StageContents:
    curves = {run.name: curve_of(run.source) for run in runs}
    section = training_section(curves, [run.evidence for run in runs])
    sentences = tuple(sentence for run in runs for sentence in training_sentences(run.summary))
    return StageContents((section._replace(sentences=sentences),))


SECTION = StageSection(150, "train", TrainingSummary, _contents)
