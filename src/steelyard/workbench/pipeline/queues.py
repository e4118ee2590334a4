"""The next tasks of a person: exactly as many people for each task as are wanted, however many ask at the same time.

A slot of a task is taken by one conditional update of its row: two people who want the last slot cannot both get it,
on any database, and nothing waits for a lock. A person who does not answer in time loses the slot to another one.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    CursorResult,
    Row,
    Select,
    Update,
    bindparam,
    cast,
    exists,
    func,
    or_,
    select,
    update,
)
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.gold import is_gold_place
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.numerics import generator
from steelyard.core.text import response_text
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of
from steelyard.workbench.pipeline.work_limits import closed_categories, is_day_full
from steelyard.workbench.storage.figure_tables import StoredWorkDay
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.qualification_tables import StoredQualificationRound
from steelyard.workbench.storage.tables import StoredAssignment, StoredItem, StoredPerson, StoredProject, StoredTask

_CANDIDATES = 40
"""Tasks looked at in one go. Who asks at the same time begins at different ones."""
_MOST_OPEN = 3
"""Tasks in one person's hands: the one on the screen and those that are loaded ahead."""
_MOST_EXPIRED = 200


# Statements of every request are built once: building one takes longer than running it.
_OF_MEMBERSHIP = (
    StoredAssignment.person_id == bindparam("person"),
    StoredTask.project_id == bindparam("project"),
)
_MINE = (
    # With what their views show: a row that was read is not asked for again.
    select(StoredAssignment, StoredTask, StoredItem)
    .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
    .join(StoredItem, StoredTask.item_id == StoredItem.id)
    .where(*_OF_MEMBERSHIP, StoredAssignment.state == "open", StoredTask.is_retired.is_(False))
    .order_by(StoredAssignment.assigned_at, StoredAssignment.id)
)
_EXPIRED = (
    select(StoredAssignment)
    .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
    .where(*_OF_MEMBERSHIP, StoredAssignment.state == "expired", StoredTask.is_open.is_(True))
    .order_by(StoredAssignment.id)
    .limit(_CANDIDATES)
)
_LATE = (
    select(StoredAssignment.id, StoredAssignment.task_id)
    .where(StoredAssignment.state == "open", StoredAssignment.expires_at < bindparam("at"))
    .limit(_MOST_EXPIRED)
)
_NUM_UNANSWERED = (
    select(func.count())
    .select_from(StoredAssignment)
    .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
    .where(*_OF_MEMBERSHIP, StoredAssignment.state.in_(("open", "expired", "released")))
)
_NUM_ANSWERED = select(func.coalesce(func.sum(StoredWorkDay.num_answers), 0)).where(
    StoredWorkDay.project_id == bindparam("project"), StoredWorkDay.person_id == bindparam("person")
)
_HOLDS_ANY = exists().where(StoredAssignment.person_id == bindparam("person"), StoredAssignment.state == "open")
# Whether anybody is late, how many tasks a person has had, and whether any is open: answers are summed by days, there
# are thousands of them.
_NUM_HAD = _NUM_UNANSWERED.scalar_subquery() + _NUM_ANSWERED.scalar_subquery()
_STANDING = select(_LATE.exists(), cast(_NUM_HAD, BigInteger()), _HOLDS_ANY)
_TASK = (
    select(StoredTask, StoredItem)
    .join(StoredItem, StoredTask.item_id == StoredItem.id)
    .where(StoredTask.id == bindparam("task"))
)
_TAKE_SLOT = (
    update(StoredTask)
    .where(
        StoredTask.id == bindparam("task"),
        StoredTask.is_open.is_(True),
        StoredTask.num_reserved < StoredTask.num_wanted,
    )
    .values(num_reserved=StoredTask.num_reserved + 1, is_open=StoredTask.num_reserved + 1 < StoredTask.num_wanted)
    .execution_options(synchronize_session=False)
)


PASSED = ("passed", "let pass")
"""The outcomes of a round of qualification with which a person has real tasks."""
# Asked before every task of a project with a qualification. Who has answered real tasks needs none.
_MAY_WORK = select(
    or_(
        exists().where(
            StoredQualificationRound.project_id == bindparam("project"),
            StoredQualificationRound.person_id == bindparam("person"),
            StoredQualificationRound.outcome.in_(PASSED),
        ),
        exists().where(
            StoredWorkDay.project_id == bindparam("project"), StoredWorkDay.person_id == bindparam("person")
        ),
    )
)


