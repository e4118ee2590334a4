"""Comparisons, the questions and replies of language models, and the answers of judges.

A judge turns a comparison into questions, a chat turns each question into a reply, and the judge parses the replies.
"""

from typing import Literal, get_args

from steelyard.core.errors import ConfigError
from steelyard.core.types import Message, Prompt, Record, Response, Verdict

Failure = Literal["refused", "cut off", "failed"]
"""Why a reply has no complete text: the model declined, the text reached the token limit, or no answer arrived."""

Outcome = Literal["left", "right", "tie", "unparsed", "refused", "cut off", "failed"]
"""The outcome of a compared pair: a verdict, or the reason for its absence."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Triple = tuple[int, int, int]
"""Positions of three responses that are shown together."""
VERDICTS: tuple[Verdict, ...] = ("left", "right", "tie")


class Question(Record, frozen=True, kw_only=True):
    """A question to a language model. ``max_tokens`` limits the reply; a reply that reaches it is cut off.

    ``alternatives``: the number of likely first tokens to return with their log-probabilities, among which ``labels``
    are those of a verdict. ``seed`` is the sampling seed; null for the server's. ``languages`` are the codes that a
    translation goes from and to: translation engines read them, and no instructions.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    alternatives: int = 0
    seed: int | None = None
    labels: tuple[str, ...] = ()
    languages: tuple[str, str] | None = None


class Request(Record, frozen=True, kw_only=True):
    """A question with the id of its reply: equal questions to equal chats have equal ids.

    ``repeat`` numbers the samples of one question from 0. Two samples are two replies, so that it is part of the id.
    """

    id: str
    question: Question
    repeat: int = 0


class Alternative(Record, frozen=True, kw_only=True):
    """A candidate for the first token and its natural log-probability."""

    token: str
    logprob: float


TOO_LONG = "too_long"
"""The first word of the detail of a request that is over the server's context."""
SERVER_LIMIT = "the server's own limit or context"
"""The last words of the detail of a reply that was cut off before its own limit."""
MODEL_LIMIT = "; the model has "
"""Text before the limit in the detail of a request that is over the context of a model on this machine."""


class Reply(Record, frozen=True, kw_only=True):
    """The reply to a request, or the reason for its absence.

    ``text`` is null unless the model wrote something; a reply that was cut off has its beginning. ``detail`` explains a
    failure. ``first_token`` is null if the server returns no log-probabilities. Token counts are the server's, or null;
    ``odd_usage`` names impossible counts that were dropped. ``prompt_tokens`` includes ``cached_tokens``, which were
    read from the server's cache, and ``cache_write_tokens``, which were written to it.

    Where it came from: the address of the server (``endpoint``), the ``model`` that it reports, the ``seed`` sent, the
    ``seconds`` that the successful try took, and the server's own ``finish_reason``. ``unanswered_tries``: tries that
    reached the server and brought no answer. They may be billed, and nobody knows their tokens. ``batch`` is
    the batch file in which the request was asked; null for one that was sent alone.
    """

    request: str
    text: str | None = None
    failure: Failure | None = None
    detail: str | None = None
    first_token: tuple[Alternative, ...] | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None
    model: str | None = None
    odd_usage: str | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    endpoint: str | None = None
    seed: int | None = None
    seconds: float | None = None
    finish_reason: str | None = None
    unanswered_tries: int = 0
    batch: str | None = None


class Comparison(Record, frozen=True, kw_only=True):
    """A prompt and k responses in the order in which a judge sees them first.

    ``mark`` is a word that occurs in none of the prompt's responses: it separates them from the words of a question.
    """

    prompt: Prompt
    responses: tuple[Response, ...]
    mark: str


class Showing(Record, frozen=True, kw_only=True):
    """The outcome of one reply about a pair: ``left`` and ``right`` refer to the pair, not to positions shown."""

    shown: tuple[str, ...]
    outcome: Outcome
    detail: str | None = None


class PairVerdict(Record, frozen=True, kw_only=True):
    """A judge's verdict on two responses, combined over all orders of presentation.

    ``is_inconsistent``: the verdicts differ between orders, which makes a tie unless probabilities decide.
    ``showings`` are the single replies; a panel has ``members`` instead, the outcome of each member by its name.
    ``repeats`` has the outcome of each repeat of the questions, where there were several.
    """

    left: str
    right: str
    outcome: Outcome
    is_inconsistent: bool = False
    detail: str | None = None
    showings: tuple[Showing, ...] = ()
    members: dict[str, Outcome] = {}  # noqa: RUF012 - msgspec copies it
    repeats: tuple[Outcome, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Return the outcome as a judgment's verdict: every reason for a missing verdict becomes ``none``."""
        return self.outcome if self.outcome in ("left", "right", "tie") else "none"


class ResponseRating(Record, frozen=True, kw_only=True):
    """A judge's number for one response, or null with the outcome that explains it."""

    response: str
    value: float | None
    outcome: Outcome | None = None
    detail: str | None = None


class Answer(Record, frozen=True, kw_only=True):
    """A judge's answer to one comparison: verdicts on pairs, or a number for each response."""

    verdicts: tuple[PairVerdict, ...] = ()
    ratings: tuple[ResponseRating, ...] = ()


def circular_triples(num_responses: int) -> tuple[Triple, ...]:
    """Return the triple design (CHEEMS, section 3.2): each response is shown with the next two around the circle.

    For five responses these are five tasks with 15 verdicts on all 10 pairs: neighbours on the circle are compared
    twice, the other pairs once. For three, the one triple is judged three times; for four, every pair twice; from six
    on, pairs more than two apart on the circle are never compared, and their order follows only from others (a
    design that compares them: `steelyard.annotation.triple_designs`).

    Raises ConfigError below three responses.
    """
    if num_responses < 3:
        raise ConfigError(f"{num_responses} responses", where="triples", allowed="3 or more: a task shows three")
    return tuple((start, (start + 1) % num_responses, (start + 2) % num_responses) for start in range(num_responses))
