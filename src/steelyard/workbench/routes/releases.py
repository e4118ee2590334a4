"""Releases of a project: a page that lists and makes them, their files, and the same for programs."""

import time
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from steelyard.workbench.accounts.permissions import Exporter, RowNumber, Text, database_of
from steelyard.workbench.pipeline.case_export import Evidence
from steelyard.workbench.pipeline.planted_reviews import shown_to, states_shown
from steelyard.workbench.results.releases import CASES, files_of, make_release, release_file, releases_of
from steelyard.workbench.routes.manage import project_of
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute, json_body, json_description
from steelyard.workbench.routes.rest import PREFIX, TOKEN, errors
from steelyard.workbench.storage.release_tables import StoredRelease
from steelyard.workbench.views.pages import page

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
figures = APIRouter(route_class=KnownRoute, prefix=PREFIX, dependencies=[TOKEN])
Chosen = Annotated[Evidence, Form()]
File = Annotated[str, Query(max_length=100, description="The name of a file of the release.")]


class ReleaseNote(BaseModel):
    """A release: its number and name, when it was made (seconds since 1970), what it counts, and its files.

    ``sha256`` is that of its manifest, which has those of all other files.
    """

    id: int
    name: str
    at: float
    sha256: str
    items: int
    judgments: int
    ratings: int
    files: list[str]


class ReleaseRequest(BaseModel):
    """A release to be made: its name, and the final answers, or the first answers of both people, too."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=100)
    evidence: Evidence = "aligned"


SentRelease = Annotated[ReleaseRequest, Depends(json_body(ReleaseRequest))]
ENDPOINTS = Endpoints((router, figures), requests=(ReleaseRequest,))


@router.get("/manage/projects/{project}/releases")
def releases_page(request: Request, visitor: Exporter, project: RowNumber) -> Response:
    """List the releases of a project."""
    with database_of(request).reading() as session:
        row = project_of(session, project)
        releases = releases_of(session, project)
        planted = shown_to(session, project, visitor.person, visitor.role)
        num_finished = states_shown(session, project, planted).get("finished", 0)
    listed = [(release, files_of(release)) for release in releases]
    return page(request, "releases.html", visitor, project=row, releases=listed, num_finished=num_finished)


@router.post("/manage/projects/{project}/releases")
def new_release(
    request: Request, visitor: Exporter, project: RowNumber, name: Text, evidence: Chosen = "aligned"
) -> Response:
    """Freeze the finished items under a name."""
    _make(request, project, name, evidence, visitor.person)
    return RedirectResponse(f"/manage/projects/{project}/releases", 303)


@router.get("/manage/projects/{project}/releases/{release}")
def download_file(
    request: Request, visitor: Exporter, project: RowNumber, release: RowNumber, file: File = CASES
) -> Response:
    """Send a file of a release as it was made."""
    return _sent(request, project, release, file)


@figures.get("/projects/{project}/releases", responses=errors(404, 422))
def list_releases(request: Request, visitor: Exporter, project: RowNumber) -> list[ReleaseNote]:
    """List the releases of a project, the latest first."""
    with database_of(request).reading() as session:
        project_of(session, project)
        return [_note(release) for release in releases_of(session, project)]


@figures.post(
    "/projects/{project}/releases",
    status_code=201,
    responses=errors(400, 404, 413, 422),
    openapi_extra=json_description(ReleaseRequest),
)
def add_release(
    request: Request,
    visitor: Exporter,
    project: RowNumber,
    new: SentRelease,
) -> ReleaseNote:
    """Freeze the finished items of a project under a name: later work changes nothing in it."""
    return _note(_make(request, project, new.name, new.evidence, visitor.person))


@figures.get(
    "/projects/{project}/releases/{release}",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The file.", "content": {"application/octet-stream": {"schema": {"type": "string"}}}},
        **errors(404, 422),
    },
)
def send_file(
    request: Request, visitor: Exporter, project: RowNumber, release: RowNumber, file: File = CASES
) -> Response:
    """Send a file of a release, the same bytes every time."""
    return _sent(request, project, release, file)


def _make(request: Request, project: int, name: str, evidence: Evidence, person: int) -> StoredRelease:
    with database_of(request).reading() as session:
        project_of(session, project)
    return make_release(database_of(request), project, name.strip(), evidence=evidence, by=person, at=time.time())


def _sent(request: Request, project: int, number: int, file: str) -> Response:
    database = database_of(request)
    with database.reading() as session:
        release = session.get(StoredRelease, number)
        if release is None or release.project_id != project or file not in files_of(release):
            raise HTTPException(404)

    def parts() -> Iterator[bytes]:
        with database.reading() as session:
            yield from release_file(session, session.get_one(StoredRelease, number), file)

    headers = {"content-disposition": f'attachment; filename="{release.name}-{file}"'}
    return StreamingResponse(parts(), media_type="application/octet-stream", headers=headers)


def _note(release: StoredRelease) -> ReleaseNote:
    counts = {name: release.manifest[name] for name in ("items", "judgments", "ratings")}
    return ReleaseNote(
        id=release.id,
        name=release.name,
        at=release.at,
        sha256=release.sha256,
        files=list(files_of(release)),
        **counts,
    )
