"""Reward distributions by category and language: mean, standard deviation, quantiles, and the share without a score.

Lower or narrower rewards in one language bias every selection across languages. The share without a score shows which
answers a length limit excludes.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.core.numerics import Booleans, Floats, Integers, ratio
from steelyard.core.types import Record
from steelyard.evaluation.measure import Measure, Needs, ResampledBench
from steelyard.evaluation.tables import (
    DECIMAL,
    Grouped,
    Panel,
    Table,
    count,
    decimal,
    group_word,
    percent,
    table,
    word,
)
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of
from steelyard.statistics.intervals import (
    POSITIVE,
    SHARE,
    UNBOUNDED,
    Estimate,
    Evidence,
    interval,
    quantile_interval,
)
from steelyard.statistics.prompt_means import Grouping, by_category, by_language

TEXT = {
    "reward_statistics": {"en": "Rewards by group", "zh": "各组奖励"},
    "deviation": {"en": "Standard deviation", "zh": "标准差"},
    "without_score": {"en": "Without a score", "zh": "无得分"},
    "why_the_values_around_it_are_equal": {
        "en": "no interval: the scores around the quantile are equal",
        "zh": "无区间：其附近的分数都相同",
    },
}
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_QUANTILE_WORDS = ("quantile_5", "quantile_25", "median", "quantile_75", "quantile_95")
_NUM_MOMENTS = 4
"""Columns of the sums before those of the quantiles: responses, scored ones, centred scores, their squares."""
_SPREAD = POSITIVE._replace(fewest=200)
"""With fewer prompts, the interval of a standard deviation covers the true value in under 93% of simulations."""


class RewardDistribution(Record, frozen=True, kw_only=True):
    """The rewards of one group of prompts; ``unscored`` counts responses without a score by reason."""

    mean: Estimate
    standard_deviation: Estimate
    quantiles: dict[str, Estimate]
    share_unscored: Estimate
    unscored: dict[str, int]


class RewardDistributions(Record, frozen=True, kw_only=True):
    """The rewards of all prompts, null without a response, and of each category and language."""

    overall: RewardDistribution | None
    by_category: dict[str, RewardDistribution]
    by_language: dict[str, RewardDistribution]


class Rewards(NamedTuple):
    """The responses of all prompts: ``prompt`` and ``score`` (NaN if missing) have shape (response,).

    ``reasons`` maps the position of a response to the reason for its missing score.
    """

    prompt: Integers
    score: Floats
    reasons: Mapping[int, str]


def estimate(resampled: ResampledBench) -> RewardDistributions:
    """Estimate the distribution of the rewards of a bench's included prompts."""
    scores, case_of = resampled.bench.scores, resampled.bench.columns.case_of
    chosen = resampled.included[case_of]
    place = np.cumsum(chosen) - 1
    reasons = {int(place[response]): reason for response, reason in scores.reasons.items() if chosen[response]}
    return reward_distributions(
        resampled.blocks, Rewards(resampled.rows[case_of[chosen]], scores.score[chosen], reasons)
    )


def reward_distributions(blocks: Blocks, rewards: Rewards) -> RewardDistributions:
    """Estimate the distribution of the rewards of all prompts, and of each category and language."""
    # Squares and fourth powers leave the range of numbers at 1e77: a power of two, which changes no digit, brings all
    # rewards to at most 1.
    exponent = int(np.frexp(np.nanmax(np.abs(rewards.score), initial=0.0))[1])
    scaled = rewards._replace(score=np.ldexp(rewards.score, -exponent))

    def of_groups(grouping: Grouping) -> dict[str, RewardDistribution]:
        return _distributions(blocks, scaled, grouping, exponent)

    return RewardDistributions(
        overall=of_groups(Grouping(("overall",), np.zeros(len(blocks.block), np.int64))).get("overall"),
        by_category=of_groups(by_category(blocks)),
        by_language=of_groups(by_language(blocks)),
    )


def _distributions(
    blocks: Blocks, rewards: Rewards, grouping: Grouping, exponent: int
) -> dict[str, RewardDistribution]:
    """Return the distribution of each group's rewards times 2 to the power of ``exponent``."""
    group = grouping.group[rewards.prompt]
    is_scored = ~np.isnan(rewards.score)
    ordered = [np.sort(rewards.score[is_scored & (group == place)]) for place in range(len(grouping.names))]
    sums = _sums(blocks, rewards, group, ordered)
    reasons: dict[int, Counter[str]] = {}
    for response in np.flatnonzero(np.isnan(rewards.score)).tolist():
        reasons.setdefault(int(group[response]), Counter())[rewards.reasons[response]] += 1

    def enlarged(value: Estimate) -> Estimate:
        return value.transformed(lambda number: float(np.ldexp(number, exponent)))

    distributions = {}
    for place, name in enumerate(grouping.names):
        point, drawn = sums.point[place], sums.resampled[:, place]
        if point[0]:
            evidence = evidence_of(blocks, np.zeros(len(blocks.block), np.int64), grouping.group == place)
            unit = float(np.ptp(ordered[place])) if len(ordered[place]) else 0.0
            freedom = _freedom_of_spread(rewards, is_scored & (group == place), unit)
            mean, deviation = _moments(point, drawn, evidence, freedom, unit)
            value, resampled = (1 - ratio(part[..., 1], part[..., 0]) for part in (point, drawn))
            distributions[name] = RewardDistribution(
                mean=enlarged(mean),
                standard_deviation=enlarged(deviation),
                quantiles={key: enlarged(each) for key, each in _quantiles(ordered[place], drawn, evidence).items()},
                share_unscored=interval(float(value), resampled, point[0], evidence, SHARE),
                unscored=dict(sorted(reasons.get(place, {}).items())),
            )
    return distributions