class Membership(NamedTuple):
    """A person in a project."""

    person: StoredPerson
    project: StoredProject
    settings: ProjectSettings


def next_assignments(session: Session, membership: Membership, *, number: int, at: float) -> list[StoredAssignment]:
    """Return up to ``number`` open tasks of a person, the oldest first, new ones reserved as far as there are any.

    None before the person has passed the qualification of the project; no new ones once the answers of a day are given,
    and while the project is paused.
    """
    is_anybody_late, num_had, holds_any = session.execute(_STANDING, _parameters(membership) | {"at": at}).one()
    if is_anybody_late:
        for late, task in session.execute(_LATE, {"at": at}).all():
            _close(session, late, task, "expired")
    if not may_work(session, membership.settings, project=membership.project.id, person=membership.person.id):
        return []
    # Who works without loading ahead holds none when asking for the next one: there is nothing to read then.
    mine = [row[0] for row in session.execute(_MINE, _parameters(membership))] if holds_any else []
    for assignment in mine:
        assignment.expires_at = max(assignment.expires_at, at + 60 * membership.settings.rules.lock_minutes)
    limits = membership.settings.limits
    if limits.is_paused or is_day_full(
        session, limits, project=membership.project.id, person=membership.person.id, at=at
    ):
        return mine
    num_slots = min(number, _MOST_OPEN)
    while len(mine) < num_slots and (reserved := _reserve(session, membership, num_had, at)) is not None:
        mine.append(reserved)
        num_had += 1
    while len(mine) < num_slots and (reserved := _take_expired(session, membership, at)) is not None:
        mine.append(reserved)
    # A task that was given back unseen keeps its row, and its number tells nothing of when it was reserved again.
    return sorted(mine, key=lambda each: (each.assigned_at, each.id))


def may_work(session: Session, settings: ProjectSettings, *, project: int, person: int) -> bool:
    """Tell whether a person may have real tasks of a project: without a qualification, or after it."""
    if not settings.qualification.num_tasks:
        return True
    return bool(session.scalar(_MAY_WORK, {"project": project, "person": person}))


def release(session: Session, assignment: StoredAssignment, *, state: str = "released") -> bool:
    """Give an open task back, or end its time where ``state`` is ``expired``. Returns whether it was open."""
    return _close(session, assignment.id, assignment.task_id, state)


def give_back(session: Session, person: int, loaded: Mapping[int, float]) -> int:
    """Undo assignments of a person that a page loaded ahead and never showed. Returns how many.

    ``loaded`` has until when each was reserved, as the page knows it: one that another page has loaded since stays, and
    so does one with a draft. The person may get the same tasks another time, as if they were new. Their rows stay: a
    page that was opened before, and shows one of them, still sends its answer.
    """
    rows = session.scalars(
        select(StoredAssignment)
        .where(
            is_among(StoredAssignment.id, loaded),
            StoredAssignment.person_id == person,
            StoredAssignment.state == "open",
        )
        .order_by(StoredAssignment.id)
        .with_for_update()
    ).all()
    unseen = [row for row in rows if row.draft is None and row.seconds == 0 and row.expires_at == loaded[row.id]]
    for row in unseen:
        _close(session, row.id, row.task_id, "unseen")
    return len(unseen)


def take_again(session: Session, assignment: StoredAssignment, *, expires_at: float) -> bool:
    """Take the slot of an assignment again, if it is free. Returns whether the task is the person's."""
    if assignment.state == "open":
        assignment.expires_at = max(assignment.expires_at, expires_at)
        return True
    if not _take_slot(session, assignment.task_id):
        return False
    reopening = (
        update(StoredAssignment)
        .where(StoredAssignment.id == assignment.id, StoredAssignment.state.not_in(("open", "answered")))
        .values(state="open", expires_at=expires_at)
    )
    if _num_updated(session, reopening) != 1:
        # Another page of the same person was faster, and holds a slot: this second one is nobody's.
        _free_slot(session, assignment.task_id)
        return False
    return True


