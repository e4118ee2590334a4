"""When a planted review comes into the queue of a layer, and who may get it.

It comes after an ordinary item, within the time that passes between two changes of the project, and has its place in
the queue by its moment, as others do: it neither gathers at an end nor fills an empty queue, nor shares a moment. One
of each 1/share reviews is planted, at a random place of each block of items (`annotation.gold`). The first person of
the layer who decides on it takes it from the queue, as with any item.

Its number and its batch are not those of its item, which is older than what waits: it gets one of the numbers that the
import left between those of the items (`StoredSpareNumber`), at random, as the items got theirs.
"""

from typing import Any

from numpy.random import Generator
from sqlalchemy import BindParameter, ColumnElement, exists, func, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from steelyard.annotation.gold import is_gold_place
from steelyard.annotation.pipeline import LAYERS, REVIEWED_BY, Layer
from steelyard.core.numerics import generator
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredItem,
    StoredPerson,
    StoredPlantedReview,
    StoredProject,
    StoredRemark,
    StoredReview,
    StoredSpareNumber,
    StoredTask,
)

STATE_OF: dict[Layer, str] = {layer: state for state, layer in REVIEWED_BY.items()}
"""The state of an item that waits for the review of a layer."""
ROLE_OF: dict[Layer, str] = {"delivery": "delivery", "operations": "operations", "research": "researcher"}
"""The role of those who decide in a layer."""


_LONGEST_PAUSE = 3600.0
"""Seconds within which a planted review follows an ordinary item."""
_NUM_LATEST = 20
"""Items in whose time a planted review comes: right after one, it would come sooner than others do."""


def place_review(session: Session, item: StoredItem, layer: Layer, *, at: float) -> None:
    """Put a planted review into the queue of a layer to which an item comes, if it is the turn of one.

    It is seen a random time later: the moments of two items that came together would be equal to the last digit.

    None comes while no finished item lies ready that a colleague of the layer does not know.
    """
    settings = settings_of(session.get_one(StoredProject, item.project_id))
    share = settings.rules.review_gold_share
    if not share:
        return
    # Of the reviews that people make, ordinary ones are 1 - share: so many planted ones come for each of them.
    odds = share / (1 - share)
    if not is_gold_place(item.id, share=odds, person=-1 - LAYERS.index(layer), seed=settings.seed):
        return
    planted = StoredPlantedReview
    ready = (
        select(planted)
        .join(StoredItem, planted.item_id == StoredItem.id)
        .where(
            planted.project_id == item.project_id,
            planted.layer == layer,
            planted.decision.is_(None),
            planted.placed_at.is_(None),
            planted.is_retired.is_(False),
            can_review(layer),
        )
        # Where no number is spare, it has the batch and the number of its item: those near the ones that come now.
        .order_by((StoredItem.batch == item.batch).desc(), func.abs(planted.item_id - item.id), planted.item_id.desc())
        .limit(1)
        # Two people who move items at once take different ones, and wait for nothing.
        .with_for_update(of=planted, skip_locked=True)
    )
    if chosen := session.scalar(ready.execution_options(populate_existing=True)):
        rng = generator(settings.seed, "planted review placed", chosen.item_id, chosen.round, LAYERS.index(layer))
        chosen.placed_at = at + _delay(session, item, layer, rng, at=at)
        if spare := _spare_number(session, item, rng):
            chosen.number, chosen.batch = spare.id, spare.batch
            session.delete(spare)
        session.flush()


def _delay(session: Session, item: StoredItem, layer: Layer, rng: Generator, *, at: float) -> float:
    """Return the seconds after which a planted review follows an item: within the time that up to 20 of them took.

    So many others come between the two that the moments before and after it are as far away as those of others.
    """
    latest = (
        select(StoredItem.changed_at)
        .where(StoredItem.state == STATE_OF[layer], StoredItem.project_id == item.project_id)
        .where(StoredItem.batch == item.batch, StoredItem.changed_at <= at)
        .order_by(StoredItem.changed_at.desc(), StoredItem.id.desc())
        .limit(_NUM_LATEST)
    )
    moments = session.scalars(latest).all()
    # Items of a batch that is moved at once have the same moment, and so has this one.
    pause = at - moments[-1] if len(moments) > 1 else _last_pause(session, layer, at=at)
    return min(pause, _LONGEST_PAUSE) * float(rng.random())


def _last_pause(session: Session, layer: Layer, *, at: float) -> float:
    """Return the time since the latest change before a moment of items that wait for a layer or are finished."""
    before = (
        session.scalar(
            select(StoredItem.changed_at)
            .where(StoredItem.state == state, StoredItem.changed_at < at)
            .order_by(StoredItem.changed_at.desc())
            .limit(1)
        )
        for state in (STATE_OF[layer], "finished")
    )
    return min((at - moment for moment in before if moment is not None), default=0.0)


