"""ExcessDisagreement that the noise of raters does not explain: items about which good raters differ.

Raters who err now and then differ on some verdicts, most where responses are about equally good. How many, the model of
the raters says: the same raters are simulated on the same tasks, with strengths drawn anew each time. An item on which
people differ much more than their simulations do is not explained by their noise: the guideline says nothing about it,
or two things, or the prompt can be read in two ways.

A verdict is that of one rater on one pair of responses: better, worse or equal. Verdicts of every two raters on a pair
that both ranked are compared.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.annotation.plackett_luce import RankingAnswer, Raters, alternatives, draw_choices, first_choices
from steelyard.core.numerics import Floats, Integers, generator

NUM_SIMULATIONS = 199
"""Simulations of an item: the smallest p-value is 1 in 200."""
_LEAST_DEVIATION = 0.5
"""The least standard deviation of the number of differing verdicts: with fewer than two it is hardly known."""


class ExcessDisagreement(NamedTuple):
    """Verdicts of two raters on one pair of an item that were compared, those that differ, and what the noise explains.

    ``excess``: how many standard deviations of the simulations more verdicts differ than expected. ``p``: the share of
    simulations, the item among them, with at least as many.
    """

    num_compared: int
    num_different: int
    expected: float
    excess: float
    p: float


def disagreement_of(answers: Sequence[RankingAnswer], raters: Raters, *, seed: int) -> ExcessDisagreement | None:
    """Return the disagreement about one item; null where no two raters ranked a pair. ``item`` of answers is not read.

    An item with ten answers takes a few milliseconds.
    """
    numbered = [RankingAnswer(place, each.rater, each.tiers) for place, each in enumerate(answers)]
    width = 1 + max((place for each in answers for tier in each.tiers for place in tier), default=0)
    pairs = [
        (first, second)
        for first, second in combinations(range(len(answers)), 2)
        if answers[first].rater != answers[second].rater
    ]
    observed = _verdicts(_levels(numbered, width)[None])
    compared = sum(int((~np.isnan(observed[0, first] + observed[0, second])).sum()) for first, second in pairs)
    if not compared:
        return None
    [number] = _different(observed, pairs).tolist()
    drawn = _different(_verdicts(_simulated(numbered, raters, width, seed)), pairs)
    expected = float(drawn.mean())
    return ExcessDisagreement(
        num_compared=compared,
        num_different=int(number),
        expected=expected,
        excess=(number - expected) / max(float(drawn.std(ddof=1)), _LEAST_DEVIATION),
        p=(1 + int((drawn >= number).sum())) / (1 + NUM_SIMULATIONS),
    )


def _levels(answers: Sequence[RankingAnswer], width: int) -> Floats:
    """Return the level of each response in each answer, (answer, response): higher is better, 0 was not ranked.

    The level is the number of responses that were left when the response was taken.
    """
    levels = np.zeros((len(answers), width))
    for place, answer in enumerate(answers):
        left = sum(map(len, answer.tiers))
        for tier in answer.tiers:
            levels[place, list(tier)] = left
            left -= len(tier)
    return levels


def _simulated(answers: Sequence[RankingAnswer], raters: Raters, width: int, seed: int) -> Floats:
    """Return the levels of the same raters' answers to the same tasks, (simulation, answer, response)."""
    rng = generator(seed, "disagreement")
    number, size = NUM_SIMULATIONS, len(answers)
    strength = rng.standard_normal((number, 1, width))
    if raters.rater_item_variance:
        # What a rater sees in the item is the same in all of the rater's answers.
        views = np.sqrt(raters.rater_item_variance) * rng.standard_normal((number, len(raters.tie), width))
        strength = strength + views[:, [answer.rater for answer in answers]]
    strength = np.broadcast_to(strength, (number, size, width)).reshape(-1, width)
    levels = np.zeros((number * size, width))
    firsts = []
    for block in first_choices(answers):
        shift = np.repeat(np.arange(number) * size, len(block.item))
        whole = block.where(np.tile(np.arange(len(block.item)), number))
        firsts.append(whole._replace(item=whole.item + shift))
        levels[firsts[-1].item[:, None], whole.places] = 1
    for block in draw_choices(firsts, strength, raters, rng):
        left = block.places.shape[1]
        is_taken = alternatives(left).share[block.chosen] > 0
        row, place = np.nonzero(is_taken)
        levels[block.item[row], block.places[row, place]] = left
    return levels.reshape(number, size, width)


def _verdicts(levels: Floats) -> Floats:
    """Return the verdict of each answer on each pair, (simulation, answer, pair): -1, 0 or 1, NaN without one."""
    first, second = np.triu_indices(levels.shape[-1], 1)
    verdict = np.sign(levels[..., first] - levels[..., second])
    return np.where((levels[..., first] > 0) & (levels[..., second] > 0), verdict, np.nan)


def _different(verdicts: Floats, pairs: Sequence[tuple[int, int]]) -> Integers:
    """Return how many verdicts of two answers differ, (simulation,)."""
    total = np.zeros(len(verdicts), np.int64)
    for first, second in pairs:
        total += (np.abs(verdicts[:, first] - verdicts[:, second]) > 0).sum(axis=1)
    return total
