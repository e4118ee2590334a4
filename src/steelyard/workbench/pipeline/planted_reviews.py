"""Planted reviews: finished items that check the people of a layer (CHEEMS, appendix D.1).

A reviewer of a single answer may simply agree. Of the reviews that a layer gets, a share therefore shows a finished
item: as it was settled, or with one task changed into a wrong answer (`TaskKind.falsify`). It looks like any item that
waits, and after the decision like one that moved on by it. It is a row of a table of its own: what counts items,
reviews, answers or hours reads it only for those to whom it is shown (`shown_to`). Everybody with the role of its layer
sees it in place of its item, with a number and a batch of its own (`review_placement`): a colleague who has worked on
the item has the same lists, and only its text tells. Only those who have not decide on it.
"""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Select,
    SQLColumnExpression,
    and_,
    bindparam,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    or_,
    select,
    true,
    union_all,
    update,
)
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, Layer
from steelyard.workbench.pipeline.alignment import QueuePage, QueuePlace, checked_text, page_of
from steelyard.workbench.pipeline.counters import DAY
from steelyard.workbench.pipeline.disputes import TaskEvidence, evidence_of
from steelyard.workbench.pipeline.projects import count_states, settings_of
from steelyard.workbench.pipeline.review_placement import (
    ROLE_OF,
    STATE_OF,
    answers_sent_at,
    knows_item,
)
from steelyard.workbench.pipeline.review_preparation import answers_shown
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.figure_tables import StoredGateResult
from steelyard.workbench.storage.tables import (
    StoredEvent,
    StoredItem,
    StoredPlantedReview,
    StoredProject,
    StoredRemark,
    StoredReview,
)


class ShownReview(NamedTuple):
    """A planted review as its layer sees the item: the columns of `shown_to`.

    ``since``: when the item came into the state that is shown.
    """

    id: int
    item_id: int
    number: int
    batch: str
    state: str
    round: int
    since: float
    category: str
    item_batch: str
    decision: str | None
    person_id: int | None
    seconds: float

    @property
    def is_sent_back(self) -> bool:
        """True for an item that is shown as one that is annotated again."""
        return self.state == "annotating"


class ShownSums(NamedTuple):
    """Planted reviews that are shown alike: the columns of `ShownReview`, the day, how many, seconds, first moment."""

    item_batch: str
    batch: str
    category: str
    state: str
    round: int
    person_id: int | None
    decision: str | None
    day: int
    number: int
    seconds: float
    since: float


class ShownTable(NamedTuple):
    """The planted reviews that a reader sees: columns of `ShownReview`, and the condition that an item has one."""

    layer: Layer
    columns: Any
    is_of_item: ColumnElement[bool]


def retire_reviews(session: Session, items: Sequence[int]) -> None:
    """Take the planted reviews of items away whose truth was withdrawn; decisions on them count against nobody."""
    session.execute(update(StoredPlantedReview).where(StoredPlantedReview.item_id.in_(items)).values(is_retired=True))


def retire_in_batch(session: Session, project: int, batch: str) -> None:
    """Take away the planted reviews that wait with a batch that is sent back: nobody decides on them any more."""
    planted = StoredPlantedReview
    of_batch = planted.project_id == project, planted.batch == batch, planted.decision.is_(None)
    session.execute(update(planted).where(*of_batch).values(is_retired=True))


def open_reviews(session: Session, layer: Layer, person: int, wanted: QueuePage) -> list[StoredItem]:
    """Return a page of the items whose planted review waits for a person of a layer, as they are shown."""
    place = QueuePlace(StoredPlantedReview.placed_at, SHOWN_NUMBER, SHOWN_BATCH)
    shown = select(*_as_waiting(layer).values(), StoredItem).where(*_is_open(layer))
    rows = session.execute(page_of(shown, wanted, place), {"person": person}).all()
    return [item_as_shown(row[-1], ShownReview(*row[:-1])) for row in rows]


def num_open_reviews(session: Session, person: int, role: str) -> int:
    """Return the number of planted reviews of all projects that wait for a person with a role."""
    layers = (layer for layer in LAYERS if ROLE_OF[layer] == role)
    return sum(session.scalar(_num_open(layer), {"person": person}) or 0 for layer in layers)


