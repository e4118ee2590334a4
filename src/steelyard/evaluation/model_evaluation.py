"""Evaluate a reward model, whose scores are kept, or a judge, by a question about every pair."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from steelyard.core.checks import with_hashes
from steelyard.core.protocols import JudgeModel, RewardModel
from steelyard.core.types import Meta
from steelyard.evaluation.batches import evaluate_batch, evaluate_scored, join_parts
from steelyard.evaluation.evaluated_bench import Evaluation
from steelyard.evaluation.model_self_tests import SelfTestSummary, self_tested
from steelyard.evaluation.pair_verdicts import ask, check_bench, refuse_failed
from steelyard.evaluation.source import Source
from steelyard.io.run_folder import Result
from steelyard.io.scored_cases import ScoredCase
from steelyard.plugins.reward_models import Builder, ModelChoice, judge_ledger, scored_once


class ModelNames(NamedTuple):
    """The fields of the summary that identify the model."""

    model: str
    protocol: Meta | None
    self_test: SelfTestSummary

    @classmethod
    def of_scores(cls, scores: Path) -> "ModelNames":
        """Return the fields for a file of scores, whose model is unknown."""
        return cls(scores.stem, None, SelfTestSummary(state="not applicable", why="the scores were made elsewhere"))


class FinishedEvaluation(NamedTuple):
    """The evaluation of a model before it is summarised."""

    evaluation: Evaluation
    model: ModelNames


class ScoringModel(NamedTuple):
    """A model that was tested on cases of the bench and scores them as they are iterated."""

    model: RewardModel
    name: str
    self_test: SelfTestSummary
    scored: Iterator[ScoredCase]

    def names(self) -> ModelNames:
        """Return the fields that identify the model."""
        return ModelNames(self.name, self.model.protocol(), self.self_test)


def start_scoring(source: Source, result: Result, choice: ModelChoice, builder: Builder) -> ScoringModel:
    """Build the model, test it, and let it score every case of the bench once; the scores are kept in the folder."""
    source.check()
    model = builder(choice)
    self_test = self_tested(model, source.cases, name=choice.name, is_wanted=source.config.self_test)
    lines = scored_once(model, source.cases, result, name=choice.name)
    return ScoringModel(model, choice.name, self_test, map(ScoredCase, source.cases, lines))


def evaluate_model(source: Source, result: Result, choice: ModelChoice, builder: Builder) -> FinishedEvaluation:
    """Score the bench with a model, and evaluate the scores."""
    tested = start_scoring(source, result, choice, builder)
    evaluation = join_parts(source, result, evaluate_scored(source, tested.scored))
    return FinishedEvaluation(evaluation, tested.names())


def evaluate_judge(source: Source, result: Result, choice: ModelChoice, builder: Builder) -> FinishedEvaluation:
    """Ask a judge about the pairs of the bench through a ledger, which stays in the folder."""
    source.check()
    judge = builder(choice, ledger=judge_ledger(choice, result))
    assert isinstance(judge, JudgeModel), "a model with a jury is asked"
    check_bench(source.bench, judge)
    cases = tuple(source.cases)
    lines, judged = ask(judge, cases, source.columns(cases), seed=source.config.seed)
    self_test = self_tested(judge, cases, name=judge.name, is_wanted=source.config.self_test)
    if not source.config.allow_unscored:
        refuse_failed(judged)
    scored = list(map(ScoredCase, cases, map(with_hashes, cases, lines)))
    part = evaluate_batch(source, scored, judged)
    evaluation = join_parts(source, result, [part], judged)
    return FinishedEvaluation(evaluation, ModelNames(judge.name, judge.protocol(), self_test))
