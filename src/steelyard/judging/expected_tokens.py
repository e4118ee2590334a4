"""Totals of tokens still to come, with their 95 % ranges: from replies that are known, or from bounds alone."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from steelyard.core.types import Record
from steelyard.judging.token_use import AnyPrice, TokenCounts, full_price

_CONFIDENCE = 0.95


class TokenRange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A number of tokens: the expected one, null where only bounds are known, and the ends of its range."""

    expected: int | None
    low: int
    high: int


class CostRange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A cost in the currency of the prices, from the same ends."""

    expected: float | None
    low: float
    high: float


class Counted(NamedTuple):
    """A count that is known, of one prompt: what was expected of it (1 where nothing was), and what it came to.

    Counts of one prompt resemble one another, and are one draw.
    """

    prompt: str
    weight: float
    tokens: float


def bounds(low: float, high: float) -> TokenRange:
    """Return a range without an expected number."""
    return TokenRange(expected=None, low=math.floor(low), high=math.ceil(high))


def exactly(number: float) -> TokenRange:
    """Return a number that is known before anything is sent."""
    return TokenRange(expected=round(number), low=round(number), high=round(number))


def expected_total(counted: Iterable[Counted], weight: float, *, low: float, high: float) -> TokenRange:
    """Return the total of counts to come whose weights sum to ``weight``; it lies between ``low`` and ``high``.

    A ratio estimate with prompts as clusters: the known tokens for each unit of weight, and Student's range of what
    will be drawn, which has the errors of the known mean and of the draw to come. The range of fewer than two prompts
    is that of the bounds; without any the expected number is null.
    """
    from scipy.stats import t as student_t

    totals: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for prompt, known, tokens in counted:
        totals[prompt][0] += known
        totals[prompt][1] += tokens
    sums = np.array(list(totals.values()), dtype=float).reshape(-1, 2)
    weights, tokens = sums.T
    if not weights.sum():
        return bounds(low, high)
    ratio = float(tokens.sum() / weights.sum())
    middle = min(max(ratio * weight, low), high)
    if len(sums) < 2:
        return TokenRange(expected=round(middle), low=math.floor(low), high=math.ceil(high))
    squares = float(((tokens - ratio * weights) ** 2).sum()) / (len(sums) - 1)
    of_mean = squares * len(sums) * (weight / float(weights.sum())) ** 2
    of_draw = squares * weight / float(weights.mean())
    half = float(student_t.ppf((1 + _CONFIDENCE) / 2, len(sums) - 1)) * math.sqrt(of_mean + of_draw)
    ends = max(middle - half, low), min(middle + half, high)
    return TokenRange(expected=round(middle), low=math.floor(ends[0]), high=math.ceil(ends[1]))


def at_least_as_wide(tokens: TokenRange, share: float) -> TokenRange:
    """Return a range whose ends are at least this share of the expected number away from it."""
    if tokens.expected is None:
        return tokens
    half = tokens.expected * share
    ends = min(tokens.low, math.floor(tokens.expected - half)), max(tokens.high, math.ceil(tokens.expected + half))
    return TokenRange(expected=tokens.expected, low=ends[0], high=ends[1])


def expected_cost(prompt: TokenRange, reply: TokenRange, price: AnyPrice | None) -> CostRange | None:
    """Return what the tokens will cost where nothing is cached; null without a price.

    Both ends of one range meet those of the other, so that the range of the cost is rather too wide.
    """
    return None if price is None else _cost_range(prompt, reply, partial(TokenCounts.cost, price=price))


def expected_batch_cost(prompt: TokenRange, reply: TokenRange, price: AnyPrice | None) -> CostRange | None:
    """Return what the tokens will cost in batch files; null where the price has no share for these."""
    if price is None or full_price(price).batch is None:
        return None
    return _cost_range(prompt, reply, partial(TokenCounts.cost, price=price, is_batch=True))


def _cost_range(prompt: TokenRange, reply: TokenRange, cost: Callable[[TokenCounts], float]) -> CostRange:
    is_known = prompt.expected is not None and reply.expected is not None
    return CostRange(
        expected=cost(TokenCounts(prompt.expected or 0, reply.expected or 0)) if is_known else None,
        low=cost(TokenCounts(prompt.low, reply.low)),
        high=cost(TokenCounts(prompt.high, reply.high)),
    )
