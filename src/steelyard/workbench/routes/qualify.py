"""The annotator's round of qualification: its tasks, and answers, which come back with what was right in them."""

import time
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import Response

from steelyard.workbench.accounts.permissions import Annotator, RowNumber, database_of
from steelyard.workbench.pipeline.submissions import check_discards
from steelyard.workbench.qualification.rounds import answer_task, next_tasks
from steelyard.workbench.routes.annotate import Seconds, SentAnswer, check_person, membership_of
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.qualification_tables import StoredQualificationTask
from steelyard.workbench.views.pages import language_of, words_of
from steelyard.workbench.views.qualification_views import blind_round_task, view_feedback, view_round_tasks

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))


@router.get("/annotate/qualification/tasks")
def round_tasks(
    request: Request,
    visitor: Annotator,
    project: int,
    number: Annotated[int, Query(ge=1, le=3)] = 2,
    person: int | None = None,
) -> Response:
    """Return the next tasks of the visitor's round, which begins with the first of them."""
    check_person(visitor, person)
    now = time.time()

    def load(session: Session) -> bytes:
        membership = membership_of(session, visitor.person, project)
        tasks = next_tasks(session, membership.project, visitor.person, number=number, at=now)
        return msgspec.json.encode(view_round_tasks(session, membership, tasks))

    return Response(database_of(request).write(load), media_type="application/json")


@router.post("/annotate/qualification/{task}")
def round_answer(
    request: Request, visitor: Annotator, task: RowNumber, project: int, *, answer: SentAnswer, seconds: Seconds = 0.0
) -> Response:
    """Store an answer and return what was right in it, with the reference and the reason."""
    now, language = time.time(), language_of(request, visitor)

    def store(session: Session) -> bytes:
        membership = membership_of(session, visitor.person, project)
        row = session.get(StoredQualificationTask, task)
        if row is None or row.project_id != project:
            raise HTTPException(404)
        blind = blind_round_task(membership, row)
        stored = blind.stored(answer)
        check_discards(stored, membership.settings.discard_reasons)
        letters = {response: letter for letter, response in blind.ids.items()}
        marked = answer_task(
            session, membership.project, visitor.person, task, stored, seconds=seconds, at=now, letters=letters
        )
        return msgspec.json.encode(view_feedback(session, membership, marked, words_of(language), language))

    return Response(database_of(request).write(store), media_type="application/json")
