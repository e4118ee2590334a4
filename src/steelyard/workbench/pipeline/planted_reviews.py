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
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Double, Select, bindparam, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.pipeline import LAYERS, Layer
from steelyard.workbench.pipeline.alignment import QueuePage, QueuePlace, checked_text, page_of
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


class PlantedFacts(NamedTuple):
    """What lists and figures read of a planted review and its item, without the texts."""

    id: int
    item_id: int
    round: int
    layer: Layer
    placed_at: float | None
    number: int | None
    batch: str
    category: str
    person_id: int | None
    decision: str | None
    at: float | None
    seconds: float
    is_drawn: bool
    """Whether operations had drawn the item."""
    item_batch: str


class ShownReview(NamedTuple):
    """A planted review as its layer sees the item: its state and round, and since when it is in that state."""

    planted: PlantedFacts
    state: str
    round: int
    since: float

    @property
    def number(self) -> int:
        """The number with which the item is shown."""
        return self.planted.item_id if self.planted.number is None else self.planted.number

    @property
    def is_sent_back(self) -> bool:
        """Whether the item is shown as one that is annotated again."""
        return self.state == "annotating"


NOTHING_PLANTED: Mapping[int, ShownReview] = MappingProxyType({})
"""What a reader sees to whom no planted review is shown: every item as it is."""


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
    chosen = facts_of_planted().add_columns(StoredItem).where(*_is_open(layer))
    rows = session.execute(page_of(chosen, wanted, place), {"person": person}).all()
    return [item_as_shown(item, as_waiting(PlantedFacts(*facts))) for *facts, item in rows]


def num_open_reviews(session: Session, person: int, role: str) -> int:
    """Return the number of planted reviews of all projects that wait for a person with a role."""
    layers = (layer for layer in LAYERS if ROLE_OF[layer] == role)
    return sum(session.scalar(_num_open(layer), {"person": person}) or 0 for layer in layers)


def shown_to(
    session: Session, project: int, person: int, role: str, *, number: int | None = None
) -> dict[int, ShownReview]:
    """Return the planted reviews of a project that a person with a role sees, by item: those that wait, and decided.

    A decision seems to have moved the item as it would have moved one that waited: see `_as_decided`. Whoever has the
    answers of an item sees it as it is, and so does a researcher who is to rule on a truth that another one sent back.
    ``number``: only those that are shown with it, or whose item has it; null for all.
    """
    shown: dict[int, ShownReview] = {}
    planted, visitor = StoredPlantedReview, bindparam("person")
    is_known_to_rulers = (planted.layer == "research") & (planted.decision == "rejected") & planted.changed.is_(None)
    for layer in LAYERS:
        if ROLE_OF[layer] != role:
            continue
        chosen = facts_of_planted().where(
            planted.project_id == project,
            planted.layer == layer,
            *_IS_SHOWN,
            StoredItem.changed_at > func.coalesce(answers_sent_at(project, visitor), -1.0),
            or_(planted.decision.is_(None), planted.person_id == visitor, ~is_known_to_rulers),
        )
        if number is not None:
            chosen = chosen.where(or_(planted.number == number, planted.item_id == number))
        rows = [PlantedFacts(*row) for row in session.execute(chosen, {"person": person})]
        shown |= {each.item_id: as_waiting(each) for each in rows if each.decision is None}
        decided = [each for each in rows if each.decision is not None]
        shown |= {each.planted.item_id: each for each in _as_decided(session, project, decided)}
    return shown


def facts_of_planted() -> Select:
    """Select what `PlantedFacts` has of planted reviews with their items."""
    planted, item, drawn = StoredPlantedReview, StoredItem, aliased(StoredReview)
    is_drawn = (drawn.item_id == item.id) & (drawn.round == planted.round) & (drawn.layer == "operations")
    columns: dict[str, Any] = {name: getattr(planted, name, None) for name in PlantedFacts._fields}
    columns |= {"batch": SHOWN_BATCH, "category": item.category, "is_drawn": drawn.id.is_not(None)}
    columns["item_batch"] = item.batch
    return select(*columns.values()).join(item, planted.item_id == item.id).outerjoin(drawn, is_drawn)


def items_by_number(planted: Mapping[int, ShownReview]) -> dict[int, int]:
    """Return the items of planted reviews by the numbers with which they are shown."""
    return {review.number: item for item, review in planted.items()}


def item_with_number(planted: Mapping[int, ShownReview], number: int) -> int | None:
    """Return the item that is seen under a number; null for the own number of one that is shown under another."""
    return items_by_number(planted).get(number, None if number in planted else number)


