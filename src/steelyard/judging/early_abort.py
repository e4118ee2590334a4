"""Early abort of requests that cannot succeed: the first ones all fail, or replies are cut off.

The errors say what to change, for requests that are sent and for those in batch files alike.
"""

from collections.abc import Mapping
from typing import NamedTuple

from steelyard.core.comparison import SERVER_LIMIT, TOO_LONG, Question, Reply
from steelyard.core.errors import ModelError
from steelyard.core.remedies import NUMBER, Advice, Remedy
from steelyard.core.text import number_of
from steelyard.io.ledger import Ledger

FEWEST_REPLIES = 20
"""Replies required before failures, or the share that was cut off, can end the run."""
_LONGER_CONTEXT = "start the server with a longer context for each request"
MORE_TOKENS = Advice(
    *("say ", Remedy("judge.max_tokens", NUMBER), " with more, or ", Remedy("judge.form", "letter")),
    " where it gives reasons",
)


class RequestCounts(NamedTuple):
    """Requests to one chat. ``num_questions`` counts equal questions once; ``num_kept`` had a reply before."""

    num_questions: int = 0
    num_kept: int = 0
    num_failed: int = 0


def refuse_failed(counts: Mapping[str, RequestCounts], ledger: Ledger, *, without: str) -> None:
    """Raise ModelError if requests failed. ``without``: what they would be left without, for the remedy."""
    num_failed = sum(count.num_failed for count in counts.values())
    if not num_failed:
        return
    num_questions = sum(count.num_questions for count in counts.values())
    failures = ledger.failures()
    reasons = ", ".join(f"{reason} {number}" for reason, number in failures.items())
    # A prompt over the context fails as often as it is sent.
    again = _LONGER_CONTEXT if {*failures} == {TOO_LONG} else "run the same again"
    raise ModelError(
        f"{num_failed} of {number_of(num_questions, 'request')} failed ({reasons}); what was answered is kept",
        do=Advice(again, ", or say ", Remedy("allow_failed", value=True), f" to leave them without {without}"),
    )


class CutReplies(NamedTuple):
    """How many of the replies were cut off, and how many of those at the limit of the server itself."""

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
