"""Gold tasks: what people aligned on, or a layer settled, becomes a task whose answer is known.

Such a task shows what the settled one showed and is handed out like any other. Nobody who has had a task of its item
gets it: what was discussed would be remembered, not judged. Managers can make gold tasks public, for qualification.
"""

from collections.abc import Sequence
from math import ceil

import msgspec
from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.qualification import scored_points
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.numerics import generator
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.item_states import retire_tasks
from steelyard.workbench.pipeline.projects import case_of, settings_of
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.qualification_tables import StoredQualificationTask
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredProject, StoredTask

_EVERYBODY = 10**9
"""The number of answers to a task whose answer is known: everybody may get it."""
SETTLED = ("alignment", "delivery", "operations", "research")
"""The stages whose answers stand."""
GOLD_MADE = "gold tasks made"
"""The event of the audit log."""


def gold_from_finished(session: Session, project: StoredProject, items: Sequence[int], *, at: float) -> None:
    """Make gold tasks of items that have just been finished, as far as the project needs more.

    A person who answers every ordinary task needs as many as ``gold_share`` of these: more are never handed out.
    """
    share = settings_of(project).rules.gold_share
    ordinary = select(func.count()).where(StoredTask.project_id == project.id, StoredTask.is_gold.is_(False))
    most = ceil(share * (session.scalar(ordinary) or 0)) if share else 0
    if most:
        add_gold_tasks(session, project, most=most, at=at, items=items)


def add_gold_tasks(
    session: Session,
    project: StoredProject,
    *,
    most: int,
    at: float,
    items: Sequence[int],
) -> None:
    """Make gold tasks of settled tasks of the finished ones of items, up to ``most`` in the project.

    They are drawn at random by the project's seed. A settled answer that gives no order, or discards a response, checks
    nobody.
    """
    missing = most - (session.scalar(select(func.count()).where(*_live_gold(project))) or 0)
    if missing <= 0:
        return
    candidates = [
        (task, answer)
        for task, answer in _settled_tasks(session, project, items)
        if kind_named(task.kind).is_clear(answer)
    ]
    order = generator(settings_of(project).seed, "gold tasks", len(candidates)).permutation(len(candidates))
    chosen = [candidates[place] for place in order[:missing]]
    for task, answer in chosen:
        last = session.scalar(
            select(func.max(StoredTask.number)).where(
                StoredTask.item_id == task.item_id, StoredTask.round == task.round
            )
        )
        session.add(
            StoredTask(
                project_id=project.id,
                item_id=task.item_id,
                round=task.round,
                number=(last or 0) + 1,
                kind=task.kind,
                responses=task.responses,
                category=task.category,
                num_wanted=_EVERYBODY,
                is_gold=True,
                gold=msgspec.to_builtins(answer),
            )
        )
        session.flush()
    if chosen:
        record(session, AuditEvent(GOLD_MADE, "project", project.id, None, {"tasks": len(chosen)}), at=at)


def take_gold(session: Session, project: StoredProject, *, most: int, by: int | None, at: float) -> int:
    """Make qualification tasks of gold tasks, which check nobody from then on. Returns their number."""
    rows = session.execute(
        select(StoredTask, StoredItem)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .where(*_live_gold(project))
        .order_by(StoredTask.id)
    ).all()
    taken: list[int] = []
    for task, item in rows:
        gold = msgspec.convert(task.gold, TaskAnswer)
        if len(taken) == most or not scored_points(kind_named(task.kind), task.responses, gold):
            continue
        taken.append(task.id)
        row = StoredQualificationTask(
            project_id=project.id,
            kind=task.kind,
            case_json=encode_case(case_of(item)).decode(),
            responses=task.responses,
            reference=task.gold,
            reason=gold.remark or "",
        )
        session.add(row)
    if taken:
        retire_tasks(session, is_among(StoredTask.id, taken))
        record(session, AuditEvent("gold made public", "project", project.id, by, {"tasks": len(taken)}), at=at)
    session.flush()
    return len(taken)


def _settled_tasks(
    session: Session, project: StoredProject, items: Sequence[int]
) -> list[tuple[StoredTask, TaskAnswer]]:
    """Return the settled tasks of finished items without a gold task, with the answer that stands."""
    copy = aliased(StoredTask)
    is_copied = exists().where(
        copy.item_id == StoredTask.item_id,
        copy.round == StoredTask.round,
        copy.is_gold.is_(True),
        copy.is_retired.is_(False),
    )
    rows = session.execute(
        select(StoredTask, StoredAnswer.content)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
        .where(
            StoredItem.project_id == project.id,
            StoredItem.id.in_(items),
            StoredItem.state == "finished",
            StoredTask.round == StoredItem.round,
            StoredTask.is_retired.is_(False),
            StoredTask.is_gold.is_(False),
            StoredAnswer.stage.in_(SETTLED),
            ~is_copied,
        )
        .order_by(StoredTask.item_id, StoredTask.number, StoredAnswer.id)
    ).all()
    # One task of an item: two would show the same responses to a person twice. The latest answer stands.
    latest = {task.id: (task, msgspec.convert(content, TaskAnswer)) for task, content in rows}
    by_item = {task.item_id: (task, answer) for task, answer in latest.values()}
    return list(by_item.values())


def _live_gold(project: StoredProject) -> list[ColumnElement[bool]]:
    return [
        StoredTask.project_id == project.id,
        StoredTask.is_gold.is_(True),
        StoredTask.is_retired.is_(False),
    ]
