"""Entries of a person: drafts on the way, the answer at the end, and the gate behind the last answer of an item.

An answer is written once. The same one sent again, by an impatient click or a connection that broke, is found and says
so; one that comes after another person has taken the slot is kept as a draft and refused.
"""

from collections.abc import Iterable, Mapping
from string import ascii_uppercase
from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, SQLColumnExpression, and_, bindparam, case, or_, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer, rename_responses
from steelyard.annotation.pipeline import ItemEvent
from steelyard.annotation.task_kinds import kind_named
from steelyard.workbench.pipeline.counters import count_stored_answer, count_stored_gate
from steelyard.workbench.pipeline.discards import remove_discarded
from steelyard.workbench.pipeline.disputes import evidence_of, finish_if_settled
from steelyard.workbench.pipeline.gate_agreement import UnitCounts
from steelyard.workbench.pipeline.item_states import move
from steelyard.workbench.pipeline.offboarding import pass_on_abandoned
from steelyard.workbench.pipeline.projects import ProjectSettings, settings_of
from steelyard.workbench.pipeline.question_words import catalogues_of
from steelyard.workbench.pipeline.queues import responses_shown, take_again
from steelyard.workbench.storage.audit_log import AuditEvent, answer_detail, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredGuideline,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)

_LONGEST_PAUSE = 120.0
"""Seconds between two signs of life of a page beyond which the time between them was a pause."""


def _best_first(category: SQLColumnExpression[str], language: SQLColumnExpression[str]) -> tuple[ColumnElement, ...]:
    """Return the order of guidelines of a task: those of its category and of the person's language come first."""
    return (
        case((StoredGuideline.category == category, 0), else_=1),
        case((StoredGuideline.language == language, 0), else_=1),
        StoredGuideline.version.desc(),
    )


# Statements of every answer are built once: building one takes longer than running it.
_LOCKED_ITEM = (
    select(StoredItem)
    .join(StoredTask, StoredTask.item_id == StoredItem.id)
    .join(StoredAssignment, StoredAssignment.task_id == StoredTask.id)
    .where(StoredAssignment.id == bindparam("assignment"), StoredAssignment.person_id == bindparam("person"))
    .with_for_update(of=StoredItem)
)
_GUIDELINES_OF_TASK = and_(
    StoredGuideline.project_id == StoredTask.project_id,
    or_(StoredGuideline.category == StoredTask.category, StoredGuideline.category == ""),
)
_LATEST = (
    select(StoredAssignment, StoredTask, StoredProject, StoredGuideline.id)
    .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
    .join(StoredProject, StoredTask.project_id == StoredProject.id)
    .join(StoredPerson, StoredAssignment.person_id == StoredPerson.id)
    .outerjoin(StoredGuideline, _GUIDELINES_OF_TASK)
    .where(StoredAssignment.id == bindparam("assignment"))
    # The time of a task may be over at this very moment: who gives its slot away waits, or was faster.
    .with_for_update(of=StoredAssignment)
    .order_by(
        case((StoredGuideline.id == bindparam("guideline"), 0), else_=1),
        *_best_first(StoredTask.category, StoredPerson.language),
    )
    .limit(1)
)
_UNFINISHED = (
    select(StoredTask.id)
    .where(
        StoredTask.item_id == bindparam("item"),
        StoredTask.round == bindparam("round"),
        StoredTask.is_retired.is_(False),
        StoredTask.num_answered < StoredTask.num_wanted,
    )
    .limit(1)
)
_COMPARED = (
    select(StoredTask.id)
    .where(
        StoredTask.item_id == bindparam("item"),
        StoredTask.round == bindparam("round"),
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
        StoredTask.num_answered > 1,
    )
    .limit(1)
)
_GUIDELINE = (
    select(StoredGuideline)
    .where(
        StoredGuideline.project_id == bindparam("project"),
        StoredGuideline.category.in_((bindparam("category"), "")),
    )
    .order_by(*_best_first(bindparam("category"), bindparam("language")))
    .limit(1)
)
_AS_STORED = {"populate_existing": True}


class LockedAssignment(NamedTuple):
    """An assignment whose item is locked until the end of the transaction, with all that an answer to it concerns.

    ``guideline`` is the version that the answer is filed under; null where there is none.
    """

    assignment: StoredAssignment
    task: StoredTask
    item: StoredItem
    project: StoredProject
    guideline: int | None


