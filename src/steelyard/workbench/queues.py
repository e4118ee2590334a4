"""The next tasks of a person: exactly as many people for each task as are wanted, however many ask at the same time.

A place in a task is taken by one conditional update of its row: two people who want the last place cannot both get it,
on any database, and nothing waits for a lock. Whoever does not answer in time loses the place to somebody else.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.gold import is_gold_place
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.numerics import generator
from steelyard.core.text import response_text
from steelyard.workbench.projects import ProjectSettings, case_of
from steelyard.workbench.tables import StoredAssignment, StoredItem, StoredPerson, StoredProject, StoredTask

_CANDIDATES = 40
"""Tasks looked at in one go. Who asks at the same time begins at different ones."""
_MOST_OPEN = 3
"""Tasks in one person's hands: the one on the screen and those that are loaded ahead."""
_MOST_EXPIRED = 200


class Seat(NamedTuple):
    """A person in a project."""

    person: StoredPerson
    project: StoredProject
    settings: ProjectSettings


def next_assignments(session: Session, seat: Seat, *, number: int, at: float) -> list[StoredAssignment]:
    """Return up to ``number`` open tasks of a person, the oldest first, new ones reserved as far as there are any."""
    _release_expired(session, at)
    mine = _open_assignments(session, seat, at)
    while len(mine) < min(number, _MOST_OPEN):
        reserved = _reserve(session, seat, at)
        if reserved is None:
            break
        mine.append(reserved)
    return mine


def release(session: Session, assignment: StoredAssignment) -> bool:
    """Give an open task back. Returns whether it was open."""
    return _close(session, assignment.id, assignment.task_id, "released")


def take_again(session: Session, assignment: StoredAssignment, *, expires_at: float) -> bool:
    """Take the place of an expired assignment again, if it is free. Returns whether the task is the person's."""
    if assignment.state == "open":
        assignment.expires_at = max(assignment.expires_at, expires_at)
        return True
    if not _take_place(session, assignment.task_id):
        return False
    assignment.state, assignment.expires_at = "open", expires_at
    return True


def _open_assignments(session: Session, seat: Seat, at: float) -> list[StoredAssignment]:
    statement = (
        select(StoredAssignment)
        .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
        .where(
            StoredAssignment.person_id == seat.person.id,
            StoredAssignment.state == "open",
            StoredTask.project_id == seat.project.id,
            StoredTask.is_retired.is_(False),
        )
        .order_by(StoredAssignment.id)
    )
    mine = list(session.scalars(statement))
    for assignment in mine:
        assignment.expires_at = max(assignment.expires_at, at + 60 * seat.settings.rules.lock_minutes)
    return mine


def _reserve(session: Session, seat: Seat, at: float) -> StoredAssignment | None:
    """Reserve the best free task for a person: gold where its turn has come, else the first of the queue."""
    wants_gold = _is_gold_turn(session, seat)
    for is_gold in (True, False) if wants_gold else (False,):
        # A gold task of an item that the person knows would test memory.
        for avoids_items in (True,) if is_gold else (True, False):
            for candidate in _candidates(session, seat, is_gold=is_gold, avoids_items=avoids_items):
                if _take_place(session, candidate):
                    return _assign(session, seat, candidate, is_gold=is_gold, at=at)
    return None


def _is_gold_turn(session: Session, seat: Seat) -> bool:
    """Tell whether the person's next task is one whose answer is known."""
    of_person = (
        select(func.count()).select_from(StoredAssignment).join(StoredTask, StoredAssignment.task_id == StoredTask.id)
    )
    number = session.scalar(
        of_person.where(StoredAssignment.person_id == seat.person.id, StoredTask.project_id == seat.project.id)
    )
    share, seed = seat.settings.rules.gold_share, seat.settings.seed
    return is_gold_place(number or 0, share=share, person=seat.person.id, seed=seed)


