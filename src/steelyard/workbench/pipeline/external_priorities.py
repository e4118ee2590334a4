"""Priorities that a program sends: a number for each prompt, such as how unsure its own model is.

They order what nobody has begun, as files do (`task_ordering`), and are recorded as the reason for its place. An item
that came by chance keeps its place: the random part of a queue is a sample of all items only while nobody chooses.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from steelyard.annotation.task_priority import deciles
from steelyard.core.iteration import batched
from steelyard.core.types import JsonObject
from steelyard.workbench.pipeline.task_ordering import QueueSource, untouched_items
from steelyard.workbench.storage.audit_log import Deed, record
from steelyard.workbench.storage.queue_tables import StoredQueue, StoredQueuePlace
from steelyard.workbench.storage.tables import StoredItem, StoredProject, StoredTask

_BLOCK = 500
_SET_PRIORITY = update(StoredTask).where(StoredTask.id == bindparam("task")).values(priority=bindparam("value"))


class PrioritiesSet(NamedTuple):
    """The open tasks with a new priority; items by chance, which keep theirs; prompts that the project lacks."""

    num_tasks: int
    num_by_chance: int
    num_unknown: int


class _OrderedTask(NamedTuple):
    task: int
    item: int
    prompt: str
    is_random: bool | None


def set_priorities(
    session: Session, project: StoredProject, priorities: Mapping[str, float], *, by: int, at: float
) -> PrioritiesSet:
    """Order the open tasks by a number for each prompt, highest first, with a record of it for items not begun."""
    # Locked until the end: who would begin one of them now waits for its new place.
    untouched = set(session.scalars(untouched_items(project).with_for_update()))
    known: set[str] = set()
    by_chance: set[int] = set()
    ordered: dict[int, float] = {}
    num_tasks = 0
    for prompts in batched(priorities, _BLOCK):
        known |= _known_prompts(session, project, prompts)
        tasks = _open_tasks(session, project, prompts)
        by_chance |= {each.item for each in tasks if each.is_random}
        chosen = [each for each in tasks if not each.is_random]
        if chosen:
            changes = [{"task": each.task, "value": priorities[each.prompt]} for each in chosen]
            session.connection().execute(_SET_PRIORITY, changes)
        num_tasks += len(chosen)
        ordered |= {each.item: priorities[each.prompt] for each in chosen if each.item in untouched}
    if ordered:
        _record_places(session, project, ordered, priorities, by=by, at=at)
    detail = {"tasks": num_tasks, "items": len(ordered), "kept by chance": len(by_chance)}
    record(session, Deed("queue ordered", "project", project.id, by, detail), at=at)
    return PrioritiesSet(num_tasks, len(by_chance), len(priorities.keys() - known))


def _known_prompts(session: Session, project: StoredProject, prompts: Sequence[str]) -> set[str]:
    of_project = select(StoredItem.prompt).where(StoredItem.project_id == project.id, StoredItem.prompt.in_(prompts))
    return set(session.scalars(of_project))


def _open_tasks(session: Session, project: StoredProject, prompts: Sequence[str]) -> list[_OrderedTask]:
    """Return the tasks of prompts that people may get, gold tasks left out: their place depends on no queue."""
    rows = session.execute(
        select(StoredTask.id, StoredItem.id, StoredItem.prompt, StoredQueuePlace.is_random)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .outerjoin(StoredQueuePlace, StoredQueuePlace.item_id == StoredItem.id)
        .where(
            StoredItem.project_id == project.id,
            StoredItem.prompt.in_(prompts),
            StoredItem.state == "annotating",
            StoredTask.round == StoredItem.round,
            StoredTask.is_gold.is_(False),
            StoredTask.is_retired.is_(False),
        )
        .order_by(StoredTask.id)
    )
    return [_OrderedTask(*row) for row in rows]


def _record_places(
    session: Session,
    project: StoredProject,
    ordered: Mapping[int, float],
    priorities: Mapping[str, float],
    *,
    by: int,
    at: float,
) -> None:
    """Write how the items came to their places, instead of what an earlier ordering said of them."""
    latest = select(StoredQueue.random_share).where(StoredQueue.project_id == project.id)
    sent = msgspec.json.encode(dict(sorted(priorities.items())))
    source = QueueSource(
        name="REST interface",
        file=f"/api/v1/projects/{project.id}/priorities",
        sha256=hashlib.sha256(sent).hexdigest(),
        num_pairs=0,
        num_labels=0,
        fitted=None,
    )
    queue = StoredQueue(
        project_id=project.id,
        person_id=by,
        at=at,
        random_share=session.scalar(latest.order_by(StoredQueue.id.desc()).limit(1)) or 0.0,
        sources=[msgspec.to_builtins(source)],
    )
    session.add(queue)
    session.flush()
    items = sorted(ordered, key=lambda item: (-ordered[item], item))
    tenths = deciles(np.array([ordered[item] for item in items], np.float64)).tolist()
    rows: list[JsonObject] = [
        {"project_id": project.id, "item_id": item, "queue_id": queue.id, "place": place, "priority": ordered[item]}
        | {"uncertainty": None, "disagreement": None, "decile": tenth, "is_random": False}
        for place, (item, tenth) in enumerate(zip(items, tenths, strict=True), start=1)
    ]
    for block in batched(rows, _BLOCK):
        session.execute(delete(StoredQueuePlace).where(StoredQueuePlace.item_id.in_([row["item_id"] for row in block])))
        session.execute(insert(StoredQueuePlace), block)