def planted_with_number(session: Session, number: int) -> StoredPlantedReview | None:
    """Return the planted review that is shown with a number of its own; null for the number of an item."""
    return session.scalar(select(StoredPlantedReview).where(StoredPlantedReview.number == number))


def as_waiting(planted: PlantedFacts) -> ShownReview:
    """Return a planted review as an item that waits for its layer."""
    assert planted.placed_at is not None, "it waits"
    return ShownReview(planted, STATE_OF[planted.layer], planted.round, planted.placed_at)


def review_shown(session: Session, planted: StoredPlantedReview) -> ShownReview:
    """Return a planted review as an item that waits for its layer, from the row of it."""
    chosen = facts_of_planted().where(StoredPlantedReview.id == planted.id)
    return as_waiting(PlantedFacts(*session.execute(chosen).one()))


def _as_decided(session: Session, project: int, decided: Sequence[PlantedFacts]) -> list[ShownReview]:
    """Return planted reviews as items that moved on by the decision.

    An accepted one waits for the next layer that had drawn its item, until that layer has decided on another one since
    and none waits that came before it: queues have the oldest first. One sent back is annotated again, until an item
    has passed the gate since and none is annotated that was sent back before it.
    """
    if not decided:
        return []
    validates = settings_of(session.get_one(StoredProject, project)).rules.validation
    oldest = select(func.min(StoredItem.changed_at)).where(StoredItem.project_id == project)
    # By state: the first moment of those that are in it, and the latest moment at which one left it.
    moments = {
        STATE_OF[layer]: (
            session.scalar(oldest.where(StoredItem.state == STATE_OF[layer])),
            session.scalar(
                select(func.max(StoredReview.at)).where(
                    StoredReview.project_id == project,
                    StoredReview.layer == layer,
                    StoredReview.decision.is_not(None),
                )
            ),
        )
        for layer in LAYERS
    }
    moments["annotating"] = (
        session.scalar(oldest.where(StoredItem.state.in_(("annotating", "aligning")), StoredItem.round > 1)),
        session.scalar(select(func.max(StoredGateResult.at)).where(StoredGateResult.project_id == project)),
    )

    def is_in(state: str, at: float) -> bool:
        first, left = moments[state]
        return left is None or left <= at or (first is not None and first < at)

    shown: list[ShownReview] = []
    for planted in decided:
        assert planted.at is not None, "it is decided"
        if planted.decision == "rejected":
            states, round_shown = ["annotating"], planted.round + 1
        else:
            later = LAYERS[LAYERS.index(planted.layer) + 1 :]
            drew = {"research": validates, "operations": planted.is_drawn}
            states, round_shown = [STATE_OF[layer] for layer in later if drew[layer]], planted.round
        state = next((state for state in states if is_in(state, planted.at)), "finished")
        shown.append(ShownReview(planted, state, round_shown, planted.at))
    return shown


def states_shown(session: Session, project: int, planted: Mapping[int, ShownReview]) -> dict[str, int]:
    """Return the number of items in each state as the person sees them to whom planted reviews are shown, by item."""
    counts = Counter(count_states(session, project))
    for review in planted.values():
        counts["finished"] -= 1
        counts[review.state] += 1
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
    values |= {"id": shown.number, "batch": shown.planted.batch}
    values |= {"state": shown.state, "round": shown.round, "changed_at": shown.since}
    return StoredItem(**values | ({"agreement": None} if shown.is_sent_back else {}))


def evidence_shown(session: Session, item: StoredItem, shown: ShownReview) -> list[TaskEvidence]:
    """Return the tasks of an item with their answers, the changed ones in place of the true ones.

    One that was sent back has no answers at first, and then the true ones.
    """
    evidence = evidence_of(session, [item])[item.id]
    planted = session.get_one(StoredPlantedReview, shown.planted.id)
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
    before = LAYERS[: LAYERS.index(planted.layer)]  # pyright: ignore[reportArgumentType] - a Layer
    return [each for each in decisions if each.round < planted.round or each.layer in before]


def remarks_shown(session: Session, planted: StoredPlantedReview) -> list[tuple[int, str]]:
    """Return person and text of the remarks on an item up to when it came to the layer, and of those made since."""
    moves = select(StoredEvent.at, StoredEvent.detail).where(
        StoredEvent.subject == "item", StoredEvent.subject_id == planted.item_id
    )
    layer: Layer = planted.layer  # pyright: ignore[reportAssignmentType] - a Layer
    came = [
        at
        for at, detail in session.execute(moves)
        if detail.get("to") == STATE_OF[layer] and detail.get("round") == planted.round
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


def _is_open(layer: Layer):  # noqa: ANN202 - expressions of SQLAlchemy
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
