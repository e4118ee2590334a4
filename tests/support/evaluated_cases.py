"""The evaluation of cases in memory, as the stage makes it from its batches."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from steelyard.core.types import Case, Scores
from steelyard.evaluation.bench_pairs import BenchPairs, lay_out_pairs
from steelyard.evaluation.columns import bench_columns, score_columns
from steelyard.evaluation.config import Config
from steelyard.evaluation.evaluated_bench import Evaluation, headline_columns
from steelyard.evaluation.pair_verdicts import Judged
from steelyard.ranking.pairs import PairChoice
from steelyard.statistics.pair_counts import ExactRule


def select_pairs(
    cases: Sequence[Case],
    choice: PairChoice | None,
    rule: ExactRule,
    resample_ids: Callable[[Case], tuple[str, ...]] = lambda case: (case.prompt.id,),
) -> BenchPairs:
    """Return the comparable pairs of cases in memory. Raises EvidenceError for cases without any.

    ``resample_ids`` returns the names of a case's prompt; cases that share a name are resampled together.
    """
    return lay_out_pairs(bench_columns(cases, choice, rule, resample_ids), rule)


def evaluation_of(
    cases: Sequence[Case],
    lines: Sequence[Scores],
    bench: Any,
    config: Config,
    *,
    baselines: Mapping[str, Sequence[Scores]] | None = None,
    judged: Judged | None = None,
) -> Evaluation:
    """Return the evaluation of cases in memory. Raises EvidenceError without any comparable pair."""
    bench_pairs = select_pairs(cases, config.pairs, config.exact_rule, bench.resample_ids)
    headline = headline_columns(bench, cases, lines, bench_pairs.columns, judged)
    others = {name: score_columns(baseline).score for name, baseline in (baselines or {}).items()}
    return Evaluation(bench_pairs, bench, config, score_columns(lines), headline, others, judged)
