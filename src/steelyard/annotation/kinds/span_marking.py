"""Span marking: problems are marked in one response, each with its kind and a remark; there may be none.

Two answers agree on a response if their marks overlap by half (twice the characters that both marked, over those of
both); the kinds of the problems do not count, and no mark in both is agreement. Exported: a rating ``marked problems``
with the spans, whose value is their number; lower is better.
"""

from collections.abc import Sequence

from steelyard.annotation.answers import Origin, TaskAnswer
from steelyard.annotation.derived_judgments import LOWER_IS_BETTER
from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, QuestionTasks, each_response
from steelyard.annotation.wrong_answers import remove_marks
from steelyard.core.types import Rating

PROBLEMS = (
    "factual error", "reasoning error", "instruction ignored", "harmful", "garbled or mixed language",
    "repetition or padding", "format or style", "other",
)  # fmt: skip


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    return (TaskQuestion(name="marks", input="marks", responses=tuple(shown), choices=PROBLEMS),)


def _rate(answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
    (response,) = origin.shown
    spans = answer.spans.get(response, ())
    return (origin.rating(response, "marked problems", len(spans), scale=None, spans=spans, meta=LOWER_IS_BETTER),)


KIND = QuestionTasks(
    name="span_marking",
    needs="a response or more",
    plan=each_response,
    ask=_ask,
    rate=_rate,
    spoil=lambda answer, catalogues, rng: remove_marks(answer),
)
