"""Forecast of a run of requests before anything is sent: tokens in and out, money and hours, by model.

Prompt tokens are those of a tokenizer, or characters by script at rates that the server's own counts scale as soon as
some replies are known. Replies are as long as those known so far, and before the first one as long as they may be.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.comparison import Reply
from steelyard.core.scripts import SCRIPTS, script_codes
from steelyard.core.types import Message, Record
from steelyard.judging.asking import requests_of
from steelyard.judging.panel import JudgePanel
from steelyard.judging.planning import PlannedCase
from steelyard.judging.prefix_order import PromptRequests, requests_by_prompt
from steelyard.judging.token_use import AnyPrice, TokenCounts, full_price

_RATES = {"accented": 0.7, "Latin": 0.25, "Han": 0.65, "Kana": 0.75, "Hangul": 0.6, "Cyrillic": 0.36, "Arabic": 0.42,
          "Indic": 0.55, "other": 0.7, "digits": 0.7, "signs": 0.55}  # fmt: skip
"""Tokens a character by group, about the middle of vocabularies of 100,000 to 260,000 tokens; spaces cost nothing."""
_LATIN, _LAST_ASCII = SCRIPTS.index("Latin"), 0x7F
_INDIC = ("Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada", "Malayalam")
_GROUP_OF_SCRIPT: Mapping[str, str] = {
    **{name: name for name in ("Latin", "Han", "Hangul", "Cyrillic", "Arabic")},
    **dict.fromkeys(("Hiragana", "Katakana"), "Kana"),
    **dict.fromkeys(_INDIC, "Indic"),
}
_TOKENS_OF_A_MESSAGE, _TOKENS_OF_A_REQUEST = 4.0, 3.0
"""Tokens that chat templates add: turn markers and the role of each message, and the beginning of the reply."""

CountTokens = Callable[[Sequence[Message]], float]
"""Returns the tokens of a request's messages."""


def estimated_tokens(messages: Sequence[Message]) -> float:
    """Estimate the tokens of a request by the characters of each script."""
    text = "".join(message.content for message in messages)
    each = script_codes(text)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    counts = Counter[str]()
    codes = np.bincount(each, minlength=len(SCRIPTS))
    for code in np.flatnonzero(codes[1:]) + 1:
        counts[_GROUP_OF_SCRIPT.get(SCRIPTS[code], "other")] += int(codes[code])
    counts["accented"] = int(np.count_nonzero((each == _LATIN) & (points > _LAST_ASCII)))
    counts["Latin"] -= counts["accented"]
    counts["digits"] = sum(sign.isdigit() for sign in text)
    counts["signs"] = int(codes[0]) - counts["digits"] - sum(sign.isspace() for sign in text)
    of_template = _TOKENS_OF_A_MESSAGE * len(messages) + _TOKENS_OF_A_REQUEST
    return of_template + sum(_RATES[group] * number for group, number in counts.items())


class TokensSoFar:
    """The tokens of the replies that are known, and what was expected of their prompts."""

    def __init__(self) -> None:
        self.num_prompts = self.num_replies = self._reply = self._prompt = 0
        self._expected = 0.0

    def add(self, expected: float, reply: Reply) -> None:
        """Add a reply to a request, with the tokens that its prompt is expected to have."""
        if reply.prompt_tokens is not None:
            self.num_prompts += 1
            self._expected += expected
            self._prompt += reply.prompt_tokens
        if reply.reply_tokens is not None:
            self.num_replies += 1
            self._reply += reply.reply_tokens

    @property
    def scale(self) -> float:
        """The tokens of prompts as the server counts them, for each expected one."""
        return self._prompt / self._expected if self._expected else 1.0

    def replies(self, number: int, *, limit: float) -> float:
        """Return the tokens of replies to come: as long as those so far, and all together at most the limit."""
        return min(number * self._reply / self.num_replies, limit) if self.num_replies else limit

    @property
    def reply_from(self) -> str:
        """The evidence for the expected length of replies."""
        return f"{self.num_replies} replies" if self.num_replies else "their limit"


