"""Facts of single tasks for figures of agreement: how many there are, and how much answers to one task are alike.

Two people's answers to a task are one comparison, summed in `figure_tables`. With three people or more a task has
several, and several tasks show responses of one item: such comparisons are not independent. How much wider that makes
an interval is measured on the latest answers (`design_effects`); the figures themselves are of all answers.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, groupby
from typing import NamedTuple

import msgspec
import numpy as np
from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answer_counts import count_two_answers
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.numerics import Floats, Integers
from steelyard.statistics.linearised import design_effects
from steelyard.workbench.pipeline.listings import latest_answers_of
from steelyard.workbench.storage.tables import StoredAnswer, StoredTask

MOST_ANSWERS = 2000
"""The latest answers in which the likeness of answers is measured: reading more would hold the page up."""


class TaskNumbers(NamedTuple):
    """The tasks that two people or more have answered, by category, and by person who is one of them."""

    categories: Mapping[str, int]
    people: Mapping[int, int]


class AgreementEffects(NamedTuple):
    """Design effects: of tau over the items of all or one category, and of a person's verdicts and tau over tasks."""

    tau: float
    tau_of_category: Mapping[str, float]
    same_of_person: Mapping[int, float]
    tau_of_person: Mapping[int, float]


class _LatestAnswer(NamedTuple):
    """A person's answer to a task of an item."""

    task: int
    item: int
    category: str
    kind: str
    responses: Sequence[str]
    person: int
    content: TaskAnswer


class _Comparison(NamedTuple):
    """Two people's answers to a task. ``tau`` is 0 where it is undefined; ``num_taus`` says so."""

    item: int
    task: int
    category: str
    people: tuple[int, int]
    num_same: float
    num_judged: float
    tau: float
    num_taus: float


def task_numbers(session: Session, project: int) -> TaskNumbers:
    """Count the ordinary tasks with two answers or more, those that retired since included."""
    several = (StoredTask.project_id == project, StoredTask.is_gold.is_(False), StoredTask.num_answered > 1)
    categories = select(StoredTask.category, func.count()).where(*several).group_by(StoredTask.category)
    people = (
        select(StoredAnswer.person_id, func.count())
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(*several, StoredAnswer.stage == "annotation")
        .group_by(StoredAnswer.person_id)
    )
    return TaskNumbers(_counted(session, categories), _counted(session, people))


def agreement_effects(session: Session, project: int) -> AgreementEffects:
    """Return the design effects of the comparisons among the latest answers of a project."""
    rows = _comparisons(session, project)
    sides = [(person, row) for row in rows for person in row.people]
    categories = sorted({row.category for row in rows})
    people = sorted({person for person, _ in sides})
    place = {name: number for number, name in enumerate(categories)}
    index_of = {person: number for number, person in enumerate(people)}
    of_category = _integers([place[row.category] for row in rows])
    items = _integers([row.item for row in rows])
    all_alike = design_effects(np.zeros(len(rows), np.int64), items, *_taus(rows), 1)
    by_category = design_effects(of_category, items, *_taus(rows), len(categories))
    of_person, tasks = _integers([index_of[person] for person, _ in sides]), _integers([row.task for _, row in sides])
    theirs = [row for _, row in sides]
    verdicts = np.array([(row.num_same, row.num_judged) for row in theirs], np.float64).reshape(-1, 2).T
    same = design_effects(of_person, tasks, verdicts[0], verdicts[1], len(people))
    tau = design_effects(of_person, tasks, *_taus(theirs), len(people))
    return AgreementEffects(
        float(all_alike[0]),
        dict(zip(categories, by_category.tolist(), strict=True)),
        dict(zip(people, same.tolist(), strict=True)),
        dict(zip(people, tau.tolist(), strict=True)),
    )


def _comparisons(session: Session, project: int) -> list[_Comparison]:
    latest = latest_answers_of(project, MOST_ANSWERS)
    rows = session.execute(
        select(
            latest.c.task_id,
            StoredTask.item_id,
            StoredTask.category,
            StoredTask.kind,
            StoredTask.responses,
            latest.c.person_id,
            latest.c.content,
        )
        .join(StoredTask, latest.c.task_id == StoredTask.id)
        .order_by(latest.c.task_id, latest.c.id.desc())
    )
    answers = [_LatestAnswer._make((*values, msgspec.convert(content, TaskAnswer))) for *values, content in rows]
    of_tasks = (list(of_task) for _, of_task in groupby(answers, lambda answer: answer.task))
    return [_comparison(first, second) for of_task in of_tasks for first, second in combinations(of_task, 2)]


def _comparison(first: _LatestAnswer, second: _LatestAnswer) -> _Comparison:
    counts = count_two_answers(first.responses, (first.content, second.content), kind_named(first.kind))
    values = [float(counts.get(name, 0)) for name in ("num_same", "num_judged", "sum_tau", "num_taus")]
    return _Comparison(first.item, first.task, first.category, (first.person, second.person), *values)


def _taus(rows: Sequence[_Comparison]) -> tuple[Floats, Floats]:
    return np.array([row.tau for row in rows], np.float64), np.array([row.num_taus for row in rows], np.float64)


def _integers(values: Sequence[int]) -> Integers:
    return np.array(values, np.int64)


def _counted(session: Session, statement: Select) -> dict:
    return {key: number for key, number in session.execute(statement)}  # noqa: C416 - `dict` takes no rows