Outcome = Literal["stored", "stored before", "too late"]
"""The fate of an answer; ``too late`` where another person has the slot by now."""


def save_draft(
    session: Session, assignment: StoredAssignment, draft: TaskAnswer, *, seconds: float, expires_at: float = 0.0
) -> None:
    """Keep what was entered so far, and the time spent on it: at most the longest pause since the draft before.

    Who enters something is at work: the task is this person's until ``expires_at``, also one whose time was over, as
    long as nobody else has its slot.
    """
    if assignment.state == "answered":
        return
    assignment.draft = msgspec.to_builtins(draft)
    assignment.seconds += max(0.0, min(seconds, _LONGEST_PAUSE))
    if expires_at and assignment.state != "released":
        take_again(session, assignment, expires_at=expires_at)


def count_seconds(assignment: StoredAssignment, reported: float, *, at: float) -> float:
    """Return how many of the seconds that a page reports have passed since the draft before, or since the assignment.

    Those of all drafts together never exceed the time since the task was assigned, for any times that are sent.
    """
    passed = at - max(assignment.assigned_at, assignment.active_at or 0.0)
    if assignment.state != "answered":
        assignment.active_at = at
    return max(0.0, min(reported, passed))


def lock_assignment(
    session: Session, assignment: int, *, person: int, guideline: int | None = None
) -> LockedAssignment | None:
    """Lock the item of a person's assignment, and read what an answer concerns; null for an assignment of others.

    ``guideline`` is the version that the person had on the page; null for the latest.
    """
    # One answer of an item after another: what is read behind the lock has all others, and changes for nobody else.
    key = {"assignment": assignment, "person": person}
    item = session.scalar(_LOCKED_ITEM, key, execution_options=_AS_STORED)
    if item is None:
        return None
    wanted = {"assignment": assignment, "guideline": guideline}
    row, task, project, filed = session.execute(_LATEST, wanted, execution_options=_AS_STORED).one()
    return LockedAssignment(row, task, item, project, filed)


def submit(session: Session, locked: LockedAssignment, answer: TaskAnswer, *, seconds: float, at: float) -> Outcome:
    """Store an answer and, after the last one of an item, decide whether it passes the gate.

    Raises RefusedError for an answer that is not complete or contradicts itself: no page of ours sends one.
    """
    assignment, task, item, project, guideline = locked
    if assignment.state == "answered":
        return _repeated(session, locked, answer)
    settings, shown = settings_of(project), responses_shown(session, assignment)
    check_answer(task.kind, answer, shown, settings, dict(zip(shown, ascii_uppercase, strict=False)))
    save_draft(session, assignment, answer, seconds=seconds)
    if task.is_retired or not take_again(session, assignment, expires_at=at + 60 * settings.rules.lock_minutes):
        record(session, AuditEvent("answer too late", "task", task.id, assignment.person_id, {}), at=at)
        return "too late"
    stored = StoredAnswer(
        task_id=task.id,
        person_id=assignment.person_id,
        assignment_id=assignment.id,
        content=msgspec.to_builtins(answer),
        seconds=assignment.seconds,
        guideline_id=guideline,
        at=at,
    )
    session.add(stored)
    assignment.state = "answered"
    task.num_answered += 1
    session.flush()
    count_stored_answer(session, stored, list(shown), task, item)
    detail = {"seconds": assignment.seconds, **answer_detail(stored)}
    record(session, AuditEvent("answered", "task", task.id, assignment.person_id, detail), at=at)
    if not task.is_gold:
        # A response leaves by the last of the answers that discard it.
        if answer.discarded:
            remove_discarded(session, item, settings, person=assignment.person_id, at=at)
        if task.num_answered >= task.num_wanted:
            pass_gate(session, item, settings, at=at)
    return "stored"


def _repeated(session: Session, locked: LockedAssignment, answer: TaskAnswer) -> Outcome:
    """Return what became of an answer that was sent before. Raises RefusedError where another one is stored."""
    content = session.scalar(select(StoredAnswer.content).where(StoredAnswer.assignment_id == locked.assignment.id))
    assert content is not None, "an answered assignment has its answer"
    if msgspec.convert(content, TaskAnswer) == answer:
        return "stored before"
    problem = "this task is answered already"
    raise RefusedError(problem, words="answered already", where="answer", do="open the next task")