def shown_to(session: Session, project: int, person: int, role: str) -> ShownTable | None:
    """Return the planted reviews of a project that a person with a role sees: those that wait, and decided ones.

    A decision seems to have moved the item as it would have moved one that waited: see `_as_decided`. A holder of the
    answers of an item sees it as it is, and so does a researcher who is to rule on a truth that another one sent back.
    """
    layer: Layer | None = next((layer for layer in LAYERS if ROLE_OF[layer] == role), None)
    if layer is None:
        return None
    planted = StoredPlantedReview
    is_of_rulers = (planted.layer == "research") & (planted.decision == "rejected") & planted.changed.is_(None)
    is_seen = (
        planted.project_id == project,
        planted.layer == layer,
        *_IS_SHOWN,
        StoredItem.changed_at > (answers_sent_at(session, project, person) or -1.0),
    )
    is_decided = planted.decision.is_not(None), or_(planted.person_id == person, ~is_of_rulers)
    # Each part reads a range of the index that begins with layer and decision.
    parts = (
        select(*(column.label(name) for name, column in columns.items()))
        .join(StoredItem, planted.item_id == StoredItem.id)
        .where(*is_seen, *which)
        for columns, which in (
            (_as_waiting(layer), [planted.decision.is_(None)]),
            (_as_decided(session, project, layer), is_decided),
        )
    )
    of_item = exists().where(
        planted.item_id == StoredItem.id, *is_seen, or_(planted.decision.is_(None), and_(*is_decided))
    )
    return ShownTable(layer, union_all(*parts).subquery("shown").c, of_item.correlate(StoredItem))


