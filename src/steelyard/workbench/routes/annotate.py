"""The annotator's queue: the page, tasks that are loaded ahead, drafts, answers, and tasks that are handed back.

Everything but the page is JSON. Bodies are `TaskAnswer` with the letters of the page in place of ids; the seconds
that were spent since the last draft come in the address. An assignment does not exist for anybody but its person.
"""

import math
import sys
import time
from collections.abc import Callable
from typing import Annotated, TypeVar

import msgspec
from fastapi import APIRouter, Depends, Form, Query, Request
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import Response

from steelyard.annotation.answers import TaskAnswer
from steelyard.workbench.accounts.people import Visitor, public_name
from steelyard.workbench.accounts.permissions import Annotator, LoginNeeded, database_of
from steelyard.workbench.pipeline.changed_settings import reasons_so_far
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.question_words import rubric_of
from steelyard.workbench.pipeline.queues import Membership, give_back, may_work, next_assignments, release
from steelyard.workbench.pipeline.submissions import (
    check_discards,
    count_seconds,
    lock_assignment,
    save_draft,
    submit,
)
from steelyard.workbench.routes.fast_routes import FastRequest, fast_route
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredAssignment, StoredItem, StoredPerson, StoredProject, StoredTask
from steelyard.workbench.views.pages import language_of, page, words_of
from steelyard.workbench.views.task_views import blind_task_of, own_progress, view_tasks

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
_LARGEST_ANSWER = 2**20
_MOST_LOADED = 10
_DAY = 24 * 3600.0
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=sys.float_info.max)]
"""Any number that is finite."""
# An assignment of a person with what its view shows, and a person's membership: one statement each.
_HELD = (
    select(StoredAssignment, StoredTask, StoredItem, StoredProject)
    .join(StoredTask, StoredAssignment.task_id == StoredTask.id)
    .join(StoredItem, StoredTask.item_id == StoredItem.id)
    .join(StoredProject, StoredTask.project_id == StoredProject.id)
    .where(StoredAssignment.id == bindparam("assignment"), StoredAssignment.person_id == bindparam("person"))
)
_MEMBERSHIP = (
    select(StoredPerson, StoredProject)
    .join(StoredProject, StoredProject.id == bindparam("project"))
    .where(StoredPerson.id == bindparam("person"))
)
ResultT = TypeVar("ResultT")


def _answer_in(body: bytes) -> TaskAnswer:
    """Return the answer in a body. Raises RefusedError for one that is not strictly a `TaskAnswer`."""
    if len(body) > _LARGEST_ANSWER:
        raise HTTPException(413)
    try:
        return msgspec.json.decode(body, type=TaskAnswer)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        problem = f"no answer to a task: {error}"
        raise RefusedError(problem, words="misfit", where="the body of the request") from None


async def _read_answer(request: Request) -> TaskAnswer:
    return _answer_in(await request.body())


SentAnswer = Annotated[TaskAnswer, Depends(_read_answer)]
Seconds = Annotated[float, Query(ge=0, allow_inf_nan=False)]


@router.get("/annotate")
def annotate_page(request: Request, visitor: Annotator, project: int | None = None) -> Response:
    """Show the card of the one project, or of the chosen one; several are listed first."""
    with database_of(request).reading() as session:
        projects = session.scalars(select(StoredProject).order_by(StoredProject.id)).all()
        has_others = len(projects) > 1
        if project is not None:
            projects = [each for each in projects if each.id == project]
            if not projects:
                raise HTTPException(404)
        if len(projects) != 1:
            return page(request, "projects_to_annotate.html", visitor, projects=projects)
        return _card_page(request, visitor, session, projects[0], has_others=has_others)


def _card_page(
    request: Request, visitor: Visitor, session: Session, project: StoredProject, *, has_others: bool
) -> Response:
    language = language_of(request, visitor)
    rubric = rubric_of(language)
    words = {key: word for key, word in words_of(language).items() if key.startswith("task_")}
    settings = settings_of(project)
    is_qualification = not settings.limits.is_paused and not may_work(
        session, settings, project=project.id, person=visitor.person
    )
    reasons = settings.discard_reasons
    setup = {
        "person": visitor.person,
        "workbench": public_name(session),
        "project": project.id,
        "discard_reasons": reasons,
        "rubric": rubric,
    }
    setup |= {"is_qualification": is_qualification, "has_others": has_others}
    text = msgspec.json.encode(setup | {"words": words}).decode()
    return page(
        request,
        "annotate.html",
        visitor,
        project=project.name,
        has_others=has_others,
        rubric=rubric,
        setup=text,
        is_qualification=is_qualification,
        least=settings.qualification.least_accuracy,
    )


class _TasksQuery(msgspec.Struct, frozen=True):
    """Up to ``number`` tasks of a project; ``person`` is whose page asks."""

    project: int
    number: Annotated[int, msgspec.Meta(ge=1, le=3)] = 2
    person: int | None = None


@fast_route("GET", "/annotate/tasks", _TasksQuery)
def tasks(sent: FastRequest[_TasksQuery]) -> bytes:
    """Return up to ``number`` tasks of the visitor, reserved until they expire."""
    now, (project, number) = time.time(), (sent.query.project, sent.query.number)
    check_person(sent.visitor, sent.query.person)

    def load(session: Session) -> bytes:
        membership = membership_of(session, sent.visitor.person, project)
        assignments = next_assignments(session, membership, number=number, at=now)
        return msgspec.json.encode(view_tasks(session, membership, assignments, at=now))

    return sent.database.write(load)


