"""The summary of an evaluation: headline, baselines, ties, bounds where scores are missing, and every measure.

`EvaluationSummary` is the summary in ``run.json``, which every reader of an evaluation decodes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from threadpoolctl import threadpool_limits

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Case, InputFinding, JsonObject, Meta, Record, Scores, prepare_records
from steelyard.curation.input_checks import below_chance
from steelyard.evaluation.bench_pairs import (
    BenchPairs,
    PairValues,
    count_pairs,
    items_of,
    values_of,
)
from steelyard.evaluation.columns import BenchColumns, ScoreColumns
from steelyard.evaluation.config import Config
from steelyard.evaluation.coverage import Coverage, CoverageCounter
from steelyard.evaluation.measure import GroupedMeans, Measure, ResampledBench, ScoredBench, measures
from steelyard.evaluation.measures.accuracy import Accuracy, Baseline, BenchAccuracy, HeadlineSummary, Range
from steelyard.evaluation.model_self_tests import SelfTestSummary
from steelyard.evaluation.pair_verdicts import MOST_UNREAD, Judged, PairOutcomes, outcome_report, pair_columns
from steelyard.evaluation.prediction_powered import PPISummary
from steelyard.evaluation.relabelled import RelabelledPairs
from steelyard.evaluation.tie_policies import (
    CategoryWeights,
    Policies,
    category_weights,
    half_points,
    policy,
    tie_policies,
)
from steelyard.judging.verdicts import VerdictSummary
from steelyard.plugins.engines.local import num_cores
from steelyard.ranking.pairs import PairChoice
from steelyard.statistics.aggregation import ACCURACY, means
from steelyard.statistics.bootstrap import draw_layout, resample
from steelyard.statistics.intervals import Estimate, no_difference
from steelyard.statistics.pair_counts import PromptStatistics, count_unscored, with_policy
from steelyard.statistics.significance import NUM_RESAMPLES, share_difference

if TYPE_CHECKING:

    class MeasureSummaries(Record, frozen=True, kw_only=True):
        """The summary of each measure by name; null if it does not apply to the model or the bench."""
else:
    MeasureSummaries = msgspec.defstruct(
        "MeasureSummaries",
        [(name, measure.summary | None, None) for name, measure in measures().items()],
        bases=(Record,),
        frozen=True,
        kw_only=True,
    )


class TiedPairs(Record, frozen=True, kw_only=True):
    """Pairs whose two scores are equal, and their share of all pairs."""

    num_pairs: int
    share: float


class MissingScores(Record, frozen=True, kw_only=True):
    """Responses without a score, by reason and by language, and the numbers of affected pairs and prompts."""

    num_responses: int
    by_reason: dict[str, int]
    by_language: dict[str, int]
    num_pairs: int
    num_prompts: int


class EvaluationSummary(HeadlineSummary, frozen=True, kw_only=True):
    """The summary of an evaluation.

    ``bench``, ``model``, ``protocol`` and ``self_test`` are absent from an evaluation in memory. A reward model has
    ``coverage``, and if scores are missing ``unscored``, ``bounds`` (unscored pairs wrong, and right) and
    ``over_scored_pairs``. ``num_left_out`` counts the pairs of equal texts, which no model can win and no value counts.
    A judge has ``outcomes`` and ``judges``. ``prediction_powered``: with human labels of few and a judge's of many
    prompts, the values from both; all others are from the human labels alone.
    """

    bench: str = ""
    model: str = ""
    protocol: Meta | UnsetType | None = UNSET
    self_test: SelfTestSummary | None = None
    metric: str
    pairs: PairChoice | None
    tied: TiedPairs
    num_left_out: int = 0
    coverage: Coverage | None = None
    outcomes: PairOutcomes | None = None
    judges: dict[str, VerdictSummary] | None = None
    unscored: MissingScores | None = None
    bounds: BenchAccuracy[Range] | None = None
    over_scored_pairs: Accuracy[Estimate] | None = None
    policies: Policies | None = None
    weights: CategoryWeights
    measures: MeasureSummaries
    prediction_powered: PPISummary | None = None

    @property
    def self_test_state(self) -> str:
        """The state of the model's self-tests; ``off`` if none is recorded."""
        return "off" if self.self_test is None else self.self_test.state

    def measured(self) -> Iterator[tuple[Measure[Any], Any]]:
        """Yield every measure that applied, with its summary."""
        for name, measure in measures().items():
            summary = getattr(self.measures, name)
            if summary is not None:
                yield measure, summary


