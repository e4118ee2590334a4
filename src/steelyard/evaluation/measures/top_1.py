"""First choice: the share of prompts whose highest-scored response is in the best tier, and of a random response."""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats
from steelyard.core.types import Record
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
from steelyard.evaluation.tables import word
from steelyard.statistics.intervals import SHARE
from steelyard.statistics.prompt_means import mean_of

TEXT = {
    "top_1": {"en": "First choice in the best tier", "zh": "首选位于最优层级"},
    "define_top_1": {
        "en": "The share of prompts whose highest-scored answer is in the best tier. Of several such answers, the "
        "share in the best tier counts.",
        "zh": "得分最高的回答位于最优层级的比例；若有多个同为最高分，取其中位于最优层级的比例。",
    },
}


class TopOne(Record, frozen=True, kw_only=True):
    """The share of prompts whose highest-scored response is in the best tier, by the rule for equal highest scores.

    ``wrong`` requires all of them to be in the best tier, ``right`` requires one, ``half`` counts their share in it.
    ``chance`` is the share of the best tier among all responses.
    """

    wrong: GroupedMeans
    half: GroupedMeans
    right: GroupedMeans
    chance: GroupedMeans


class FirstChoice(NamedTuple):
    """The shares of each prompt with at least two tiers, else NaN; shape (prompt,)."""

    wrong: Floats
    half: Floats
    right: Floats
    chance: Floats


def first_choice(ranked: Ranked, num_prompts: int) -> FirstChoice:
    """Compute for each prompt whether its highest-scored responses are in the best tier."""
    shares = np.full((4, num_prompts), np.nan)
    for prompts, rows in prompts_by_size(ranked.prompt, num_prompts):
        score, tier = ranked.score[rows], ranked.tier[rows]
        is_highest = score == score.max(axis=1, keepdims=True)
        is_first = tier == tier.min(axis=1, keepdims=True)
        has_order = ~is_first.all(axis=1)
        hits, size = (is_highest & is_first).sum(axis=1), is_highest.sum(axis=1)
        each = (hits == size, hits / size, hits > 0, is_first.mean(axis=1))
        shares[:, prompts] = np.where(has_order, np.stack(each), np.nan)
    return FirstChoice(*shares)


def choices_of(bench: ScoredBench) -> FirstChoice:
    """Return the first choices of a bench's cases."""
    ranked = ranked_responses(bench.columns, bench.scores.score)
    return first_choice(ranked, len(bench.columns.start))


def estimate(resampled: ResampledBench) -> TopOne:
    """Estimate the shares over prompts."""
    shares = choices_of(resampled.bench)._asdict()
    ratios = {name: mean_of(values[resampled.included], SHARE) for name, values in shares.items()}
    return TopOne(**grouped_means(resampled.blocks, ratios))


def rows(summary: TopOne) -> tuple[MeasureRow, ...]:
    """Return the row of the table of measures."""
    return (means_row(word("top_1"), summary.half, chance=summary.chance),)


MEASURE = Measure(
    order=20,
    summary=TopOne,
    estimate=estimate,
    text=TEXT,
    needs=Needs(scores=True),
    rows=rows,
    group_column=lambda summary: GroupColumn("top_1", summary.half),
    columns=lambda bench: {"top_1": null_where_nan(choices_of(bench).half)},
    column_names=("top_1",),
    paired_titles=(("top_1", "first choice"),),
)