def pass_gate(
    session: Session, item: StoredItem, settings: ProjectSettings, *, at: float, units: UnitCounts | None = None
) -> None:
    """Move an item on if all its tasks have their answers: to review where the people agree, else to alignment.

    An item that fails in a unit larger than itself, though its people agree on it, has nothing to align: it passes. One
    whose tasks have one answer each has nothing to compare: it goes to review, and counts in no share of the gate.

    ``units`` are the counts that one transaction keeps for all items that it takes to the gate.
    """
    if item.state != "annotating" or session.scalar(_UNFINISHED, {"item": item.id, "round": item.round}) is not None:
        return
    counts_of_item, counts = (units or UnitCounts()).at_gate(session, item, settings.rules.gate)
    item.agreement = counts_of_item.share
    # Nothing that both could judge is nothing to disagree about, and nothing to pass on: people have to look.
    is_agreed = counts.share is not None and counts.share >= settings.rules.least_agreement - 1e-12
    event: ItemEvent = "agreed" if is_agreed else "disagreed"
    if session.scalar(_COMPARED, {"item": item.id, "round": item.round}) is None:
        # No task has two answers. Where the only person could not judge, the layer has to settle the task.
        event = "disagreed" if any(each.is_open for each in evidence_of(session, [item])[item.id]) else "uncompared"
    count_stored_gate(session, item, item.round, counts_of_item, is_passed=event == "agreed", at=at)
    move(session, item, event, person=None, at=at)
    finish_if_settled(session, item, person=None, at=at)
    # A person may have left since the answer that would have to be aligned now.
    pass_on_abandoned(session, [item], at=at)


def check_answer(
    name: str, answer: TaskAnswer, shown: Mapping[str, str], settings: ProjectSettings, letters: Mapping[str, str]
) -> None:
    """Raise RefusedError for an answer to a task of a kind that is not complete, or contradicts itself.

    Also for one that no page sends. ``shown``: texts by response. ``letters``: what the page calls each response; an id
    often is the name of a model, which nobody who judges may see.
    """
    kind = kind_named(name)
    answer = rename_responses(answer, lambda response: letters.get(response, "?"), lambda _, span: span)
    shown = {letters[response]: text for response, text in shown.items()}
    if wrong := kind.misfits(answer, shown, catalogues_of(settings)):
        raise RefusedError(f"the answer has {wrong[0]}", words="misfit", where="answer", do="reload the page")
    if answer.cannot_judge is not None and not answer.cannot_judge.strip():
        problem = "no reason why it cannot be judged"
        raise RefusedError(problem, words="no reason", where="answer", do="choose a reason")
    if open_points := kind.contradictions(answer, tuple(shown)):
        first = open_points[0]
        about = first.responses[1:] if first.problem == "missing entry" else first.responses
        raise RefusedError(
            f"{first.problem}: {', '.join(first.responses)}",
            words=first.problem,
            values={"responses": ", ".join(about)},
            where="answer",
            do="settle it before you submit",
        )


def check_discards(answer: TaskAnswer, reasons: Iterable[str]) -> None:
    """Raise RefusedError for a response that is discarded for none of the reasons."""
    allowed = tuple(reasons)
    if unknown := sorted(set(answer.discarded.values()) - set(allowed)):
        problem = f"{unknown[0][:50]!r} is not a reason"
        raise RefusedError(problem, words="discard reason", where="answer", allowed=", ".join(allowed))


def guideline_of(session: Session, project: int, category: str, language: str) -> StoredGuideline | None:
    """Return the guideline of a category, else the one of all, in its latest version and a person's language.

    Where there is none in the language, the one in another.
    """
    wanted = {"project": project, "category": category, "language": language}
    return session.scalar(_GUIDELINE, wanted)


def filed_guideline(session: Session, task: StoredTask, person: int) -> int | None:
    """Return the version that what a person says of a task now is filed under; null where there is none."""
    language = session.get_one(StoredPerson, person).language
    guideline = guideline_of(session, task.project_id, task.category, language)
    return None if guideline is None else guideline.id