def _sums(blocks: Blocks, rewards: Rewards, group: Integers, ordered: Sequence[Floats]) -> Sums:
    """Return sums by group: responses, scored ones, centred scores, their squares, counts below quantiles; the mean."""
    is_scored = ~np.isnan(rewards.score)
    # The mean of equal numbers may differ from them by rounding.
    middle = np.array([np.clip(scores.mean(), scores[0], scores[-1]) if len(scores) else 0.0 for scores in ordered])
    marks = np.array(
        [np.quantile(scores, QUANTILES) if len(scores) else np.zeros(len(QUANTILES)) for scores in ordered]
    )
    centred = np.where(is_scored, rewards.score - middle[group], 0.0)
    below: list[Booleans] = [is_scored & (rewards.score <= mark[group]) for mark in marks.T]
    columns: list[npt.NDArray] = [np.ones(len(group)), is_scored, centred, centred**2, *below]
    sums = add_up(blocks, Terms(rewards.prompt, group, columns), len(ordered))
    # Centring avoids cancellation in the squares where the mean is large; the mean is added back when they are used.
    return Sums(*(np.concatenate([part, np.broadcast_to(middle[:, None], (*part.shape[:-1], 1))], -1) for part in sums))


def _moments(
    point: Floats, drawn: Floats, evidence: Evidence, freedom: float, unit: float
) -> tuple[Estimate, Estimate]:
    """Return mean and standard deviation of rewards of range ``unit``.

    ``freedom`` bounds the degrees of freedom of the latter.
    """
    mean, deviation = zip(*(_mean_and_spread(part) for part in (point, drawn)), strict=True)
    of_spread = evidence._replace(freedom=min(evidence.freedom, freedom))
    return (
        interval(float(mean[0]), mean[1], point[1], evidence, UNBOUNDED._replace(unit=unit)),
        interval(float(deviation[0]), deviation[1], point[1], of_spread, _SPREAD._replace(unit=unit)),
    )


def _freedom_of_spread(rewards: Rewards, chosen: Booleans, unit: float) -> float:
    """Return the degrees of freedom of the variance of a standard deviation: 2 n / (kurtosis - 1).

    The kurtosis is of the prompts' sums of squares around the mean: if a few prompts contribute most of them, only
    these determine the variance. The rewards have the range ``unit``.
    """
    score, prompt = rewards.score[chosen], rewards.prompt[chosen]
    if not unit:
        return float(len(np.unique(prompt)))
    # Powers of two change no digit, and keep the fourth powers of small differences above 0.
    deviations = np.ldexp(score - score.mean(), -int(np.frexp(unit)[1])) ** 2
    squares = np.bincount(prompt, deviations - deviations.mean())[np.unique(prompt)]
    variance = squares.var()
    if variance == 0:
        return float(len(squares))
    kurtosis = float(((squares - squares.mean()) ** 4).mean() / variance**2)
    return max(1.0, 2 * len(squares) / (kurtosis - 1)) if kurtosis > 1 else float(len(squares))


def _mean_and_spread(sums: Floats) -> tuple[Floats, Floats]:
    """Return the mean, and the standard deviation with n - 1."""
    scored, middle = sums[..., 1], sums[..., -1]
    shift = ratio(sums[..., 2], scored)
    squares = sums[..., 3] - scored * shift**2
    # Rounding can leave a sum of squares slightly below 0.
    return middle + shift, np.sqrt(np.maximum(ratio(squares, scored - 1), 0.0))


def _quantiles(ordered: Floats, drawn: Floats, evidence: Evidence) -> dict[str, Estimate]:
    below = ratio(drawn[:, _NUM_MOMENTS:-1], drawn[:, 1, None])
    return {
        f"{quantile:g}": quantile_interval(ordered, quantile, below[:, place], evidence)
        for place, quantile in enumerate(QUANTILES)
    }


def reward_panel(summary: RewardDistributions) -> Panel:
    """Return the tables of the rewards of all prompts, and by language and category if there are several."""
    groups = {
        "": {} if summary.overall is None else {word("everything"): summary.overall},
    }
    for by, parts in {"language": summary.by_language, "category": summary.by_category}.items():
        groups[by] = {group_word(by, name): part for name, part in parts.items()} if len(parts) > 1 else {}
    tables = tuple(Grouped(by, reward_table(group)) for by, group in groups.items() if group)
    return Panel(word("reward_statistics"), None, tables)


def reward_table(groups: Mapping[str, RewardDistribution]) -> Table:
    """Return mean, standard deviation and quantiles of the rewards by group, and the share without a score."""
    rows = [
        (
            name,
            count(group.mean.n),
            *DECIMAL.cells(group.mean),
            decimal(group.standard_deviation.value),
            *(decimal(quantile.value) for quantile in group.quantiles.values()),
            percent(group.share_unscored.value),
        )
        for name, group in groups.items()
    ]
    columns = ("group", "responses", "mean", "interval", "deviation", *_QUANTILE_WORDS, "without_score")
    return table(columns, rows)


MEASURE = Measure(
    order=70,
    summary=RewardDistributions,
    estimate=estimate,
    text=TEXT,
    needs=Needs(rewards=True, complete=False),
    panels=lambda summary: (reward_panel(summary),),
)
