"""Compare models on the same prompts: all pairwise differences, corrected for their number, and possible ranks."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.types import Record
from steelyard.evaluation.coverage import Coverage, unequal_coverage
from steelyard.evaluation.evaluations import EvaluationSet, ceiling_of, headline_of, ranking_of
from steelyard.evaluation.few_labels_compared import compare_labelled, read_labelled_evaluations
from steelyard.evaluation.measure import BenchCeiling
from steelyard.evaluation.measures.accuracy import Range
from steelyard.io.progress import track
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.intervals import Estimate, no_difference
from steelyard.statistics.prediction_powered import PPIEstimate
from steelyard.statistics.prompt_means import paired_mean
from steelyard.statistics.significance import HeadlineBootstrap, compare, holm, significant_ranks

LEVEL = 0.05
"""The significance level of corrected p-values."""
_SCORES_FILE = "scores.jsonl"


class HeadlineDifference(Estimate, frozen=True, kw_only=True):
    """The first model's headline minus the second's, with its p-values."""

    p: float
    p_corrected: float


class MeasureDifference(Record, frozen=True, kw_only=True):
    """The difference in another measure, the first model minus the second; p-values are null without a difference."""

    difference: Estimate
    p: float | None
    p_corrected: float | None


class PairedDifference(Record, frozen=True, kw_only=True):
    """The first model or arm minus the second, paired by prompt.

    ``p_accuracy`` and ``p_exact_match``: two-sided, of the test whose interval is given; ``..._corrected`` for all
    differences of that measure (Holm). ``only_first`` and ``only_second``: the prompts that one alone has right.
    ``detectable``: the smallest true difference in accuracy that this sample detects with a power of 80%.
    """

    first: str
    second: str
    accuracy: Estimate
    exact_match: Estimate
    p_accuracy: float
    p_exact_match: float
    only_first: int
    only_second: int
    detectable: float
    p_accuracy_corrected: float
    p_exact_match_corrected: float


class ModelDifference(PairedDifference, frozen=True, kw_only=True):
    """The first model minus the second. ``headline`` is null if models are ranked by accuracy.

    ``p_bounded``: the corrected p-value of the ranking measure if the pairs without a score of the worse model alone
    count as right for it; never below the other. ``prediction_powered``: the difference in accuracy by human and judge
    labels, where all evaluations have both; ranks are by the human labels alone.
    """

    p_bounded: float
    headline: HeadlineDifference | None
    measures: dict[str, MeasureDifference]
    prediction_powered: PPIEstimate | None = None

    @property
    def ranked(self) -> Estimate:
        """The difference in the ranking measure."""
        return self.accuracy if self.headline is None else self.headline

    @property
    def p_ranked(self) -> float:
        """The corrected p-value of the difference in the ranking measure."""
        return self.p_accuracy_corrected if self.headline is None else self.headline.p_corrected


class ComparedModel(Record, frozen=True, kw_only=True):
    """One model: ``value`` of the ranking measure, and a rank between ``best_rank`` and ``worst_rank``.

    ``bounds``: accuracy with every unscored pair counted wrong, and right; null if all pairs have a score.
    """

    name: str
    folder: str
    value: Estimate
    accuracy: Estimate
    exact_match: Estimate | None
    coverage: Coverage | None
    bounds: Range | None
    best_rank: int
    worst_rank: int


class ComparisonSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``compare``: the models, best first, and all pairwise differences.

    ``headline`` names the ranking measure, and ``about`` describes it. It is null if parts of the bench are
    ``missing``: models are then ranked by accuracy. ``unlike_coverage``: the coverage of each model, if two of
    them read different shares of the responses. ``ceiling``: what a perfect model reaches, where one states it.
    """

    bench: str
    headline: str | None
    about: str = ""
    missing: dict[str, str] = msgspec.field(default_factory=dict)
    unlike_coverage: tuple[str, ...]
    models: tuple[ComparedModel, ...]
    comparisons: tuple[ModelDifference, ...]
    correction: str
    ceiling: BenchCeiling | None = None

    @property
    def ranked_by(self) -> str:
        """The measure that ranks the models."""
        return self.headline or "accuracy"


