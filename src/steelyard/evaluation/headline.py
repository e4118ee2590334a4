"""The summary of an evaluation computed: headline, baselines, ties, bounds of missing scores, and every measure."""

from collections.abc import Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from steelyard.core.numerics import Floats
from steelyard.core.types import JsonObject, Record, prepare_records
from steelyard.evaluation.bench_pairs import count_pairs, items_of, values_of
from steelyard.evaluation.evaluated_bench import Evaluation, coverage_counter, is_withheld, unscored_report
from steelyard.evaluation.measure import GroupedMeans, Means, ResampledBench, ScoredBench, measures
from steelyard.evaluation.measures.accuracy import Accuracy, Baseline, BenchAccuracy, HeadlineSummary, Range
from steelyard.evaluation.pair_verdicts import Judged, outcome_report
from steelyard.evaluation.summary import EvaluationSummary, MeasureSummaries, TiedPairs
from steelyard.evaluation.tie_policies import category_weights, half_points, policy, tie_policies
from steelyard.plugins.engines.local import num_cores
from steelyard.statistics.aggregation import ACCURACY, means
from steelyard.statistics.bootstrap import draw_layout, resample
from steelyard.statistics.intervals import Estimate, no_difference
from steelyard.statistics.pair_counts import PromptStatistics, count_unscored, with_policy
from steelyard.statistics.significance import NUM_RESAMPLES, share_difference


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
        stated=evaluation.stated,
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
    exact = accuracy.exact_match, accuracy.exact_match_micro
    exact_match = None if exact[0] is None or exact[1] is None else Means(macro=exact[0], micro=exact[1])
    resampled = ResampledBench(bench, blocks, headline, config.seed, exact_match)
    return {
        name: pool.submit(measure.estimate, resampled)
        for name, measure in measures().items()
        if bench.meets(measure.needs)
    }


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