class HeadlineColumns(NamedTuple):
    """The columns that the bench's headline needs beyond accuracy and exact match; shape (case, column) each.

    They count pairs without a score or verdict as wrong and as right.
    """

    unscored_wrong: Integers
    unscored_right: Integers


class Evaluation(NamedTuple):
    """The comparable pairs of a bench with the scores of a model and of each baseline.

    ``judged`` has the outcomes of the pairs under a judge; null for a reward model. ``relabelled``: what better judges
    said of a random part of the labels.
    """

    bench_pairs: BenchPairs
    bench: Any
    config: Config
    scores: ScoreColumns
    headline: HeadlineColumns
    baselines: Mapping[str, Floats]
    """The score of every response; shape (response,) each."""
    judged: Judged | None = None
    relabelled: RelabelledPairs | None = None

    @property
    def values(self) -> PairValues:
        """The model's values of the two responses of each pair."""
        return values_of(self.bench_pairs.columns, self.scores.score) if self.judged is None else self.judged.values

    @property
    def num_left_out(self) -> int:
        """The number of pairs of equal texts, which no measure counts unless a published benchmark does."""
        is_counted = self.config.counts_unwinnable(self.bench)
        return 0 if is_counted else self.bench_pairs.columns.unwinnable.shape[1]


def headline_columns(
    bench: Any, cases: Sequence[Case], lines: Sequence[Scores], columns: BenchColumns, judged: Judged | None = None
) -> HeadlineColumns:
    """Return the bench's own columns of a batch of cases."""
    if judged is not None and judged.by_pair:
        both = [pair_columns(bench, cases, columns, judged, open_is_right=is_right) for is_right in (False, True)]
    else:
        both = [bench.columns(cases, lines, unscored_is_right=is_right) for is_right in (False, True)]
    return HeadlineColumns(*both)


def summarise(evaluation: Evaluation) -> EvaluationSummary:
    """Compute the summary except the names of model and bench; baselines and measures run in threads."""
    prepare_records()
    # One thread for linear algebra: products are small, and results must not depend on the number of cores.
    with threadpool_limits(1), ThreadPoolExecutor(num_cores()) as pool:
        return _summarise(evaluation, pool)


def _summarise(evaluation: Evaluation, pool: Executor) -> EvaluationSummary:
    bench_pairs, config, bench, judged = evaluation.bench_pairs, evaluation.config, evaluation.bench, evaluation.judged
    statistics = count_pairs(bench_pairs.columns, evaluation.values)
    # Pairs without a score or verdict count as wrong, with bounds; if they are most pairs, there is no headline.
    counted = count_unscored(statistics, "wrong")
    withheld = is_withheld(statistics) if judged is None else judged.is_withheld
    baselines = {
        name: pool.submit(_baseline, evaluation, counted, score, withheld=withheld)
        for name, score in evaluation.baselines.items()
    }
    measured = _measured(evaluation, counted, unscored_is_right=False)
    measures_by_name = _submit_measures(evaluation, _headline(measured, {}), pool)
    parts: JsonObject = {}
    if judged is not None:
        parts = _judged_parts(evaluation, statistics, judged)
    elif evaluation.scores.reasons:
        parts = _bounds_parts(evaluation, statistics)
        if bench.counts_halves and not withheld:
            parts["policies"] = {"half": policy(half_points(bench_pairs, statistics, config, bench))}
    else:
        parts["policies"] = tie_policies(bench_pairs, statistics, measured, config, bench)
    if judged is None:
        parts["coverage"] = coverage_counter(bench_pairs.columns, evaluation.scores).report()
    num_pairs, num_tied = int(statistics.num_pairs.sum()), int(statistics.num_tied.sum())
    headline = _headline(
        _withheld(measured) if withheld else measured, {name: future.result() for name, future in baselines.items()}
    )
    return EvaluationSummary(
        **msgspec.structs.asdict(headline),
        metric=config.metric_compat or "steelyard",
        pairs=config.pairs,
        tied=TiedPairs(num_pairs=num_tied, share=num_tied / num_pairs),
        num_left_out=evaluation.num_left_out,
        weights=category_weights(bench_pairs, statistics),
        measures=MeasureSummaries(**{name: future.result() for name, future in measures_by_name.items()}),
        **parts,
    )