class _Headline(NamedTuple):
    """The bench's headline in a comparison; ``differences`` is null if the headline is accuracy or is missing."""

    name: str | None
    about: str
    missing: dict[str, str]
    differences: tuple[HeadlineDifference, ...] | None


def compare_models(evaluations: EvaluationSet, *, num_resamples: int, seed: int) -> ComparisonSummary:
    """Compare all pairs of evaluations, and compute the possible ranks of each."""
    pairs = list(combinations(range(len(evaluations.evaluated)), 2))
    headline = _compare_headlines(evaluations, pairs, num_resamples=num_resamples, seed=seed)
    differences = _differences(evaluations, pairs, headline, num_resamples=num_resamples, seed=seed)
    first = evaluations.evaluated[0].run.summary
    return ComparisonSummary(
        bench=first.bench,
        headline=headline.name,
        about=headline.about,
        missing=headline.missing,
        unlike_coverage=tuple(
            unequal_coverage({model.name: model.run.summary.coverage for model in evaluations.evaluated})
        ),
        models=_models(evaluations, pairs, differences, headline.name or "accuracy"),
        comparisons=differences,
        correction="Holm, over all comparisons here",
        ceiling=ceiling_of(evaluations),
    )


def _compare_headlines(
    evaluations: EvaluationSet, pairs: Sequence[tuple[int, int]], *, num_resamples: int, seed: int
) -> _Headline:
    """Compute the difference in the bench's headline for each pair, from the same resamples of the prompts."""
    headline = headline_of(evaluations)
    if headline.missing:
        return _Headline(None, "", dict(headline.missing), None)
    if headline.name == "accuracy":
        return _Headline(headline.name, headline.about, {}, None)
    tables = [model.statistics for model in evaluations.evaluated]
    drawn = HeadlineBootstrap(evaluations.layout, headline.formula, num_resamples, seed).draw(tables)
    differences = [drawn.minus(first, second, headline.n) for first, second in pairs]
    corrected = holm([difference.p for difference in differences])
    records = tuple(
        HeadlineDifference(
            **msgspec.structs.asdict(_exact(difference.estimate, evaluations, pair)),
            p=difference.p,
            p_corrected=p_corrected,
        )
        for pair, difference, p_corrected in zip(pairs, differences, corrected, strict=True)
    )
    return _Headline(headline.name, headline.about, {}, records)


def _exact(difference: Estimate, evaluations: EvaluationSet, pair: tuple[int, int]) -> Estimate:
    """Return the difference of two models; without a width where both gave every response the same score."""
    first, second = (evaluations.evaluated[index].run for index in pair)
    scores = first.outputs.get(_SCORES_FILE)
    is_equal = scores is not None and scores == second.outputs.get(_SCORES_FILE)
    # The verdicts of a judge are no function of scores.
    has_verdicts = first.summary.outcomes is not None or second.summary.outcomes is not None
    return no_difference(difference.n) if is_equal and not has_verdicts and difference.value is not None else difference


def _differences(
    evaluations: EvaluationSet, pairs: Sequence[tuple[int, int]], headline: _Headline, *, num_resamples: int, seed: int
) -> tuple[ModelDifference, ...]:
    """Compare each pair by accuracy, exact match and the other measures."""
    tables = [model.statistics for model in evaluations.evaluated]
    results = [
        compare(evaluations.layout, tables[first], tables[second], num_resamples=num_resamples, seed=seed)
        for first, second in track(pairs, "comparing", total=len(pairs))
    ]
    results = [
        result._replace(
            accuracy=_exact(result.accuracy, evaluations, pair),
            exact_match=_exact(result.exact_match, evaluations, pair),
        )
        for result, pair in zip(results, pairs, strict=True)
    ]
    accuracy = holm([result.p_accuracy for result in results])
    exact_match = holm([result.p_exact_match for result in results])
    ranked = [result.p_accuracy for result in results]
    if headline.differences is not None:
        ranked = [difference.p for difference in headline.differences]
    bounded = _bounded(evaluations, pairs, ranked, num_resamples=num_resamples, seed=seed)
    measures = _measures(evaluations, pairs, num_resamples=num_resamples, seed=seed)
    powered = _powered(evaluations, pairs, num_resamples=num_resamples, seed=seed)
    return tuple(
        ModelDifference(
            first=evaluations.evaluated[first].name,
            second=evaluations.evaluated[second].name,
            **results[place]._asdict(),
            p_accuracy_corrected=accuracy[place],
            p_exact_match_corrected=exact_match[place],
            p_bounded=bounded[place],
            headline=None if headline.differences is None else headline.differences[place],
            measures=measures[place],
            prediction_powered=powered[place],
        )
        for place, (first, second) in enumerate(pairs)
    )


