"""Early abort of requests that cannot succeed: the first ones all fail, or replies are cut off.

The errors say what to change, for requests that are sent and for those in batch files alike.
"""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from steelyard.core.comparison import MODEL_LIMIT, SERVER_LIMIT, TOO_LONG, Question, Reply
from steelyard.core.errors import FailuresError, ModelError
from steelyard.core.remedies import NUMBER, Advice, Remedy
from steelyard.core.text import number_of
from steelyard.io.ledger import Ledger

FEWEST_REPLIES = 20
"""Replies required before failures, or the share that was cut off, can end the run."""
_LONGEST_MESSAGE = 200
_LONGER_CONTEXT = "start the server with a longer context for each request"
MORE_TOKENS = Advice(
    *("say ", Remedy("judge.max_tokens", NUMBER), " with more, or ", Remedy("judge.form", "letter")),
    " where it gives reasons",
)
_REFUSED = re.compile(r"http_4(?:00|13|15|22)\b")
"""Refusals of the request itself: a server gives them as often as the request is sent."""
_EMPTY = "empty"
_PARAMETERS = {
    "max_tokens": "set chat.token_limit to max_completion_tokens",
    "max_completion_tokens": "set chat.token_limit to max_tokens",
    "temperature": "set temperature to a value that the server takes, such as 1",
    "top_p": "leave top_p out, or set it to a value that the server takes",
    "logprobs": "set the judge's form to another one than first_token",
    "seed": "set send_seed of the model to false, or set another seed",
}
"""The setting behind each parameter of a request."""


class RequestCounts(NamedTuple):
    """Requests to one chat. ``num_questions`` counts equal questions once; ``num_kept`` had a reply before."""

    num_questions: int = 0
    num_kept: int = 0
    num_failed: int = 0


def refuse_failed(counts: Mapping[str, RequestCounts], ledger: Ledger, *, without: str) -> None:
    """Raise FailuresError if requests failed. ``without``: what they would be left without, for the remedy."""
    num_failed = sum(count.num_failed for count in counts.values())
    if not num_failed:
        return
    num_questions = sum(count.num_questions for count in counts.values())
    failures = ledger.failures()
    example = ledger.example_failure()
    reasons = ", ".join(f"{reason} {number}" for reason, number in failures.items())
    again, shown = "run the same again", ""
    if {*failures} == {TOO_LONG}:
        is_local = MODEL_LIMIT in example
        again = "leave out the longest prompts, or use a model with a longer context" if is_local else _LONGER_CONTEXT
        shown = f"; such as {example.partition(': ')[2]}" if is_local else ""
    elif all(map(is_lasting, failures)):
        again, shown = change_of_request(example), f"; the server says: {_message(example)}"
    raise FailuresError(
        f"{num_failed} of {number_of(num_questions, 'request')} failed ({reasons}); what was answered is kept{shown}",
        do=Advice(again, ", or say ", Remedy("allow_failed", value=True), f" to leave them without {without}"),
    )


def is_lasting(failure: str) -> bool:
    """Return whether a request fails so as often as it is sent: over the context, refused, or without any text."""
    return failure.partition(":")[0] in (TOO_LONG, _EMPTY) or _REFUSED.match(failure) is not None


def change_of_request(failure: str) -> str:
    """Return what to change after a failed request, by what the server said of it."""
    if failure.partition(":")[0] == _EMPTY:
        return "choose another model or program: this one writes nothing"
    if _REFUSED.match(failure) is None:
        return "check the chat's settings, and run the same again"
    message = failure.partition(":")[2]
    matches = {name: re.search(rf"\b(?:top_)?{name}\b", message) for name in _PARAMETERS}
    places = {name: match.start() for name, match in matches.items() if match is not None}
    if not places:
        return "change the settings of the chat or of the texts that the server refuses (chat.extra is sent unchanged)"
    return f"{_PARAMETERS[min(places, key=places.__getitem__)]}, or change it in chat.extra if it is set there"


class FirstFailures(NamedTuple):
    """Number of first requests to a chat that may fail, where none is answered, before the run ends; null for any.

    ``remedy`` finishes the run nevertheless. ``has_answers``: the chat answered earlier requests with these settings,
    so that refusals are about texts, and do not count. ``num_allowed`` items may fail in any case; ``items`` maps
    a request to its items, where an item has several requests.
    """

    limit: int | None = FEWEST_REPLIES - 1
    remedy: Remedy | None = None
    has_answers: bool = False
    num_allowed: int = 0
    items: Mapping[str, Collection[str]] = MappingProxyType({})

    @classmethod
    def of(cls, *, allow_failed: bool | None) -> "FirstFailures":
        """Return the rule of a verb that allows all failures or none; null where it has no such option."""
        if allow_failed:
            return cls(None)
        return cls() if allow_failed is None else cls(remedy=Remedy("allow_failed", value=True))

    def counts(self, reply: Reply) -> bool:
        """Tell whether a failed reply may say that no request can succeed."""
        return not (self.has_answers and _REFUSED.match(reply.detail or ""))

    def items_of(self, request: str) -> Collection[str]:
        """Return the items that a request belongs to."""
        return self.items.get(request, (request,))

    def is_futile(self, number: int, num_items: int) -> bool:
        """Tell whether the failed first requests, and the number of their items, end the run."""
        return self.limit is not None and number > self.limit and num_items > self.num_allowed

    def fault(self, number: int, num_items: int, failure: str, *, model: str) -> FailuresError | None:
        """Return the error of a run whose first requests all failed, ``number`` of them; null while these may fail."""
        if not self.is_futile(number, num_items):
            return None
        change = change_of_request(failure)
        do = change if self.remedy is None else Advice(change, ", or say ", self.remedy, " to go on without these")
        return FailuresError(f"the first {number} requests all failed ({_message(failure)})", where=model, do=do)


def _message(failure: str) -> str:
    """Return the reason of a failure with the message that is in the JSON of the server's answer."""
    reason, _, body = failure.partition(": ")
    message = re.search(r'"message": "((?:[^"\\]|\\.)*)', body)
    return f"{reason}: {message[1] if message else body}"[:_LONGEST_MESSAGE]


class CutReplies(NamedTuple):
    """Numbers of replies that were cut off, and of those at the limit of the server itself."""

    num_answered: int = 0
    num_cut: int = 0
    num_full: int = 0

    def plus(self, reply: Reply, question: Question) -> "CutReplies":
        """Return the counts with those of another reply, which is not a failed one."""
        # A question about the first token alone ends there by design.
        is_cut = reply.failure == "cut off" and not question.alternatives
        is_full = is_cut and (reply.detail or "").endswith(SERVER_LIMIT)
        return CutReplies(self.num_answered + 1, self.num_cut + is_cut, self.num_full + is_full)

    def fault(self, max_truncated: float, *, model: str, remedy: str) -> ModelError | None:
        """Return the error with the remedy where a larger share than ``max_truncated`` was cut off; else null."""
        if self.num_answered < FEWEST_REPLIES or self.num_cut <= max_truncated * self.num_answered:
            return None
        do = _LONGER_CONTEXT if 2 * self.num_full > self.num_cut else remedy
        problem = f"{self.num_cut} of {self.num_answered} replies were cut off before their end"
        return ModelError(problem, where=model, do=do)
