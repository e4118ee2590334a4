"""Questions to language models about prompts, such as whether one asks for harm: asked through the ledger, or forecast.

Each is one question of a prompt. An interrupted run resumes, since answered questions are not asked again.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.comparison import Question, Reply
from steelyard.core.errors import FailuresError
from steelyard.core.protocols import Chat
from steelyard.core.remedies import NUMBER, Advice, Remedy
from steelyard.core.text import number_of
from steelyard.core.types import Counts, Prompt
from steelyard.io.ledger import Ledger
from steelyard.judging.asking import PricedChat, as_request, ask_requests
from steelyard.judging.early_abort import FirstFailures
from steelyard.judging.forecast import Forecast, forecast_requests
from steelyard.judging.prefix_order import PromptRequests
from steelyard.judging.reply_words import normalize_text, without_thinking
from steelyard.prompts.screening import PromptsSummary, ScreeningRow

Questions = Callable[[], Iterable[Question]]
"""Yields the same questions each time: a file may hold more than memory."""


class PromptsPreview(NamedTuple):
    """Preview of the verb, with the first rows of each rule: nothing was written, and no chat was asked.

    ``forecasts`` are what the chats would be asked: the one that screens for harm, then the one that classifies.
    """

    summary: PromptsSummary
    counts: Counts
    examples: dict[str, tuple[ScreeningRow, ...]]
    forecasts: tuple[Forecast, ...] = ()


class PromptChat(NamedTuple):
    """A chat that answers questions about prompts, and its longest reply."""

    chat: Chat
    max_tokens: int

    @property
    def name(self) -> str:
        """The name that signs the replies."""
        return self.chat.name


def ask_about_prompts(
    chat: PromptChat, questions: Questions, ledger: Ledger, *, allow_failed: bool = False
) -> Iterator[Reply]:
    """Ask what has no reply in the ledger, and return all replies in the order of the questions, without thinking.

    Raises FailuresError where requests failed, unless ``allow_failed``, and as `ask_requests` does; what was answered
    is kept.
    """
    number = sum(1 for _ in questions())
    requests = (as_request(question, chat.chat) for question in questions())
    remedy = Advice("say ", Remedy("max_tokens", NUMBER), f" with more than {chat.max_tokens}")
    model = PricedChat(chat.name, chat.chat)
    counts = ask_requests(
        model,
        requests,
        ledger,
        num_requests=number,
        remedy=remedy,
        first_failures=FirstFailures.of(allow_failed=allow_failed),
    )
    if counts.num_failed and not allow_failed:
        problem = f"{counts.num_failed} of {number_of(counts.num_questions, 'request')} failed; answers are kept"
        do = Advice("run the same again, or say ", Remedy("allow_failed", value=True), " to count those as unparsed")
        raise FailuresError(problem, where=chat.name, do=do)
    return (_without_thinking(ledger.reply(as_request(question, chat.chat).id)) for question in questions())


def forecast_questions(chat: PromptChat, questions: Questions, ledger: Ledger | None) -> Forecast:
    """Forecast the questions that have no reply in the ledger, equal ones once."""
    requests = (as_request(question, chat.chat) for question in questions())
    prompts = (
        PromptRequests(
            # Questions about all prompts share the turns before the last.
            "".join(f"{message.content}\0" for message in request.question.messages[:-1]),
            [request],
            Prompt(id=request.id, messages=request.question.messages),
        )
        for request in requests
    )
    return forecast_requests(chat.name, prompts, (lambda request: None) if ledger is None else ledger.known)


def _without_thinking(reply: Reply) -> Reply:
    if reply.text is None:
        return reply
    return replace(reply, text=without_thinking(normalize_text(reply.text)))
