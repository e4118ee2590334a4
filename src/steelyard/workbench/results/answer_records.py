"""Records of the answers of a project, one a line, and of its gold tasks: everything that was entered, with its origin.

A case file has the finished items and the judgments that follow from their present round. The records have the rest,
too: answers of other rounds and of prompts that were dropped, marks and entries that give no judgment, answers to gold
tasks, and who could not judge. Rows are read in blocks: memory does not grow with the project.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.core.types import JsonObject, Record
from steelyard.workbench.pipeline.case_export import task_name
from steelyard.workbench.pipeline.gold_tasks import SETTLED
from steelyard.workbench.storage.figure_tables import StoredGoldResult
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)

BLOCK = 1000
"""The rows that are read at a time."""


class GuidelineNote(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The version of the guideline that an answer was given under. ``category``: empty for all."""

    id: int
    category: str
    language: str
    version: int


class AnswerRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An answer with all of its origin. ``content``: an `annotation.answers.TaskAnswer`.

    ``task`` is the round and the number of the task within its item, as ``task`` of the exported judgments begins.
    ``responses`` are in the order of the design, ``shown`` in that of the person's page; null where nobody was assigned
    (alignment, and what a layer settled). ``present``: the answer counts in the item as it is now: its round is the
    latest, and its task has not retired. ``at``: seconds since 1970, UTC; ``seconds``: the active time,
    null where nobody measured it.
    """

    id: int
    prompt: str
    language: str | None
    category: str
    batch: str
    state: str
    task: str
    round: int
    kind: str
    responses: tuple[str, ...]
    shown: tuple[str, ...] | None
    person: str
    simulated: bool
    stage: str
    gold: bool
    present: bool
    guideline: GuidelineNote | None
    seconds: float | None
    at: float
    content: JsonObject


class GoldOrigin(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Whose settled answer the truth of a gold task is: the task, the stage, the answer, and who entered it when."""

    task: str
    stage: str
    answer: int
    person: str
    at: float


class GoldAnswer(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The score of a person's answer to a gold task: the points that are as in the truth, of those that count.

    ``void``: the truth was withdrawn since; accuracy leaves it out, and answers whose ``judged`` is 0.
    """

    person: str
    same: int
    judged: int
    void: bool
    at: float


class GoldRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A gold task with its truth, where that comes from, and everybody's result.

    ``origin`` is null where the settled answer is not found any more. ``retired``: it checks nobody any more.
    """

    task: str
    prompt: str
    language: str | None
    category: str
    batch: str
    kind: str
    responses: tuple[str, ...]
    truth: JsonObject
    origin: GoldOrigin | None
    retired: bool
    answers: tuple[GoldAnswer, ...]


def answer_records(session: Session, project: StoredProject, *, block: int = BLOCK) -> Iterator[AnswerRecord]:
    """Yield every answer of a project, the earliest first, also of items that were dropped.

    Steps of a discussion (``proposal``) are included; what came of it is an answer of its own.
    """
    guideline = StoredGuideline
    columns = (guideline.id, guideline.category, guideline.language, guideline.version)
    guidelines = {
        number: GuidelineNote(id=number, category=category, language=language, version=version)
        for number, category, language, version in session.execute(
            select(*columns).where(guideline.project_id == project.id)
        )
    }
    statement = (
        select(StoredAnswer, StoredTask, StoredItem, StoredPerson, StoredAssignment.shown)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
        .outerjoin(StoredAssignment, StoredAnswer.assignment_id == StoredAssignment.id)
        .where(StoredTask.project_id == project.id)
        .order_by(StoredAnswer.id)
        .limit(block)
    )
    after = 0
    while rows := session.execute(statement.where(StoredAnswer.id > after)).all():
        for answer, task, item, person, shown in rows:
            yield AnswerRecord(
                id=answer.id,
                prompt=item.prompt,
                language=item.language or None,
                category=item.category,
                batch=item.batch,
                state=item.state,
                task=task_name(project, task.round, task.number),
                round=task.round,
                kind=task.kind,
                responses=tuple(task.responses),
                shown=None if shown is None else tuple(shown),
                person=person.pseudonym,
                simulated=person.is_simulated,
                stage=answer.stage,
                gold=task.is_gold,
                present=task.round == item.round and not task.is_retired,
                guideline=None if answer.guideline_id is None else guidelines[answer.guideline_id],
                seconds=answer.seconds or None,
                at=answer.at,
                content=answer.content,
            )
        after = rows[-1][0].id
        session.expunge_all()


def gold_records(session: Session, project: StoredProject, *, block: int = BLOCK) -> Iterator[GoldRecord]:
    """Yield every gold task of a project in the order in which they were made, also those that retired."""
    statement = (
        select(StoredTask, StoredItem)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .where(StoredTask.project_id == project.id, StoredTask.is_gold.is_(True))
        .order_by(StoredTask.id)
        .limit(block)
    )
    after = 0
    while rows := session.execute(statement.where(StoredTask.id > after)).all():
        origins = _origins(session, project, [item.id for _, item in rows])
        answers = _gold_answers(session, [task.id for task, _ in rows])
        for task, item in rows:
            # The latest settled answer to the same responses that says what the gold task has as its truth.
            same = (
                origin
                for responses, content, origin in origins.get((item.id, task.round), ())
                if responses == task.responses and content == task.gold
            )
            yield GoldRecord(
                task=task_name(project, task.round, task.number),
                prompt=item.prompt,
                language=item.language or None,
                category=item.category,
                batch=item.batch,
                kind=task.kind,
                responses=tuple(task.responses),
                truth=task.gold or {},
                origin=next(same, None),
                retired=task.is_retired,
                answers=tuple(answers.get(task.id, ())),
            )
        after = rows[-1][0].id
        session.expunge_all()


def _origins(
    session: Session, project: StoredProject, items: Sequence[int]
) -> dict[tuple[int, int], list[tuple[list[str], JsonObject, GoldOrigin]]]:
    """Return responses, content and origin of the settled answers of items by item and round, the latest first."""
    rows: Any = session.execute(
        select(StoredTask, StoredAnswer, StoredPerson.pseudonym)
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
        .where(StoredTask.item_id.in_(items), StoredTask.is_gold.is_(False), StoredAnswer.stage.in_(SETTLED))
        .order_by(StoredAnswer.id.desc())
    )
    by_round: dict[tuple[int, int], list[tuple[list[str], JsonObject, GoldOrigin]]] = defaultdict(list)
    for task, answer, pseudonym in rows:
        name = task_name(project, task.round, task.number)
        origin = GoldOrigin(task=name, stage=answer.stage, answer=answer.id, person=pseudonym, at=answer.at)
        by_round[task.item_id, task.round].append((task.responses, answer.content, origin))
    return by_round


def _gold_answers(session: Session, tasks: Sequence[int]) -> dict[int, list[GoldAnswer]]:
    rows = session.execute(
        select(StoredGoldResult, StoredPerson.pseudonym)
        .join(StoredPerson, StoredGoldResult.person_id == StoredPerson.id)
        .where(StoredGoldResult.task_id.in_(tasks))
        .order_by(StoredGoldResult.id)
    )
    by_task: dict[int, list[GoldAnswer]] = defaultdict(list)
    for row, person in rows:
        result = GoldAnswer(person=person, same=row.num_same, judged=row.num_judged, void=row.is_void, at=row.at)
        by_task[row.task_id].append(result)
    return by_task
