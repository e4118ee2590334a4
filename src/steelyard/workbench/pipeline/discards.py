"""Responses that people take out of an item: tasks that show them retire, and the design of the rest is planned anew.

A response leaves as soon as all people of one task discard it, or when those who settle a task do, so that nobody else
has to judge garbled text. Tasks that show only responses that remain stay, with their answers.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from steelyard.annotation.task_kinds import kind_named
from steelyard.core.iteration import batched
from steelyard.core.types import Record
from steelyard.workbench.pipeline.disputes import ALIGNING, TaskEvidence, evidence_of
from steelyard.workbench.pipeline.item_states import move, retire_tasks
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of
from steelyard.workbench.pipeline.round_plans import task_of
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.tables import HAS_DISCARDS, StoredEvent, StoredItem, StoredTask

_DISCARDED = "responses discarded"
_BLOCK = 500


class ItemDiscards(NamedTuple):
    """Responses that people took out: the reason by response, and how many tasks ended and were added for it."""

    reasons: dict[str, str]
    num_ended: int
    num_added: int


class DiscardCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The responses of a project that are out now, by reason, the items that they belong to, and the tasks of these.

    ``tasks_ended`` showed one of them; ``tasks_added`` compare what remains.
    """

    responses: int
    items: int
    reasons: dict[str, int]
    tasks_ended: int
    tasks_added: int


def discard_counts(session: Session, project: int) -> DiscardCounts:
    """Count what people took out of the items of a project."""
    of_project = select(StoredItem.id, StoredItem.discarded).where(StoredItem.project_id == project, text(HAS_DISCARDS))
    rows = session.execute(of_project).all()
    out = {item: set(responses) for item, responses in rows}
    discards: dict[int, ItemDiscards] = {}
    for numbers in batched(out, _BLOCK):
        discards |= discards_of(session, numbers)
    reasons = Counter(
        reason for item, each in discards.items() for response, reason in each.reasons.items() if response in out[item]
    )
    return DiscardCounts(
        responses=sum(map(len, out.values())),
        items=len(out),
        reasons=dict(reasons.most_common()),
        tasks_ended=sum(each.num_ended for each in discards.values()),
        tasks_added=sum(each.num_added for each in discards.values()),
    )


def discards_of(session: Session, items: Collection[int]) -> dict[int, ItemDiscards]:
    """Return what was taken out of those of the items that anything was taken out of, from the audit log."""
    rows = session.execute(
        select(StoredEvent.subject_id, StoredEvent.detail)
        .where(StoredEvent.subject == "item", StoredEvent.subject_id.in_(items), StoredEvent.action == _DISCARDED)
        .order_by(StoredEvent.id)
    )
    discards: dict[int, ItemDiscards] = {}
    for item, detail in rows:
        assert item is not None, "an event about an item has its number"
        reasons, ended, added = discards.get(item, ItemDiscards({}, 0, 0))
        discards[item] = ItemDiscards(reasons | detail["responses"], ended + detail["retired"], added + detail["added"])
    return discards


def remove_discarded(
    session: Session, item: StoredItem, settings: ProjectSettings, *, person: int | None, at: float
) -> None:
    """Take out the responses that people agree to discard.

    An item whose people were aligning goes back to annotation where further tasks are needed. One with two responses
    left has them compared or is dropped, as the rules say; one with a single response is dropped.
    """
    session.flush()
    evidence = evidence_of(session, [item])[item.id]
    agreed = {response: reason for each in evidence for response, reason in each.discarded.items()}
    leaving = {
        each.id: agreed[each.id] for each in case_of(item).responses if each.id in agreed.keys() - item.discarded
    }
    if not leaving:
        return
    plan = kind_named(evidence[0].task.kind).replan([each.task.responses for each in evidence], leaving)
    item.discarded = [*item.discarded, *leaving]
    retiring = [evidence[place].task.id for place in plan.retiring]
    is_dropped = len(plan.remaining) < 2 or (len(plan.remaining) == 2 and settings.rules.two_left == "drop")
    added = () if is_dropped else plan.added
    detail = {"responses": leaving, "staying": len(plan.staying), "retired": len(retiring), "added": len(added)}
    record(session, AuditEvent(_DISCARDED, "item", item.id, person, detail), at=at)
    retire_tasks(session, StoredTask.id.in_(retiring))
    _add_tasks(session, item, evidence, added)
    if is_dropped:
        reason = f"{len(plan.remaining)} of {len(case_of(item).responses)} responses remain"
        move(session, item, "dropped", person=None, at=at, reason=reason)
    elif added and item.state in ALIGNING:
        move(session, item, "replanned", person=person, at=at, reason=f"discarded: {', '.join(leaving)}")


def _add_tasks(
    session: Session, item: StoredItem, evidence: Sequence[TaskEvidence], added: Sequence[Sequence[str]]
) -> None:
    last = session.scalar(
        select(func.max(StoredTask.number)).where(StoredTask.item_id == item.id, StoredTask.round == item.round)
    )
    former = evidence[0].task
    session.add_all(
        task_of(item, number, former.kind, task, num_wanted=former.num_wanted)
        for number, task in enumerate(added, start=(last or 0) + 1)
    )
    session.flush()
