"""The summary of a judging in ``run.json``: verdicts, tokens and failures of each judge."""

from steelyard.core.types import Meta, Record
from steelyard.judging.judge_card import JudgeCards
from steelyard.judging.marked_responses import MarkedResponses
from steelyard.judging.planning import JudgeTask
from steelyard.judging.token_use import AnyPrice, TokenUse
from steelyard.judging.verdicts import VerdictSummary


class JudgingSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``judge``; ``judges`` and ``tokens`` by name, ``failed`` requests by reason.

    ``card``: the judges next to people's labels, where these are known. ``marked``: the responses that hold a verdict
    in the form of the questions; null without any. ``prices``: of a million tokens, by judge.
    """

    judge: str
    task: JudgeTask
    judges: dict[str, VerdictSummary]
    tokens: dict[str, TokenUse]
    failed: dict[str, int]
    protocol: Meta
    card: JudgeCards | None = None
    marked: MarkedResponses | None = None
    prices: dict[str, AnyPrice] = {}  # noqa: RUF012 - msgspec copies it