@router.get("/annotate/progress")
def progress(request: Request, visitor: Annotator, project: int, since: float = math.nan) -> Response:
    """Return the visitor's own figures; ``since`` is when the day began where the visitor is."""
    now = time.time()
    start = since if now - 2 * _DAY <= since <= now else now - _DAY
    with database_of(request).reading() as session:
        figures = own_progress(session, membership_of(session, visitor.person, project), since=start)
    return Response(msgspec.json.encode(figures), media_type="application/json")


class _DraftQuery(msgspec.Struct, frozen=True):
    """The body of a draft: ``seconds`` since the last one; ``again`` where nothing was entered since."""

    assignment: int
    seconds: _Seconds = 0.0
    again: bool = False


class _AnswerQuery(msgspec.Struct, frozen=True):
    """The body of an answer: ``seconds`` since the last draft, ``guideline`` on the page."""

    assignment: int
    seconds: _Seconds = 0.0
    guideline: int | None = None


@fast_route("POST", "/annotate/{assignment}/draft", _DraftQuery)
def draft(sent: FastRequest[_DraftQuery]) -> bytes:
    """Keep what was entered so far, and the task for the person who enters it.

    With ``again`` the time counts, and a draft that another page has stored meanwhile stays.
    """
    now, answer = time.time(), _answer_in(sent.body)

    def keep(session: Session, row: StoredAssignment, project: StoredProject) -> str:
        expires_at = now + 60 * settings_of(project).rules.lock_minutes
        stored = blind_task_of(session, row).stored(answer)
        if sent.query.again and row.draft is not None:
            stored = msgspec.convert(row.draft, TaskAnswer)
        seconds = count_seconds(row, sent.query.seconds, at=now)
        save_draft(session, row, stored, seconds=seconds, expires_at=expires_at)
        return row.state

    return _encoded(_outcome_of(sent.database, sent.visitor.person, sent.query.assignment, keep))


@fast_route("POST", "/annotate/{assignment}/answer", _AnswerQuery)
def answer(sent: FastRequest[_AnswerQuery]) -> bytes:
    """Store an answer: once, however often it is sent."""
    now, answer, query = time.time(), _answer_in(sent.body), sent.query

    def store(session: Session) -> str:
        locked = lock_assignment(session, query.assignment, person=sent.visitor.person, guideline=query.guideline)
        if locked is None:
            raise HTTPException(404)
        stored = blind_task_of(session, locked.assignment).stored(answer)
        allowed = settings_of(locked.project).discard_reasons
        if not set(stored.discarded.values()) <= set(allowed):
            check_discards(stored, (*allowed, *sorted(reasons_so_far(session, locked.project) - set(allowed))))
        seconds = count_seconds(locked.assignment, query.seconds, at=now)
        return submit(session, locked, stored, seconds=seconds, at=now)

    return _encoded(sent.database.write(store))


ENDPOINTS = Endpoints((router,), frequent=(tasks, draft, answer))


@router.post("/annotate/{assignment}/release")
def hand_back(request: Request, visitor: Annotator, assignment: int) -> Response:
    """Give a task back: another person gets it."""
    outcome = _outcome_of(
        database_of(request),
        visitor.person,
        assignment,
        lambda session, row, _: "released" if release(session, row) else row.state,
    )
    return Response(_encoded(outcome), media_type="application/json")


@router.post("/annotate/give-back", status_code=204)
def give_back_loaded(
    request: Request,
    visitor: Annotator,
    assignment: Annotated[list[int], Form(max_length=_MOST_LOADED)],
    until: Annotated[list[float], Form(max_length=_MOST_LOADED)],
) -> None:
    """Give back what a page that is closed had loaded ahead: a form, which a browser sends after the page is gone."""
    loaded = dict(zip(assignment, until, strict=False))
    database_of(request).write(lambda session: give_back(session, visitor.person, loaded))


def _outcome_of(
    database: Database, person: int, assignment: int, work: Callable[[Session, StoredAssignment, StoredProject], str]
) -> str:
    """Run ``work`` on an assignment of a person, with its project, in one transaction and return its outcome.

    404 for an assignment of others.
    """

    def run(session: Session) -> str:
        rows = session.execute(_HELD, {"assignment": assignment, "person": person}).one_or_none()
        if rows is None:
            raise HTTPException(404)
        return work(session, rows[0], rows[3])

    return database.write(run)


def _encoded(outcome: str) -> bytes:
    return msgspec.json.encode({"outcome": outcome})


def membership_of(session: Session, person: int, project: int) -> Membership:
    """Return a person's membership of a project. Answers 404 for a project that does not exist."""
    rows = session.execute(_MEMBERSHIP, {"person": person, "project": project}).one_or_none()
    if rows is None:
        raise HTTPException(404)
    return Membership(rows[0], rows[1], settings_of(rows[1]))


def check_person(visitor: Visitor, person: int | None) -> None:
    """Raise LoginNeeded where a page belongs to another person than the visitor, who has logged in at its browser."""
    if person is not None and person != visitor.person:
        raise LoginNeeded