def assign_task(
    session: Session, membership: Membership, task: int, shown: Sequence[str], *, at: float
) -> StoredAssignment | None:
    """Assign a task that a person has answered elsewhere, where the responses were ``shown`` in an order of its own.

    Returns null where the task has no slot left, or the rules give it to other people.
    """
    mine = session.scalar(
        select(StoredAssignment).where(
            StoredAssignment.task_id == task, StoredAssignment.person_id == membership.person.id
        )
    )
    expires_at = at + 60 * membership.settings.rules.lock_minutes
    if mine is not None:
        if mine.state == "answered" or not take_again(session, mine, expires_at=expires_at):
            return None
        mine.shown = list(shown)
        return mine
    allowed = select(StoredTask.id).where(StoredTask.id == task, *_rework_rule(membership.settings.rules.rework))
    if session.scalar(allowed, _parameters(membership)) is None or not _take_slot(session, task):
        return None
    assignment = _assign(session, membership, task, None, is_gold=False, at=at)
    assignment.shown = list(shown)
    return assignment


def _reserve(session: Session, membership: Membership, num_had: int, at: float) -> StoredAssignment | None:
    """Reserve the best task that is new to a person: gold where its turn has come, else the first of the queue."""
    rules, seed = membership.settings.rules, membership.settings.seed
    wants_gold = is_gold_place(num_had, share=rules.gold_share, person=membership.person.id, seed=seed)
    for is_gold in (True, False) if wants_gold else (False,):
        # A gold task of an item that the person knows would test memory.
        for avoids_items in (True,) if is_gold else (True, False):
            for candidate in _candidates(session, membership, is_gold=is_gold, avoids_items=avoids_items):
                if _take_slot(session, candidate.id):
                    return _assign(session, membership, candidate.id, candidate.unseen, is_gold=is_gold, at=at)
    return None


def _take_expired(session: Session, membership: Membership, at: float) -> StoredAssignment | None:
    """Take a task again that the person let expire, with its draft: where nobody else is left it would stay open."""
    expires_at = at + 60 * membership.settings.rules.lock_minutes
    for (assignment,) in session.execute(_EXPIRED, _parameters(membership)).all():
        if take_again(session, assignment, expires_at=expires_at):
            return assignment
    return None


def _candidates(session: Session, membership: Membership, *, is_gold: bool, avoids_items: bool) -> Sequence[Row]:
    """Return free tasks that the person has not had, in the order of the import and from a random one on.

    Each row has the ``id`` of the task and ``unseen``: the assignment of it that the person gave back unseen, or null.
    With ``avoids_items`` no task of an item that the person has had another task of.
    """
    person, skills, rework = membership.person.id, membership.person.skills, membership.settings.rules.rework
    closed: list[str] = []
    if not is_gold:
        # The person's record on gold tasks closes categories.
        of_people = closed_categories(session, membership.settings.limits, project=membership.project.id, person=person)
        closed = sorted(of_people.get(person, ()))
    statement = _free_tasks(is_gold, avoids_items, has_skills=bool(skills), has_closed=bool(closed), rework=rework)
    categories = ({"skills": skills} if skills else {}) | ({"closed": closed} if closed else {})
    rows = session.execute(statement, _parameters(membership) | categories).all()
    # They are equally good: people who ask at once try different ones first.
    start = random.randrange(len(rows)) if rows else 0
    return [*rows[start:], *rows[:start]]


@cache
def _free_tasks(
    is_gold: bool,  # noqa: FBT001
    avoids_items: bool,  # noqa: FBT001
    *,
    has_skills: bool,
    has_closed: bool,
    rework: str,
) -> Select:
    """Return the statement for free tasks of a member, the earliest first."""
    free: list[ColumnElement[bool]] = [
        StoredTask.project_id == bindparam("project"),
        StoredTask.is_gold.is_(is_gold),
        StoredTask.is_open.is_(True),
    ]
    if has_skills:
        free.append(or_(StoredTask.category.in_(bindparam("skills", expanding=True)), StoredTask.category == ""))
    if has_closed:
        free.append(StoredTask.category.not_in(bindparam("closed", expanding=True)))
    free += _rework_rule(rework)
    other = aliased(StoredTask)
    same = other.item_id == StoredTask.item_id if avoids_items else other.id == StoredTask.id
    had = exists().where(same, _is_of_person(other))
    unseen = select(StoredAssignment.id).where(
        StoredAssignment.task_id == StoredTask.id, StoredAssignment.person_id == bindparam("person")
    )
    return (
        select(StoredTask.id, unseen.scalar_subquery().label("unseen"))
        .where(*free, ~had)
        .order_by(StoredTask.id)
        .limit(_CANDIDATES)
    )