def shown_sums(session: Session, shown: ShownTable | None) -> list[ShownSums]:
    """Return how many planted reviews are alike in all that figures count."""
    if shown is None:
        return []
    columns = shown.columns
    groups = [columns[name] for name in ShownSums._fields[:-4]]
    groups.append((cast(columns.since, BigInteger) // int(DAY)).label("day"))
    sums = func.count(), func.sum(columns.seconds), func.min(columns.since)
    return [ShownSums(*row) for row in session.execute(select(*groups, *sums).group_by(*groups))]


def reviews_of(session: Session, shown: ShownTable | None, numbers: Collection[int]) -> dict[int, ShownReview]:
    """Return the planted reviews that are shown with one of the numbers, or whose item has it, by item."""
    if shown is None or not numbers:
        return {}
    # By item alone: the table is then read by the index of the items.
    of_numbers = session.scalars(select(StoredPlantedReview.item_id).where(StoredPlantedReview.number.in_(numbers)))
    is_wanted = shown.columns.item_id.in_([*numbers, *of_numbers])
    reviews = (ShownReview(*row) for row in session.execute(select(*shown.columns).where(is_wanted)))
    return {review.item_id: review for review in reviews}


def item_with_number(reviews: Mapping[int, ShownReview], number: int) -> int | None:
    """Return the item that is seen under a number; null for the own number of one that is shown under another."""
    of_numbers = {review.number: item for item, review in reviews.items()}
    return of_numbers.get(number, None if number in reviews else number)


def planted_with_number(session: Session, number: int) -> StoredPlantedReview | None:
    """Return the planted review that is shown with a number of its own; null for the number of an item."""
    return session.scalar(select(StoredPlantedReview).where(StoredPlantedReview.number == number))


def review_shown(session: Session, planted: StoredPlantedReview) -> ShownReview:
    """Return a planted review as an item that waits for its layer, from the row of it."""
    chosen = select(*_as_waiting(planted.layer).values()).join(StoredItem, StoredPlantedReview.item_id == StoredItem.id)
    return ShownReview(*session.execute(chosen.where(StoredPlantedReview.id == planted.id)).one())


def _as_waiting(layer: Layer) -> dict[str, SQLColumnExpression[Any]]:
    """Return the columns of `ShownReview` for planted reviews that wait for a layer."""
    planted, item = StoredPlantedReview, StoredItem
    return {
        "id": planted.id,
        "item_id": planted.item_id,
        "number": SHOWN_NUMBER,
        "batch": SHOWN_BATCH,
        "state": literal(STATE_OF[layer]),
        "round": planted.round,
        "since": planted.placed_at,
        "category": item.category,
        "item_batch": item.batch,
        "decision": planted.decision,
        "person_id": planted.person_id,
        "seconds": planted.seconds,
    }


def _as_decided(session: Session, project: int, layer: Layer) -> dict[str, SQLColumnExpression[Any]]:
    """Return the columns of `ShownReview` for planted reviews of a layer as items that moved on by the decision.

    An accepted one waits for the next layer that had drawn its item, until that layer has decided on another one since
    and none waits that came before it: queues have the oldest first. One sent back is annotated again, until an item
    has passed the gate since and none is annotated that was sent back before it.
    """
    planted, review, gate = StoredPlantedReview, StoredReview, StoredGateResult

    def is_in(last_left: Any, *states: Any) -> ColumnElement[bool]:
        """Return the condition that an item is still in a state: none left it since, or an earlier one is in it."""
        left = session.scalar(last_left)
        first = session.scalar(select(func.min(StoredItem.changed_at)).where(StoredItem.project_id == project, *states))
        return true() if left is None else or_(planted.at >= left, false() if first is None else planted.at > first)

    def waits_for(later: Layer) -> ColumnElement[bool]:
        made = review.project_id == project, review.layer == later, review.decision.is_not(None)
        return is_in(select(func.max(review.at)).where(*made), StoredItem.state == STATE_OF[later])

    validates = settings_of(session.get_one(StoredProject, project)).rules.validation
    drawn = review.item_id == planted.item_id, review.round == planted.round, review.layer == "operations"
    drew = {"operations": exists().where(*drawn).correlate(planted), "research": true() if validates else false()}
    is_annotated = is_in(
        select(func.max(gate.at)).where(gate.project_id == project),
        StoredItem.state.in_(("annotating", "aligning")),
        StoredItem.round > 1,
    )
    is_rejected = planted.decision == "rejected"
    state = case(
        (is_rejected, case((is_annotated, "annotating"), else_="finished")),
        *((waits_for(later) & drew[later], STATE_OF[later]) for later in LAYERS[LAYERS.index(layer) + 1 :]),
        else_="finished",
    )
    round_shown = planted.round + case((is_rejected, 1), else_=0)
    return _as_waiting(layer) | {"state": state, "round": round_shown, "since": planted.at}


def states_shown(session: Session, project: int, shown: ShownTable | None) -> dict[str, int]:
    """Return the number of items in each state as the person sees them to whom planted reviews are shown."""
    counts = Counter(count_states(session, project))
    for each in shown_sums(session, shown):
        counts["finished"] -= each.number
        counts[each.state] += each.number
    return {state: number for state, number in sorted(counts.items()) if number}


def open_review(
    session: Session, number: int, layer: Layer, person: int, *, locks: bool = False
) -> StoredPlantedReview | None:
    """Return the planted review that waits for a person of a layer under a number; null where there is none.

    ``locks``: its row is locked where the database locks rows, so that of two people who decide at once one is faster.
    """
    return session.scalar(_open_of_number(layer, locks=locks), {"number": number, "person": person})


def open_in_batch(session: Session, project: int, batch: str, layer: Layer, person: int) -> list[StoredPlantedReview]:
    """Lock the planted reviews of a batch that wait for a person of a layer, and return them."""
    of_batch = StoredItem.project_id == project, SHOWN_BATCH.in_((batch,))
    statement = select(StoredPlantedReview).where(*of_batch, *_is_open(layer))
    in_order = statement.order_by(StoredPlantedReview.id).with_for_update(of=StoredPlantedReview)
    return list(session.scalars(in_order.execution_options(populate_existing=True), {"person": person}))


def item_as_shown(item: StoredItem, shown: ShownReview) -> StoredItem:
    """Return an item, in no session, with what its planted review shows: number, batch, state, round and time."""
    values = {column.key: getattr(item, column.key) for column in StoredItem.__table__.columns}
    values |= {"id": shown.number, "batch": shown.batch}
    values |= {"state": shown.state, "round": shown.round, "changed_at": shown.since}
    return StoredItem(**values | ({"agreement": None} if shown.is_sent_back else {}))


def evidence_shown(session: Session, item: StoredItem, shown: ShownReview) -> list[TaskEvidence]:
    """Return the tasks of an item with their answers, the changed ones in place of the true ones.

    One that was sent back has no answers at first, and then the true ones.
    """
    evidence = evidence_of(session, [item])[item.id]
    planted = session.get_one(StoredPlantedReview, shown.id)
    if shown.is_sent_back:
        return [TaskEvidence(each.task) for each in evidence]
    if planted.changed is None or planted.decision == "rejected":
        return evidence
    changed = answers_shown(planted)
    for each in evidence:
        for stage, answers in (("annotation", each.answers), ("proposal", each.proposals)):
            places = {person: (each.task.id, stage, person) for person in answers}
            answers.update({person: changed[place] for person, place in places.items() if place in changed})
        each.settled = changed.get((each.task.id, "settled", None), each.settled)
    return evidence


def decisions_shown(planted: StoredPlantedReview, decisions: Sequence[StoredReview]) -> list[StoredReview]:
    """Return those of the decisions on an item that were made before it came to the layer of a planted review."""
    before = LAYERS[: LAYERS.index(planted.layer)]
    return [each for each in decisions if each.round < planted.round or each.layer in before]


def remarks_shown(session: Session, planted: StoredPlantedReview) -> list[tuple[int, str]]:
    """Return person and text of the remarks on an item up to when it came to the layer, and of those made since."""
    moves = select(StoredEvent.at, StoredEvent.detail).where(
        StoredEvent.subject == "item", StoredEvent.subject_id == planted.item_id
    )
    came = [
        at
        for at, detail in session.execute(moves)
        if detail.get("to") == STATE_OF[planted.layer] and detail.get("round") == planted.round
    ]
    remark = StoredRemark
    rows = session.execute(
        select(remark.person_id, remark.text)
        .where(remark.item_id == planted.item_id, remark.at <= max(came, default=0.0))
        .order_by(remark.id)
    )
    return [*((person, text) for person, text in rows), *((person, text) for person, text, _ in planted.remarks)]


def remark_on(session: Session, planted: StoredPlantedReview, text: str, *, person: int, at: float) -> None:
    """Keep a remark on a planted review with it, as `alignment.add_remark` keeps those on items."""
    checked = checked_text(text, "remark")
    if planted.remarks and planted.remarks[-1][:2] == [person, checked]:
        return
    planted.remarks = [*planted.remarks, [person, checked, at]]
    record(session, AuditEvent("remarked", "planted review", planted.id, person, {}), at=at)


def decide_planted(
    session: Session, planted: StoredPlantedReview, *, is_accepted: bool, reason: str, person: int, at: float
) -> None:
    """Store the decision of a person on a planted review."""
    planted.person_id, planted.reason, planted.at = person, reason.strip(), at
    planted.decision = "accepted" if is_accepted else "rejected"
    detail = {"layer": planted.layer, "decision": planted.decision, "number": planted.number}
    record(session, AuditEvent("planted review decided", "planted review", planted.id, person, detail), at=at)
    session.flush()


SHOWN_NUMBER: ColumnElement[int] = func.coalesce(StoredPlantedReview.number, StoredPlantedReview.item_id)
"""The number with which a planted review is shown."""
SHOWN_BATCH: ColumnElement[str] = func.coalesce(StoredPlantedReview.batch, StoredItem.batch)
"""The batch with which a planted review is shown, joined to its item."""
_IS_SHOWN = (
    StoredPlantedReview.round == StoredItem.round,
    # When it is asked, not when the statement was built.
    StoredPlantedReview.placed_at <= bindparam("now", type_=Double, callable_=time.time),
    StoredPlantedReview.is_retired.is_(False),
    StoredItem.state == "finished",
)


def _is_open(layer: Layer) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions that a planted review, joined to its item, waits for the ``person`` of a layer."""
    planted = StoredPlantedReview
    is_unknown = ~knows_item(bindparam("person"))
    return planted.item_id == StoredItem.id, planted.layer == layer, *_IS_SHOWN, planted.decision.is_(None), is_unknown


# Every page of a reviewer asks these: building a statement takes longer than running it.
@cache
def _num_open(layer: Layer) -> Select[int]:
    return select(func.count(StoredPlantedReview.id)).select_from(StoredItem).where(*_is_open(layer))


@cache
def _open_of_number(layer: Layer, *, locks: bool) -> Select[StoredPlantedReview]:
    planted, number = StoredPlantedReview, bindparam("number", type_=StoredItem.id.type)
    is_own = planted.number.is_(None) & (planted.item_id == number)
    statement = select(planted).where(or_(planted.number == number, is_own), *_is_open(layer))
    if not locks:
        return statement
    return statement.with_for_update(of=StoredPlantedReview).execution_options(populate_existing=True)
