"""Replies without a verdict or number, with the reason: what a person looks at when a judge is not understood."""

from collections.abc import Iterator, Mapping

from steelyard.core.comparison import VERDICTS, Answer, Comparison, Outcome
from steelyard.core.types import Record
from steelyard.io.ledger import Ledger
from steelyard.judging.asking import requests_of
from steelyard.judging.panel import JudgePanel

UNPARSED_FILE = "unparsed.jsonl"
"""The file of these replies in the folder of a run."""


class UnparsedReply(Record, frozen=True, kw_only=True):
    """A reply without a verdict or number: a line of ``unparsed.jsonl``. ``shown``: the responses in their order.

    ``text`` is null unless the model wrote something; ``outcome`` and ``detail`` are the reason.
    """

    prompt: str
    language: str | None
    judge: str
    shown: tuple[str, ...]
    outcome: Outcome
    detail: str | None
    text: str | None


def unparsed_replies(
    panel: JudgePanel, comparison: Comparison, answers: Mapping[str, Answer], ledger: Ledger
) -> Iterator[UnparsedReply]:
    """Yield the replies of each judge to a comparison that have no verdict or number."""
    for member in panel.members:
        if _is_complete(answers[member.name]):
            continue
        requests = requests_of(member, comparison)
        num_questions = len(requests) // member.repeats
        for number, request in enumerate(requests):
            reply = ledger.reply(request.id)
            # The answer from this reply alone, without the other orders of presentation.
            answer = member.judge.read(comparison, [reply] * num_questions)
            reading = _missing(answer, number % num_questions)
            if reading is not None:
                shown, outcome, detail = reading
                prompt = comparison.prompt
                yield UnparsedReply(
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
