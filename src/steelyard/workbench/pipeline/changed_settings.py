"""Other settings for a project that is under way, and what becomes of its open items.

How many people a task asks is fixed when the task is made. Where the rules ask for another number, items that are being
annotated follow: with more, their tasks take further people; with fewer, tasks with enough answers close, and items all
of whose tasks are answered go through the gate at once, for no answer is to come that would take them there. Items past
annotation, the kinds of tasks that exist, and draws of reviews stay as they are.
"""

from collections import defaultdict
from collections.abc import Sequence

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.core.iteration import batched
from steelyard.core.types import JsonObject
from steelyard.workbench.pipeline.discards import remove_discarded
from steelyard.workbench.pipeline.gate_agreement import UnitCounts
from steelyard.workbench.pipeline.offboarding import pass_on_abandoned
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.pipeline.queues import release
from steelyard.workbench.pipeline.submissions import pass_gate
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import StoredAssignment, StoredEvent, StoredItem, StoredProject, StoredTask

_BLOCK = 500
_CHANGED = "settings changed"


def change_settings(
    session: Session, project: StoredProject, settings: ProjectSettings, *, by: int | None, at: float
) -> None:
    """Give a project other settings. Open items ask as many people as the new rules say."""
    before = settings_of(project)
    if settings == before:
        return
    was, project.settings = project.settings, msgspec.to_builtins(settings)
    record(session, AuditEvent(_CHANGED, "project", project.id, by, {"was": was, "now": project.settings}), at=at)
    session.flush()
    if settings.rules.num_annotators != before.rules.num_annotators:
        _ask_as_many(session, project, settings, by=by, at=at)


def reasons_so_far(session: Session, project: StoredProject) -> frozenset[str]:
    """Return every reason for which a response could be discarded, now or under earlier settings.

    A person may have the page of a task open that offers a reason which the settings have lost since.
    """
    changed = select(StoredEvent.detail).where(
        StoredEvent.subject == "project", StoredEvent.subject_id == project.id, StoredEvent.action == _CHANGED
    )
    former = [reason for detail in session.scalars(changed) for reason in detail["was"].get("discard_reasons", ())]
    return frozenset(settings_of(project).discard_reasons) | frozenset(former)


def _ask_as_many(
    session: Session, project: StoredProject, settings: ProjectSettings, *, by: int | None, at: float
) -> None:
    """Let open tasks ask as many people as the settings say, and pass the items on that are complete by that."""
    annotating = select(StoredItem.id).where(StoredItem.project_id == project.id, StoredItem.state == "annotating")
    num_tasks = num_released = 0
    units = UnitCounts()
    for numbers in batched(session.scalars(annotating.order_by(StoredItem.id)).all(), _BLOCK):
        items = _locked_items(session, numbers)
        changed: set[int] = set()
        for task, held in _open_tasks(session, items):
            wanted = max(settings.rules.num_annotators, task.num_answered)
            if wanted != task.num_wanted:
                losing = held[max(0, wanted - task.num_answered) :]
                num_reserved = task.num_reserved - sum(release(session, each, state="expired") for each in losing)
                task.num_wanted, task.is_open = wanted, num_reserved < wanted
                num_released += len(losing)
                num_tasks += 1
                changed.add(task.item_id)
        session.flush()
        for item in sorted(changed):
            remove_discarded(session, items[item], settings, person=by, at=at)
            pass_gate(session, items[item], settings, at=at, units=units)
        pass_on_abandoned(session, [item for number, item in items.items() if number in changed], at=at)
    detail: JsonObject = {"tasks": num_tasks, "released": num_released, "num_annotators": settings.rules.num_annotators}
    record(session, AuditEvent("other number of people asked", "project", project.id, by, detail), at=at)


def _locked_items(session: Session, numbers: Sequence[int]) -> dict[int, StoredItem]:
    """Return the items that are still being annotated, locked in the order in which everybody locks them."""
    chosen = select(StoredItem).where(StoredItem.id.in_(numbers)).order_by(StoredItem.id).with_for_update()
    items = session.scalars(chosen.execution_options(populate_existing=True))
    return {item.id: item for item in items if item.state == "annotating"}


def _open_tasks(session: Session, items: dict[int, StoredItem]) -> list[tuple[StoredTask, Sequence[StoredAssignment]]]:
    """Return the tasks of the present rounds of items, each with who holds it, the first to lose it last."""
    tasks = session.scalars(
        select(StoredTask)
        .where(StoredTask.item_id.in_(items), StoredTask.is_retired.is_(False), StoredTask.is_gold.is_(False))
        .order_by(StoredTask.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    present = [task for task in tasks if task.round == items[task.item_id].round]
    held: dict[int, list[StoredAssignment]] = defaultdict(list)
    rows = select(StoredAssignment).where(
        is_among(StoredAssignment.task_id, (task.id for task in present)), StoredAssignment.state == "open"
    )
    # Who has entered something keeps the task rather than who has not, and who had it first.
    for row in sorted(session.scalars(rows), key=lambda each: (each.draft is None, each.assigned_at, each.id)):
        held[row.task_id].append(row)
    return [(task, held[task.id]) for task in present]
