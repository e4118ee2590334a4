"""What a run of requests will take before anything is sent: tokens in and out, money and hours, by model.

Prompt tokens are those of a tokenizer, or characters by script at rates that the server's own counts correct as soon
as some replies are known. Replies are as long as those known so far, or as the form of the question lets expect.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from steelyard.core.comparison import Comparison, Question, Reply
from steelyard.core.numerics import Floats
from steelyard.core.scripts import SCRIPTS, script_codes
from steelyard.core.types import Message, Record
from steelyard.judging.asking import requests_of
from steelyard.judging.panel import PanelJudge
from steelyard.judging.prefix_order import PromptRequests, requests_by_prompt
from steelyard.judging.token_use import AnyPrice, TokenCounts

_GROUPS = (
    "Latin",
    "accented",
    "Han",
    "Kana",
    "Hangul",
    "Cyrillic",
    "Arabic",
    "Indic",
    "other",
    "digits",
    "signs",
)
_PRIOR = (0.25, 0.7, 0.65, 0.75, 0.6, 0.36, 0.42, 0.55, 0.7, 0.7, 0.55)
"""Tokens a character by group, about the middle of vocabularies of 100,000 to 260,000 tokens; spaces cost nothing."""
_LATIN, _LAST_ASCII = SCRIPTS.index("Latin"), 0x7F
_INDIC = ("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam")
_GROUP_OF_SCRIPT: Mapping[str, str] = {
    **{name: name for name in ("Latin", "Han", "Hangul", "Cyrillic", "Arabic")},
    **dict.fromkeys(("Hiragana", "Katakana"), "Kana"),
    **dict.fromkeys(_INDIC, "Indic"),
}
_TOKENS_OF_A_MESSAGE, _TOKENS_OF_A_REQUEST = 4.0, 3.0
"""What chat templates add: turn markers and the role of each message, and the beginning of the reply."""
_STRENGTH_OF_PRIOR = 1.0
"""Replies whose counts weigh as much as the table does: few, since counts are exact."""
_REASONED_TOKENS, _VERDICT_TOKENS, _SHORT_REPLY = 250.0, 6.0, 64
_MOST_COUNTED = 2_000
"""Replies that correct the rates: more add nothing to their precision."""


class TokenRates(NamedTuple):
    """Tokens a character by group of characters. ``num_counted`` replies corrected the table by their counts."""

    rates: tuple[float, ...] = _PRIOR
    num_counted: int = 0

    def of(self, messages: Sequence[Message]) -> float:
        """Estimate the tokens of a request."""
        return float(_features(messages) @ np.array(self.rates)) + _template_tokens(messages)

    def corrected(self, counted: Iterable[tuple[Sequence[Message], int]]) -> "TokenRates":
        """Return the rates that fit the server's own counts: least squares of the relative error, held by the table.

        The table is scaled first, which the first few counts determine well; then each group moves as far as requests
        that contain it tell.
        """
        rows = [(_features(messages), number - _template_tokens(messages)) for messages, number in counted]
        if not rows:
            return self
        features, numbers = np.array([row for row, _ in rows]), np.array([number for _, number in rows], dtype=float)
        expected = features @ np.array(self.rates)
        scale = float(numbers.sum() / expected.sum()) if expected.sum() > 0 else 1.0
        prior = scale * np.array(self.rates)
        # Each row counts by its relative error, and a rate by its relative distance from the table.
        weighted = features * prior / np.maximum(numbers, 1.0)[:, None]
        held = np.eye(len(prior)) * np.sqrt(_STRENGTH_OF_PRIOR) * weighted.mean()
        system = np.vstack([weighted, held])
        target = np.concatenate([np.ones(len(numbers)), held.sum(axis=1)])
        factors = np.linalg.lstsq(system, target, rcond=None)[0]
        return TokenRates(tuple((prior * np.clip(factors, 0.2, 5.0)).tolist()), len(rows))


def _features(messages: Sequence[Message]) -> Floats:
    """Return the number of characters of each group, shape (group,)."""
    text = "".join(message.content for message in messages)
    each = script_codes(text)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    codes = np.bincount(each, minlength=len(SCRIPTS))
    counts: dict[str, float] = dict.fromkeys(_GROUPS, 0.0)
    for code in np.flatnonzero(codes[1:]) + 1:
        counts[_GROUP_OF_SCRIPT.get(SCRIPTS[code], "other")] += float(codes[code])
    accented = float(np.count_nonzero((each == _LATIN) & (points > _LAST_ASCII)))
    counts["Latin"] -= accented
    counts["accented"] = accented
    counts["digits"] = float(sum(sign.isdigit() for sign in text))
    counts["signs"] = float(codes[0] - counts["digits"] - sum(sign.isspace() for sign in text))
    return np.array([counts[group] for group in _GROUPS])


def _template_tokens(messages: Sequence[Message]) -> float:
    return _TOKENS_OF_A_MESSAGE * len(messages) + _TOKENS_OF_A_REQUEST


class Forecast(Record, frozen=True, kw_only=True):
    """What one model is going to be asked, beyond what it has answered already: equal requests once.

    ``num_repeated`` requests are equal to one of the others.
    ``shared_tokens`` of the prompts begin like an earlier request: a server with a cache need not compute them.
    ``cost`` counts none of them as cached, ``least_cost`` all of them; null without a price. ``hours`` is null without
    a rate. ``prompt_from`` and ``reply_from`` say what the tokens are estimated from.
    """

    model: str
    num_requests: int
    num_answered: int
    prompt_tokens: int
    shared_tokens: int
    reply_tokens: int
    cost: float | None
    least_cost: float | None
    hours: float | None
    prompt_from: str
    reply_from: str
    num_repeated: int = 0


CountTokens = Callable[[Sequence[Message]], float]
"""Returns the tokens of a request's messages."""