def reversed_scores(summary: EvaluationSummary, model: str) -> tuple[InputFinding, ...]:
    """Return a finding if the scores are far below chance. The verdicts of a judge have no direction to reverse."""
    if summary.outcomes is not None:
        return ()
    num_open = summary.tied.num_pairs + (summary.unscored.num_pairs if summary.unscored else 0)
    accuracy = summary.accuracy_micro
    num_right = round((accuracy.value or 0) * accuracy.n)
    return below_chance(accuracy, accuracy.n - num_right - num_open, model=model)


def is_withheld(statistics: PromptStatistics) -> bool:
    """Return whether a larger share of pairs than `MOST_UNREAD` has no score, which would dominate a headline."""
    return int(statistics.num_unscored.sum()) > MOST_UNREAD * int(statistics.num_pairs.sum())


def _submit_measures(
    evaluation: Evaluation, accuracy: Accuracy[Estimate], pool: Executor
) -> dict[str, Future[Record | None]]:
    """Submit the estimation of every measure that applies, all from the same resamples of the included prompts."""
    bench_pairs, config, judged = evaluation.bench_pairs, evaluation.config, evaluation.judged
    bench = ScoredBench(
        bench_pairs.columns,
        evaluation.scores,
        evaluation.values,
        has_scores=judged is None or not judged.by_pair,
        has_rewards=judged is None,
        matched_ratio=config.matched_ratio,
        relabelled=evaluation.relabelled,
    )
    blocks = draw_layout(
        bench_pairs.layout, bench_pairs.included_units, num_resamples=config.num_resamples, seed=config.seed
    )
    headline = GroupedMeans(
        macro=accuracy.accuracy,
        micro=accuracy.accuracy_micro,
        by_category={name: group.accuracy for name, group in accuracy.by_category.items()},
        by_language={name: group.accuracy for name, group in (accuracy.by_language or {}).items()},
    )
    resampled = ResampledBench(bench, blocks, headline, config.seed)
    return {
        name: pool.submit(measure.estimate, resampled)
        for name, measure in measures().items()
        if bench.meets(measure.needs)
    }


def unscored_report(columns: BenchColumns, scores: ScoreColumns) -> MissingScores:
    """Count the responses without a score, by reason and by language."""
    case_of = columns.case_of
    languages = Counter(columns.cells[case_of[response]].language or "unknown" for response in scores.reasons)
    counts = count_pairs(columns, values_of(columns, scores.score))
    return MissingScores(
        num_responses=len(scores.reasons),
        by_reason=dict(sorted(Counter(scores.reasons.values()).items())),
        by_language=dict(sorted(languages.items())),
        num_pairs=int(counts.num_unscored.sum()),
        num_prompts=int((counts.num_unscored > 0).sum()),
    )


def coverage_counter(columns: BenchColumns, scores: ScoreColumns) -> CoverageCounter:
    """Count the responses of each language that were cut or not scored."""
    languages = [cell.language for cell in columns.cells]
    names = sorted(set(languages), key=str)
    language = np.array([names.index(name) for name in languages], np.int64)[columns.case_of]
    chosen = (np.arange(len(language)), scores.cut, np.array(list(scores.reasons), np.int64))
    counts = [np.bincount(language[responses], minlength=len(names)).tolist() for responses in chosen]
    counter = CoverageCounter()
    for name, *numbers in zip(names, *counts, strict=True):
        counter.count(name, *numbers)
    return counter