def _parameters(membership: Membership) -> dict[str, int]:
    return {"person": membership.person.id, "project": membership.project.id}


def _rework_rule(rework: str) -> list[ColumnElement[bool]]:
    """Return the condition on who annotates an item again after a rejection."""
    if rework == "anyone":
        return []
    former = aliased(StoredTask)
    is_answered = _is_of_person(former, StoredAssignment.state == "answered")
    annotated = exists().where(former.item_id == StoredTask.item_id, former.round < StoredTask.round, is_answered)
    return [~annotated] if rework == "others" else [or_(StoredTask.round == 1, annotated)]


def _is_of_person(task: type[StoredTask], *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return the condition that the member has had a task: seen it, as far as the workbench knows.

    It stands inside that on the task: joined to it, SQLite reads for every candidate all that the person has had.
    """
    assignment = StoredAssignment
    of_person = assignment.task_id == task.id, assignment.person_id == bindparam("person")
    return exists().where(*of_person, assignment.state != "unseen", *conditions)


def _take_slot(session: Session, task: int) -> bool:
    """Take one of the places of a task, if there is one left. Returns whether it was taken."""
    return _num_updated(session, _TAKE_SLOT, {"task": task}) == 1


def _assign(
    session: Session, membership: Membership, task_id: int, unseen: int | None, *, is_gold: bool, at: float
) -> StoredAssignment:
    """Give a person a task, in the assignment that this person gave back unseen or, null, in a new one."""
    expires_at = at + 60 * membership.settings.rules.lock_minutes
    if unseen is not None:
        former = session.get_one(StoredAssignment, unseen, with_for_update=True, populate_existing=True)
        former.state, former.is_gold_place, former.assigned_at, former.expires_at = "open", is_gold, at, expires_at
        session.flush()
        return former
    task, _ = session.execute(_TASK, {"task": task_id}, execution_options={"populate_existing": True}).one()
    # Every person sees the responses in an order of their own, the same one each time, if the kind has no fixed one.
    order = range(len(task.responses))
    if kind_named(task.kind).is_shuffled:
        order = generator(membership.settings.seed, "order shown", membership.person.id, task.id).permutation(
            len(task.responses)
        )
    assignment = StoredAssignment(
        task_id=task.id,
        person_id=membership.person.id,
        shown=[task.responses[number] for number in order],
        is_gold_place=is_gold,
        assigned_at=at,
        expires_at=expires_at,
    )
    session.add(assignment)
    session.flush()
    return assignment


def _close(session: Session, number: int, task: int, state: str) -> bool:
    """Set an open assignment's state and free its slot. Returns whether it was open: another request may be faster."""
    closing = (
        update(StoredAssignment)
        .where(StoredAssignment.id == number, StoredAssignment.state == "open")
        .values(state=state)
    )
    if _num_updated(session, closing) != 1:
        return False
    _free_slot(session, task)
    return True


def _num_updated(session: Session, statement: Update, parameters: Mapping[str, int] | None = None) -> int:
    updated = session.execute(statement, parameters)
    assert isinstance(updated, CursorResult), "an UPDATE counts the rows that it changes"
    return updated.rowcount


def _free_slot(session: Session, task: int) -> None:
    session.execute(
        update(StoredTask)
        .where(StoredTask.id == task)
        .values(num_reserved=StoredTask.num_reserved - 1, is_open=StoredTask.is_retired.is_(False))
    )


def responses_shown(session: Session, assignment: StoredAssignment) -> dict[str, str]:
    """Return the texts of the responses of an assignment by id, in the person's order."""
    task = session.get_one(StoredTask, assignment.task_id)
    case = case_of(session.get_one(StoredItem, task.item_id))
    texts = {response.id: response_text(response) for response in case.responses}
    return {response: texts[response] for response in assignment.shown}
