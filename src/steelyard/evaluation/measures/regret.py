"""Best-of-N regret: what is lost by taking, of N responses, the one with the highest score and not the best.

N responses of a prompt are drawn without replacement, all choices alike, and the model takes the one with its highest
score (of several such, one at random). Regret is the loss of what it takes minus the smallest loss among the N. Both
expectations are exact: of k responses in order, the one at place i (from 0) is the last of N drawn with probability
C(i, N - 1) / C(k, N).
"""

from collections.abc import Sequence
from math import comb
from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers
from steelyard.evaluation.measures.rank_correlation import blocks_by_size

_EVERY = 8


class Regret(NamedTuple):
    """By prompt and N, shape (prompt, budget): the model's regret and that of a choice at random; NaN beyond k.

    ``largest``: the distance between the greatest loss of any response and the smallest.
    """

    model: Floats
    chance: Floats
    largest: float


def budgets_up_to(largest: int) -> tuple[int, ...]:
    """The N of the curve: each from 2 to 8, then powers of two, and the largest."""
    doubled = [2**power for power in range(4, 31)]
    return tuple(sorted({size for size in (*range(2, _EVERY + 1), *doubled, largest) if 2 <= size <= largest}))


def regret(prompt: Integers, score: Floats, loss: Floats, budgets: Sequence[int], num_prompts: int) -> Regret:
    """The regret of each prompt at each N; ``prompt`` is sorted, all three are by response, and less loss is better."""
    model, chance = (np.full((num_prompts, len(budgets)), np.nan) for _ in range(2))
    for prompts, rows in blocks_by_size(prompt, num_prompts):
        size = rows.shape[1]
        places = [place for place, budget in enumerate(budgets) if budget <= size]
        last = np.array([_last_drawn(size, budgets[place]) for place in places]).reshape(len(places), size)
        own = loss[rows]
        best = -np.sort(-own, axis=1) @ last.T
        taken = _mean_of_ties(score[rows], own) @ last.T
        model[prompts[:, None], places] = taken - best
        chance[prompts[:, None], places] = own.mean(axis=1, keepdims=True) - best
    return Regret(model, chance, float(np.ptp(loss)) if len(loss) else 0.0)


def _last_drawn(size: int, budget: int) -> list[float]:
    return [comb(place, budget - 1) / comb(size, budget) for place in range(size)]


def _mean_of_ties(score: Floats, loss: Floats) -> Floats:
    """The losses in ascending order of score, each the mean over those of equal score; shape (prompt, response)."""
    order = np.argsort(score, axis=1, kind="stable")
    ranked, own = np.take_along_axis(score, order, 1), np.take_along_axis(loss, order, 1)
    is_new = np.ones(ranked.shape, np.bool_)
    is_new[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    group = (np.cumsum(is_new.reshape(-1)) - 1).reshape(ranked.shape)
    sums = np.bincount(group.reshape(-1), own.reshape(-1))
    return (sums / np.bincount(group.reshape(-1)))[group]