def forecast_member(
    member: PanelJudge,
    comparisons: Callable[[], Iterable[Comparison]],
    known: Callable[[str], Reply | None],
    *,
    count_tokens: CountTokens | None = None,
    requests_per_second: float | None = None,
    is_new: Callable[[str], bool] | None = None,
) -> Forecast:
    """Forecast the requests to one judge that have no reply yet, as `forecast_requests` does."""
    return forecast_requests(
        member.name,
        lambda: requests_by_prompt(comparisons(), partial(requests_of, member)),
        known,
        price=member.price,
        count_tokens=count_tokens,
        requests_per_second=requests_per_second,
        is_new=is_new,
    )


def forecast_requests(
    name: str,
    prompts: Callable[[], Iterable[PromptRequests]],
    known: Callable[[str], Reply | None],
    *,
    price: AnyPrice | None = None,
    count_tokens: CountTokens | None = None,
    requests_per_second: float | None = None,
    is_new: Callable[[str], bool] | None = None,
) -> Forecast:
    """Forecast the requests to one model that have no reply yet.

    ``known`` returns the reply to a request, null without one. ``count_tokens`` counts as the model's tokenizer does;
    without it, characters are counted at rates that fit the prompts of known replies. ``is_new`` adds an id to a set
    and returns whether it was new; by default to one in memory.
    """
    rates = TokenRates().corrected(islice(_counted(prompts(), known), _MOST_COUNTED))
    totals = _CaseTotals(count_tokens or rates.of, is_new or _new_ids())
    for prompt in prompts():
        totals.add_prompt(prompt, known)
    number, reply = totals.num_requests, totals.expected_reply
    if totals.num_counted:
        reply = number * totals.known_tokens / totals.num_counted
    tokens = TokenCounts(prompt=round(totals.prompt), reply=round(reply))
    corrected = f"{rates.num_counted} replies" if rates.num_counted else "characters"
    return Forecast(
        model=name,
        num_requests=number,
        num_answered=totals.num_answered,
        prompt_tokens=tokens.prompt,
        shared_tokens=round(totals.shared),
        reply_tokens=tokens.reply,
        cost=None if price is None else tokens.cost(price),
        least_cost=None if price is None else tokens._replace(cached=round(totals.shared)).cost(price),
        hours=None if not requests_per_second else number / requests_per_second / 3600,
        prompt_from=corrected if count_tokens is None else "tokenizer",
        reply_from=f"{totals.num_counted} replies" if totals.num_counted else "the form of the question",
        num_repeated=totals.num_repeated,
    )


def _counted(
    prompts: Iterable[PromptRequests], known: Callable[[str], Reply | None]
) -> Iterator[tuple[Sequence[Message], int]]:
    for prompt in prompts:
        for request in prompt.requests:
            reply = known(request.id)
            if reply is not None and reply.prompt_tokens is not None:
                yield request.question.messages, reply.prompt_tokens


def _new_ids() -> Callable[[str], bool]:
    known: set[str] = set()

    def is_new(id_: str) -> bool:
        number = len(known)
        known.add(id_)
        return len(known) > number

    return is_new


class _CaseTotals:
    """Sums over the requests of one model: those to be sent, with their tokens, and the replies known before."""

    def __init__(self, count_tokens: CountTokens, is_new: Callable[[str], bool]) -> None:
        self.count_tokens, self.is_new = count_tokens, is_new
        self.num_requests = self.num_answered = self.num_repeated = self.num_counted = self.known_tokens = 0
        self.prompt = self.shared = self.expected_reply = 0.0
        self.openings: set[str] = set()

    def add_prompt(self, prompt: PromptRequests, known: Callable[[str], Reply | None]) -> None:
        """Add the requests about one prompt that are equal to none before them."""
        shared = prompt.shared_shares(is_new=prompt.opening not in self.openings)
        self.openings.add(prompt.opening)
        for request, share in shared:
            if not self.is_new(request.id):
                self.num_repeated += 1
                continue
            reply = known(request.id)
            if reply is None:
                self._add(request.question, share)
                continue
            self.num_answered += 1
            if reply.reply_tokens is not None:
                self.num_counted += 1
                self.known_tokens += reply.reply_tokens

    def _add(self, question: Question, share: float) -> None:
        number = self.count_tokens(question.messages)
        self.num_requests += 1
        self.prompt += number
        self.shared += number * share
        # A short limit has no room for reasons.
        usual = _REASONED_TOKENS if question.max_tokens > _SHORT_REPLY else _VERDICT_TOKENS
        self.expected_reply += min(question.max_tokens, usual)
