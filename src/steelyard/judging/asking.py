"""Ask judges through a ledger: every question once, replies stored as they arrive, futile runs ended early."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from typing import NamedTuple

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.comparison import (
    VERDICTS,
    Answer,
    Comparison,
    Outcome,
    Question,
    Reply,
    Request,
)
from steelyard.core.errors import ModelError
from steelyard.core.protocols import Chat
from steelyard.core.types import Meta, Record
from steelyard.io.ledger import Ledger
from steelyard.io.progress import Bar, bar
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.planning import JudgeTask
from steelyard.judging.verdicts import VerdictSummary, panel_answer

_FEWEST_REPLIES = 20
"""Replies required before failures, or the share that was cut off, can end the run."""
_MILLION = 1_000_000
UNREADABLE_FILE = "unreadable.jsonl"


class RequestCounts(NamedTuple):
    """Requests to one judge. ``num_questions`` counts equal questions once; ``num_kept`` had a reply before."""

    num_questions: int = 0
    num_kept: int = 0
    num_failed: int = 0


def ask_panel(
    panel: JudgePanel,
    comparisons: Callable[[], Iterable[Comparison]],
    ledger: Ledger,
    *,
    max_truncated: float = 0.2,
    quietly: bool = False,
) -> dict[str, RequestCounts]:
    """Ask every judge of the panel about every comparison, and store the replies. Returns counts by judge.

    ``max_truncated`` is the share of replies that may be cut off.

    Raises ModelError where a chat cannot be asked, where the first 20 requests all fail, and where too large a share of
    the replies is cut off; what was answered until then is kept.
    """
    counts: dict[str, RequestCounts] = {}
    for member in panel.members:
        total = None if quietly else sum(member.judge.num_questions(comparison) for comparison in comparisons())
        with nullcontext() if quietly else bar(f"asking {member.name}", total) as shown:
            counts[member.name] = _ask(
                member, comparisons(), _ReplyStore(ledger, member, shown, max_truncated=max_truncated)
            )
    return counts


def answers_of(panel: JudgePanel, comparison: Comparison, ledger: Ledger) -> dict[str, Answer]:
    """Return every judge's answer from the replies in the ledger, and last the panel's answer, by name."""
    answers = {member.name: _answer(member, comparison, ledger) for member in panel.members}
    return answers | {panel.name: panel_answer(answers)}


def requests_of(member: PanelJudge, comparison: Comparison) -> tuple[Request, ...]:
    """Return the judge's questions about a comparison with their ids."""
    return tuple(as_request(question, member.chat) for question in member.judge.questions(comparison))


def as_request(question: Question, chat: Chat) -> Request:
    """Return the question with its id: the hash of the question and of the chat's protocol.

    A setting that changes replies changes the protocol, and so the id: the question is then asked anew.
    """
    content = {"question": msgspec.to_builtins(question), "chat": chat.protocol()}
    return Request(id=content_id(content), question=question)


def _answer(member: PanelJudge, comparison: Comparison, ledger: Ledger) -> Answer:
    replies = [ledger.reply(request.id) for request in requests_of(member, comparison)]
    return member.judge.read(comparison, replies)


class _ReplyStore:
    """Stores and counts the replies of one judge."""

    def __init__(self, ledger: Ledger, member: PanelJudge, shown: Bar | None, *, max_truncated: float) -> None:
        self.ledger, self.member, self.shown, self.max_truncated = ledger, member, shown, max_truncated
        self.num_kept = self.num_answered = self.num_failed = self.num_cut = 0
        self.num_prompt_tokens = self.num_reply_tokens = 0
        self.first_failure = ""

    def keep(self, request: str) -> None:
        """Count a reply that the ledger has already."""
        self.num_kept += 1
        self._count_tokens(self.ledger.reply(request))

    def _count_tokens(self, reply: Reply) -> None:
        self.num_prompt_tokens += reply.prompt_tokens or 0
        self.num_reply_tokens += reply.reply_tokens or 0

    def advance(self) -> None:
        """Advance the progress bar by one question."""
        if self.shown is None:
            return
        figures: dict[str, float] = {
            "replies": self.num_kept + self.num_answered,
            "failed": self.num_failed,
            "prompt_tokens": self.num_prompt_tokens,
            "reply_tokens": self.num_reply_tokens,
        }
        price = self.member.price
        if price is not None:
            figures["cost"] = _cost(self.num_prompt_tokens, self.num_reply_tokens, price)
        self.shown.advance(note=f"{self.num_failed} failed" if self.num_failed else "", figures=figures)

    def add(self, reply: Reply, question: Question) -> None:
        """Store the reply. Raises ModelError where further requests would be futile."""
        self.ledger.add(reply)
        self.num_failed += reply.failure == "failed"
        self.num_answered += reply.failure != "failed"
        self._count_tokens(reply)
        # A question about the first token alone ends there by design.
        self.num_cut += reply.failure == "cut off" and not question.alternatives
        self.first_failure = self.first_failure or (reply.detail or "" if reply.failure == "failed" else "")
        self.advance()
        self._check()

    def _check(self) -> None:
        if not self.num_answered and self.num_failed >= _FEWEST_REPLIES:
            problem = f"the first {self.num_failed} requests all failed ({self.first_failure[:200]})"
            raise ModelError(problem, where=self.member.name, do="check the chat's settings, and run the same again")
        if self.num_answered >= _FEWEST_REPLIES and self.num_cut > self.max_truncated * self.num_answered:
            problem = f"{self.num_cut} of {self.num_answered} replies were cut off before their verdict"
            do = "say --set judge.max_tokens=N with more, or --set judge.form=letter, a form without reasons"
            raise ModelError(problem, where=self.member.name, do=do)