def _measured(
    evaluation: Evaluation, statistics: PromptStatistics, *, unscored_is_right: bool, num_resamples: int | None = None
) -> JsonObject:
    """Compute the headline and the bench's own part."""
    resamples = evaluation.config.num_resamples if num_resamples is None else num_resamples
    columns = evaluation.headline.unscored_right if unscored_is_right else evaluation.headline.unscored_wrong
    items = items_of(evaluation.bench_pairs, statistics, num_resamples=resamples, columns=columns)
    totals = resample(items, seed=evaluation.config.seed)
    return means(totals) | evaluation.bench.summarise(totals, evaluation.bench_pairs.left_out)


def _headline(measured: JsonObject, baselines: Mapping[str, Baseline]) -> HeadlineSummary:
    # At the top level ``weights`` are the weights of categories; the name of a bench's weight set is in the policies.
    values = {name: value for name, value in measured.items() if name != "weights"}
    return msgspec.convert({**values, "baselines": baselines}, HeadlineSummary)


def _judged_parts(evaluation: Evaluation, statistics: PromptStatistics, judged: Judged) -> JsonObject:
    """Return the outcomes of a judge, and the headline with ties and missing verdicts wrong, half and right."""
    wrong, right = (
        _measured(evaluation, with_policy(statistics, ties), unscored_is_right=ties == "right")
        for ties in ("wrong", "right")
    )
    half = half_points(evaluation.bench_pairs, statistics, evaluation.config, evaluation.bench)
    return {
        "outcomes": outcome_report(evaluation.bench_pairs.columns, judged),
        "judges": judged.judges,
        "policies": {"wrong": policy(wrong), "half": policy(half), "right": policy(right)},
    }


def _bounds_parts(evaluation: Evaluation, statistics: PromptStatistics) -> JsonObject:
    """Return the counts of unscored responses, the bounds of the headline, and accuracy over the scored pairs."""
    low, high = (
        _measured(evaluation, count_unscored(statistics, how), unscored_is_right=how == "right", num_resamples=0)
        for how in ("wrong", "right")
    )
    scored = items_of(
        evaluation.bench_pairs, count_unscored(statistics, "left_out"), num_resamples=evaluation.config.num_resamples
    )
    over_scored = means(resample(scored, seed=evaluation.config.seed))
    over_scored["by_category"] = {
        name: {"accuracy": group["accuracy"]} for name, group in over_scored["by_category"].items()
    }
    names = ("accuracy", "accuracy_micro", "by_category")
    return {
        "unscored": unscored_report(evaluation.bench_pairs.columns, evaluation.scores),
        "bounds": msgspec.convert(_bounds(low, high), BenchAccuracy[Range]),
        "over_scored_pairs": msgspec.convert({name: over_scored[name] for name in names}, Accuracy[Estimate]),
    }


def _baseline(evaluation: Evaluation, model: PromptStatistics, score: Floats, *, withheld: bool) -> Baseline:
    columns, config = evaluation.bench_pairs.columns, evaluation.config
    baseline = count_pairs(columns, values_of(columns, score))
    measured = means(
        resample(items_of(evaluation.bench_pairs, baseline, num_resamples=config.num_resamples), seed=config.seed)
    )
    del measured["by_language"]
    both = items_of(evaluation.bench_pairs, model, baseline, num_resamples=NUM_RESAMPLES)
    difference = share_difference(both, ACCURACY, seed=config.seed).estimate
    if evaluation.judged is None and np.array_equal(score, evaluation.scores.score):
        difference = no_difference(difference.n)
    return msgspec.convert(measured | {"difference": difference.withheld() if withheld else difference}, Baseline)


def _withheld(tree: JsonObject) -> JsonObject:
    """Return the summary with null values: if most pairs are unscored, it has bounds and no headline."""
    if "value" in tree:
        return tree | {"value": None, "low": None, "high": None}
    return {name: _withheld(inner) if isinstance(inner, dict) else inner for name, inner in tree.items()}


def _bounds(low: JsonObject, high: JsonObject) -> JsonObject:
    """Return the bounds of each value: unscored pairs counted as wrong, and as right."""
    if "value" in low:
        return {"low": low["value"], "high": high["value"]}
    return {name: _bounds(inner, high[name]) for name, inner in low.items() if isinstance(inner, dict)}
