"""Evaluations in memory for the tests: summaries with few numbers, items, and benches with one set of resamples."""

from msgspec.structs import asdict

from evaluated_cases import select_pairs
from steelyard.evaluation.bench_pairs import values_of
from steelyard.evaluation.columns import score_columns
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.measure import GroupedMeans, Means, ResampledBench, ScoredBench
from steelyard.evaluation.measures.accuracy import Baseline, GroupResult
from steelyard.evaluation.summary import EvaluationSummary, MeasureSummaries, TiedPairs
from steelyard.statistics.bootstrap import draw_layout
from steelyard.statistics.intervals import Estimate

NOTHING = Estimate(None, None, None, 0)


def estimate(value=None, low=None, high=None, n=0, why=None):
    return Estimate(value, low, high, n, why=why)


def around(value, n=10):
    """An estimate with an interval of 0.1 on either side."""
    return Estimate(value, value - 0.1, value + 0.1, n)


def means(value, by_category=(), by_language=(), **groups):
    """Means around a value; ``groups`` are those of both divisions."""
    groups = {name: around(other) for name, other in groups.items()}
    return GroupedMeans(
        macro=around(value),
        micro=around(value + 0.05),
        by_category=groups | dict(by_category),
        by_language=groups | dict(by_language),
    )


def plain_means(value, low=None, high=None, n=9):
    return Means(macro=estimate(value, low, high, n), micro=estimate(value, low, high, n))


def group(accuracy=NOTHING, exact_match=NOTHING):
    return GroupResult(accuracy=accuracy, exact_match=exact_match)


def baseline(accuracy=NOTHING, difference=NOTHING, **fields):
    values = {"exact_match": NOTHING, "accuracy_micro": NOTHING, "by_category": {}} | fields
    return Baseline(accuracy=accuracy, difference=difference, **values)


def evaluation_summary(measures=None, **fields):
    """The summary of an evaluation with nothing in it but these fields."""
    nothing = {
        "accuracy": NOTHING, "exact_match": NOTHING, "accuracy_micro": NOTHING, "exact_match_micro": NOTHING,
        "by_category": {}, "by_language": {}, "baselines": {}, "metric": "steelyard", "pairs": None,
        "tied": TiedPairs(num_pairs=0, share=0.0), "weights": {}, "measures": MeasureSummaries(**(measures or {})),
    }  # fmt: skip
    return EvaluationSummary(**nothing | fields)


def as_kind(kind, values, **fields):
    """Grouped means as a record that has more fields."""
    return kind(**asdict(values), **fields)


def scored_item(prompt, **fields):
    """An item of an evaluation with nothing in it but these fields."""
    nothing = {"category": "c", "num_pairs": 0, "num_correct": 0, "num_tied": 0, "exact_match": None}
    return ScoredItem(prompt=prompt, **nothing | fields)


def resampled_bench(cases, lines, *, values=None, num_resamples=40, seed=0, **fields):
    """A scored bench of cases in memory with resamples of its prompts; ``values`` stand for those of the scores."""
    bench_pairs, scores = select_pairs(cases, None, "strict"), score_columns(lines)
    values = values_of(bench_pairs.columns, scores.score) if values is None else values
    blocks = draw_layout(bench_pairs.layout, bench_pairs.included_units, num_resamples=num_resamples, seed=seed)
    bench = ScoredBench(bench_pairs.columns, scores, values, **fields)
    return ResampledBench(bench, blocks, means(0.5), seed)