def _measures(
    evaluations: EvaluationSet, pairs: Sequence[tuple[int, int]], *, num_resamples: int, seed: int
) -> list[dict[str, MeasureDifference]]:
    """Compute the differences in the other measures for each pair, with p-values corrected within each measure."""
    blocks = draw_blocks(evaluations.labels, num_resamples=num_resamples, seed=seed)
    by_pair: list[dict[str, MeasureDifference]] = [{} for _ in pairs]
    for name in evaluations.evaluated[0].measures:
        sides = [[evaluations.evaluated[index].measures[name] for index in pair] for pair in pairs]
        means = [paired_mean(blocks, first, second) for first, second in sides]
        # Pairs without a difference are no tests, so they do not count in the correction.
        corrected = iter(holm([mean.p for mean in means if mean.p is not None]))
        for pair, measures, mean in zip(pairs, by_pair, means, strict=True):
            p_corrected = None if mean.p is None else next(corrected)
            difference = _exact(mean.difference, evaluations, pair)
            measures[name] = MeasureDifference(difference=difference, p=mean.p, p_corrected=p_corrected)
    return by_pair


def _powered(
    evaluations: EvaluationSet, pairs: Sequence[tuple[int, int]], *, num_resamples: int, seed: int
) -> Sequence[PPIEstimate | None]:
    """Compute the differences from human and judge labels, where every evaluation has both."""
    folders, runs = ([getattr(model, name) for model in evaluations.evaluated] for name in ("folder", "run"))
    labelled = read_labelled_evaluations(folders, runs)
    if labelled is None:
        return [None] * len(pairs)
    return compare_labelled(labelled, pairs, num_resamples=num_resamples, seed=seed)


def _bounded(
    evaluations: EvaluationSet,
    pairs: Sequence[tuple[int, int]],
    p_values: Sequence[float],
    *,
    num_resamples: int,
    seed: int,
) -> list[float]:
    """Return corrected p-values if the pairs that only the worse model has no score for count as right for it."""
    unscored = [model.unscored for model in evaluations.evaluated]
    if any(table.pairs for table in unscored):
        bootstrap = HeadlineBootstrap(evaluations.layout, ranking_of(evaluations).formula, num_resamples, seed)
        tables = [model.statistics for model in evaluations.evaluated]
        headlines = bootstrap.draw(tables)
        bounds = [bootstrap.bounded_p(tables, unscored, pair, headlines) for pair in pairs]
        # A bound may not make a difference more significant than the test itself.
        p_values = [max(both) for both in zip(p_values, bounds, strict=True)]
    return holm(p_values)


def _models(
    evaluations: EvaluationSet, pairs: Sequence[tuple[int, int]], differences: Sequence[ModelDifference], ranked_by: str
) -> tuple[ComparedModel, ...]:
    """Return the models with their possible ranks, best first."""
    is_better = np.zeros((len(evaluations.evaluated),) * 2, dtype=bool)
    for (first, second), difference in zip(pairs, differences, strict=True):
        if difference.p_bounded < LEVEL and difference.ranked.value:
            is_better[(first, second) if difference.ranked.value > 0 else (second, first)] = True
    models: list[ComparedModel] = []
    for evaluated, (best, worst) in zip(evaluations.evaluated, significant_ranks(is_better), strict=True):
        summary = evaluated.run.summary
        assert summary.exact_match is not None, "an evaluation with a headline has exact match"
        models.append(
            ComparedModel(
                name=evaluated.name,
                folder=str(evaluated.folder),
                value=getattr(summary, ranked_by),
                accuracy=summary.accuracy,
                exact_match=summary.exact_match,
                coverage=summary.coverage,
                bounds=None if summary.bounds is None else summary.bounds.accuracy,
                best_rank=best,
                worst_rank=worst,
            )
        )
    return tuple(sorted(models, key=lambda model: -(model.value.value or 0.0)))
