"""What a language model is asked and answers, and what a judge is asked and says: values that cross rooms and floors.

A judge turns a comparison into questions, a chat turns each question into a reply, and the judge reads the replies.
"""

from typing import Literal, get_args

from steelyard.core.types import Message, Prompt, Record, Response, Verdict

Failure = Literal["refused", "cut off", "failed"]
"""Why a chat has no whole text: the model declined, its text ended at the token limit, or no answer came at all."""

Outcome = Literal["left", "right", "tie", "unreadable", "refused", "cut off", "failed"]
"""What became of a pair that a judge was asked about: a verdict, or one of the reasons for none."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
VERDICTS: tuple[Verdict, ...] = ("left", "right", "tie")


class Question(Record, frozen=True, kw_only=True):
    """What a language model is asked. ``alternatives``: how many likely first tokens are wanted with log-probabilities.

    ``max_tokens`` is the longest reply; a reply that reaches it is cut off.
    """

    messages: tuple[Message, ...]
    max_tokens: int
    alternatives: int = 0


class Request(Record, frozen=True, kw_only=True):
    """A question under the id by which its reply is known: equal questions to equal chats have equal ids."""

    id: str
    question: Question


class Alternative(Record, frozen=True, kw_only=True):
    """A token that could have come first, and its natural log-probability."""

    token: str
    logprob: float


class Reply(Record, frozen=True, kw_only=True):
    """The answer to a request, or why there is none.

    ``text`` is null unless the model wrote something; of a reply that was cut off it is what there is. ``detail`` says
    more of a failure. ``first_token`` is null where the server gives no log-probabilities. Tokens are as the server
    counts them, null where it does not; ``odd_usage`` says which numbers of it are impossible and were left out.
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


class Comparison(Record, frozen=True, kw_only=True):
    """A prompt and k responses in the order in which a judge is to see them first."""

    prompt: Prompt
    responses: tuple[Response, ...]


class Showing(Record, frozen=True, kw_only=True):
    """What one reply says of two responses: ``left`` and ``right`` are those of the pair, not places on the page."""

    shown: tuple[str, ...]
    outcome: Outcome
    detail: str | None = None


class PairVerdict(Record, frozen=True, kw_only=True):
    """What a judge says of two responses, from all orders in which it saw them.

    ``is_inconsistent``: it spoke differently in another order, which makes a tie. ``showings`` are the single replies;
    of a panel there are ``members`` instead, what each of them said by its name.
    """

    left: str
    right: str
    outcome: Outcome
    is_inconsistent: bool = False
    detail: str | None = None
    showings: tuple[Showing, ...] = ()
    members: dict[str, Outcome] = {}  # noqa: RUF012 - msgspec copies it

    @property
    def verdict(self) -> Verdict:
        """The outcome as it is written in a judgment: every reason for none is ``none``."""
        return self.outcome if self.outcome in ("left", "right", "tie") else "none"


class GivenRating(Record, frozen=True, kw_only=True):
    """The number that a judge gives one response, or null with the outcome that says why."""

    response: str
    value: float | None
    outcome: Outcome | None = None
    detail: str | None = None


class Answer(Record, frozen=True, kw_only=True):
    """What a judge says of one comparison: verdicts on pairs, or a number for each response."""

    verdicts: tuple[PairVerdict, ...] = ()
    ratings: tuple[GivenRating, ...] = ()
