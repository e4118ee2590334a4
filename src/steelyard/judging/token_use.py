"""Tokens of replies and their cost, each reply once, with cached tokens at their own price."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from math import inf
from typing import Annotated, NamedTuple

import msgspec

from steelyard.core.comparison import Reply
from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.core.remedies import Remedy
from steelyard.core.text import money_text
from steelyard.core.types import Record

_MILLION = 1_000_000
_MOST_MONEY = 1e9
Amount = Annotated[float, msgspec.Meta(ge=0, le=_MOST_MONEY)]
"""The price of a million tokens: large enough for any currency, and finite."""


class Price(Config, frozen=True):
    """Prices of a million tokens, in any currency."""

    input: Amount
    """Prompt tokens that come from no cache."""
    output: Amount
    """Tokens of replies."""
    cached_input: Amount | None = None
    """Prompt tokens read from the server's cache. Default: the price of other prompt tokens."""
    cache_write: Amount | None = None
    """Prompt tokens written to the server's cache. Default: the price of other prompt tokens."""
    batch: Amount | None = None
    """The share of these prices that requests in a batch file cost, such as 0.5. Default: all of them."""


AnyPrice = Price | tuple[Amount, Amount]
"""Prices by name, or those of prompts and of replies alone."""


def full_price(price: AnyPrice) -> Price:
    """Return prices by name."""
    return price if isinstance(price, Price) else Price(input=price[0], output=price[1])


class Ceilings(NamedTuple):
    """Limits beyond which a run sends nothing more; null for none.

    ``cost`` limits what all replies of the run cost, those of earlier calls among them; ``failed`` requests and
    ``hours`` are those of one call.
    """

    cost: float | None = None
    failed: int | None = None
    hours: float | None = None

    def check(self, unpriced: str | None = None) -> None:
        """Raise ConfigError for a ceiling below zero or not finite, and for one of cost where a model has no price.

        ``unpriced`` is the remedy for a model without a price, null where all have one.
        """
        if self.cost is not None and unpriced is not None:
            raise ConfigError("max_cost needs a price for every model", where="max_cost", do=unpriced)
        for name, limit in (("max_cost", self.cost), ("max_hours", self.hours)):
            if limit is not None and not 0 <= limit < inf:
                raise ConfigError(f"{name} is {limit:g}", where=name, allowed="a number of 0 or more")
        if self.failed is not None and self.failed < 0:
            raise ConfigError(f"max_failed is {self.failed}", where="max_failed", allowed="a whole number of 0 or more")


class TokenCounts(NamedTuple):
    """Tokens of one or more replies. ``prompt`` includes ``cached`` (read from a cache) and ``cache_written``."""

    prompt: int = 0
    reply: int = 0
    cached: int = 0
    cache_written: int = 0

    def plus(self, reply: Reply) -> "TokenCounts":
        """Return the counts with those of another reply; a count that the server did not give is 0."""
        return TokenCounts(
            self.prompt + (reply.prompt_tokens or 0),
            self.reply + (reply.reply_tokens or 0),
            self.cached + (reply.cached_tokens or 0),
            self.cache_written + (reply.cache_write_tokens or 0),
        )

    def cost(self, price: AnyPrice, *, is_batch: bool = False) -> float:
        """Return what the tokens cost in the currency of the price; ``is_batch``: by requests in a batch file."""
        prices = full_price(price)
        cached_input = prices.input if prices.cached_input is None else prices.cached_input
        cache_write = prices.input if prices.cache_write is None else prices.cache_write
        uncached = self.prompt - self.cached - self.cache_written
        total = uncached * prices.input + self.cached * cached_input
        share = prices.batch if is_batch and prices.batch is not None else 1.0
        return share * (total + self.cache_written * cache_write + self.reply * prices.output) / _MILLION


class Spending(NamedTuple):
    """Tokens of replies, and those among them that came from batch files, which have a price of their own."""

    tokens: TokenCounts = TokenCounts()
    in_batches: TokenCounts = TokenCounts()

    def plus(self, reply: Reply) -> "Spending":
        """Return the tokens with those of another reply."""
        in_batches = self.in_batches if reply.batch is None else self.in_batches.plus(reply)
        return Spending(self.tokens.plus(reply), in_batches)

    def cost(self, price: AnyPrice) -> float:
        """Return what the tokens cost in the currency of the price."""
        if self.in_batches == TokenCounts():
            return self.tokens.cost(price)
        alone = TokenCounts(*(all_ - part for all_, part in zip(self.tokens, self.in_batches, strict=True)))
        return alone.cost(price) + self.in_batches.cost(price, is_batch=True)


