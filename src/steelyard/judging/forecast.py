"""What a run of requests will take before anything is sent: tokens in and out, money and hours, by model.

Prompt tokens are those of a tokenizer, or characters by script at rates that the server's own counts correct as soon
as some replies are known. Replies are as long as those known so far; before the first one nothing is known of them but
their limit, and the forecast is a range.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.comparison import Comparison, Question, Reply
from steelyard.core.numerics import Floats
from steelyard.core.scripts import SCRIPTS, script_codes
from steelyard.core.types import Message, Record
from steelyard.judging.asking import requests_of
from steelyard.judging.expected_tokens import (
    CostRange,
    Counted,
    TokenRange,
    at_least_as_wide,
    exactly,
    expected_batch_cost,
    expected_cost,
    expected_total,
)
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.planning import PlannedCase
from steelyard.judging.prefix_order import PromptRequests, requests_by_prompt
from steelyard.judging.token_use import AnyPrice, TokenCounts
from steelyard.statistics.groups import PromptUnits

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
    "template",
)
_PRIOR = (0.25, 0.7, 0.65, 0.75, 0.6, 0.36, 0.42, 0.55, 0.7, 0.7, 0.55, 1.0)
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
_LEAST_OF_TABLE, _MOST_OF_TABLE = 0.7, (1.5, *[4.0] * 8, 1.5, 1.5, 1.5)
"""Vocabularies of 50,000 to 260,000 tokens against the table, by group: small ones split most scripts into bytes."""
_MOST_OF_A_SYSTEM_PROMPT = 40.0
"""Some chat templates begin with a system prompt of their own where a conversation has none."""
_NUM_FOLDS = 5
RATES_PRECISION = 0.06
"""Totals by characters are at least this uncertain, however many counts fit: some texts are like none of these."""
_MOST_COUNTED = 2_000
"""Replies that correct the rates: more add nothing to their precision."""


CountTokens = Callable[[Sequence[Message]], float]
"""Returns the tokens of a request's messages."""


class CountedRequest(NamedTuple):
    """A request with the tokens of its prompt as the server counted them; ``prompt`` is the unit of its prompt."""

    prompt: str
    messages: Sequence[Message]
    tokens: int


class TokenRates(NamedTuple):
    """Tokens a character by group of characters. ``num_counted`` replies corrected the table by their counts."""

    rates: tuple[float, ...] = _PRIOR
    num_counted: int = 0

    def of(self, messages: Sequence[Message]) -> float:
        """Estimate the tokens of a request."""
        return float(_features(messages) @ np.array(self.rates))

    def ends(self, messages: Sequence[Message]) -> tuple[float, float]:
        """Return the least and the most tokens that a request has with most vocabularies, before any count is known."""
        tokens = _features(messages) * np.array(self.rates)
        added = 0.0 if any(message.role == "system" for message in messages) else _MOST_OF_A_SYSTEM_PROMPT
        return float(tokens.sum()) * _LEAST_OF_TABLE, float(tokens @ np.array(_MOST_OF_TABLE)) + added

    def corrected(self, counted: Iterable[tuple[Sequence[Message], int]]) -> "TokenRates":
        """Return the rates that fit the server's own counts: least squares of the relative error, held by the table.

        The table is scaled first, which the first few counts determine well; then each group moves as far as requests
        that contain it tell.
        """
        rows = [(_features(messages), number) for messages, number in counted]
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
        return TokenRates(tuple((prior * np.clip(factors, 0.2, 8.0)).tolist()), len(rows))


def _features(messages: Sequence[Message]) -> Floats:
    """Return the number of characters of each group, and last the tokens of the usual template, shape (group,)."""
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
    counts["template"] = _TOKENS_OF_A_MESSAGE * len(messages) + _TOKENS_OF_A_REQUEST
    return np.array([counts[group] for group in _GROUPS])


def held_out_counts(
    rows: Sequence[CountedRequest], count_tokens: CountTokens | None = None
) -> tuple[TokenRates, list[Counted]]:
    """Return the rates that fit all counts, and each count beside what the other counts let expect of it.

    With ``count_tokens`` there is nothing to fit: its numbers are what is expected.
    """
    rates = TokenRates().corrected((row.messages, row.tokens) for row in rows)
    if count_tokens is not None:
        return rates, [Counted(row.prompt, count_tokens(row.messages), row.tokens) for row in rows]
    folds = {prompt: place % _NUM_FOLDS for place, prompt in enumerate(sorted({row.prompt for row in rows}))}
    counted: list[Counted] = []
    for fold in sorted({*folds.values()}):
        others = TokenRates().corrected((row.messages, row.tokens) for row in rows if folds[row.prompt] != fold)
        held_out = (row for row in rows if folds[row.prompt] == fold)
        counted += [Counted(row.prompt, others.of(row.messages), row.tokens) for row in held_out]
    return rates, counted


def estimated_from(count_tokens: CountTokens | None, num_counted: int) -> str:
    """Say what an estimate of prompt tokens comes from."""
    corrected = f"{num_counted} replies" if num_counted else ""
    if count_tokens is None:
        return corrected or "characters"
    return f"tokenizer and {corrected}" if corrected else "tokenizer"


