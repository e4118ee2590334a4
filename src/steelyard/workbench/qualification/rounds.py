"""Qualification: who may have real tasks of a project, rounds of tasks with a known answer, and what managers decide.

A new annotator gets a round of tasks drawn from the project's qualification tasks, sees the reference after each, and
passes by the share of it that was met. Who fails waits for a manager, who allows another round or lets the person pass.
People who have answered real tasks of the project before need none.
"""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.qualification import accuracy_of, has_passed, score_answer
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.numerics import generator
from steelyard.core.text import response_text
from steelyard.core.types import Case
from steelyard.statistics.intervals import Estimate
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.queues import PASSED, may_work
from steelyard.workbench.pipeline.submissions import check_answer
from steelyard.workbench.qualification.material import qualification_tasks
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.qualification_tables import (
    StoredQualificationAnswer,
    StoredQualificationRound,
    StoredQualificationTask,
)
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredPerson, StoredProject

Standing = Literal["not needed", "to do", "open", "passed", "failed", "no tasks"]
"""The standing of a person in a project. ``no tasks``: a qualification is needed, and nobody has made tasks for it."""
_LONGEST_REASON = 2000


class MarkedAnswer(NamedTuple):
    """An answer of a round beside its task, and whether it ended the round."""

    task: StoredQualificationTask
    answer: TaskAnswer
    num_same: int
    num_points: int
    is_last: bool


class RoundProgress(NamedTuple):
    """A person's latest round: its answers so far, its tasks in all, and the accuracy over the answers."""

    standing: Standing
    num_done: int
    num_tasks: int
    accuracy: Estimate


def progress_of(session: Session, project: StoredProject, person: int) -> RoundProgress:
    """Return the standing of a person in a project."""
    latest = _latest_round(session, project, person)
    answers = [] if latest is None else _answers(session, latest)
    accuracy = accuracy_of([each.num_same / each.num_points for each in answers])
    num_tasks = settings_of(project).qualification.num_tasks if latest is None else len(latest.tasks)
    return RoundProgress(_standing(session, project, person, latest), len(answers), num_tasks, accuracy)


def next_tasks(
    session: Session, project: StoredProject, person: int, *, number: int, at: float
) -> list[StoredQualificationTask]:
    """Return the next tasks of a person's round, which begins with the first of them; none without a round."""
    session.get_one(StoredPerson, person, with_for_update=True)
    latest = _latest_round(session, project, person)
    standing = _standing(session, project, person, latest)
    if standing == "to do":
        latest = _begin(session, project, person, 0 if latest is None else latest.number, at=at)
    elif standing != "open":
        return []
    assert latest is not None, "an open round is one"
    done = {each.task_id for each in _answers(session, latest)}
    left = [task for task in latest.tasks if task not in done][:number]
    return [session.get_one(StoredQualificationTask, task) for task in left]


def answer_task(
    session: Session,
    project: StoredProject,
    person: int,
    task: int,
    answer: TaskAnswer,
    *,
    seconds: float,
    at: float,
    letters: Mapping[str, str] | None = None,
) -> MarkedAnswer:
    """Store the answer to a task of a person's open round; the last one ends the round.

    The same answer sent again is marked again. Raises RefusedError for a task that is not of the round, one that is
    answered otherwise already, and an answer that is not complete.
    """
    session.get_one(StoredPerson, person, with_for_update=True)
    latest = _latest_round(session, project, person)
    if latest is None or task not in latest.tasks:
        problem = "the task is not of your qualification"
        raise RefusedError(problem, words="misfit", where="task", do="reload the page")
    stored, content = session.get_one(StoredQualificationTask, task), msgspec.to_builtins(answer)
    answers = _answers(session, latest)
    earlier = next((each for each in answers if each.task_id == task), None)
    if earlier is not None:
        if msgspec.convert(earlier.content, TaskAnswer) != answer:
            problem = "this task is answered already"
            raise RefusedError(problem, words="answered already", where="answer", do="open the next task")
        return MarkedAnswer(stored, answer, earlier.num_same, earlier.num_points, latest.outcome != "open")
    _check(project, stored, answer, letters)
    reference = msgspec.convert(stored.reference, TaskAnswer)
    counts = score_answer(kind_named(stored.kind), stored.responses, answer, reference)
    # As for other answers: no more than passed since the answer before, or since the round began.
    passed = at - max([latest.begun_at, *(each.at for each in answers)])
    marked = StoredQualificationAnswer(
        round_id=latest.id,
        task_id=task,
        content=content,
        num_same=counts.num_same,
        num_points=counts.num_judged,
        seconds=max(0.0, min(seconds, passed)),
        at=at,
    )
    session.add(marked)
    is_last = len(answers) + 1 == len(latest.tasks)
    if is_last:
        _end(session, project, latest, [*answers, marked], at=at)
    session.flush()
    return MarkedAnswer(stored, answer, counts.num_same, counts.num_judged, is_last)