class Forecast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Requests to one model, beyond those it has answered already: equal requests once.

    ``num_repeated`` requests are equal to one of the others.
    ``shared_tokens`` of the prompts begin like an earlier request: a server with a cache need not compute them.
    ``cost`` counts none of them as cached, and ``cached_saving`` is what all of them save; ``batch_cost`` is that of
    batch files. Each is null without a price. ``hours`` is null without a rate. ``prompt_from`` and ``reply_from`` say
    what the tokens are estimated from: by their limit, reply tokens and costs are the most that they can be.
    """

    model: str
    num_requests: int
    num_answered: int
    prompt_tokens: int
    shared_tokens: int
    reply_tokens: int
    cost: float | None
    cached_saving: float | None
    batch_cost: float | None = None
    hours: float | None
    prompt_from: str
    reply_from: str
    num_repeated: int = 0


class JudgeForecast(NamedTuple):
    """Requests of a run: cases in all, those with comparisons, why the others have none, and each model's requests.

    ``left_out`` has the number of cases for each reason.
    """

    num_cases: int
    num_used: int
    models: tuple[Forecast, ...]
    left_out: Mapping[str, int]
    kind: Literal["forecast"] = "forecast"


def forecast_panel(
    planned: Callable[[], Iterable[PlannedCase]],
    panel: JudgePanel,
    known: Callable[[str], Reply | None],
    *,
    count_tokens: CountTokens | None,
    requests_per_second: float | None,
    new_ids: Callable[[], Callable[[str], bool]],
) -> JudgeForecast:
    """Forecast the requests to every judge that have no reply yet; ``new_ids`` makes an empty set (`is_new`)."""
    reasons = Counter(case.reason for case in planned())
    models = tuple(
        forecast_requests(
            member.name,
            requests_by_prompt(
                (comparison for case in planned() for comparison in case.comparisons), partial(requests_of, member)
            ),
            known,
            price=member.price,
            count_tokens=count_tokens,
            requests_per_second=requests_per_second,
            is_new=new_ids(),
        )
        for member in panel.members
    )
    left_out = {reason: number for reason, number in sorted(reasons.items(), key=str) if reason is not None}
    return JudgeForecast(reasons.total(), reasons[None], models, left_out)


def forecast_requests(
    name: str,
    prompts: Iterable[PromptRequests],
    known: Callable[[str], Reply | None],
    *,
    price: AnyPrice | None = None,
    count_tokens: CountTokens | None = None,
    requests_per_second: float | None = None,
    is_new: Callable[[str], bool] | None = None,
) -> Forecast:
    """Forecast the requests to one model that have no reply yet.

    ``known`` returns the reply to a request, null without one. ``count_tokens`` counts as the model's tokenizer does;
    without it, characters are counted, at rates that the prompts of known replies scale. ``is_new`` adds an id to a set
    and returns whether it was new; by default to one in memory.
    """
    count, is_new, so_far = count_tokens or estimated_tokens, is_new or _new_ids(), TokensSoFar()
    number = num_answered = num_repeated = most_reply = 0
    prompt = shared = 0.0
    openings: set[str] = set()
    for requests in prompts:
        shares = requests.shared_shares(is_new=requests.opening not in openings)
        openings.add(requests.opening)
        for request, share in shares:
            if not is_new(request.id):
                num_repeated += 1
                continue
            tokens, reply = count(request.question.messages), known(request.id)
            if reply is not None:
                num_answered += 1
                so_far.add(tokens, reply)
                continue
            number += 1
            prompt += tokens
            shared += tokens * share
            most_reply += request.question.max_tokens
    prompt, shared = (round(tokens * so_far.scale) for tokens in (prompt, shared))
    expected = TokenCounts(prompt, round(so_far.replies(number, limit=most_reply)))
    saving = TokenCounts(shared), TokenCounts(shared, cached=shared)
    return Forecast(
        model=name,
        num_requests=number,
        num_answered=num_answered,
        prompt_tokens=expected.prompt,
        shared_tokens=shared,
        reply_tokens=expected.reply,
        cost=None if price is None else expected.cost(price),
        cached_saving=None if price is None else saving[0].cost(price) - saving[1].cost(price),
        batch_cost=batch_cost(expected, price),
        hours=None if not requests_per_second else number / requests_per_second / 3600,
        prompt_from=_estimated_from(count_tokens, so_far.num_prompts),
        reply_from=so_far.reply_from,
        num_repeated=num_repeated,
    )


def batch_cost(tokens: TokenCounts, price: AnyPrice | None) -> float | None:
    """Return what the tokens will cost in batch files; null where the price has no share for these."""
    return None if price is None or full_price(price).batch is None else tokens.cost(price, is_batch=True)


def _estimated_from(count_tokens: CountTokens | None, num_counted: int) -> str:
    corrected = f"{num_counted} replies" if num_counted else ""
    if count_tokens is None:
        return corrected or "characters"
    return f"tokenizer and {corrected}" if corrected else "tokenizer"


def _new_ids() -> Callable[[str], bool]:
    known: set[str] = set()

    def is_new(id_: str) -> bool:
        number = len(known)
        known.add(id_)
        return len(known) > number

    return is_new
