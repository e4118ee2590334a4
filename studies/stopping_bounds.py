"""How few judgments anybody could need: bounds for the rules that `rater_replay.py` replays.

`by_hindsight` stops each item at its best moment, its answers in random order; `smallest_sets` takes the best set of
answers of each item. Both know what a rule cannot know. `without_hindsight` knows how often every pattern of votes
occurs in these very data, asks whom it likes, and decides by the votes that it has seen: no rule that sees nothing but
votes can need fewer.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from rater_pool import Pool

from steelyard.annotation.plackett_luce import Raters
from steelyard.annotation.strengths import ItemStrengths
from steelyard.core.numerics import Floats, Integers, generator

_MOST_ENUMERATED = 3


class Reached(NamedTuple):
    """A share of the answers, and the mean tau that they give."""

    share: float
    tau: float


def cheapest(policy: Callable[[float], Reached], target: float) -> float:
    """Return the least share whose mean tau reaches a target, mixing the policies for two prices of an answer."""
    low, high = 0.0, 2.0
    for _ in range(50):
        price = (low + high) / 2
        low, high = (price, high) if policy(price).tau >= target else (low, price)
    enough, too_few = policy(low), policy(high)
    if enough.tau - too_few.tau < 1e-12 or too_few.tau >= target:
        return enough.share
    part = (target - too_few.tau) / (enough.tau - too_few.tau)
    return too_few.share + part * (enough.share - too_few.share)


def by_hindsight(pool: Pool, raters: Raters, seed: int, target: float) -> float:
    """Return the share that stopping each item at its best moment needs. The order within an item is random."""
    turn = turns(pool.item, generator(seed, "oracle").random(len(pool.item)))
    most = int(turn.max()) + 1
    taus = np.empty((most + 1, pool.num_items))
    items: ItemStrengths | None = None
    for number in range(most + 1):
        items = pool.ranked(raters, turn < number, items)
        taus[number] = pool.taus(items)
    used = np.minimum(np.arange(most + 1)[:, None], pool.sizes)
    return cheapest(lambda price: _best(taus, used, price), target)


def smallest_sets(pool: Pool, raters: Raters, target: float) -> float:
    """Return the share that the best set of each item needs; items have at most three answers."""
    turn = turns(pool.item, np.arange(len(pool.item)))
    sets = _subsets(int(pool.sizes.max()))
    taus = np.stack([pool.taus(pool.ranked(raters, np.isin(turn, each))) for each in sets])
    used = np.array([[len(each)] for each in sets]) * np.ones(pool.num_items, np.int64)
    return cheapest(lambda price: _best(taus, used, price), target)


def without_hindsight(pool: Pool, raters: Raters, target: float, context: Sequence[Hashable]) -> float:
    """Return the share that the best rule needs which sees the votes so far; one task an item, at most three answers.

    ``context`` (item,): what is known of each item before anybody is asked.
    """
    answers = _votes(pool)
    places = range(int(pool.sizes.max()))
    everything = np.arange(pool.num_items)
    turn = turns(pool.item, pool.rater)
    taus = {each: pool.taus(pool.ranked(raters, np.isin(turn, each))) for each in _subsets(len(places))}

    def best(items: Integers, seen: tuple[int, ...], price: float) -> tuple[float, float]:
        """Return the sums of tau and of answers over items that look alike, of the best rule from here on."""
        chosen = float(taus[seen][items].sum()), 0.0
        for place in places:
            if place in seen or not all(place < len(answers[item]) for item in items):
                continue
            groups: dict[Hashable, list[int]] = {}
            for item in items.tolist():
                groups.setdefault(answers[item][place], []).append(item)
            parts = [best(np.array(group), tuple(sorted((*seen, place))), price) for group in groups.values()]
            further = sum(part[0] for part in parts), len(items) + sum(part[1] for part in parts)
            chosen = max(chosen, further, key=lambda each: each[0] - price * each[1])
        return chosen

    # Who may be asked about an item is known beforehand.
    known = [(context[item], tuple(rater for rater, _ in answers[item])) for item in everything.tolist()]
    groups = [np.array([item for item in everything.tolist() if known[item] == key]) for key in dict.fromkeys(known)]

    def policy(price: float) -> Reached:
        parts = [best(group, (), price) for group in groups]
        number = sum(part[1] for part in parts)
        return Reached(number / len(pool.item), sum(part[0] for part in parts) / pool.num_items)

    return cheapest(policy, target)


def can_enumerate(pool: Pool) -> bool:
    """Tell whether items are one task with few answers, whose sets can all be looked at."""
    return int(pool.sizes.max()) <= _MOST_ENUMERATED


def turns(group: Integers, luck: Floats | Integers) -> Integers:
    """Return for each answer its number among those of its group, by luck."""
    order = np.lexsort((luck, group))
    turn = np.empty(len(order), np.int64)
    turn[order] = np.arange(len(order)) - np.searchsorted(group[order], group[order])
    return turn


def _best(taus: Floats, used: Integers, price: float) -> Reached:
    """Choose for each item the row with the best tau after the price of its answers."""
    choice = np.argmax(taus - price * used, axis=0)
    columns = np.arange(taus.shape[1])
    return Reached(float(used[choice, columns].sum() / used.max(axis=0).sum()), float(taus[choice, columns].mean()))


def _subsets(number: int) -> list[tuple[int, ...]]:
    return [each for size in range(number + 1) for each in combinations(range(number), size)]


def _votes(pool: Pool) -> list[list[tuple[int, int]]]:
    """Return rater and vote of each answer of each item, by rater."""
    vote = np.zeros(len(pool.item), np.int64)
    for block in pool.choices:
        # Bits of the responses taken; of places that are listed in the order taken, those of the first choice.
        first = np.where(
            block.chosen == 2, 2, np.take_along_axis(block.places, np.zeros((len(block.item), 1), int), 1)[:, 0]
        )
        vote[block.item] = first
    votes: list[list[tuple[int, int]]] = [[] for _ in range(pool.num_items)]
    for answer in np.lexsort((pool.rater, pool.item)).tolist():
        votes[int(pool.item[answer])].append((int(pool.rater[answer]), int(vote[answer])))
    return votes