class Forecast(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one model is going to be asked, beyond what it has answered already: equal requests once.

    ``num_repeated`` requests are equal to one of the others.
    ``shared_tokens`` of the prompts begin like an earlier request: a server with a cache need not compute them.
    ``cost`` counts none of them as cached, and ``cached_saving`` is what all of them save; ``batch_cost`` is that of
    batch files. Each is null without a price. ``hours`` is null without a rate. ``prompt_from`` and ``reply_from`` say
    what the tokens are estimated from.
    """

    model: str
    num_requests: int
    num_answered: int
    prompt_tokens: TokenRange
    shared_tokens: int
    reply_tokens: TokenRange
    cost: CostRange | None
    cached_saving: float | None
    batch_cost: CostRange | None = None
    hours: float | None
    prompt_from: str
    reply_from: str
    num_repeated: int = 0


class JudgeForecast(NamedTuple):
    """What a run would ask: cases in all, those with comparisons, why the others have none, and each model's requests.

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
    count_tokens: CountTokens | None = None,
    requests_per_second: float | None = None,
    new_ids: Callable[[], Callable[[str], bool]] | None = None,
) -> JudgeForecast:
    """Forecast the requests to every judge that have no reply yet; ``new_ids`` makes an empty set (`is_new`)."""
    reasons = Counter(case.reason for case in planned())
    models = tuple(
        forecast_member(
            member,
            lambda: (comparison for case in planned() for comparison in case.comparisons),
            known,
            count_tokens=count_tokens,
            requests_per_second=requests_per_second,
            is_new=None if new_ids is None else new_ids(),
        )
        for member in panel.members
    )
    left_out = {reason: number for reason, number in sorted(reasons.items(), key=str) if reason is not None}
    return JudgeForecast(reasons.total(), reasons[None], models, left_out)


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
    rows = list(islice(_counted(prompts(), known), _MOST_COUNTED))
    rates, counted = held_out_counts(rows, count_tokens)
    is_estimated = count_tokens is None
    totals = RequestTotals(
        count_tokens or rates.of, is_new or _new_ids(), is_estimated=is_estimated, has_ends=is_estimated and not rows
    )
    for unit, prompt in _with_units(prompts()):
        totals.add_prompt(unit, prompt, known)
    number = totals.num_requests
    prompt_tokens = totals.prompt_range(counted)
    reply_tokens = expected_total(totals.known_replies, number, low=number, high=totals.most_reply)
    saving = TokenCounts(round(totals.shared)), TokenCounts(round(totals.shared), cached=round(totals.shared))
    num_known = len(totals.known_replies)
    return Forecast(
        model=name,
        num_requests=number,
        num_answered=totals.num_answered,
        prompt_tokens=prompt_tokens,
        shared_tokens=round(totals.shared),
        reply_tokens=reply_tokens,
        cost=expected_cost(prompt_tokens, reply_tokens, price),
        cached_saving=None if price is None else saving[0].cost(price) - saving[1].cost(price),
        batch_cost=expected_batch_cost(prompt_tokens, reply_tokens, price),
        hours=None if not requests_per_second else number / requests_per_second / 3600,
        prompt_from=estimated_from(count_tokens, len(rows)),
        reply_from=f"{num_known} replies" if num_known else "their limit",
        num_repeated=totals.num_repeated,
    )


def _with_units(prompts: Iterable[PromptRequests]) -> Iterator[tuple[str, PromptRequests]]:
    units = PromptUnits()
    for prompt in prompts:
        yield str(units.unit(prompt.prompt)), prompt


def _counted(prompts: Iterable[PromptRequests], known: Callable[[str], Reply | None]) -> Iterator[CountedRequest]:
    for unit, prompt in _with_units(prompts):
        for request in prompt.requests:
            reply = known(request.id)
            if reply is not None and reply.prompt_tokens is not None:
                yield CountedRequest(unit, request.question.messages, reply.prompt_tokens)


def _new_ids() -> Callable[[str], bool]:
    known: set[str] = set()

    def is_new(id_: str) -> bool:
        number = len(known)
        known.add(id_)
        return len(known) > number

    return is_new


class RequestTotals:
    """Sums over the requests of one model: those to be sent, with their tokens, and the replies known before."""

    def __init__(
        self, count_tokens: CountTokens, is_new: Callable[[str], bool], *, is_estimated: bool, has_ends: bool
    ) -> None:
        self.count_tokens, self.is_new = count_tokens, is_new
        self.is_estimated = is_estimated
        self.has_ends = has_ends
        self.num_requests = self.num_answered = self.num_repeated = self.most_reply = 0
        self.prompt = self.shared = self.least = self.most = 0.0
        self.known_replies: list[Counted] = []
        self.openings: set[str] = set()

    def add_prompt(self, unit: str, prompt: PromptRequests, known: Callable[[str], Reply | None]) -> None:
        """Add the requests about one prompt, of the ``unit``, that are equal to none before them."""
        shared = prompt.shared_shares(is_new=prompt.opening not in self.openings)
        self.openings.add(prompt.opening)
        for request, share in shared:
            if not self.is_new(request.id):
                self.num_repeated += 1
                continue
            reply = known(request.id)
            if reply is None:
                self.shared += self.add(request.question) * share
                continue
            self.num_answered += 1
            if reply.reply_tokens is not None:
                self.known_replies.append(Counted(unit, 1.0, reply.reply_tokens))

    def add(self, question: Question) -> float:
        """Add a request that is to be sent, and return the expected tokens of its prompt."""
        number = self.count_tokens(question.messages)
        self.num_requests += 1
        self.prompt += number
        self.most_reply += question.max_tokens
        if self.has_ends:
            least, most = TokenRates().ends(question.messages)
            self.least, self.most = self.least + least, self.most + most
        return number

    def prompt_range(self, counted: Iterable[Counted]) -> TokenRange:
        """Return the tokens of the prompts: from counts if there are any, else from the tokenizer or the table."""
        if self.has_ends:
            return TokenRange(expected=round(self.prompt), low=round(self.least), high=round(self.most))
        total = expected_total(counted, self.prompt, low=self.prompt / 2, high=2 * self.prompt)
        if total.expected is None:
            return exactly(self.prompt)
        return at_least_as_wide(total, RATES_PRECISION) if self.is_estimated else total
