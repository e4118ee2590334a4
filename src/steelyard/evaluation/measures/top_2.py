"""First two choices: the share of prompts with a best-tier response among the two highest scores, and at random."""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Record
from steelyard.evaluation.bench_pairs import Ranked, ranked_responses
from steelyard.evaluation.columns import prompts_by_size
from steelyard.evaluation.measure import (
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
    "top_2": {"en": "Best tier among the first two choices", "zh": "前两选中含最优层级的回答"},
    "define_top_2": {
        "en": "The share of prompts with a response of the best tier among the two highest scores; equal scores are "
        "ordered at random. Prompts with at least three scored responses.",
        "zh": "得分最高的两个回答中至少有一个位于最优层级的比例；同分者随机排序。仅统计至少有三个得分回答的提示词。",
    },
}
_FEWEST_RESPONSES = 3


class TopTwo(Record, frozen=True, kw_only=True):
    """The share of prompts with a response of the best tier among the two highest scores, and among two at random."""

    model: GroupedMeans
    chance: GroupedMeans


class FirstTwo(NamedTuple):
    """The probability for each prompt with at least three responses and two tiers, else NaN; shape (prompt,)."""

    model: Floats
    chance: Floats


def first_two(ranked: Ranked, num_prompts: int) -> FirstTwo:
    """Compute the probability that the first two responses include one of the best tier; equal scores are shuffled.

    At most one response is above the second-highest score. The remaining places are drawn among the responses with it.
    """
    model, chance = (np.full(num_prompts, np.nan) for _ in range(2))
    for prompts, rows in prompts_by_size(ranked.prompt, num_prompts):
        size = rows.shape[1]
        if size < _FEWEST_RESPONSES:
            continue
        score, tier = ranked.score[rows], ranked.tier[rows]
        second = np.sort(score, axis=1)[:, -2:-1]
        is_best = tier == tier.min(axis=1, keepdims=True)
        has_order = ~is_best.all(axis=1)
        is_above, is_second = score > second, score == second
        places = 2 - is_above.sum(axis=1)
        missed = _miss(is_second.sum(axis=1), (is_second & is_best).sum(axis=1), places)
        missed = np.where((is_above & is_best).any(axis=1), 0.0, missed)
        model[prompts] = np.where(has_order, 1 - missed, np.nan)
        at_random = _miss(np.full(len(rows), size), is_best.sum(axis=1), np.full(len(rows), 2))
        chance[prompts] = np.where(has_order, 1 - at_random, np.nan)
    return FirstTwo(model, chance)


def _miss(size: Integers, num_best: Integers, places: Integers) -> Floats:
    """Return the probability that one or two places, drawn among ``size`` responses, contain none of the best."""
    others = size - num_best
    second = np.where(places > 1, (others - 1) / np.maximum(size - 1, 1), 1.0)
    return np.maximum(others / size * second, 0.0)


def choices_of(bench: ScoredBench) -> FirstTwo:
    """Return the first two choices of a bench's cases."""
    return first_two(ranked_responses(bench.columns, bench.scores.score), len(bench.columns.start))


def estimate(resampled: ResampledBench) -> TopTwo | None:
    """Estimate the shares over prompts; null where no prompt has three scored responses in two tiers."""
    values = choices_of(resampled.bench)._asdict()
    included = {name: share[resampled.included] for name, share in values.items()}
    if np.isnan(included["model"]).all():
        return None
    return TopTwo(**grouped_means(resampled.blocks, {name: mean_of(share, SHARE) for name, share in included.items()}))


def rows(summary: TopTwo) -> tuple[MeasureRow, ...]:
    """Return the row of the table of measures."""
    return (means_row(word("top_2"), summary.model, chance=summary.chance),)


MEASURE = Measure(
    order=25,
    summary=TopTwo,
    estimate=estimate,
    text=TEXT,
    needs=Needs(scores=True),
    rows=rows,
    columns=lambda bench: {"top_2": null_where_nan(choices_of(bench).model)},
    column_names=("top_2",),
    paired_titles=(("top_2", "best tier in first two"),),
)
