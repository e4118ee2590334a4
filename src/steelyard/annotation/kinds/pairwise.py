"""Pairwise check: is the first of two responses better, the same, or worse? Two keystrokes a task.

The answer is a ranking of the two, one tier where they are the same. Two answers agree where both prefer the same
response, or both call them the same; a response that only one person discarded is a disagreement. Problem spans may be
marked in both, and count for nothing in the agreement. Exported: a judgment for each answer, with the marks in its
``meta``.
"""

from collections.abc import Sequence
from itertools import combinations

from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, Design, QuestionTasks, TaskRules
from steelyard.annotation.wrong_answers import reverse_order
from steelyard.core.types import Case


def _every_pair(case: Case, rules: TaskRules) -> Design | None:
    pairs = tuple(combinations([response.id for response in case.responses], 2))
    return pairs or None


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    return (TaskQuestion(name="better", input="comparison", responses=tuple(shown)),)


KIND = QuestionTasks(
    name="pairwise",
    needs="2 responses or more",
    plan=_every_pair,
    ask=_ask,
    has_discards=True,
    spoil=lambda answer, catalogues, rng: reverse_order(answer),
)