def decide_qualification(
    session: Session,
    project: StoredProject,
    person: int,
    decision: Literal["let pass", "let repeat"],
    reason: str,
    *,
    by: int | None,
    at: float,
) -> None:
    """Let a person pass without the threshold, or have another round. Raises ConfigError where that means nothing."""
    text = reason.strip()
    if not 1 <= len(text) <= _LONGEST_REASON:
        allowed = f"1 to {_LONGEST_REASON} characters"
        problem, values = f"a reason of {len(text)} characters", {"limit": f"{_LONGEST_REASON:,}"}
        raise RefusedError(problem, words="remark", values=values, where="reason", allowed=allowed, do="say why")
    account = session.get(StoredPerson, person, with_for_update=True)
    if account is None or account.role != "annotator" or account.erased_at is not None:
        raise RefusedError(f"person {person} is no annotator", words="misfit", where="person", do="choose an annotator")
    latest = _latest_round(session, project, person)
    outcome = None if latest is None else latest.outcome
    if outcome in PASSED:
        problem = "the person has passed already"
        raise RefusedError(problem, words="passed", where="person", do="nothing is to be decided")
    if decision == "let repeat" and outcome != "failed":
        problem = "the person has not failed"
        raise RefusedError(problem, words="not failed", where="person", do="wait for the end of the round")
    if latest is None:
        latest = StoredQualificationRound(project_id=project.id, person_id=person, number=1, tasks=[], begun_at=at)
        session.add(latest)
    latest.outcome, latest.decided_by, latest.reason = decision, by, text
    latest.ended_at = latest.ended_at or at
    if decision == "let pass":
        account.qualified_at = at
    record(session, AuditEvent(f"qualification: {decision}", "person", person, by, {"project": project.id}), at=at)


def _latest_round(session: Session, project: StoredProject, person: int) -> StoredQualificationRound | None:
    return session.scalar(
        select(StoredQualificationRound)
        .where(StoredQualificationRound.project_id == project.id, StoredQualificationRound.person_id == person)
        .order_by(StoredQualificationRound.number.desc())
        .limit(1)
        .execution_options(populate_existing=True)
    )


def _standing(
    session: Session, project: StoredProject, person: int, latest: StoredQualificationRound | None
) -> Standing:
    if latest is not None and latest.outcome in PASSED:
        return "passed"
    if may_work(session, settings_of(project), project=project.id, person=person):
        return "not needed"
    if latest is not None and latest.outcome in ("open", "failed"):
        return "open" if latest.outcome == "open" else "failed"
    return "to do" if _tasks_for(session, project, person) else "no tasks"


def _tasks_for(session: Session, project: StoredProject, person: int) -> list[int]:
    return qualification_tasks(session, project).for_skills(session.get_one(StoredPerson, person).skills)


def _begin(session: Session, project: StoredProject, person: int, last: int, *, at: float) -> StoredQualificationRound:
    """Begin a round with tasks of the person's categories drawn at random, first those that the person has not had."""
    settings = settings_of(project)
    known = set(
        session.scalars(
            select(StoredQualificationAnswer.task_id)
            .join(StoredQualificationRound, StoredQualificationAnswer.round_id == StoredQualificationRound.id)
            .where(StoredQualificationRound.project_id == project.id, StoredQualificationRound.person_id == person)
        )
    )
    every = _tasks_for(session, project, person)
    order = generator(settings.seed, "qualification", person, last + 1).permutation(len(every)).tolist()
    drawn = sorted((every[place] for place in order), key=lambda task: task in known)
    begun = StoredQualificationRound(
        project_id=project.id,
        person_id=person,
        number=last + 1,
        tasks=drawn[: settings.qualification.num_tasks],
        begun_at=at,
    )
    session.add(begun)
    session.flush()
    record(session, AuditEvent("qualification begun", "person", person, person, {"project": project.id}), at=at)
    return begun


def _end(
    session: Session,
    project: StoredProject,
    ended: StoredQualificationRound,
    answers: Sequence[StoredQualificationAnswer],
    *,
    at: float,
) -> None:
    accuracy = accuracy_of([each.num_same / each.num_points for each in answers])
    is_passed = has_passed(accuracy, settings_of(project).qualification)
    ended.outcome, ended.accuracy, ended.ended_at = "passed" if is_passed else "failed", accuracy.value, at
    if is_passed:
        session.get_one(StoredPerson, ended.person_id).qualified_at = at
    detail = {"project": project.id, "accuracy": accuracy.value, "tasks": len(answers)}
    record(
        session, AuditEvent(f"qualification {ended.outcome}", "person", ended.person_id, ended.person_id, detail), at=at
    )


def _answers(session: Session, of_round: StoredQualificationRound) -> list[StoredQualificationAnswer]:
    answers = select(StoredQualificationAnswer).where(StoredQualificationAnswer.round_id == of_round.id)
    return list(session.scalars(answers.order_by(StoredQualificationAnswer.id)))


def _check(
    project: StoredProject, task: StoredQualificationTask, answer: TaskAnswer, letters: Mapping[str, str] | None
) -> None:
    """Raise RefusedError for an answer that no page sends, or that is not complete."""
    case = msgspec.json.decode(task.case_json, type=Case)
    shown = {response.id: response_text(response) for response in case.responses if response.id in task.responses}
    letters = letters or dict(zip(shown, ascii_uppercase, strict=False))
    check_answer(task.kind, answer, shown, settings_of(project), letters)
