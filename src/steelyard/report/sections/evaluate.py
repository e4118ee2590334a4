"""Evaluations: accuracy with baselines and groups, all other measures, and the distributions of rewards."""

from collections.abc import Sequence

from steelyard.evaluation.measures.accuracy import Named
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import Sentence
from steelyard.report.evaluation_sections import (
    accuracy_section,
    evaluation_cards,
    evaluation_sentences,
    measures_section,
)
from steelyard.report.failures import ModelFailures, failure_sentences
from steelyard.report.few_labels import few_labels_section, few_labels_sentences
from steelyard.report.page import CardGroup
from steelyard.report.rewards import rewards_section
from steelyard.report.stage_section import PageSources, StageContents, StageRun, StageSection


def _contents(runs: Sequence[StageRun[EvaluationSummary]], sources: PageSources) -> StageContents:
    evidence = [run.evidence for run in runs]
    summaries = {run.name: run.summary for run in runs}
    few_labels = few_labels_section(summaries, evidence)
    return StageContents(
        sections=(
            *((few_labels,) if few_labels is not None else ()),
            accuracy_section([Named(name, summary) for name, summary in summaries.items()], evidence),
            measures_section(summaries, evidence),
            rewards_section(sources.items, evidence),
        ),
        cards=tuple(
            CardGroup(
                model.name,
                evaluation_cards(model.name, summaries[model.name]),
                (
                    *few_labels_sentences(model.name, summaries[model.name])[:1],
                    *_with_failures(evaluation_sentences(model.name, summaries[model.name]), model),
                ),
                (summaries[model.name].overall or summaries[model.name].accuracy).value,
            )
            for model in sources.failures.models
        ),
    )


def _with_failures(sentences: tuple[Sentence, ...], model: ModelFailures) -> tuple[Sentence, ...]:
    """Return the result in words, and after its first sentence where the model fails."""
    return (*sentences[:1], *failure_sentences(model), *sentences[1:])


SECTION = StageSection(10, "evaluate", EvaluationSummary, _contents)
