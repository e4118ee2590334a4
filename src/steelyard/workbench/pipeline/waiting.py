"""Work that waits for people: how much for each, and since when.

An item in alignment waits for those of its annotators who did not make its latest proposal. An item in review, or to be
settled, waits for a role.
"""

from collections.abc import Sequence
from typing import get_args

from sqlalchemy import ColumnElement, exists, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from steelyard.annotation.pipeline import REVIEWED_BY, SETTLED_BY, ItemState, Layer
from steelyard.core.errors import WaitingError
from steelyard.core.remedies import NAME, Advice, Command, Remedy, joined
from steelyard.core.text import number_of
from steelyard.core.types import Record
from steelyard.workbench.pipeline.alignment import has_worked_on
from steelyard.workbench.pipeline.planted_reviews import ShownSums, num_open_reviews
from steelyard.workbench.pipeline.projects import ENDED, count_states
from steelyard.workbench.pipeline.review_placement import ROLE_OF
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)

_DECIDED_BY: dict[str, Layer] = {**REVIEWED_BY, **SETTLED_BY}
_STATE_TEXTS = {
    "annotating": "in annotation",
    "aligning": "in alignment",
    "delivery review": "in delivery review",
    "operations review": "in operations review",
    "validation": "in validation",
}


class WaitingWork(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Items of a project in a state, and since when the first of them is in it, in seconds since 1970.

    ``person`` is the display name of the annotator for whom they wait, in alignment; null where a role decides.
    """

    state: str
    role: str
    person: str | None
    items: int
    since: float


def count_waiting(session: Session, person: int, role: str) -> int:
    """Return the number of items of all projects that wait for a person with a role, at Align or at Review."""
    if role == "annotator":
        return num_to_align(session, person)
    states = [state for state, layer in _DECIDED_BY.items() if ROLE_OF[layer] == role]
    if not states:
        return 0
    undecided = StoredItem.state.in_(states), ~has_worked_on(person)
    number = session.scalar(select(func.count(StoredItem.id)).where(*undecided)) or 0
    # What this person sees in the queue, planted reviews with the others: figures of projects do not count these.
    return number + num_open_reviews(session, person, role)


def num_to_align(session: Session, person: int) -> int:
    """Return the number of items of all projects that wait for an annotator at Align."""
    return session.scalar(select(func.count(StoredItem.id)).where(*_waits_for(person))) or 0


def waiting_work(session: Session, project: int, planted: Sequence[ShownSums] = ()) -> tuple[WaitingWork, ...]:
    """Return the items of a project that wait for people beyond annotation, those that wait longest first.

    ``planted``: the planted reviews that the reader sees, which count as the items that they show.
    """
    since = func.min(StoredItem.changed_at)
    of_project = StoredItem.project_id == project
    states = select(StoredItem.state, func.count(), since).where(of_project, StoredItem.state.in_(list(_DECIDED_BY)))
    rows_by_state = session.execute(states.group_by(StoredItem.state))
    counts: dict[str, tuple[int, float]] = {state: (number, first) for state, number, first in rows_by_state}
    for each in planted:
        if each.state in _DECIDED_BY:
            number, first = counts.get(each.state, (0, each.since))
            counts[each.state] = number + each.number, min(first, each.since)
    rows = [
        WaitingWork(state=state, role=ROLE_OF[_DECIDED_BY[state]], person=None, items=number, since=first)
        for state, (number, first) in counts.items()
    ]
    people = (
        select(StoredPerson.display_name, func.count(), since)
        .join(StoredItem, StoredItem.state == "aligning")
        .where(of_project, StoredPerson.is_active.is_(True), *_waits_for(StoredPerson.id))
        .group_by(StoredPerson.id, StoredPerson.display_name)
    )
    rows += [
        WaitingWork(state="aligning", role="annotator", person=name, items=number, since=first)
        for name, number, first in session.execute(people)
    ]
    return tuple(sorted(rows, key=lambda row: (row.since, row.state, row.person or "")))


def waiting_lines(session: Session, project: int) -> tuple[str, ...]:
    """Return a line for each state in which items of a project wait: how many, whose turn it is, and where.

    A role that no open account has is shown with the command that makes one.
    """
    counts = count_states(session, project)
    roles = set(session.scalars(select(StoredPerson.role).where(StoredPerson.is_active.is_(True)).distinct()))
    lines: list[str] = []
    for state in get_args(ItemState):
        if state in ENDED or not counts.get(state):
            continue
        role = ROLE_OF[_DECIDED_BY[state]] if state in _DECIDED_BY else "annotator"
        page = {"annotating": "Annotate", "aligning": "Align"}.get(state, "Review")
        command = Command("workbench add-person", (NAME,), (Remedy("role", role),))
        missing = () if role in roles else ("; nobody is: ", command)
        waiting = f"{number_of(counts[state], 'item')} {_STATE_TEXTS.get(state, state)} ({role}: {page}"
        lines.append(Advice(waiting, *missing, ")"))
    return tuple(lines)


def check_finished(session: Session, project: StoredProject, *, where: str, serving: str) -> None:
    """Raise WaitingError, with what people have to do, where an item of a project waits for them.

    ``where`` is the address of the workbench, and ``serving`` says how people reach it.
    """
    states = count_states(session, project.id)
    if not set(states) - ENDED:
        return
    total, ended = sum(states.values()), sum(states.get(state, 0) for state in ENDED)
    open_tasks = select(func.sum(StoredTask.num_wanted - StoredTask.num_answered)).where(
        StoredTask.project_id == project.id,
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
        StoredTask.num_answered < StoredTask.num_wanted,
    )
    answers = number_of(session.scalar(open_tasks) or 0, "answer")
    raise WaitingError(
        Advice(
            f"{total - ended} of {number_of(total, 'item')} of the project {project.name!r} wait for people, with "
            f"{answers} to come: ",
            joined("; ", waiting_lines(session, project.id)),
        ),
        where=where,
        do=Advice(serving, ", and run the same command again when they have finished"),
        num_waiting=total - ended,
    )


def _waits_for(person: int | InstrumentedAttribute[int]) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions on an item in alignment that a person answered, and whose latest proposal another made."""
    answer, task = aliased(StoredAnswer), aliased(StoredTask)
    proposal, proposed = aliased(StoredAnswer), aliased(StoredTask)
    of_round = task.item_id == StoredItem.id, task.round == StoredItem.round
    has_answered = exists().where(
        answer.task_id == task.id, answer.person_id == person, answer.stage == "annotation", *of_round
    )
    latest = (
        select(proposal.person_id)
        .join(proposed, proposal.task_id == proposed.id)
        .where(proposed.item_id == StoredItem.id, proposed.round == StoredItem.round, proposal.stage == "proposal")
        .order_by(proposal.id.desc())
        .limit(1)
        .correlate(StoredItem)
        .scalar_subquery()
    )
    return StoredItem.state == "aligning", has_answered, func.coalesce(latest, 0) != person
