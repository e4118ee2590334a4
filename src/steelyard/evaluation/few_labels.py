"""Evaluate a model on human labels of few prompts and a judge's labels of many, with the same scores for both."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import ConfigError
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.types import Case
from steelyard.evaluation.batches import evaluate_scored, join_parts
from steelyard.evaluation.evaluated_bench import Evaluation
from steelyard.evaluation.labelled_prompts import Resampling
from steelyard.evaluation.model_evaluation import FinishedEvaluation, ModelNames, start_scoring
from steelyard.evaluation.prediction_powered import PPISummary, ppi_summary
from steelyard.evaluation.separated_labels import HumanLabels, SeparatedLabels, is_ranked_by_judges, separate_labels
from steelyard.evaluation.source import Source
from steelyard.evaluation.win_rates import CreditCounter
from steelyard.io.progress import track
from steelyard.io.run_folder import Result
from steelyard.io.scored_cases import JoinedScores, ScoredCase, hash_findings
from steelyard.plugins.reward_models import Builder, ModelChoice

JUDGED = "judged_"
"""The beginning of the names of the files with scores and items by the judge's labels."""


class FewLabels(NamedTuple):
    """The evaluation on the human labels, and the values from both kinds of labels."""

    evaluation: Evaluation
    powered: PPISummary


class _Collected:
    """Parts of the judged cases, kept as they pass: the human-labelled ones with their scores, and win rates."""

    def __init__(self, human: Iterable[Case], labels: SeparatedLabels) -> None:
        self._labels = HumanLabels(map(labels.human.of, human))
        self._own = labels.judged.of
        self.scored: list[ScoredCase] = []
        self.is_labelled: list[bool] = []
        self.human, self.judged = CreditCounter(), CreditCounter()

    def passing(self, scored_cases: Iterable[ScoredCase]) -> Iterator[ScoredCase]:
        """Yield the cases with the judge's own labels."""
        for case, scores in scored_cases:
            by_judge = self._own(case)
            human = self._labels.label(by_judge)
            self.is_labelled.append(human is not None)
            self.judged.add(by_judge)
            if human is not None:
                self.human.add(human)
                self.scored.append(ScoredCase(human, scores))
            yield ScoredCase(by_judge, scores)
        self._labels.check_used()


def evaluate_few_labels(
    source: Source,
    human: Source,
    scored_cases: Iterable[ScoredCase],
    result: Result,
    *,
    labels: SeparatedLabels,
    width: float | None,
) -> FewLabels:
    """Evaluate the scores on both kinds of labels; ``source`` has the judged cases, ``human`` those with human labels.

    Writes ``scores.jsonl`` and ``items.jsonl`` of the human-labelled prompts, and the same of all judged prompts with
    the prefix ``judged_``. Raises EvidenceError for labels of different prompts or responses.
    """
    collected = _Collected(human.cases, labels)
    parts = evaluate_scored(source, collected.passing(scored_cases))
    judged = join_parts(source, result, parts, prefix=JUDGED)
    labelled = join_parts(human, result, evaluate_scored(human, collected.scored))
    how = Resampling(source.config.num_resamples, source.config.seed, width)
    credits_of_both = collected.human.credits(), collected.judged.credits()
    return FewLabels(labelled, ppi_summary(labelled, judged, np.array(collected.is_labelled), credits_of_both, how))


def evaluate_by_few_labels(
    source: Source,
    people: Source,
    judged: Sequence[Path],
    result: Result,
    *,
    choice: ModelChoice | None,
    scores: Path | None,
    builder: Builder,
) -> tuple[FinishedEvaluation, PPISummary]:
    """Evaluate on people's labels of few prompts and the judge's of all, in the files ``judged``.

    The model scores every prompt once. The labels are checked first: it may score for hours.
    """
    config = source.config
    labels = separate_labels(
        source.cases,
        people.cases,
        config.pairs,
        path=judged[0],
        is_judges_alone=all(map(is_ranked_by_judges, judged)),
    )
    result.findings += labels.findings()
    people.check()
    joined = None if scores is None else JoinedScores(source.cases, scores)
    if scores is not None and joined is not None:
        scored, model = track(joined, "evaluating"), ModelNames.of_scores(scores)
    else:
        assert choice is not None, "a model or scores"
        tested = start_scoring(source, result, choice, builder)
        scored, model = tested.scored, tested.names()
    few = evaluate_few_labels(source, people, scored, result, labels=labels, width=config.width)
    result.findings += hash_findings(joined.coverage, result) if joined else ()
    return FinishedEvaluation(few.evaluation, model), few.powered


def refuse_judge(choice: ModelChoice) -> None:
    """Raise ConfigError for a model that is a judge."""
    if choice.judges:
        problem = "the model is a judge, and its own verdicts cannot stand for labels that it is evaluated on"
        raise ConfigError(
            problem,
            do=Advice(
                *("choose a reward model, or remove ", Remedy("human"), " and ", Remedy("judged"), " and add "),
                Remedy("bench", FILE),
            ),
        )
