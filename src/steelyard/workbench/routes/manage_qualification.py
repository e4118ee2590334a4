"""Managing the qualification of a project: its tasks, everybody's results, another round, and passing by hand."""

import io
import time
from typing import Annotated, Literal

import msgspec
from fastapi import APIRouter, Depends, Form, Request
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response

from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.permissions import Manager, PeopleObserver, RowNumber, Text, database_of
from steelyard.workbench.pipeline.gold_tasks import take_gold
from steelyard.workbench.qualification.material import import_qualification
from steelyard.workbench.qualification.results import QualificationFigures, qualification_figures
from steelyard.workbench.qualification.rounds import decide_qualification
from steelyard.workbench.routes.manage import Uploaded, project_of
from steelyard.workbench.routes.progress_figures import documented
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute, json_body, json_description, request_body
from steelyard.workbench.routes.rest import LINES, PREFIX, TOKEN, errors
from steelyard.workbench.views.pages import language_of, page, refusal_text
from steelyard.workbench.views.uploads import UploadedCases, read_upload

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
figures = APIRouter(route_class=KnownRoute, prefix=PREFIX, dependencies=[TOKEN])
Decision = Literal["let pass", "let repeat"]


class DecisionRequest(BaseModel):
    """Decisions of a manager on a person: to let pass, or to let repeat after a failure, and why."""

    model_config = ConfigDict(extra="forbid", strict=True)

    decision: Decision
    reason: str = Field(min_length=1, max_length=2000)


class QualificationTasksNote(BaseModel):
    """Number of tasks of a qualification that were made."""

    num_tasks: int


SentDecision = Annotated[DecisionRequest, Depends(json_body(DecisionRequest))]
ENDPOINTS = Endpoints((router, figures), requests=(DecisionRequest,))


@router.get("/manage/projects/{project}/qualification")
def qualification_page(request: Request, visitor: Manager, project: RowNumber) -> Response:
    """Show the tasks of the qualification and everybody's results."""
    return _page(request, visitor, project)


@router.post("/manage/projects/{project}/qualification/import")
def import_file(request: Request, visitor: Manager, project: RowNumber, uploaded: Uploaded) -> Response:
    """Take cases with reference answers in as tasks of the qualification."""
    sent = read_upload(uploaded.file, uploaded.filename or "")
    number = _import(request, visitor.person, project, sent)
    return _page(request, visitor, project, num_made=number)


@router.post("/manage/projects/{project}/qualification/gold")
def make_gold_public(
    request: Request, visitor: Manager, project: RowNumber, number: Annotated[int, Form(ge=1, le=200)]
) -> Response:
    """Make tasks of gold tasks, which check nobody from then on."""
    made = database_of(request).write(
        lambda session: take_gold(session, project_of(session, project), most=number, by=visitor.person, at=time.time())
    )
    return _page(request, visitor, project, num_made=made)


@router.post("/manage/projects/{project}/qualification/people/{person}")
def decision(
    request: Request,
    visitor: Manager,
    project: RowNumber,
    person: RowNumber,
    *,
    chosen: Annotated[Decision, Form(alias="decision")],
    reason: Text,
) -> Response:
    """Let a person pass, or have another round."""
    try:
        _decide(request, visitor.person, project, person, chosen=chosen, reason=reason)
    except ConfigError as error:
        return _page(request, visitor, project, refusal=refusal_text(error, language_of(request, visitor)), status=400)
    return RedirectResponse(f"/manage/projects/{project}/qualification", 303)


@figures.get("/projects/{project}/qualification", responses=documented(QualificationFigures))
def show_qualification(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Return the standing of every annotator, with accuracy, rounds and decisions."""
    with database_of(request).reading() as session:
        made = qualification_figures(session, project_of(session, project))
    return Response(msgspec.json.encode(made), media_type="application/json")


@figures.post(
    "/projects/{project}/qualification/import",
    status_code=201,
    responses=errors(400, 404, 413, 422),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "A case file with reference answers: JSON Lines, one case a line, in UTF-8.",
            "content": {LINES: {"schema": {"type": "string"}}},
        }
    },
)
def import_lines(
    request: Request, visitor: Manager, project: RowNumber, body: Annotated[bytes, Depends(request_body)]
) -> QualificationTasksNote:
    """Take cases with reference answers in as tasks of the qualification: all of them, or nothing."""
    sent = read_upload(io.BytesIO(body), "body.jsonl")
    return QualificationTasksNote(num_tasks=_import(request, visitor.person, project, sent))


@figures.post(
    "/projects/{project}/qualification/people/{person}",
    status_code=204,
    responses=errors(400, 404, 413, 422),
    openapi_extra=json_description(DecisionRequest),
)
def decide_on_person(
    request: Request, visitor: Manager, project: RowNumber, person: RowNumber, chosen: SentDecision
) -> None:
    """Let a person pass, or have another round after a failure. The audit log keeps who decided."""
    _decide(request, visitor.person, project, person, chosen=chosen.decision, reason=chosen.reason)


def _import(request: Request, by: int, project: int, sent: UploadedCases) -> int:
    made = database_of(request).write(
        lambda session: import_qualification(
            session, project_of(session, project), sent.cases, by=by, at=time.time(), places=sent.places
        )
    )
    return made.num_tasks


def _decide(request: Request, by: int, project: int, person: int, *, chosen: Decision, reason: str) -> None:
    def work(session: Session) -> None:
        decide_qualification(session, project_of(session, project), person, chosen, reason, by=by, at=time.time())

    database_of(request).write(work)


def _page(
    request: Request,
    visitor: Manager,
    project: int,
    *,
    num_made: int | None = None,
    refusal: str = "",
    status: int = 200,
) -> Response:
    with database_of(request).reading() as session:
        row = project_of(session, project)
        made = qualification_figures(session, row)
    values = {"figures": made, "num_made": num_made, "refusal": refusal}
    return page(request, "qualification.html", visitor, status=status, project=row, **values)
