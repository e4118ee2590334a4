"""Review: layers accept items or send them back with a reason, one by one or a whole batch, also after the end.

Who annotated or aligned an item never reviews it, and who settled it does not while a colleague can. A rejected item
begins a new round with new tasks; what was answered before stays in the database. Which layers see it again is drawn
anew: a single item always by each of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import REVIEWED_BY, Layer, TransitionRefused
from steelyard.core.text import natural_order
from steelyard.workbench.pipeline.alignment import FIRST_PAGE, MOST_CHARACTERS, QueuePage, has_worked_on, waiting_items
from steelyard.workbench.pipeline.counters import void_gold
from steelyard.workbench.pipeline.gold_tasks import gold_from_finished
from steelyard.workbench.pipeline.item_states import lock_item, move, retire_tasks
from steelyard.workbench.pipeline.projects import (
    ProjectSettings,
    case_of,
    draw_reviews,
    item_name,
    plan_tasks,
    settings_of,
)
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredEvent, StoredItem, StoredProject, StoredReview, StoredTask

STATE_OF: dict[Layer, str] = {layer: state for state, layer in REVIEWED_BY.items()}
_AFTER_THE_GATE = (*REVIEWED_BY, "finished")
_BLOCK = 500


class Verdict(NamedTuple):
    """A layer's decision on an item. ``restores_discarded``: the responses that people took out come back.

    ``round`` is that of the item which the reviewer saw; null for whichever it is.
    """

    is_accepted: bool
    reason: str = ""
    restores_discarded: bool = False
    round: int | None = None


class BatchProgress(NamedTuple):
    """A batch of a project: how many of its items wait for validation, are finished, and are past the gate in all."""

    project: StoredProject
    batch: str
    num_waiting: int
    num_finished: int
    num_reviewable: int


def items_to_review(session: Session, layer: Layer, person: int, wanted: QueuePage = FIRST_PAGE) -> list[StoredItem]:
    """Return the items that wait for the review of a layer, oldest first, but none that the person may not review."""
    return waiting_items(session, STATE_OF[layer], person, wanted)


def item_for(session: Session, item: int, person: int, states: Sequence[str]) -> StoredItem | None:
    """Return an item in one of the states that the person may decide on; null for any other."""
    return session.scalar(
        select(StoredItem).where(StoredItem.id == item, StoredItem.state.in_(states), ~has_worked_on(person))
    )


def has_left(session: Session, item: int, person: int, states: Sequence[str]) -> bool:
    """Tell whether an item that the person did not annotate was in one of the states and is not any more."""
    stored = session.scalar(select(StoredItem).where(StoredItem.id == item, ~has_worked_on(person)))
    if stored is None or stored.state in states:
        return False
    moves = select(StoredEvent.detail).where(StoredEvent.subject == "item", StoredEvent.subject_id == item)
    return any(detail.get("from") in states for detail in session.scalars(moves))


def decide(session: Session, item: int, verdict: Verdict, *, layer: Layer, person: int, at: float) -> str:
    """Store the decision of a layer on an item. Returns the item's state after it.

    Raises TransitionRefused where somebody else was faster, or has sent the item back and it came again with other
    answers, and RefusedError for a rejection without a reason.
    """
    _check_reason(verdict)
    locked = lock_item(session, item)
    if verdict.round not in (None, locked.round):
        raise TransitionRefused(f"the item is in round {locked.round} by now")
    if locked.state != STATE_OF[layer] or session.scalar(select(has_worked_on(person)).where(StoredItem.id == item)):
        raise TransitionRefused(f"the item is {locked.state!r} by now")
    _write_decision(session, locked, verdict, layer=layer, person=person, at=at)
    project = session.get_one(StoredProject, locked.project_id)
    if verdict.is_accepted:
        move(session, locked, "accepted", person=person, at=at, reason=verdict.reason)
        _make_gold(session, project, [locked], at=at)
        return locked.state
    _begin_round(session, project, [locked], verdict, person=person, at=at)
    return locked.state


def batches_of(session: Session) -> list[BatchProgress]:
    """Return the batches with items past the gate, by project and name."""
    counts = (
        select(StoredItem.project_id, StoredItem.batch, StoredItem.state, func.count())
        .where(StoredItem.state.in_(_AFTER_THE_GATE))
        .group_by(StoredItem.project_id, StoredItem.batch, StoredItem.state)
    )
    numbers: dict[tuple[int, str], dict[str, int]] = {}
    for project, batch, state, number in session.execute(counts):
        numbers.setdefault((project, batch), {})[state] = number
    return [
        BatchProgress(
            session.get_one(StoredProject, project),
            batch,
            states.get("validation", 0),
            states.get("finished", 0),
            sum(states.values()),
        )
        for (project, batch), states in sorted(
            numbers.items(), key=lambda entry: (entry[0][0], natural_order(entry[0][1]))
        )
    ]


def decide_batch(
    session: Session, project: StoredProject, batch: str, verdict: Verdict, *, layer: Layer, person: int, at: float
) -> int:
    """Accept all items of a batch that wait for the layer, or send back all that are past the gate, finished ones too.

    Items that the person annotated are left as they are. Returns the number of items that moved.

    Raises RefusedError for a rejection without a reason, and TransitionRefused where no item is to be decided.
    """
    _check_reason(verdict)
    states = (STATE_OF[layer],) if verdict.is_accepted else _AFTER_THE_GATE
    chosen = (
        select(StoredItem)
        .where(
            StoredItem.project_id == project.id,
            StoredItem.batch == batch,
            StoredItem.state.in_(states),
            ~has_worked_on(person),
        )
        .order_by(StoredItem.id)
        .with_for_update()
    )
    items = list(session.scalars(chosen.execution_options(populate_existing=True)))
    if not items:
        raise TransitionRefused(f"no item of the batch {batch!r} is to be decided")
    for item in items:
        _write_decision(session, item, verdict, layer=layer, person=person, at=at)
        if verdict.is_accepted:
            move(session, item, "accepted", person=person, at=at, reason=verdict.reason)
    action = "batch accepted" if verdict.is_accepted else "batch rejected"
    detail = {"batch": batch, "layer": layer, "items": len(items), "reason": verdict.reason}
    record(session, AuditEvent(action, "project", project.id, person, detail), at=at)
    if verdict.is_accepted:
        _make_gold(session, project, items, at=at)
    else:
        _begin_round(session, project, items, verdict, person=person, at=at)
    return len(items)


def decisions_on(session: Session, item: StoredItem) -> list[StoredReview]:
    """Return the decisions of all layers on an item, in the order in which they were made."""
    made = select(StoredReview).where(StoredReview.item_id == item.id, StoredReview.decision.is_not(None))
    return list(session.scalars(made.order_by(StoredReview.at, StoredReview.id)))


def _begin_round(
    session: Session,
    project: StoredProject,
    items: Sequence[StoredItem],
    verdict: Verdict,
    *,
    person: int,
    at: float,
) -> None:
    """Send items back to annotation with new tasks, and draw which layers review them again."""
    settings = settings_of(project)
    # Whatever the name of this draw is, it must differ from the draws before it: the rounds grow with each.
    batch = f"{items[0].batch}, rejected in round {max(item.round for item in items)}"
    for start in range(0, len(items), _BLOCK):
        block = items[start : start + _BLOCK]
        numbers = [item.id for item in block]
        for item in block:
            move(session, item, "rejected", person=person, at=at, reason=verdict.reason)
            item.agreement = None
            tasks = _new_tasks(session, item, settings, restores_discarded=verdict.restores_discarded)
            session.add_all(tasks)
            if not tasks:
                move(session, item, "dropped", person=None, at=at, reason="no responses are left for a task")
        # An answer that was rejected is no truth to check people by.
        retire_tasks(session, StoredTask.item_id.in_(numbers) & StoredTask.is_gold.is_(True))
        void_gold(session, numbers)
        session.flush()
    names = {item_name(item): item.id for item in items}
    draw_reviews(session, project, names, batch, rounds={item.id: item.round for item in items})


def _new_tasks(
    session: Session, item: StoredItem, settings: ProjectSettings, *, restores_discarded: bool
) -> list[StoredTask]:
    """Return the tasks of the new round of an item; none where there is nothing to ask.

    The kind of the project's tasks may be another by now, for which the item lacks something: it then gets the tasks of
    the round before once more.
    """
    discarded = [] if restores_discarded else item.discarded
    if tasks := plan_tasks(item, case_of(item), settings, round=item.round, discarded=discarded):
        item.discarded = discarded
        return tasks
    former = select(StoredTask).where(
        StoredTask.item_id == item.id,
        StoredTask.round == item.round - 1,
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
    )
    return [
        StoredTask(
            project_id=item.project_id,
            item_id=item.id,
            round=item.round,
            number=number,
            kind=task.kind,
            responses=task.responses,
            category=task.category,
            num_wanted=settings.rules.num_annotators,
        )
        for number, task in enumerate(session.scalars(former.order_by(StoredTask.number)).all(), start=1)
    ]


def _make_gold(session: Session, project: StoredProject, items: Sequence[StoredItem], *, at: float) -> None:
    """Make gold tasks of those items that are finished: what was settled in them checks people from now on."""
    finished = [item.id for item in items if item.state == "finished"]
    session.flush()
    for start in range(0, len(finished), _BLOCK):
        gold_from_finished(session, project, finished[start : start + _BLOCK], at=at)


def _write_decision(
    session: Session, item: StoredItem, verdict: Verdict, *, layer: Layer, person: int, at: float
) -> None:
    """Write the decision into the review of the layer; for an item that it had not drawn, into a new one.

    A decision that was made before stays: a later rejection of the batch is in the audit log.
    """
    review = session.scalar(
        select(StoredReview).where(
            StoredReview.item_id == item.id, StoredReview.round == item.round, StoredReview.layer == layer
        )
    )
    if review is None:
        review = StoredReview(project_id=item.project_id, item_id=item.id, round=item.round, layer=layer)
        session.add(review)
    if review.decision is None:
        review.person_id, review.reason, review.at = person, verdict.reason.strip(), at
        review.decision = "accepted" if verdict.is_accepted else "rejected"


def _check_reason(verdict: Verdict) -> None:
    reason = verdict.reason.strip()
    if len(reason) > MOST_CHARACTERS or not (reason or verdict.is_accepted):
        raise RefusedError(
            f"a reason of {len(reason)} characters",
            words="remark",
            values={"limit": f"{MOST_CHARACTERS:,}"},
            where="reason",
            allowed=f"1 to {MOST_CHARACTERS}",
            do="say what is to be done better",
        )
