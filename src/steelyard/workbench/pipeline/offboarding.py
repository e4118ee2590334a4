"""People who leave in the middle: their account is closed or erased, or they get another role.

What they have answered stays. What they hold goes to others at once, not when its time is over, which may be a week. A
task that people align is settled when all of them agree: where one has left without a proposal the item is passed on to
delivery.
"""

from collections.abc import Sequence

from sqlalchemy import bindparam, exists, select
from sqlalchemy.orm import Session

from steelyard.core.iteration import batched
from steelyard.workbench.pipeline.disputes import TaskEvidence, evidence_of
from steelyard.workbench.pipeline.item_states import lock_item, move
from steelyard.workbench.pipeline.queues import release
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredItem, StoredPerson, StoredTask

_BLOCK = 500
_REASON = "a person who would have to align it has left"
_ACTIVE = select(StoredPerson.id).where(
    StoredPerson.id.in_(bindparam("people", expanding=True)),
    StoredPerson.role == "annotator",
    StoredPerson.is_active.is_(True),
)


def hand_over(session: Session, person: StoredPerson, *, at: float) -> None:
    """Give what an annotator holds to others, and pass on what cannot be aligned without this person.

    Called after the account was changed: the person has left the active annotators by then.
    """
    session.flush()
    held = select(StoredAssignment).where(StoredAssignment.person_id == person.id, StoredAssignment.state == "open")
    for assignment in session.scalars(held.order_by(StoredAssignment.id)).all():
        # With its draft, as one whose time was over: it is theirs again if they come back and it is free.
        release(session, assignment, state="expired")
    answered = exists().where(
        StoredAnswer.task_id == StoredTask.id,
        StoredAnswer.person_id == person.id,
        StoredAnswer.stage == "annotation",
        StoredTask.item_id == StoredItem.id,
        StoredTask.round == StoredItem.round,
    )
    numbers = session.scalars(
        select(StoredItem.id).where(StoredItem.state == "aligning", answered).order_by(StoredItem.id)
    ).all()
    pass_on_abandoned(session, [lock_item(session, number) for number in numbers], at=at)


def pass_on_abandoned(session: Session, items: Sequence[StoredItem], *, at: float) -> None:
    """Pass items in alignment on to delivery that cannot be settled there any more: some of their people have left."""
    aligning = [item for item in items if item.state == "aligning"]
    if not aligning:
        return
    session.flush()
    for item in abandoned(session, aligning):
        move(session, item, "unresolved", person=None, at=at, reason=_REASON)


def abandoned(session: Session, items: Sequence[StoredItem]) -> list[StoredItem]:
    """Return those of the items in alignment that wait for a person who has left."""
    waiting: list[StoredItem] = []
    for block in batched(items, _BLOCK):
        evidence = evidence_of(session, block)
        people = {person for tasks in evidence.values() for each in tasks for person in each.answers}
        active = set(session.scalars(_ACTIVE, {"people": list(people)}))
        waiting += [item for item in block if any(_is_abandoned(each, active) for each in evidence[item.id])]
    return waiting


def _is_abandoned(task: TaskEvidence, active: set[int]) -> bool:
    """Tell whether an open task has a person who has left without a proposal: it is settled when all agree."""
    return task.is_open and not task.answers.keys() <= active | task.proposals.keys()
