"""How a model's rewards are distributed: by tier of the ranking, and the margin between the two ends of a pair."""

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.core.arrays import Floats
from steelyard.evaluation.items import ScoredItem
from steelyard.evaluation.tables import Table, count, decimal, percent, table, word

_QUANTILES = (5, 25, 50, 75, 95)
QUANTILE_WORDS = ("quantile_5", "quantile_25", "median", "quantile_75", "quantile_95")


class Rewards(NamedTuple):
    """Scores of ranked responses and margins of pairs, as flat arrays.

    ``tier`` counts from 1 (best) and ``last`` is the number of tiers of its prompt, both of shape (response,);
    ``margins`` has shape (pair,): the better response's score minus the worse one's.
    """

    scores: Floats
    centred: Floats
    tier: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    margins: Floats


class TierSpread(NamedTuple):
    """The rewards of one tier, with the mean of each prompt taken away: n and five quantiles."""

    tier: int
    n: int
    quantiles: tuple[float, ...]


def rewards_of(items: Iterable[ScoredItem]) -> Rewards:
    """The scored, ranked responses of all prompts, and the margins of their pairs across tiers."""
    scores, tiers, sizes, depths = array("d"), array("q"), array("q"), array("q")
    for item in items:
        size = len(scores)
        for number, tier in enumerate(item.ranking or (), 1):
            scored = [score for name in tier if (score := item.scores.get(name)) is not None]
            scores.extend(scored)
            tiers.extend([number] * len(scored))
        sizes.append(len(scores) - size)
        depths.append(len(item.ranking or ()))
    score, tier, size = np.array(scores, float), np.array(tiers, np.int64), np.array(sizes, np.int64)
    prompt = np.repeat(np.arange(len(size)), size)
    middle = np.bincount(prompt, score, len(size)) / np.maximum(size, 1)
    return Rewards(score, score - middle[prompt], tier, np.array(depths, np.int64)[prompt], _margins(score, tier, size))


def _margins(score: Floats, tier: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> Floats:
    """The margin of every pair across tiers, prompts of one size together; scores stand from best to worst tier."""
    starts = np.cumsum(size) - size
    margins: list[Floats] = [np.zeros(0)]
    for number in np.unique(size[size > 1]).tolist():
        better, worse = np.triu_indices(number, 1)
        rows = starts[size == number][:, None]
        first, second = rows + better, rows + worse
        margins.append((score[first] - score[second])[tier[first] < tier[second]])
    return np.concatenate(margins)


def tier_spreads(rewards: Rewards) -> tuple[TierSpread, ...]:
    """The spread of centred rewards in each tier, best tier first.

    Only differences within a prompt have meaning under Bradley-Terry, so each prompt's mean is taken away.
    """
    return tuple(
        TierSpread(int(tier), int(chosen.size), tuple(float(value) for value in np.percentile(chosen, _QUANTILES)))
        for tier in np.unique(rewards.tier)
        if (chosen := rewards.centred[rewards.tier == tier]).size
    )


def tier_table(spreads: Sequence[TierSpread]) -> Table:
    """The quantiles of each tier."""
    columns = ("tier", "responses", *QUANTILE_WORDS)
    return table(columns, [(str(one.tier), count(one.n), *map(decimal, one.quantiles)) for one in spreads])


def margin_table(margins: Floats) -> Table:
    """How many pairs of ranked responses are ordered rightly, tied and wrongly."""
    total = max(1, margins.size)
    rows = [
        (word(key), count(int(number)), percent(number / total))
        for key, number in (
            ("right", (margins > 0).sum()),
            ("tied_pairs", (margins == 0).sum()),
            ("wrong", (margins < 0).sum()),
        )
    ]
    return table(("outcome", "pairs", "share"), rows)
