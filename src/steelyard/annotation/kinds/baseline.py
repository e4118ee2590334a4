"""Better than a baseline: each response is worse (-1), the same (0), or better (+1) than one response of its case.

The baseline is named in the settings by its id or its author; by default it is the first response. It is always shown
as B, so that A is what is judged. Two answers agree where both give the same of the three values. A baseline that
people discard takes its item out. Exported: a judgment, and a rating ``better than the baseline`` from -1 to 1.
"""

from collections.abc import Sequence

from steelyard.annotation.answers import Origin, TaskAnswer, outcome_of
from steelyard.annotation.questions import TaskQuestion
from steelyard.annotation.task_kinds import Catalogues, Design, QuestionTasks, TaskRules
from steelyard.annotation.wrong_answers import reverse_order
from steelyard.core.types import Case, Rating

_VALUES = {"left": 1.0, "tie": 0.0, "right": -1.0}


def _against_baseline(case: Case, rules: TaskRules) -> Design | None:
    baseline = next(
        (each.id for each in case.responses if rules.baseline in (None, each.id, each.author)),
        None,
    )
    others = [each.id for each in case.responses if each.id != baseline]
    return None if baseline is None or not others else tuple((other, baseline) for other in others)


def _ask(shown: Sequence[str], catalogues: Catalogues) -> tuple[TaskQuestion, ...]:
    return (TaskQuestion(name="better_than_baseline", input="comparison", responses=tuple(shown)),)


def _rate(answer: TaskAnswer, origin: Origin) -> tuple[Rating, ...]:
    response, baseline = origin.shown
    outcome = outcome_of(answer, response, baseline)
    if outcome not in _VALUES:
        return ()
    return (
        origin.rating(
            response,
            "better than the baseline",
            _VALUES[outcome],
            scale=(-1.0, 1.0),
            spans=answer.spans.get(response, ()),
            meta={"baseline": baseline},
        ),
    )


KIND = QuestionTasks(
    name="baseline",
    needs="the baseline of the settings, and another response",
    plan=_against_baseline,
    ask=_ask,
    is_shuffled=False,
    has_discards=True,
    rate=_rate,
    spoil=lambda answer, catalogues, rng: reverse_order(answer),
)
