"""Responses that hold a verdict in the form of the questions, and the verdicts that are missing because of them.

A judge that quotes such a response leaves a mark that is not its own. Such marks are never verdicts; this says how many
responses hold one, and which of them have pairs without a verdict.
"""

from collections import Counter
from collections.abc import Mapping

from steelyard.core.comparison import Answer, Comparison
from steelyard.core.types import Record
from steelyard.judging.panel import JudgePanel

_MOST_LISTED = 20


class MarkedResponse(Record, frozen=True, kw_only=True):
    """A response that holds a verdict: its pairs or ratings, and how many of them have no verdict or number."""

    prompt: str
    language: str | None
    response: str
    num_judged: int
    num_missing: int


class MarkedResponses(Record, frozen=True, kw_only=True):
    """The responses that hold a verdict in the form of the questions.

    ``num_judged`` counts the pairs or ratings of these responses, a pair of two of them once, and ``num_missing`` those
    without a verdict or number. ``responses``: the 20 that miss most.
    """

    num_responses: int
    num_judged: int
    num_missing: int
    responses: tuple[MarkedResponse, ...]


class MarkedCounter:
    """Counts the responses that hold a verdict, over the comparisons of a run."""

    def __init__(self) -> None:
        self._judged: Counter[tuple[str, str | None, str]] = Counter()
        self._missing: Counter[tuple[str, str | None, str]] = Counter()
        self._num_judged = self._num_missing = 0

    def add(self, panel: JudgePanel, comparison: Comparison, answers: Mapping[str, Answer]) -> None:
        """Count the panel's answer to a comparison."""
        marked = {name for member in panel.members for name in member.judge.marked(comparison)}
        if not marked:
            return
        answer, prompt = answers[panel.name], comparison.prompt
        judged = [({verdict.left, verdict.right}, verdict.verdict == "none") for verdict in answer.verdicts]
        judged += [({rating.response}, rating.value is None) for rating in answer.ratings]
        for names, is_missing in judged:
            held = [(prompt.id, prompt.language, name) for name in names & marked]
            self._num_judged += bool(held)
            self._num_missing += bool(held) and is_missing
            self._judged.update(held)
            self._missing.update(held if is_missing else [])

    def summary(self) -> MarkedResponses | None:
        """Return the counts; null where no response holds a verdict."""
        if not self._judged:
            return None
        listed = sorted(self._judged, key=lambda key: (-self._missing[key], key[0], key[1] or "", key[2]))
        return MarkedResponses(
            num_responses=len(self._judged),
            num_judged=self._num_judged,
            num_missing=self._num_missing,
            responses=tuple(
                MarkedResponse(
                    prompt=prompt,
                    language=language,
                    response=response,
                    num_judged=self._judged[prompt, language, response],
                    num_missing=self._missing[prompt, language, response],
                )
                for prompt, language, response in listed[:_MOST_LISTED]
            ),
        )
