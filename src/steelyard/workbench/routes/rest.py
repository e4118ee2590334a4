"""The REST interface, version 1, for programs with a token: projects, items, import, export, answers, progress.

Its description is at ``/api/openapi.json``, and as a page at ``/api``. Lists come a page at a time: ``next`` of an
answer is ``after`` of the request that follows.
"""

import io
import time
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query, Request, Security
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from steelyard.core.config import resolve_config
from steelyard.core.types import JsonObject
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import (
    LARGEST_NUMBER,
    Anyone,
    Exporter,
    Manager,
    Observer,
    RowNumber,
    database_of,
)
from steelyard.workbench.pipeline.case_export import Evidence
from steelyard.workbench.pipeline.case_import import ImportNote
from steelyard.workbench.pipeline.listings import (
    LARGEST_PAGE,
    AnswerNote,
    ItemNote,
    ItemSelection,
    ListPage,
    answer_page,
    item_page,
)
from steelyard.workbench.pipeline.planted_reviews import shown_to, states_shown
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, settings_of
from steelyard.workbench.pipeline.review_placement import ROLE_OF, note_sent_answers
from steelyard.workbench.routes.manage import export_stream, import_upload, project_of
from steelyard.workbench.routes.request_bodies import (
    REQUESTS,
    UPLOADS,
    Endpoints,
    KnownRoute,
    RequestLimit,
    json_body,
    json_description,
    request_body,
)
from steelyard.workbench.storage.tables import StoredProject
from steelyard.workbench.views.pages import page
from steelyard.workbench.views.uploads import read_upload

PREFIX = "/api/v1"
LINES = "application/x-ndjson"


class Problem(BaseModel):
    """Why a request was not carried out."""

    error: str


class ProjectNote(BaseModel):
    """A project: its number, name, settings, and the number of its items by state."""

    id: int
    name: str
    is_simulated: bool
    settings: JsonObject
    items: dict[str, int]