class TokenUse(Record, frozen=True, kw_only=True):
    """The tokens of one chat's replies as the server counts them, each reply once, also those of earlier runs.

    ``prompt`` includes ``cached`` tokens, read from the server's cache, and ``cache_written`` ones. ``uncounted``
    replies have no counts; ``cost`` is null without a price, which is for a million tokens, and where no reply is
    counted. ``odd_usage`` counts
    replies with impossible numbers, ``other_models`` those that came under another model's name. ``failed_prompt`` and
    ``failed_reply``: the tokens of failed replies, which all other counts but those of replies include; they cost
    the full price, also those that came from batch files.
    ``unanswered_tries`` brought no answer, after a timeout or over a broken connection: they may be billed, and are in
    no other count.
    """

    num_replies: int
    prompt: int
    reply: int
    uncounted: int
    cost: float | None
    odd_usage: int
    other_models: dict[str, int]
    cached: int = 0
    cache_written: int = 0
    failed_prompt: int = 0
    failed_reply: int = 0
    unanswered_tries: int = 0

    def with_failed(self, tokens: TokenCounts, price: AnyPrice | None, *, unanswered_tries: int = 0) -> "TokenUse":
        """Return the use with the tokens of failed replies and their cost, and with the tries without an answer."""
        return msgspec.structs.replace(
            self,
            prompt=self.prompt + tokens.prompt,
            reply=self.reply + tokens.reply,
            cached=self.cached + tokens.cached,
            cache_written=self.cache_written + tokens.cache_written,
            cost=None if self.cost is None or price is None else self.cost + tokens.cost(price),
            failed_prompt=tokens.prompt,
            failed_reply=tokens.reply,
            unanswered_tries=unanswered_tries,
        )


class Budget:
    """The spending of one call, over all of its models; ``used``: the tokens of the replies of earlier calls.

    They are counted only where a ceiling of cost needs them.
    """

    def __init__(self, ceilings: Ceilings, used: Callable[[], Iterable[TokenUse]] = tuple) -> None:
        self.ceilings = ceilings
        self._started = time.monotonic()
        self._cost = 0.0 if ceilings.cost is None else sum(use.cost or 0.0 for use in used())
        self._failed = 0

    def close(self, cost: float, num_failed: int) -> None:
        """Add what a model has spent in the end."""
        self._cost += cost
        self._failed += num_failed

    def total_text(self, cost: float) -> str:
        """Return what all models cost in words, with the cost of the present one in this call."""
        return money_text(self._cost + cost)

    def ceiling(self, cost: float, num_failed: int) -> Remedy | None:
        """Return the ceiling that is reached as a setting with its value; null while there is room.

        ``cost`` and ``num_failed`` are those of this call with the present model.
        """
        hours = (time.monotonic() - self._started) / 3600
        spent = {"cost": self._cost + cost, "failed": self._failed + num_failed, "hours": hours}
        limits = self.ceilings._asdict().items()
        for name, limit in limits:
            # So many failures are allowed; money and time are spent when they are reached.
            if limit is not None and (spent[name] > limit or (spent[name] == limit and name != "failed")):
                return Remedy(f"max_{name}", int(limit) if float(limit).is_integer() else limit)
        return None


def sum_tokens(replies: Iterable[Reply], price: AnyPrice | None, is_expected: Callable[[str], bool]) -> TokenUse:
    """Return the tokens of replies and their cost. ``is_expected`` recognises the names of the model asked."""
    spent, others = Spending(), Counter[str]()
    num_replies = uncounted = odd = 0
    for reply in replies:
        num_replies += 1
        spent = spent.plus(reply)
        uncounted += reply.prompt_tokens is None or reply.reply_tokens is None
        odd += reply.odd_usage is not None
        if reply.model is not None and not is_expected(reply.model):
            others[reply.model] += 1
    tokens = spent.tokens
    return TokenUse(
        num_replies=num_replies,
        prompt=tokens.prompt,
        reply=tokens.reply,
        uncounted=uncounted,
        cost=None if price is None or 0 < num_replies == uncounted else spent.cost(price),
        odd_usage=odd,
        other_models=dict(sorted(others.items())),
        cached=tokens.cached,
        cache_written=tokens.cache_written,
    )
