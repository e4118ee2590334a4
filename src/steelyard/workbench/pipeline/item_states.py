"""The moves of an item: one event at a time, on its locked row, with the event in the audit log."""

from sqlalchemy import ColumnElement, bindparam, select, update
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import REVIEWED_BY, ItemEvent, Layer, advance
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.review_placement import place_review
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.tables import StoredAssignment, StoredItem, StoredProject, StoredReview, StoredTask

# Every item asks this at each layer: building the statement takes longer than running it.
_DRAWN = select(StoredReview.id).where(
    StoredReview.item_id == bindparam("item"),
    StoredReview.round == bindparam("round"),
    StoredReview.layer == bindparam("layer"),
)


def lock_item(session: Session, item: int) -> StoredItem:
    """Return an item whose row is locked until the end of the transaction: what follows sees all that was done."""
    return session.get_one(StoredItem, item, with_for_update=True, populate_existing=True)


def move(
    session: Session, item: StoredItem, event: ItemEvent, *, person: int | None, at: float, reason: str = ""
) -> None:
    """Move an item by an event, and past the layers that did not draw it. Raises TransitionRefused.

    The tasks of an item that is dropped are taken from the people who have them.
    """
    before = item.state
    item.state, item.round = advance(before, event, round=item.round)
    item.changed_at = at
    detail = {"from": before, "to": item.state, "round": item.round, "reason": reason}
    record(session, AuditEvent(event, "item", item.id, person, detail), at=at)
    if event == "dropped":
        retire_tasks(session, StoredTask.item_id == item.id)
    layer = REVIEWED_BY.get(item.state)
    if layer is None:
        return
    if _is_checked(session, item, layer):
        place_review(session, item, layer, at=at)
    else:
        move(session, item, "not drawn", person=None, at=at)


def retire_tasks(session: Session, which: ColumnElement[bool]) -> None:
    """Retire tasks: nobody gets them any more, and who has one now loses it. Their answers stay."""
    # Tasks first: a person who reserves one at this moment has done so before, or finds it closed.
    session.execute(update(StoredTask).where(which).values(is_retired=True, is_open=False))
    tasks = select(StoredTask.id).where(which)
    held = StoredAssignment.task_id.in_(tasks), StoredAssignment.state == "open"
    session.execute(update(StoredAssignment).where(*held).values(state="released"))
    session.execute(update(StoredTask).where(which).values(num_reserved=StoredTask.num_answered))


def _is_checked(session: Session, item: StoredItem, layer: Layer) -> bool:
    if layer == "research":
        project = session.get_one(StoredProject, item.project_id)
        return settings_of(project).rules.validation
    drawn = session.scalar(_DRAWN, {"item": item.id, "round": item.round, "layer": layer})
    return drawn is not None
