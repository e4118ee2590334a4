"""Doubts about settled answers that check people, and who decides on them.

A reviewer who sends back a planted review that shows the truth protests, with a reason. Annotators who are right on
other gold tasks and contradict one together protest by their answers. A researcher reads the item and rules: the truth
stands, or it is withdrawn. Then the item is annotated again, and all that it checked counts against nobody.
"""

from collections import defaultdict
from typing import NamedTuple

from sqlalchemy import Integer, cast, exists, func, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.workbench.pipeline.item_states import lock_item
from steelyard.workbench.pipeline.reviewing import Verdict, begin_round, check_reason
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.figure_tables import StoredGoldResult
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import StoredEvent, StoredItem, StoredPlantedReview, StoredProject, StoredTask

FEWEST_PEOPLE = 3
"""Good annotators who answered a gold task, of whom more than half must contradict it."""
LEAST_GOLD, LEAST_ACCURACY = 5, 0.7
"""The condition for a good annotator: the number of gold answers, and the accuracy on them."""
_UPHELD = "truth upheld"


class DoubtedTruth(NamedTuple):
    """A finished item whose answer is doubted: the reasons of reviewers, and good annotators who contradict it."""

    item: StoredItem
    project: StoredProject
    reasons: tuple[str, ...]
    num_against: int
    num_answers: int


def doubted_truths(session: Session, person: int) -> list[DoubtedTruth]:
    """Return the items of all projects on whose answers a person is to rule.

    Not those that the person doubted, nor those that a planted review still shows to researchers.
    """
    reasons, contradicted = _protests(session), _contradictions(session)
    planted = StoredPlantedReview
    of_person = select(planted.item_id).where(planted.person_id == person, *_IS_PROTEST)
    is_shown = planted.placed_at.is_not(None), planted.decision.is_(None), planted.is_retired.is_(False)
    waiting = select(planted.item_id).where(planted.layer == "research", *is_shown)
    rows = session.execute(
        select(StoredItem, StoredProject)
        .join(StoredProject, StoredItem.project_id == StoredProject.id)
        .where(
            is_among(StoredItem.id, reasons.keys() | contradicted.keys()),
            StoredItem.state == "finished",
            StoredItem.id.not_in(of_person),
            StoredItem.id.not_in(waiting),
        )
        .order_by(StoredItem.id)
    ).all()
    return [
        DoubtedTruth(item, project, tuple(reasons.get(item.id, ())), *contradicted.get(item.id, (0, 0)))
        for item, project in rows
    ]


def was_doubted(session: Session, item: int) -> bool:
    """Tell whether anybody has ever sent back the truth of an item, or a ruling on it was made."""
    planted, event = StoredPlantedReview, StoredEvent
    protest = exists().where(planted.item_id == item, planted.decision == "rejected", planted.changed.is_(None))
    ruling = exists().where(event.subject == "item", event.subject_id == item, event.action == _UPHELD)
    return bool(session.scalar(select(protest | ruling)))


def rule_on_truth(session: Session, item: int, verdict: Verdict, *, person: int, at: float) -> None:
    """Keep the answer of a doubted item, or withdraw it and have the item annotated again.

    Raises TransitionRefused where nobody doubts it by now, or this person alone, and RefusedError for a withdrawal
    without a reason.
    """
    check_reason(verdict)
    locked = lock_item(session, item)
    if not any(doubt.item.id == item for doubt in doubted_truths(session, person)):
        raise TransitionRefused("nobody else doubts the item by now")
    if verdict.is_accepted:
        session.execute(
            update(StoredPlantedReview)
            .where(StoredPlantedReview.item_id == item, *_IS_PROTEST)
            .values(is_upheld=True, ruled_by=person)
        )
        record(session, AuditEvent(_UPHELD, "item", item, person, {"reason": verdict.reason.strip()}), at=at)
        return
    begin_round(session, session.get_one(StoredProject, locked.project_id), [locked], verdict, person=person, at=at)
    record(session, AuditEvent("truth withdrawn", "item", item, person, {"reason": verdict.reason.strip()}), at=at)


_IS_PROTEST = (
    StoredPlantedReview.decision == "rejected",
    StoredPlantedReview.changed.is_(None),
    StoredPlantedReview.is_retired.is_(False),
    StoredPlantedReview.is_upheld.is_(False),
)


def _protests(session: Session) -> dict[int, list[str]]:
    """Return the reasons of reviewers who sent a truth back, by item."""
    planted = StoredPlantedReview
    reasons: dict[int, list[str]] = defaultdict(list)
    for item, reason in session.execute(
        select(planted.item_id, planted.reason).where(*_IS_PROTEST).order_by(planted.at, planted.id)
    ):
        reasons[item].append(reason)
    return reasons


def _contradictions(session: Session) -> dict[int, tuple[int, int]]:
    """Return the items whose gold task most good annotators contradict since the latest ruling: how many, of how many.

    A person contradicts who has less than half of the points as the truth has them.
    """
    gold, theirs, event = StoredGoldResult, aliased(StoredGoldResult), StoredEvent
    share, own_share = 1.0 * gold.num_same / gold.num_judged, 1.0 * theirs.num_same / theirs.num_judged
    good = (
        select(theirs.project_id, theirs.person_id)
        .where(theirs.is_void.is_(False), theirs.num_judged > 0)
        .group_by(theirs.project_id, theirs.person_id)
        .having(func.count() >= LEAST_GOLD, func.avg(own_share) >= LEAST_ACCURACY)
    )
    ruled_at = (
        select(func.coalesce(func.max(event.at), 0.0))
        .where(event.subject == "item", event.subject_id == StoredTask.item_id, event.action == _UPHELD)
        .correlate(StoredTask)
        .scalar_subquery()
    )
    against = func.sum(cast(share < 0.5, Integer()))
    rows = session.execute(
        select(StoredTask.item_id, against, func.count())
        .join(gold, gold.task_id == StoredTask.id)
        .where(
            StoredTask.is_gold.is_(True),
            StoredTask.is_retired.is_(False),
            gold.is_void.is_(False),
            gold.num_judged > 0,
            tuple_(gold.project_id, gold.person_id).in_(good),
            gold.at > ruled_at,
        )
        .group_by(StoredTask.id, StoredTask.item_id)
        .having(func.count() >= FEWEST_PEOPLE, 2 * against > func.count())
    ).all()
    return {item: (int(number), answers) for item, number, answers in rows}