def _ask(member: PanelJudge, comparisons: Iterable[Comparison], store: _ReplyStore) -> RequestCounts:
    """Ask one judge every question without a reply, and store the replies in the order of their arrival."""
    pending: dict[str, Question] = {}
    seen: set[str] = set()
    for reply in member.chat.ask(_unanswered(member, comparisons, store, seen=seen, pending=pending)):
        store.add(reply, pending.pop(reply.request))
    return RequestCounts(len(seen), store.num_kept, store.num_failed)


def _unanswered(
    member: PanelJudge,
    comparisons: Iterable[Comparison],
    store: _ReplyStore,
    *,
    seen: set[str],
    pending: dict[str, Question],
) -> Iterator[Request]:
    """Yield the requests that have no reply yet, each once; ``pending`` holds those without a reply so far."""
    for comparison in comparisons:
        for request in requests_of(member, comparison):
            is_new = request.id not in seen
            seen.add(request.id)
            if is_new and not store.ledger.has(request.id):
                pending[request.id] = request.question
                yield request
            else:
                if is_new:
                    store.keep(request.id)
                store.advance()


class TokenUse(Record, frozen=True, kw_only=True):
    """The tokens of one judge's replies as the server counts them, each reply once, also those of earlier runs.

    ``uncounted`` replies have no counts; ``cost`` is null without a price, which is for a million tokens. ``odd_usage``
    counts replies with impossible numbers, ``other_models`` those that came under another model's name.
    """

    num_replies: int
    prompt: int
    reply: int
    uncounted: int
    cost: float | None
    odd_usage: int
    other_models: dict[str, int]


class JudgingSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``judge``; ``judges`` and ``tokens`` by name, ``failed`` requests by reason."""

    judge: str
    task: JudgeTask
    judges: dict[str, VerdictSummary]
    tokens: dict[str, TokenUse]
    failed: dict[str, int]
    protocol: Meta


class UnreadableReply(Record, frozen=True, kw_only=True):
    """A reply without a verdict or number: a line of ``unreadable.jsonl``. ``shown``: the responses in their order.

    ``text`` is null unless the model wrote something; ``outcome`` and ``detail`` are the reason.
    """

    prompt: str
    language: str | None
    judge: str
    shown: tuple[str, ...]
    outcome: Outcome
    detail: str | None
    text: str | None


def unreadable_replies(
    panel: JudgePanel, comparison: Comparison, answers: Mapping[str, Answer], ledger: Ledger
) -> Iterator[UnreadableReply]:
    """Yield the replies of each judge to a comparison that have no verdict or number."""
    for member in panel.members:
        if _is_complete(answers[member.name]):
            continue
        requests = requests_of(member, comparison)
        for place, request in enumerate(requests):
            reply = ledger.reply(request.id)
            # The answer from this reply alone, whatever the other orders of presentation gave.
            reading = _missing(member.judge.read(comparison, [reply] * len(requests)), place)
            if reading is not None:
                shown, outcome, detail = reading
                prompt = comparison.prompt
                yield UnreadableReply(
                    prompt=prompt.id,
                    language=prompt.language,
                    judge=member.name,
                    shown=shown,
                    outcome=outcome,
                    detail=detail,
                    text=reply.text,
                )


def _is_complete(answer: Answer) -> bool:
    """Return whether every reply of an answer has a verdict or a number."""
    showings = (showing for verdict in answer.verdicts for showing in verdict.showings)
    return all(showing.outcome in VERDICTS for showing in showings) and not any(
        rating.outcome for rating in answer.ratings
    )


def _missing(answer: Answer, place: int) -> tuple[tuple[str, ...], Outcome, str | None] | None:
    """Return the responses that the reply at ``place`` was shown and why it has no verdict; null if it has one."""
    for verdict in answer.verdicts:
        for showing in verdict.showings[place : place + 1]:
            if showing.outcome not in VERDICTS:
                return showing.shown, showing.outcome, showing.detail
    for rating in answer.ratings[place : place + 1]:
        if rating.outcome is not None:
            return (rating.response,), rating.outcome, rating.detail
    return None


def tokens_used(
    panel: JudgePanel, comparisons: Callable[[], Iterable[Comparison]], ledger: Ledger
) -> dict[str, TokenUse]:
    """Return the tokens that each judge used, by the judges' names."""
    return {member.name: _token_use(member, comparisons(), ledger) for member in panel.members}


def _token_use(member: PanelJudge, comparisons: Iterable[Comparison], ledger: Ledger) -> TokenUse:
    # A set: comparisons that share a question share its reply, which is paid for once.
    ids = {request.id for comparison in comparisons for request in requests_of(member, comparison)}
    replies = [ledger.reply(id_) for id_ in ids if ledger.has(id_)]
    prompt = sum(reply.prompt_tokens or 0 for reply in replies)
    written = sum(reply.reply_tokens or 0 for reply in replies)
    price = member.price
    names = {member.name, member.chat.protocol()["model"], None}
    return TokenUse(
        num_replies=len(replies),
        prompt=prompt,
        reply=written,
        uncounted=sum(reply.prompt_tokens is None or reply.reply_tokens is None for reply in replies),
        cost=None if price is None else _cost(prompt, written, price),
        odd_usage=sum(reply.odd_usage is not None for reply in replies),
        other_models=dict(sorted(Counter(str(reply.model) for reply in replies if reply.model not in names).items())),
    )


def _cost(num_prompt_tokens: int, num_reply_tokens: int, price: tuple[float, float]) -> float:
    return (num_prompt_tokens * price[0] + num_reply_tokens * price[1]) / _MILLION
