"""Scored responses in tiers, of many prompts at once: rank correlation, and what the first choice is worth.

Prompts with equally many responses are worked on together, as rows of one table.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Booleans, Floats, Integers

_CELLS_AT_A_TIME = 4_000_000


class Ranked(NamedTuple):
    """Responses that have a tier (0 is the best) and a score, in the order of their prompts; shape (response,)."""

    prompt: Integers
    tier: Integers
    score: Floats


class Block(NamedTuple):
    """Prompts of equally many responses, shape (prompt,), and the positions of these, shape (prompt, response)."""

    prompts: Integers
    rows: Integers


class Correlations(NamedTuple):
    """Of each prompt: Kendall's tau-b, NaN where it is not defined, and whether all its scores are equal.

    ``has_order``: at least two tiers. All have shape (prompt,).
    """

    tau: Floats
    is_constant: Booleans
    has_order: Booleans


class FirstChoice(NamedTuple):
    """Whether the highest score is in the first tier, of each prompt with two tiers or more, else NaN; (prompt,).

    Where several responses share the highest score: ``right`` asks that one of them is in the first tier, ``wrong``
    that all are, and ``half`` takes the share of them that is (a choice at random). ``chance``: any response at random.
    """

    wrong: Floats
    half: Floats
    right: Floats
    chance: Floats


def blocks_by_size(prompt: Integers, num_prompts: int) -> Iterator[Block]:
    """The prompts with two responses or more, those of one size together; ``prompt`` is sorted."""
    counts = np.bincount(prompt, minlength=num_prompts)
    start = np.cumsum(counts) - counts
    for size in np.unique(counts[counts > 1]).tolist():
        prompts = np.flatnonzero(counts == size)
        step = max(1, _CELLS_AT_A_TIME // size**2)
        for first in range(0, len(prompts), step):
            own = prompts[first : first + step]
            yield Block(own, start[own][:, None] + np.arange(size))


def kendall(ranked: Ranked, num_prompts: int) -> Correlations:
    """Kendall's tau-b of each prompt's scores with its tiers, better tiers counting as higher (Kendall, 1945).

    tau_b = (concordant - discordant) / sqrt(pairs with different scores x pairs in different tiers).
    """
    tau = np.full(num_prompts, np.nan)
    is_constant, has_order = np.zeros(num_prompts, np.bool_), np.zeros(num_prompts, np.bool_)
    for prompts, rows in blocks_by_size(ranked.prompt, num_prompts):
        one, other = np.triu_indices(rows.shape[1], 1)
        score, tier = ranked.score[rows], ranked.tier[rows]
        by_score = np.sign(score[:, one] - score[:, other])
        by_tier = np.sign(tier[:, other] - tier[:, one])
        agreed = (by_score * by_tier).sum(axis=1)
        told, ordered = (by_score != 0).sum(axis=1), (by_tier != 0).sum(axis=1)
        both = (told * ordered).astype(np.float64)
        tau[prompts] = np.where(both > 0, agreed, np.nan) / np.sqrt(np.where(both > 0, both, 1.0))
        is_constant[prompts], has_order[prompts] = told == 0, ordered > 0
    return Correlations(tau, is_constant, has_order)


def first_choice(ranked: Ranked, num_prompts: int) -> FirstChoice:
    """What the response with the highest score is, of each prompt."""
    found = np.full((4, num_prompts), np.nan)
    for prompts, rows in blocks_by_size(ranked.prompt, num_prompts):
        score, tier = ranked.score[rows], ranked.tier[rows]
        is_best = score == score.max(axis=1, keepdims=True)
        is_first = tier == tier.min(axis=1, keepdims=True)
        has_order = ~is_first.all(axis=1)
        hits = (is_best & is_first).sum(axis=1)
        each = (hits == is_best.sum(axis=1), hits / is_best.sum(axis=1), hits > 0, is_first.mean(axis=1))
        found[:, prompts] = np.where(has_order, np.stack(each), np.nan)
    return FirstChoice(*found)