def _candidates(session: Session, seat: Seat, *, is_gold: bool, avoids_items: bool) -> Sequence[int]:
    """Return free tasks that the person has not had, those of the highest priority begun at a random one.

    With ``avoids_items`` no task of an item that the person has had another task of.
    """
    free: list[ColumnElement[bool]] = [
        StoredTask.project_id == seat.project.id,
        StoredTask.is_gold.is_(is_gold),
        StoredTask.is_open.is_(True),
    ]
    if seat.person.skills:
        free.append(or_(StoredTask.category.in_(seat.person.skills), StoredTask.category == ""))
    free += _rework_rule(seat)
    other = aliased(StoredTask)
    same = other.item_id == StoredTask.item_id if avoids_items else other.id == StoredTask.id
    had = exists().where(and_(StoredAssignment.person_id == seat.person.id, StoredAssignment.task_id == other.id, same))
    statement = (
        select(StoredTask.id, StoredTask.priority)
        .where(*free, ~had)
        .order_by(StoredTask.priority.desc(), StoredTask.id)
        .limit(_CANDIDATES)
    )
    rows = session.execute(statement).all()
    # Tasks of one priority are equally good: people who ask at once try different ones first.
    best = [task for task, priority in rows if priority == rows[0][1]]
    start = random.randrange(len(best)) if best else 0
    return [*best[start:], *best[:start], *(task for task, _ in rows[len(best) :])]


def _rework_rule(seat: Seat) -> list[ColumnElement[bool]]:
    """Return the condition on who annotates an item again after a rejection."""
    rework = seat.settings.rules.rework
    if rework == "anyone":
        return []
    former = aliased(StoredTask)
    annotated = exists().where(
        former.item_id == StoredTask.item_id,
        former.round < StoredTask.round,
        StoredAssignment.task_id == former.id,
        StoredAssignment.person_id == seat.person.id,
        StoredAssignment.state == "answered",
    )
    return [~annotated] if rework == "others" else [or_(StoredTask.round == 1, annotated)]


def _take_place(session: Session, task: int) -> bool:
    """Take one of the places of a task, if there is one left. Returns whether it was taken."""
    taken = session.execute(
        update(StoredTask)
        .where(StoredTask.id == task, StoredTask.is_open.is_(True), StoredTask.num_reserved < StoredTask.num_wanted)
        .values(num_reserved=StoredTask.num_reserved + 1, is_open=StoredTask.num_reserved + 1 < StoredTask.num_wanted)
        .execution_options(synchronize_session=False)
    )
    return taken.rowcount == 1  # pyright: ignore[reportAttributeAccessIssue] - an UPDATE has one


def _assign(session: Session, seat: Seat, task_id: int, *, is_gold: bool, at: float) -> StoredAssignment:
    task = session.get_one(StoredTask, task_id, populate_existing=True)
    # Every person sees the responses in an order of their own, the same one each time, if the kind has no fixed one.
    order = range(len(task.responses))
    if kind_named(task.kind).is_shuffled:
        order = generator(seat.settings.seed, "order shown", seat.person.id, task.id).permutation(len(task.responses))
    assignment = StoredAssignment(
        task_id=task.id,
        person_id=seat.person.id,
        shown=[task.responses[number] for number in order],
        is_gold_place=is_gold,
        assigned_at=at,
        expires_at=at + 60 * seat.settings.rules.lock_minutes,
    )
    session.add(assignment)
    session.flush()
    return assignment


def _release_expired(session: Session, at: float) -> None:
    late = select(StoredAssignment.id, StoredAssignment.task_id).where(
        StoredAssignment.state == "open", StoredAssignment.expires_at < at
    )
    for number, task in session.execute(late.limit(_MOST_EXPIRED)).all():
        _close(session, number, task, "expired")


def _close(session: Session, number: int, task: int, state: str) -> bool:
    """Set an open assignment's state and free its seat. Returns whether it was open: another request may be faster."""
    closed = session.execute(
        update(StoredAssignment)
        .where(StoredAssignment.id == number, StoredAssignment.state == "open")
        .values(state=state)
    )
    if closed.rowcount != 1:  # pyright: ignore[reportAttributeAccessIssue] - an UPDATE has one
        return False
    session.execute(
        update(StoredTask)
        .where(StoredTask.id == task)
        .values(num_reserved=StoredTask.num_reserved - 1, is_open=StoredTask.is_retired.is_(False))
    )
    return True


def responses_shown(session: Session, assignment: StoredAssignment) -> dict[str, str]:
    """Return the texts of the responses of an assignment by id, in the person's order."""
    task = session.get_one(StoredTask, assignment.task_id)
    case = case_of(session.get_one(StoredItem, task.item_id))
    texts = {response.id: response_text(response) for response in case.responses}
    return {response: texts[response] for response in assignment.shown}