class ProjectRequest(BaseModel):
    """A project to be made. ``settings`` that are left out have their defaults."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=200)
    settings: JsonObject = {}


class ItemsNote(BaseModel):
    """Items of one page. ``next``: the ``after`` of the next page, null on the last."""

    items: list[ItemNote]
    next: int | None


class AnswersNote(BaseModel):
    """Answers of one page. ``next``: the ``after`` of the next page, null on the last."""

    answers: list[AnswerNote]
    next: int | None


class ProgressNote(BaseModel):
    """Progress of a project: items by state, and how many of them are finished."""

    num_items: int
    num_finished: int
    items: dict[str, int]


def errors(*statuses: int, limit: RequestLimit = REQUESTS) -> dict[int | str, JsonObject]:
    """Return the description of the refusals of a route: those that every route has, and some by status.

    ``limit``: that of its requests.
    """
    reasons = {
        400: "The request cannot be carried out: what is wrong, where, and what to do.",
        401: "There is no token, or it is unknown or revoked.",
        403: "The role of the token's owner does not allow this.",
        404: "There is no such object.",
        408: "The body did not come to its end in time.",
        413: f"The request is larger than {limit.num_bytes // 2**20} MiB: {limit.do}.",
        422: "A parameter or the body does not have the form of this description.",
    }
    slow = (408,) if 413 in statuses else ()
    return {status: {"model": Problem, "description": reasons[status]} for status in (401, 403, *slow, *statuses)}


TOKEN = Security(HTTPBearer(auto_error=False, description="A token of the page of one's account."))
router = APIRouter(route_class=KnownRoute, prefix=PREFIX, dependencies=[TOKEN])
description = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router, description), requests=(ProjectRequest,))
SentProject = Annotated[ProjectRequest, Depends(json_body(ProjectRequest))]
After = Annotated[int, Query(ge=0, le=LARGEST_NUMBER, description="Rows after this number.")]
Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE, description="The most rows of the answer.")]
Filter = Annotated[str, Query(max_length=500, description="Only items with exactly this value; empty for all.")]


@router.get("/projects", responses=errors())
def list_projects(request: Request, visitor: Observer) -> list[ProjectNote]:
    """List the projects."""
    with database_of(request).reading() as session:
        projects = session.scalars(select(StoredProject).order_by(StoredProject.id)).all()
        return [_note(project, _states(session, visitor, project.id)) for project in projects]


@router.post(
    "/projects", status_code=201, responses=errors(400, 413, 422), openapi_extra=json_description(ProjectRequest)
)
def make_project(request: Request, visitor: Manager, new: SentProject) -> ProjectNote:
    """Make a project."""
    settings = resolve_config(ProjectSettings, new.settings, where="settings")
    project = database_of(request).write(
        lambda session: add_project(session, new.name, settings, by=visitor.person, at=time.time())
    )
    return _note(project, {})


@router.get("/projects/{project}", responses=errors(404, 422))
def show_project(request: Request, visitor: Observer, project: RowNumber) -> ProjectNote:
    """Show a project with its settings."""
    with database_of(request).reading() as session:
        return _note(project_of(session, project), _states(session, visitor, project))


@router.get("/projects/{project}/progress", responses=errors(404, 422))
def show_progress(request: Request, visitor: Observer, project: RowNumber) -> ProgressNote:
    """Count the items of a project by state."""
    with database_of(request).reading() as session:
        project_of(session, project)
        counts = _states(session, visitor, project)
    return ProgressNote(num_items=sum(counts.values()), num_finished=counts.get("finished", 0), items=counts)


@router.get("/projects/{project}/items", responses=errors(404, 422))
def list_items(
    request: Request,
    visitor: Observer,
    project: RowNumber,
    *,
    after: After = 0,
    limit: Limit = 100,
    state: Filter = "",
    batch: Filter = "",
    category: Filter = "",
    prompt: Filter = "",
) -> ItemsNote:
    """List the items of a project in the order of their numbers, a page at a time."""
    with database_of(request).reading() as session:
        project_of(session, project)
        wanted = ItemSelection(state, batch, category, prompt)
        planted = shown_to(session, project, visitor.person, visitor.role)
        listed = item_page(session, project, wanted, after=after, size=limit, planted=planted)
    return ItemsNote(items=listed.rows, next=listed.following)


@router.post(
    "/projects/{project}/import",
    status_code=201,
    responses=errors(400, 404, 413, 422, limit=UPLOADS),
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "A case file: JSON Lines, one case a line, in UTF-8.",
            "content": {LINES: {"schema": {"type": "string"}}},
        }
    },
)
def import_lines(
    request: Request,
    visitor: Manager,
    project: RowNumber,
    batch: Annotated[str, Query(min_length=1, max_length=200, description="The name of the batch, a new one.")],
    body: Annotated[bytes, Depends(request_body)],
) -> ImportNote:
    """Take cases in as one batch: all of them, or nothing where a line is wrong."""
    with database_of(request).reading() as session:
        project_of(session, project)
    sent = read_upload(io.BytesIO(body), "body.jsonl")
    return import_upload(request, visitor, project, sent, batch=batch)


@router.get(
    "/projects/{project}/export",
    response_class=StreamingResponse,
    responses={
        200: {"description": "A case file, one case a line.", "content": {LINES: {"schema": {"type": "string"}}}},
        **errors(404, 422),
    },
)
def export_lines(
    request: Request,
    visitor: Exporter,
    project: RowNumber,
    evidence: Annotated[
        Evidence, Query(description="What stands after alignment, or the first answers of both people, too.")
    ] = "aligned",
) -> Response:
    """Send the finished items with every judgment and where it came from, as a case file."""
    return export_stream(request, project, evidence, by=visitor.person)


@router.get("/projects/{project}/answers", responses=errors(404, 422))
def list_answers(
    request: Request, visitor: Exporter, project: RowNumber, after: After = 0, limit: Limit = 100
) -> AnswersNote:
    """List the answers of a project, the earliest first, a page at a time.

    Reviewers get those to finished items, as by the export.
    """
    reviews = visitor.role in ROLE_OF.values()

    def listed(session: Session) -> ListPage[AnswerNote]:
        project_of(session, project)
        if reviews:
            note_sent_answers(session, project, visitor.person, at=time.time())
        return answer_page(session, project, after=after, size=limit, only_finished=reviews)

    answers = database_of(request).write(listed)
    return AnswersNote(answers=answers.rows, next=answers.following)


@description.get("/api")
def description_page(request: Request, visitor: Anyone) -> Response:
    """Show the description of the interface, made from its schema."""
    schema = request.app.openapi()
    operations = [
        (path, method.upper(), operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]
    kinds, address = schema["components"]["schemas"], str(request.base_url)
    return page(request, "interface.html", visitor, operations=operations, kinds=kinds, address=address)


def _states(session: Session, visitor: Visitor, project: int) -> dict[str, int]:
    """Return the number of items in each state as the visitor sees them."""
    return states_shown(session, project, shown_to(session, project, visitor.person, visitor.role))


def _note(project: StoredProject, counts: dict[str, int]) -> ProjectNote:
    return ProjectNote(
        id=project.id,
        name=project.name,
        is_simulated=project.is_simulated,
        settings=msgspec.to_builtins(settings_of(project)),
        items=counts,
    )
