"""People who leave in the middle: their account is closed or erased, or they get another role.

What they have answered stays. What they hold goes to others at once, not when its time is over, which may be a week. An
item that nobody is left to align is passed on to delivery: somebody who is left passes it on, or settles it with
whoever comes back.
"""

from collections.abc import Sequence

from sqlalchemy import exists, select
from sqlalchemy.orm import Session, aliased

from steelyard.workbench.pipeline.item_states import lock_item, move
from steelyard.workbench.pipeline.queues import release
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredItem, StoredPerson, StoredTask

_REASON = "nobody is left who could align it"


def hand_over(session: Session, person: StoredPerson, *, at: float) -> None:
    """Give what an annotator holds to others, and pass on what only this person was left to align.

    Called after the account was changed: the person has left the active annotators by then.
    """
    session.flush()
    held = select(StoredAssignment).where(StoredAssignment.person_id == person.id, StoredAssignment.state == "open")
    for assignment in session.scalars(held.order_by(StoredAssignment.id)).all():
        # With its draft, as one whose time was over: it is theirs again if they come back and it is free.
        release(session, assignment, state="expired")
    pass_on_abandoned(session, _aligning(session, person.id), at=at)


def pass_on_abandoned(session: Session, items: Sequence[StoredItem], *, at: float) -> None:
    """Pass the items in alignment on to delivery that none of their people can align any more."""
    for item in items:
        if item.state == "aligning" and not _has_aligner(session, item):
            move(session, item, "unresolved", person=None, at=at, reason=_REASON)


def _aligning(session: Session, person: int) -> list[StoredItem]:
    """Return the items in alignment that a person has answered in their present round, locked in their order."""
    answered = exists().where(
        StoredAnswer.task_id == StoredTask.id,
        StoredAnswer.person_id == person,
        StoredAnswer.stage == "annotation",
        StoredTask.item_id == StoredItem.id,
        StoredTask.round == StoredItem.round,
    )
    numbers = session.scalars(
        select(StoredItem.id).where(StoredItem.state == "aligning", answered).order_by(StoredItem.id)
    ).all()
    return [lock_item(session, number) for number in numbers]


def _has_aligner(session: Session, item: StoredItem) -> bool:
    """Tell whether an active annotator has answered a task of the item's round that is still shown."""
    task = aliased(StoredTask)
    able = (
        select(StoredAnswer.id)
        .join(task, StoredAnswer.task_id == task.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
        .where(
            task.item_id == item.id,
            task.round == item.round,
            task.is_retired.is_(False),
            task.is_gold.is_(False),
            StoredAnswer.stage == "annotation",
            StoredPerson.role == "annotator",
            StoredPerson.is_active.is_(True),
        )
    )
    return session.scalar(able.limit(1)) is not None
