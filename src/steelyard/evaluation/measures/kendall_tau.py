"""Rank correlation of a model's scores with each prompt's ranking: Kendall's tau-b."""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats
from steelyard.evaluation.bench_pairs import Ranked, ranked_responses
from steelyard.evaluation.columns import prompts_by_size
from steelyard.evaluation.measure import (
    GroupColumn,
    GroupedMeans,
    Measure,
    MeasureRow,
    Needs,
    ResampledBench,
    ScoredBench,
    grouped_means,
    means_row,
    null_where_nan,
)
from steelyard.evaluation.tables import DECIMAL, word
from steelyard.statistics.agreement import tau_b
from steelyard.statistics.intervals import CORRELATION
from steelyard.statistics.prompt_means import mean_of

TEXT = {
    "kendall_tau": {"en": "Kendall's tau-b", "zh": "Kendall τ-b"},
    "kendall_constant": {
        "en": "Kendall's tau-b, 0 for prompts of equal scores",
        "zh": "Kendall τ-b，得分全部相同的提示词按 0 计",
    },
    "define_kendall_tau": {
        "en": "Rank correlation of the scores with the ranking of a prompt: 1 for the same order, −1 for the opposite "
        "order, corrected for ties on either side.",
        "zh": "得分与一个提示词的排序的一致程度：1 为同序，−1 为反序，并对两边的并列做了校正。",
    },
}


class RankCorrelation(GroupedMeans, frozen=True, kw_only=True):
    """The mean of tau-b over the prompts where it is defined.

    It is undefined for the ``num_constant`` prompts whose scores are all equal; ``constant_as_zero`` counts them as 0.
    ``num_without_order`` prompts are ranked in a single tier.
    """

    constant_as_zero: GroupedMeans
    num_constant: int
    num_without_order: int


class Correlations(NamedTuple):
    """Tau-b of each prompt, NaN where undefined, and whether all its scores are equal; shape (prompt,)."""

    tau: Floats
    is_constant: Booleans


def kendall(ranked: Ranked, num_prompts: int) -> Correlations:
    """Compute Kendall's tau-b of each prompt's scores with its tiers, better tiers counting as higher."""
    tau, is_constant = np.full(num_prompts, np.nan), np.zeros(num_prompts, np.bool_)
    for prompts, rows in prompts_by_size(ranked.prompt, num_prompts):
        score = ranked.score[rows]
        tau[prompts] = tau_b(score, -ranked.tier[rows].astype(np.float64))
        is_constant[prompts] = (score == score[:, :1]).all(axis=1)
    return Correlations(tau, is_constant)


def estimate(resampled: ResampledBench) -> RankCorrelation:
    """Estimate the mean of tau-b over prompts."""
    bench, included = resampled.bench, resampled.included
    ranked = ranked_responses(bench.columns, bench.scores.score)
    correlations, has_order = kendall(ranked, len(included)), ranked.has_order(len(included))
    tau, is_constant = correlations.tau[included], (correlations.is_constant & has_order)[included]
    ratios = {
        "tau": mean_of(tau, CORRELATION),
        "constant_as_zero": mean_of(np.where(is_constant, 0.0, tau), CORRELATION),
    }
    means = grouped_means(resampled.blocks, ratios)
    overall = means["tau"]
    return RankCorrelation(
        macro=overall.macro,
        micro=overall.micro,
        by_category=overall.by_category,
        by_language=overall.by_language,
        constant_as_zero=means["constant_as_zero"],
        num_constant=int(is_constant.sum()),
        num_without_order=int((~has_order[included]).sum()),
    )


def columns(bench: ScoredBench) -> dict[str, list[float | None]]:
    """Return tau-b of each case."""
    ranked = ranked_responses(bench.columns, bench.scores.score)
    return {"kendall_tau": null_where_nan(kendall(ranked, len(bench.columns.start)).tau)}


def rows(summary: RankCorrelation) -> tuple[MeasureRow, ...]:
    """Return the row of the table of measures, and one with 0 for the prompts whose scores are equal, if any are."""
    row = means_row(word("kendall_tau"), summary, DECIMAL)
    if not summary.num_constant:
        return (row,)
    title = f"{word('kendall_constant')} ({summary.num_constant:,})"
    return row, means_row(title, summary.constant_as_zero, DECIMAL)


MEASURE = Measure(
    order=10,
    summary=RankCorrelation,
    estimate=estimate,
    text=TEXT,
    needs=Needs(scores=True),
    rows=rows,
    group_column=lambda summary: GroupColumn("kendall_tau", summary, DECIMAL),
    columns=columns,
    column_names=("kendall_tau",),
    paired_titles=(("kendall_tau", "Kendall's tau-b"),),
)
