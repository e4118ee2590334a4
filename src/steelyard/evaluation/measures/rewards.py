"""How rewards are distributed in each category and language: mean, spread, quantiles, and the share without a score.

A model that gives one language lower rewards, or spreads them less, is of no use where languages compete; and a share
without a score says whose answers a length limit cuts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from steelyard.core.arrays import Booleans, Floats, Integers, ratio
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of
from steelyard.statistics.intervals import (
    POSITIVE,
    SHARE,
    UNBOUNDED,
    Estimate,
    Evidence,
    interval,
    score_interval,
    variance_of,
)
from steelyard.statistics.prompt_means import Grouping, by_category, by_language

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_NUM_OWN = 4
_FEWEST_BEYOND = 5
"""A quantile has an interval where so many prompts are expected on either side of it."""
_SPREAD = POSITIVE._replace(fewest=60)
"""Below so many prompts the interval of a standard deviation holds the truth in fewer than 93 of 100 simulations."""


class Rewards(NamedTuple):
    """The responses of all prompts: ``prompt`` and ``score`` (NaN: none) have shape (response,).

    ``reasons`` says of each response without a score, by its position, why it has none.
    """

    prompt: Integers
    score: Floats
    reasons: Mapping[int, str]


def reward_report(blocks: Blocks, rewards: Rewards) -> dict[str, Any]:
    """``overall``, ``by_category`` and ``by_language``: the statistics of each group's rewards."""
    size = len(blocks.block)
    whole = Grouping(("overall",), np.zeros(size, np.int64))
    return {
        "overall": _statistics(blocks, rewards, whole).get("overall"),
        "by_category": _statistics(blocks, rewards, by_category(blocks)),
        "by_language": _statistics(blocks, rewards, by_language(blocks)),
    }


def _statistics(blocks: Blocks, rewards: Rewards, grouping: Grouping) -> dict[str, Any]:
    group = grouping.group[rewards.prompt]
    is_scored = ~np.isnan(rewards.score)
    ordered = [np.sort(rewards.score[is_scored & (group == place)]) for place in range(len(grouping.names))]
    sums = _sums(blocks, rewards, group, ordered)
    reasons = _reasons(rewards, group)
    found = {}
    for place, name in enumerate(grouping.names):
        point, drawn = sums.point[place], sums.resampled[:, place]
        if point[0]:
            evidence = evidence_of(blocks, np.zeros(len(blocks.block), np.int64), grouping.group == place)
            found[name] = {
                **_moments(point, drawn, evidence, _freedom_of_spread(rewards, is_scored & (group == place))),
                "quantiles": _quantiles(ordered[place], point, drawn, evidence),
                "share_unscored": _unscored(point, drawn, evidence).record(),
                "unscored": dict(sorted(reasons.get(place, {}).items())),
            }
    return found


def _sums(blocks: Blocks, rewards: Rewards, group: Integers, ordered: Sequence[Floats]) -> Sums:
    """Columns: responses, scored ones, their scores and squares around the group's mean, below quantiles; that mean."""
    is_scored = ~np.isnan(rewards.score)
    middle = np.array([own.mean() if len(own) else 0.0 for own in ordered])
    marks = np.array([np.quantile(own, QUANTILES) if len(own) else np.zeros(len(QUANTILES)) for own in ordered])
    centred = np.where(is_scored, rewards.score - middle[group], 0.0)
    below: list[Booleans] = [is_scored & (rewards.score <= mark[group]) for mark in marks.T]
    columns: list[npt.NDArray] = [np.ones(len(group)), is_scored, centred, centred**2, *below]
    sums = add_up(blocks, Terms(rewards.prompt, group, columns), len(ordered))
    # Squares around the mean keep their digits where it is large; it is put back when they are used.
    return Sums(*(np.concatenate([part, np.broadcast_to(middle[:, None], (*part.shape[:-1], 1))], -1) for part in sums))


def _moments(point: Floats, drawn: Floats, evidence: Evidence, freedom: float) -> dict[str, Any]:
    mean, spread = zip(*(_mean_and_spread(own) for own in (point, drawn)), strict=True)
    of_spread = evidence._replace(freedom=min(evidence.freedom, freedom))
    return {
        "mean": interval(float(mean[0]), mean[1], point[1], evidence, UNBOUNDED).record(),
        "standard_deviation": interval(float(spread[0]), spread[1], point[1], of_spread, _SPREAD).record(),
    }


def _freedom_of_spread(rewards: Rewards, chosen: Booleans) -> float:
    """Return the degrees of freedom of the variance of a standard deviation: 2 n / (kurtosis - 1).

    The kurtosis is that of the prompts' sums of squares around the mean: where a few prompts have most of them, that
    variance is known from these few.
    """
    score, prompt = rewards.score[chosen], rewards.prompt[chosen]
    squares = np.bincount(prompt, (score - score.mean()) ** 2 - score.var()) if len(score) else np.zeros(0)
    own = squares[np.unique(prompt)]
    variance = own.var() if len(own) else 0.0
    if variance == 0:
        return float(len(own))
    kurtosis = float(((own - own.mean()) ** 4).mean() / variance**2)
    return max(1.0, 2 * len(own) / (kurtosis - 1)) if kurtosis > 1 else float(len(own))


def _mean_and_spread(own: Floats) -> tuple[Floats, Floats]:
    """The mean, and the standard deviation with n - 1."""
    scored, middle = own[..., 1], own[..., -1]
    shift = ratio(own[..., 2], scored)
    squares = own[..., 3] - scored * shift**2
    return middle + shift, np.sqrt(np.maximum(ratio(squares, scored - 1), 0.0))


def _quantiles(ordered: Floats, point: Floats, drawn: Floats, evidence: Evidence) -> dict[str, Any]:
    """Each quantile with Woodruff's interval (1952): that of the share below it, read off the rewards."""
    found = {}
    for place, quantile in enumerate(QUANTILES):
        name = f"{quantile:g}"
        if not len(ordered):
            found[name] = Estimate(None, None, None, 0).record()
            continue
        estimate = Estimate(float(np.quantile(ordered, quantile)), None, None, len(ordered))
        needed = ceil(_FEWEST_BEYOND / min(quantile, 1 - quantile) - 1e-9)
        if evidence.units < needed:
            estimate = replace(estimate, why=f"an interval needs {needed} prompts")
        else:
            below = ratio(drawn[:, _NUM_OWN + place], drawn[:, 1])
            ends = score_interval(quantile, variance_of(below, evidence), evidence)
            low, high = np.quantile(ordered, ends).tolist()
            if low < high:
                estimate = replace(estimate, low=low, high=high, method="woodruff")
            else:
                estimate = replace(estimate, why="the rewards around it are equal")
        found[name] = estimate.record()
    return found


def _unscored(point: Floats, drawn: Floats, evidence: Evidence) -> Estimate:
    value, resampled = (1 - ratio(own[..., 1], own[..., 0]) for own in (point, drawn))
    return interval(float(value), resampled, point[0], evidence, SHARE)


def _reasons(rewards: Rewards, group: Integers) -> Mapping[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for place in np.flatnonzero(np.isnan(rewards.score)).tolist():
        found.setdefault(int(group[place]), Counter())[rewards.reasons[place]] += 1
    return found
