"""How a model's rewards are distributed: by tier of the ranking, and the margin between the two ends of a pair."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.methods.reporting.contents import Item
from steelyard.methods.reporting.tables import Table, count, decimal, percent, table, word

_QUANTILES = (5, 25, 50, 75, 95)
QUANTILE_WORDS = ("quantile_5", "quantile_25", "median", "quantile_75", "quantile_95")

Floats = npt.NDArray[np.float64]


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


def rewards_of(items: Iterable[Item]) -> Rewards:
    """The scored, ranked responses of all prompts, and the margins of their pairs across tiers."""
    scores, centred, tiers, last, margins = [], [], [], [], []
    for item in items:
        ranked = [[item.scores.get(name) for name in tier] for tier in item.ranking or ()]
        scored = [[score for score in tier if score is not None] for tier in ranked]
        flat = [score for tier in scored for score in tier]
        if not flat:
            continue
        middle = sum(flat) / len(flat)
        for number, tier in enumerate(scored, 1):
            scores += tier
            centred += [score - middle for score in tier]
            tiers += [number] * len(tier)
            last += [len(scored)] * len(tier)
            margins += [better - worse for better in tier for lower in scored[number:] for worse in lower]
    numbers = (np.array(scores, float), np.array(centred, float), np.array(tiers, np.int64), np.array(last, np.int64))
    return Rewards(*numbers, np.array(margins, float))


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
