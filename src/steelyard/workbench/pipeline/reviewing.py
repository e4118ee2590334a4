"""Review: layers accept items or send them back with a reason, one by one or a whole batch, also after the end.

Who annotated or aligned an item never reviews it, and who settled it does not while a colleague can. A rejected item
begins a new round with new tasks; what was answered before stays in the database. Which layers see it again is drawn
anew: a single item always by each of them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, REVIEWED_BY, Layer, TransitionRefused
from steelyard.core.text import natural_order
from steelyard.workbench.pipeline.adjudication_times import active_seconds, count_adjudication
from steelyard.workbench.pipeline.alignment import (
    FIRST_PAGE,
    MOST_CHARACTERS,
    PAGE_LENGTH,
    QueuePage,
    add_remark,
    has_worked_on,
    waiting_items,
)
from steelyard.workbench.pipeline.counters import void_gold
from steelyard.workbench.pipeline.disputes import TaskEvidence, evidence_of
from steelyard.workbench.pipeline.item_states import lock_item, move, retire_tasks
from steelyard.workbench.pipeline.planted_reviews import (
    decide_planted,
    decisions_shown,
    evidence_shown,
    item_as_shown,
    open_in_batch,
    open_review,
    open_reviews,
    planted_with_number,
    remark_on,
    remarks_shown,
    retire_in_batch,
    retire_reviews,
    review_shown,
    shown_sums,
    shown_to,
)
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.review_placement import ROLE_OF, STATE_OF
from steelyard.workbench.pipeline.review_preparation import plant_finished
from steelyard.workbench.pipeline.round_plans import draw_reviews, lasting_name, tasks_of_next_round
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    StoredEvent,
    StoredItem,
    StoredPlantedReview,
    StoredProject,
    StoredReview,
    StoredTask,
)

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
    """Return the items that wait for the review of a layer, oldest first, but none that the person may not review.

    Planted reviews are among them, as the items that they show.
    """
    waiting = waiting_items(session, STATE_OF[layer], person, wanted)
    every = [*waiting, *open_reviews(session, layer, person, wanted)]
    return sorted(every, key=lambda item: (item.changed_at, item.id))[:PAGE_LENGTH]


def item_for(session: Session, number: int, person: int, states: Sequence[str]) -> StoredItem | None:
    """Return an item in one of the states that the person may decide on, or that is shown as such; null for others.

    ``number`` is that with which the item is shown, as in all functions of this module.
    """
    stored = session.scalar(
        select(StoredItem).where(StoredItem.id == number, StoredItem.state.in_(states), ~has_worked_on(person))
    )
    if stored is not None:
        return stored
    planted = _planted_for(session, number, person, states)
    return (
        None
        if planted is None
        else item_as_shown(session.get_one(StoredItem, planted.item_id), review_shown(session, planted))
    )


class ReviewedItem(NamedTuple):
    """An item as a person of a layer sees it: its tasks with the answers, decisions, and remarks by person."""

    item: StoredItem
    evidence: list[TaskEvidence]
    decisions: list[StoredReview]
    remarks: list[tuple[int, str]] | None


def reviewed_item(session: Session, number: int, person: int, states: Sequence[str]) -> ReviewedItem | None:
    """Return an item in one of the states with what is shown of it; null as by `item_for`.

    ``remarks`` are null where those of the item are shown.
    """
    shown = item_for(session, number, person, states)
    if shown is None:
        return None
    planted = _planted_for(session, number, person, states)
    stored = session.get_one(StoredItem, number if planted is None else planted.item_id)
    decisions = decisions_on(session, stored)
    if planted is None:
        return ReviewedItem(shown, evidence_of(session, [stored])[number], decisions, None)
    evidence = evidence_shown(session, stored, review_shown(session, planted))
    return ReviewedItem(shown, evidence, decisions_shown(planted, decisions), remarks_shown(session, planted))


def _planted_for(session: Session, number: int, person: int, states: Sequence[str]) -> StoredPlantedReview | None:
    waiting = (open_review(session, number, layer, person) for layer in LAYERS if STATE_OF[layer] in states)
    return next((planted for planted in waiting if planted is not None), None)


def has_left(session: Session, number: int, person: int, states: Sequence[str]) -> bool:
    """Tell whether an item that the person did not annotate was in one of the states and is not any more."""
    planted = planted_with_number(session, number)
    item = number if planted is None else planted.item_id
    stored = session.scalar(select(StoredItem).where(StoredItem.id == item, ~has_worked_on(person)))
    if planted is not None:
        is_over = planted.decision is not None or planted.is_retired
        return stored is not None and is_over and STATE_OF[planted.layer] in states
    if stored is None or stored.state in states or _is_shown_elsewhere(session, number, states):
        return False
    moves = select(StoredEvent.detail).where(StoredEvent.subject == "item", StoredEvent.subject_id == item)
    return any(detail.get("from") in states for detail in session.scalars(moves))


def _is_shown_elsewhere(session: Session, item: int, states: Sequence[str]) -> bool:
    """Tell whether a planted review shows an item under another number to the layer of the states."""
    planted = StoredPlantedReview
    shown = select(planted.layer).where(
        planted.item_id == item,
        planted.number.is_not(None),
        planted.is_retired.is_(False),
    )
    layers: Sequence[Any] = session.scalars(shown).all()
    return any(STATE_OF[layer] in states for layer in layers)


def remark_in_review(session: Session, item: StoredItem, text: str, *, layer: Layer, person: int, at: float) -> None:
    """Keep a remark of a reviewer on an item, or with the planted review that shows it. Raises as `add_remark`."""
    planted = open_review(session, item.id, layer, person, locks=True)
    if planted is None:
        add_remark(session, item, text, person=person, at=at)
    else:
        remark_on(session, planted, text, person=person, at=at)


def count_review(session: Session, item: StoredItem, *, layer: Layer, person: int, reported: float, at: float) -> float:
    """Keep the active time that a reviewer's form reports, and return how much of it counts.

    That of a planted review stays with it: the hours of the project are those of its items.
    """
    planted = open_review(session, item.id, layer, person, locks=True)
    if planted is None:
        return count_adjudication(session, item, stage=layer, person=person, reported=reported, at=at)
    begun = planted.placed_at or at
    seconds = active_seconds(session, person, since=begun, reported=reported, at=at)
    planted.seconds += seconds
    return seconds


def locked_item(session: Session, number: int) -> StoredItem:
    """Return an item whose row is locked; for the number of a planted review, the item that it shows."""
    planted = planted_with_number(session, number)
    return lock_item(session, number if planted is None else planted.item_id)


def decide(session: Session, number: int, verdict: Verdict, *, layer: Layer, person: int, at: float) -> None:
    """Store the decision of a layer on an item.

    Raises TransitionRefused where another person was faster, or has sent the item back and it came again with other
    answers, and RefusedError for a rejection without a reason.
    """
    check_reason(verdict)
    locked = locked_item(session, number)
    if verdict.round not in (None, locked.round):
        raise TransitionRefused(f"the item is in round {locked.round} by now")
    planted = open_review(session, number, layer, person, locks=True)
    if planted is None and locked.id != number:
        raise TransitionRefused("another person has decided on the item by now")
    if planted is not None:
        chosen = {"is_accepted": verdict.is_accepted, "reason": verdict.reason}
        decide_planted(session, planted, **chosen, person=person, at=at)
        return
    if locked.state != STATE_OF[layer] or session.scalar(
        select(has_worked_on(person)).where(StoredItem.id == locked.id)
    ):
        raise TransitionRefused(f"the item is {locked.state!r} by now")
    _write_decision(session, locked, verdict, layer=layer, person=person, at=at)
    project = session.get_one(StoredProject, locked.project_id)
    if verdict.is_accepted:
        move(session, locked, "accepted", person=person, at=at, reason=verdict.reason)
        plant_finished(session, project, [locked], at=at)
    else:
        begin_round(session, project, [locked], verdict, person=person, at=at)


def batches_of(session: Session, layer: Layer, person: int) -> list[BatchProgress]:
    """Return the batches with items past the gate, by project and name.

    Items count as a person of the layer sees them: one with a planted review waits, or has moved on from there.
    """
    counts = (
        select(StoredItem.project_id, StoredItem.batch, StoredItem.state, func.count())
        .where(StoredItem.state.in_(_AFTER_THE_GATE))
        .group_by(StoredItem.project_id, StoredItem.batch, StoredItem.state)
    )
    numbers: dict[tuple[int, str], dict[str, int]] = {}
    for project, batch, state, number in session.execute(counts):
        numbers.setdefault((project, batch), {})[state] = number
    for project in {project for project, _ in numbers}:
        for each in shown_sums(session, shown_to(session, project, person, ROLE_OF[layer])):
            numbers[project, each.item_batch]["finished"] -= each.number
            states = numbers.setdefault((project, each.batch), {})
            states[each.state] = states.get(each.state, 0) + each.number
    return [
        BatchProgress(
            session.get_one(StoredProject, project),
            batch,
            states.get("validation", 0),
            states.get("finished", 0),
            sum(states.get(state, 0) for state in _AFTER_THE_GATE),
        )
        for (project, batch), states in sorted(
            numbers.items(), key=lambda entry: (entry[0][0], natural_order(entry[0][1]))
        )
        if any(states.get(state) for state in _AFTER_THE_GATE)
    ]


def decide_batch(
    session: Session, project: StoredProject, batch: str, verdict: Verdict, *, layer: Layer, person: int, at: float
) -> None:
    """Accept all items of a batch that wait for the layer, or send back all that are past the gate, finished ones too.

    Items that the person annotated are left as they are.

    Raises RefusedError for a rejection without a reason, and TransitionRefused where no item is to be decided.
    """
    check_reason(verdict)
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
    planted = open_in_batch(session, project.id, batch, layer, person) if verdict.is_accepted else []
    for review in planted:
        decide_planted(session, review, is_accepted=True, reason=verdict.reason, person=person, at=at)
    if not items and not planted:
        raise TransitionRefused(f"no item of the batch {batch!r} is to be decided")
    if not items:
        return
    for item in items:
        _write_decision(session, item, verdict, layer=layer, person=person, at=at)
        if verdict.is_accepted:
            move(session, item, "accepted", person=person, at=at, reason=verdict.reason)
    action = "batch accepted" if verdict.is_accepted else "batch rejected"
    detail = {"batch": batch, "layer": layer, "items": len(items), "reason": verdict.reason}
    record(session, AuditEvent(action, "project", project.id, person, detail), at=at)
    if verdict.is_accepted:
        plant_finished(session, project, items, at=at)
    else:
        retire_in_batch(session, project.id, batch)
        begin_round(session, project, items, verdict, person=person, at=at)


def decisions_on(session: Session, item: StoredItem) -> list[StoredReview]:
    """Return the decisions of all layers on an item, in the order in which they were made."""
    made = select(StoredReview).where(StoredReview.item_id == item.id, StoredReview.decision.is_not(None))
    return list(session.scalars(made.order_by(StoredReview.at, StoredReview.id)))


def begin_round(
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
    # The name of this draw must differ from the draws before it: the rounds grow with each.
    batch = f"{items[0].batch}, rejected in round {max(item.round for item in items)}"
    for start in range(0, len(items), _BLOCK):
        block = items[start : start + _BLOCK]
        numbers = [item.id for item in block]
        for item in block:
            move(session, item, "rejected", person=person, at=at, reason=verdict.reason)
            item.agreement = None
            tasks = tasks_of_next_round(session, item, settings, restores_discarded=verdict.restores_discarded)
            session.add_all(tasks)
            if not tasks:
                move(session, item, "dropped", person=None, at=at, reason="no responses are left for a task")
        # An answer that was rejected is no truth to check people by.
        retire_tasks(session, StoredTask.item_id.in_(numbers) & StoredTask.is_gold.is_(True))
        void_gold(session, numbers)
        retire_reviews(session, numbers)
        session.flush()
    names = {lasting_name(item.prompt, item.language): item.id for item in items}
    draw_reviews(session, project, names, batch, rounds={item.id: item.round for item in items})


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


def check_reason(verdict: Verdict) -> None:
    """Raise RefusedError for a rejection without a reason, and for an overlong one."""
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
