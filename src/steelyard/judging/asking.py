"""Ask language models through a ledger: every question once, replies stored as they arrive, futile runs ended early.

`ask_requests` serves all that have questions for a chat: the judges of a panel, and the models that write responses.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import NamedTuple

import msgspec

from steelyard.core.checks import content_id
from steelyard.core.comparison import Answer, Comparison, Question, Reply, Request
from steelyard.core.errors import CeilingError, ModelError
from steelyard.core.iteration import batched
from steelyard.core.numerics import derived_seed
from steelyard.core.protocols import Chat, SlotChat
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.io.ledger import Ledger
from steelyard.io.progress import Bar, bar
from steelyard.judging.early_abort import FEWEST_REPLIES, MORE_TOKENS, CutReplies, FirstFailures, RequestCounts
from steelyard.judging.panel import JudgePanel, PanelJudge
from steelyard.judging.prefix_order import (
    USUAL_DISTANCE,
    PromptRequests,
    SendingOrder,
    SlotOrder,
    in_prefix_order,
    requests_by_prompt,
)
from steelyard.judging.token_use import AnyPrice, Budget, Ceilings, Spending, TokenCounts, TokenUse, sum_tokens
from steelyard.judging.verdicts import combine_repeats, panel_answer

_FIRST_FAILURES, _NO_REPLIES = FirstFailures(), CutReplies()
_BLOCK = 1000
"""Least number of comparisons where two stand for all in the search for the first one without a reply."""


class PricedChat(NamedTuple):
    """A chat under the name that signs its replies. ``price``: of a million tokens."""

    name: str
    chat: Chat
    price: AnyPrice | None = None


def ask_panel(
    panel: JudgePanel,
    comparisons: Callable[[], Iterable[Comparison]],
    ledger: Ledger,
    *,
    max_truncated: float = 0.2,
    prefix_distance: int | None = None,
    prime: bool = False,
    ceilings: Ceilings | None = None,
    quietly: bool = False,
    allow_failed: bool | None = None,
) -> dict[str, RequestCounts]:
    """Ask every judge of the panel about every comparison, and store the replies. Returns counts by judge.

    ``max_truncated`` is the share of replies that may be cut off. Requests that begin alike are
    ``prefix_distance`` apart (`in_prefix_order`); with ``prime`` the first ones with their openings are answered before
    the others are sent. Without a distance a server of slots gets one prompt a slot (`SlotOrder`), any other server
    `USUAL_DISTANCE`.

    ``allow_failed``: a run in which all requests fail goes on; null where the caller has no such option.

    Raises ModelError where a chat cannot be asked and where too many replies are cut off, FailuresError where the first
    20 requests all fail without it, and CeilingError at one of the ``ceilings``; what was answered until then is kept.
    """
    counts: dict[str, RequestCounts] = {}
    # What earlier calls spent counts towards a ceiling of cost, whichever member it was spent on.
    budget = Budget(ceilings or Ceilings(), lambda: tokens_used(panel, comparisons, ledger).values())
    for member in panel.members:
        total = None if quietly else sum(map(member.num_requests, comparisons()))
        prompts = requests_by_prompt(_unfinished_first(member, comparisons, ledger), partial(requests_of, member))
        order = _sending_order(member.chat, prompts, prefix_distance, prime=prime)
        counts[member.name] = ask_requests(
            _priced(member),
            order.rest,
            ledger,
            first=order.first,
            num_requests=total,
            max_truncated=max_truncated,
            budget=budget,
            done=order.done,
            first_failures=FirstFailures.of(allow_failed=allow_failed),
        )
    return counts


def _sending_order(chat: Chat, prompts: Iterable[PromptRequests], distance: int | None, *, prime: bool) -> SendingOrder:
    """Return the order of the requests: one prompt a slot for a server of slots, unless a distance is set."""
    if distance is None and isinstance(chat, SlotChat) and chat.num_slots() is not None:
        slots = SlotOrder(prompts)
        return SendingOrder([], iter(slots), slots.done)
    order = in_prefix_order(prompts, distance=distance or USUAL_DISTANCE)
    return order if prime else order._replace(first=[], rest=chain(order.first, order.rest))


def ask_requests(
    model: PricedChat,
    requests: Iterable[Request],
    ledger: Ledger,
    *,
    num_requests: int | None,
    first: Sequence[Request] = (),
    max_truncated: float = 0.2,
    remedy: str = MORE_TOKENS,
    budget: Budget | None = None,
    done: Callable[[str], object] = lambda request: None,
    first_failures: FirstFailures = _FIRST_FAILURES,
    cuts: CutReplies = _NO_REPLIES,
) -> RequestCounts:
    """Ask a chat every question that has no reply in the ledger, equal ones once, and store the replies as they arrive.

    ``num_requests`` is the length of the progress bar; null shows none. ``remedy`` tells what to do where more than the
    share ``max_truncated`` of the replies is cut off. Those of ``first`` are answered before the others are sent, which
    servers then have in their caches. At a ceiling of ``budget`` no further one is sent, and those under way are
    awaited. ``done`` gets the id of each request that has a reply or is not sent. ``cuts`` are the replies of earlier
    rounds, and part of the share that is cut off. Raises as `ask_panel` does.
    """
    ledger.batches.refuse_waiting()
    with nullcontext() if num_requests is None else bar(f"asking {model.name}", num_requests) as shown:
        store = _ReplyStore(ledger, model, shown, max_truncated=max_truncated, remedy=remedy)
        store.budget = budget or Budget(Ceilings())
        store.first_failures, store.cuts = first_failures, cuts
        # The questions under way alone: of a million the ids are on disk.
        pending: dict[str, Question] = {}
        is_new = ledger.new_ids()
        for batch in (first, requests) if first else (requests,):
            for reply in model.chat.ask(_unanswered(batch, store, pending, is_new, done)):
                store.add(reply, pending.pop(reply.request))
                done(reply.request)
    if store.futility is not None:
        raise store.futility
    if store.ceiling is not None:
        of = "" if num_requests is None else f" of {num_requests:,}"
        number = store.num_kept + store.num_answered + store.num_repeated
        answered = f"{number:,}{of} requests are answered, {store.num_failed:,} failed"
        cost = "" if store.model.price is None else f", cost {store.budget.total_text(store.cost)}"
        higher = store.ceiling._replace(value=None)
        do = Advice("run the same again with a higher ", higher, ": what is answered is not asked again")
        raise CeilingError(Advice(store.ceiling, f" is reached: {answered}{cost}"), where=store.model.name, do=do)
    store.budget.close(store.cost, store.num_failed)
    return RequestCounts(store.num_questions, store.num_kept, store.num_failed)


def answers_of(panel: JudgePanel, comparison: Comparison, ledger: Ledger) -> dict[str, Answer]:
    """Return every judge's answer from the replies in the ledger, and last the panel's answer, by name."""
    answers = {member.name: _answer(member, comparison, ledger) for member in panel.members}
    return answers | {panel.name: panel_answer(answers)}


def requests_of(member: PanelJudge, comparison: Comparison) -> tuple[Request, ...]:
    """Return the judge's questions about a comparison with their ids, all of them once for each repeat.

    A repeat has a seed of its own, unless the chat does not sample: its replies then show what the server varies.
    """
    questions = member.judge.questions(comparison)
    is_greedy = member.chat.protocol().get("temperature") == 0
    return tuple(
        as_request(question if is_greedy or not repeat else _with_seed(question, repeat), member.chat, repeat)
        for repeat in range(member.repeats)
        for question in questions
    )


def _with_seed(question: Question, repeat: int) -> Question:
    return msgspec.structs.replace(
        question, seed=derived_seed(repeat, "repeat", *(message.content for message in question.messages)) >> 32
    )


def as_request(question: Question, chat: Chat, repeat: int = 0) -> Request:
    """Return the question with its id: the hash of the question, of the chat's protocol, and of a repeat other than 0.

    A setting that changes replies changes the protocol, and so the id: the question is then asked anew.
    """
    content: JsonObject = {"question": msgspec.to_builtins(question), "chat": chat.protocol()}
    if repeat:
        content["repeat"] = repeat
    return Request(id=content_id(content), question=question, repeat=repeat)


def _unfinished_first(
    member: PanelJudge, comparisons: Callable[[], Iterable[Comparison]], ledger: Ledger
) -> Iterator[Comparison]:
    """Yield every comparison once: those of blocks that look answered, by their ends, after all others.

    A run that goes on after a million replies would otherwise render a million requests before it sends one.
    """
    answered_blocks = bytearray()
    for block in _blocks(comparisons()):
        is_answered = all(
            ledger.has(request.id) for end in (block[0], block[-1]) for request in requests_of(member, end)
        )
        answered_blocks.append(is_answered)
        if not is_answered:
            yield from block
    if any(answered_blocks):
        for block, is_answered in zip(_blocks(comparisons()), answered_blocks, strict=True):
            if is_answered:
                yield from block


def _blocks(comparisons: Iterable[Comparison]) -> Iterator[list[Comparison]]:
    """Yield blocks of comparisons that end with the last one of a prompt."""
    block: list[Comparison] = []
    for comparison in comparisons:
        if len(block) >= _BLOCK and comparison.prompt is not block[-1].prompt:
            yield block
            block = []
        block.append(comparison)
    if block:
        yield block


def _priced(member: PanelJudge) -> PricedChat:
    return PricedChat(member.name, member.chat, member.price)


def _answer(member: PanelJudge, comparison: Comparison, ledger: Ledger) -> Answer:
    replies = [ledger.reply(request.id) for request in requests_of(member, comparison)]
    size = len(replies) // member.repeats
    return combine_repeats([member.judge.read(comparison, part) for part in batched(replies, size)])


class _ReplyStore:
    """Stores and counts the replies of one chat."""

    def __init__(
        self, ledger: Ledger, model: PricedChat, shown: Bar | None, *, max_truncated: float, remedy: str
    ) -> None:
        self.ledger, self.model, self.shown = ledger, model, shown
        self.max_truncated, self.remedy = max_truncated, remedy
        self.num_questions = self.num_kept = self.num_answered = self.num_repeated = self.num_failed = 0
        self.num_first_failed = self.num_uncounted = 0
        self.cuts = _NO_REPLIES
        self.all_spent = Spending()
        self.first_failure = ""
        self.budget = Budget(Ceilings())
        self.sent = Spending()
        self.ceiling: Remedy | None = None
        self.futility: ModelError | None = None
        self.first_failures = _FIRST_FAILURES
        self.first_failed_items: set[str] = set()

    def keep(self, request: str) -> None:
        """Count a reply that the ledger has already."""
        self.num_kept += 1
        self.all_spent = self.all_spent.plus(self.ledger.reply(request))

    @property
    def cost(self) -> float:
        """The cost of the replies of this call; 0 without a price."""
        return 0.0 if self.model.price is None else self.sent.cost(self.model.price)

    def has_room(self) -> bool:
        """Return whether another request may be sent; a ceiling that is reached stays so."""
        self.ceiling = self.ceiling or self.budget.ceiling(self.cost, self.num_failed)
        return self.ceiling is None and self.futility is None

    def count_failed_tokens(self, request: str) -> None:
        """Count the tokens that failed replies to a question took in earlier runs."""
        if failed := self.ledger.failed_tokens(request):
            self.all_spent = self.all_spent.plus(failed)

    def advance(self) -> None:
        """Advance the progress bar by one question."""
        if self.shown is None:
            return
        figures: dict[str, float] = {
            "replies": self.num_kept + self.num_answered,
            "failed": self.num_failed,
            "prompt_tokens": self.all_spent.tokens.prompt,
            "reply_tokens": self.all_spent.tokens.reply,
        }
        price = self.model.price
        if price is not None:
            figures["cost"] = self.all_spent.cost(price)
        self.shown.advance(note=f"{self.num_failed} failed" if self.num_failed else "", figures=figures)

    def add(self, reply: Reply, question: Question) -> None:
        """Store the reply. Raises FailuresError where all requests failed, those apart that failed in an earlier run.

        Too many cut replies, or replies without a cost under a ceiling of cost, end the sending.
        """
        is_failed = reply.failure == "failed"
        # A run that goes on without what fails again is not stopped by it.
        if is_failed and self.first_failures.counts(reply) and not self.ledger.has_failed(reply.request):
            self.num_first_failed += 1
            if not self.num_answered:
                self.first_failed_items.update(self.first_failures.items_of(reply.request))
        self.ledger.add(reply)
        self.num_failed += is_failed
        self.num_answered += reply.failure != "failed"
        self.all_spent = self.all_spent.plus(reply)
        self.sent = self.sent.plus(reply)
        if reply.failure != "failed":
            self.cuts = self.cuts.plus(reply, question)
            self.num_uncounted += reply.prompt_tokens is None or reply.reply_tokens is None
        self.first_failure = self.first_failure or (reply.detail or "" if reply.failure == "failed" else "")
        self.advance()
        self._check()

    def _check(self) -> None:
        number = 0 if self.num_answered else self.num_first_failed
        num_items = len(self.first_failed_items)
        if fault := self.first_failures.fault(number, num_items, self.first_failure, model=self.model.name):
            raise fault
        has_ceiling = self.budget.ceilings.cost is not None and self.model.price is not None
        if has_ceiling and self.num_answered >= FEWEST_REPLIES and 2 * self.num_uncounted > self.num_answered:
            problem = f"{self.num_uncounted} of {self.num_answered} replies have no token counts: their cost is unknown"
            do = Advice("run the same again without ", Remedy("max_cost"))
            self.futility = self.futility or ModelError(problem, where=self.model.name, do=do)
        # The replies under way are paid for, and awaited.
        self.futility = self.futility or self.cuts.fault(self.max_truncated, model=self.model.name, remedy=self.remedy)


def _unanswered(
    requests: Iterable[Request],
    store: _ReplyStore,
    pending: dict[str, Question],
    is_new: Callable[[str], bool],
    done: Callable[[str], object],
) -> Iterator[Request]:
    """Yield the requests that have no reply yet, each once; ``pending`` holds those without a reply so far."""
    for request in requests:
        if not is_new(request.id):
            store.num_repeated += 1
            store.advance()
            done(request.id)
            continue
        store.num_questions += 1
        store.count_failed_tokens(request.id)
        if store.ledger.has(request.id):
            store.keep(request.id)
            store.advance()
            done(request.id)
        elif store.has_room():
            pending[request.id] = request.question
            yield request
        else:
            return


def tokens_used(
    panel: JudgePanel, comparisons: Callable[[], Iterable[Comparison]], ledger: Ledger
) -> dict[str, TokenUse]:
    """Return the tokens that each judge used, by the judges' names."""
    used: dict[str, TokenUse] = {}
    for member in panel.members:
        ids = (request.id for comparison in comparisons() for request in requests_of(member, comparison))
        used[member.name] = token_use(_priced(member), ids, ledger)
    return used


def token_use(model: PricedChat, requests: Iterable[str], ledger: Ledger) -> TokenUse:
    """Return the tokens of the replies to the requests of these ids. Equal requests share a reply, counted once.

    Those of failed replies are included, since they are billed; tries without an answer are counted apart.
    """
    failed, unanswered_tries = TokenCounts(), 0

    def replies() -> Iterator[Reply]:
        nonlocal failed, unanswered_tries
        for request in ledger.unique(requests):
            unanswered_tries += ledger.unanswered_tries(request)
            if of_failed := ledger.failed_tokens(request):
                failed = failed.plus(of_failed)
            if ledger.has(request):
                yield ledger.reply(request)

    names = {model.name, model.chat.protocol()["model"]}
    answered = sum_tokens(replies(), model.price, names.__contains__)
    return answered.with_failed(failed, model.price, unanswered_tries=unanswered_tries)