def _spare_number(session: Session, item: StoredItem, rng: Generator) -> StoredSpareNumber | None:
    """Return a random one of the spare numbers that were left with that of an item; null for none at all.

    Where none is left of these, it is one of those before them in the batch, after them, or in the project.
    """
    spare = StoredSpareNumber
    free = select(spare).where(spare.project_id == item.project_id)
    of_batch = spare.batch == item.batch
    for nearest in (
        free.where(of_batch, spare.place <= item.place).order_by(spare.place.desc()),
        free.where(of_batch, spare.place > item.place).order_by(spare.place),
        free.order_by(spare.id.desc()),
    ):
        block = session.scalar(nearest.limit(1))
        if block is None:
            continue
        of_block = free.where(spare.batch == block.batch, spare.place == block.place).order_by(spare.id)
        number = session.scalar(select(func.count()).select_from(of_block.order_by(None).subquery())) or 0
        # Two people who move items at once take different ones, and wait for nothing.
        left = of_block.with_for_update(skip_locked=True).limit(1)
        chosen = session.scalar(left.offset(int(rng.integers(max(1, number))))) or session.scalar(left)
        if chosen is not None:
            return chosen
    return None


def can_review(layer: Layer) -> ColumnElement[bool]:
    """Return the condition that a person of a layer does not know the item of the statement."""
    colleague = aliased(StoredPerson)
    return (
        exists()
        .where(colleague.role == ROLE_OF[layer], colleague.is_active.is_(True), ~knows_item(colleague.id))
        .correlate_except(colleague)
    )


def knows_item(person: InstrumentedAttribute[int] | BindParameter[int]) -> ColumnElement[bool]:
    """Return the condition that a person knows the item of the statement: has worked on it, or has its answers."""
    task, others = aliased(StoredTask), aliased(StoredTask)
    answer, assignment = aliased(StoredAnswer), aliased(StoredAssignment)
    planted = aliased(StoredPlantedReview)
    review, remark = aliased(StoredReview), aliased(StoredRemark)
    by_item: tuple[tuple[Any, ColumnElement[bool]], ...] = (
        (review, review.person_id == person),
        (remark, remark.person_id == person),
        (planted, or_(planted.person_id == person, planted.ruled_by == person)),
    )
    answered = select(answer.id).join(task, answer.task_id == task.id)
    had = select(assignment.id).join(others, assignment.task_id == others.id)
    return or_(
        has_answers_of(person),
        answered.where(answer.person_id == person, task.item_id == StoredItem.id)
        .correlate_except(answer, task)
        .exists(),
        had.where(assignment.person_id == person, assignment.state != "unseen", others.item_id == StoredItem.id)
        .correlate_except(assignment, others)
        .exists(),
        *(
            select(table.id).where(table.item_id == StoredItem.id, condition).correlate_except(table).exists()
            for table, condition in by_item
        ),
    )


def has_answers_of(person: InstrumentedAttribute[int] | BindParameter[int]) -> ColumnElement[bool]:
    """Return the condition that a person was sent the answers of the finished item of the statement.

    Who has exported the finished items since it became one has them, and everybody has those of a released item.
    """
    event = aliased(StoredEvent)
    sent = select(event.id).where(*_is_sent(event, StoredItem.project_id, person), event.at >= StoredItem.changed_at)
    return sent.correlate_except(event).exists()


def answers_sent_at(session: Session, project: int, person: int) -> float | None:
    """Return the latest moment at which a person was sent the finished items of a project: see `has_answers_of`."""
    event = aliased(StoredEvent)
    return session.scalar(select(func.max(event.at)).where(*_is_sent(event, project, person)))


def note_sent_answers(session: Session, project: int, person: int, *, at: float) -> None:
    """Record that a person gets the answers to all finished items, where the person does not have them already."""
    finished = StoredItem.project_id == project, StoredItem.state == "finished"
    latest = session.scalar(select(func.max(StoredItem.changed_at)).where(*finished))
    if latest is not None and latest > (answers_sent_at(session, project, person) or -1.0):
        record(session, AuditEvent("exported", "project", project, person, {"evidence": "answers"}), at=at)


def _is_sent(
    event: Any, project: int | InstrumentedAttribute[int], person: int | InstrumentedAttribute[int] | BindParameter[int]
) -> tuple[ColumnElement[bool], ...]:
    is_sent = or_(event.action == "released", (event.action == "exported") & (event.person_id == person))
    return event.subject == "project", event.subject_id == project, is_sent
