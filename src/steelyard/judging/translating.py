"""Translating items through the ledger, in rounds: what has no reply is sent, until every item is done or failed.

A round asks the next questions of all items together, so that a server is busy. Most items take one round; damaged
replies take others. A question that failed is not sent again in the same run, and its item is listed with the reason.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from msgspec.structs import replace

from steelyard.core.comparison import Question, Reply, Request
from steelyard.core.remedies import NUMBER, Advice, Remedy
from steelyard.core.types import Case
from steelyard.io.ledger import Ledger
from steelyard.judging.asking import as_request, ask_requests, token_use
from steelyard.judging.early_abort import CutReplies, FirstFailures, RequestCounts
from steelyard.judging.forecast import Forecast, forecast_requests
from steelyard.judging.prefix_order import PromptRequests
from steelyard.judging.reply_words import without_thinking
from steelyard.judging.token_use import TokenUse
from steelyard.judging.translator import Translation
from steelyard.translation.requests import TranslatedItem, advance

_SHORTER = Advice(
    *("say ", Remedy("max_tokens", NUMBER), " with more, or ", Remedy("max_characters", NUMBER), " with less")
)
_OTHER_ENGINE = Advice(
    "choose another engine or break up long paragraphs: an engine has its own longest reply; say ",
    *(Remedy("max_tokens", NUMBER), " with more only where it was lowered, or ", Remedy("max_truncated", 1.0)),
    " to list these items",
)
_MOST_ROUNDS = 1000
"""Far more than an item takes: a part of a long text takes at most six."""


def forecast_translations(
    translation: Translation, cases: Iterable[Case], known: Callable[[str], Reply | None]
) -> Forecast:
    """Forecast the first request of each item that has no reply; what comes back damaged takes further ones."""
    chat = translation.model.chat

    def prompts() -> Iterator[PromptRequests]:
        for case in cases:
            steps = [advance(texts, rules, lambda question: None) for _, texts, rules in translation.jobs(case)]
            questions = [question for step in steps if not isinstance(step, TranslatedItem) for question in step]
            requests = [as_request(question, chat) for question in questions]
            opening = requests[0].question.messages[0].content if requests and not translation.is_engine else ""
            yield PromptRequests(opening, requests, case.prompt)

    return forecast_requests(translation.model.name, prompts(), known, price=translation.model.price)


def ask_translations(
    translation: Translation,
    cases: Callable[[], Iterable[Case]],
    ledger: Ledger,
    *,
    max_truncated: float,
    allow_failed: int,
    ask: Callable[..., RequestCounts] = ask_requests,
    is_sent: bool = True,
) -> None:
    """Ask for all translations, in rounds. Raises as `ask_requests` does.

    The first requests of all items come first. Of these alone a share may be cut off, and they may not all fail unless
    they are 19 at most, or of ``allow_failed`` items. Later rounds are about difficult items, and end for none of them.
    ``ask`` is the function that asks. Unless requests are sent now (``is_sent``), those of batch files are answered
    later: a round takes what was answered, and the next one has the further requests that this leads to.
    """
    replies = _Replies(translation, ledger)
    failures = FirstFailures(remedy=Remedy("allow_failed", NUMBER), num_allowed=allow_failed)
    opened = partial(_open_requests, translation, cases, replies)
    is_first = is_sent
    earlier = set[str]()
    for _ in range(_MOST_ROUNDS):
        has_first = is_first or (not is_sent and any(True for _ in opened(is_first=True)))
        replies.cuts = CutReplies()
        items: dict[str, list[str]] = {}
        # Failures count by item until a request is answered, and in batch files.
        counted = items if failures.limit is not None or not is_sent else None
        number = sum(
            1
            for _ in ledger.unique(
                each.id for each in opened(is_first=is_first, items=counted) if each.id not in earlier
            )
        )
        if not number and is_first:
            is_first = False
            continue
        if not number:
            return
        is_new, cuts = ledger.new_ids(), replies.cuts
        failures = failures._replace(has_answers=cuts.num_answered > 0, items=items)
        counts = ask(
            translation.model,
            replies.noted(each for each in opened(is_first=is_first) if each.id not in earlier and is_new(each.id)),
            ledger,
            num_requests=number,
            max_truncated=max_truncated if has_first else 1.0,
            remedy=_OTHER_ENGINE if translation.is_engine else _SHORTER,
            first_failures=failures,
            cuts=cuts,
        )
        if not is_sent:
            # What waits is no failure: no other request takes its place.
            earlier |= replies.take_sent()
            continue
        replies.keep_failed()
        if counts.num_questions > counts.num_failed:
            failures = failures._replace(limit=None)
    raise AssertionError("rounds do not end")


def read_translations(
    translation: Translation, cases: Iterable[Case], ledger: Ledger
) -> Iterator[tuple[Case, Mapping[str, TranslatedItem]]]:
    """Yield each case with its translated items by language. Questions without a reply count as failed."""
    replies = _Replies(translation, ledger)
    for case in cases:
        items: dict[str, TranslatedItem] = {}
        for target, texts, rules in translation.jobs(case):
            item = advance(texts, rules, replies.reply)
            assert isinstance(item, TranslatedItem), "every question has a reply, if only a failed one"
            items[target] = item
        yield case, items


def tokens_used(translation: Translation, cases: Iterable[Case], ledger: Ledger) -> TokenUse:
    """Return the tokens that all translations of the cases took, in all rounds."""
    replies = _Replies(translation, ledger)

    def ids_of_requests() -> Iterator[str]:
        for case in cases:
            for _, texts, rules in translation.jobs(case):
                ids: list[str] = []
                advance(texts, rules, lambda question, ids=ids: replies.reply(question, ids))
                yield from ids

    return token_use(translation.model, ids_of_requests(), ledger)


def _open_requests(
    translation: Translation,
    cases: Callable[[], Iterable[Case]],
    replies: "_Replies",
    *,
    is_first: bool,
    items: dict[str, list[str]] | None = None,
) -> Iterator[Request]:
    """Yield the next requests of all items, or of those that have no reply so far (``is_first``).

    ``items`` gets the items of each request: two that are alike share theirs.
    """
    for case in cases():
        for target, texts, rules in translation.jobs(case):
            replies.num_known = 0
            step = advance(texts, rules, replies.known)
            if not isinstance(step, TranslatedItem) and not (is_first and replies.num_known):
                for question in step:
                    request = as_request(question, translation.model.chat)
                    if items is not None:
                        items.setdefault(request.id, []).append(f"{case.prompt.id} {target}")
                    yield request


class _Replies:
    """The replies of the ledger to questions, without thinking; what failed in this run counts as answered."""

    def __init__(self, translation: Translation, ledger: Ledger) -> None:
        self.chat, self.ledger, self.is_engine = translation.model.chat, ledger, translation.is_engine
        self._sent: set[str] = set()
        self.num_known = 0
        """Replies of the item that were looked up."""
        self.cuts = CutReplies()
        """Counts of the first replies of items that were looked up and have not failed."""

    def noted(self, requests: Iterable[Request]) -> Iterator[Request]:
        """Yield the requests, and note that they were sent."""
        for request in requests:
            self._sent.add(request.id)
            yield request

    def take_sent(self) -> set[str]:
        """Return the requests that were sent, and forget them."""
        sent, self._sent = self._sent, set()
        return sent

    def keep_failed(self) -> None:
        """Forget the requests that were answered: the ledger knows them."""
        self._sent = {request for request in self._sent if not self.ledger.has(request)}

    def known(self, question: Question) -> Reply | None:
        """Return the reply, also a failed one of this run; null where the question is open."""
        request = as_request(question, self.chat).id
        reply = self.ledger.known(request)
        if reply is None and request not in self._sent:
            return None
        if reply is None:
            self.num_known += 1
            return self.ledger.reply(request)
        # An equal text of another item, answered in this round, leaves the item among the first ones.
        self.num_known += request not in self._sent
        if self.num_known == 1 and request not in self._sent:
            self.cuts = self.cuts.plus(reply, question)
        return self._read(reply)

    def reply(self, question: Question, ids: list[str] | None = None) -> Reply:
        """Return the reply; a failed one without any. Its id is added to ``ids``."""
        request = as_request(question, self.chat).id
        if ids is not None:
            ids.append(request)
        return self._read(self.ledger.reply(request))

    def _read(self, reply: Reply) -> Reply:
        if self.is_engine or reply.text is None:
            return reply
        return replace(reply, text=without_thinking(reply.text))
