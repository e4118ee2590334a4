"""Managing projects: settings, import, export, and lists of items."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, get_args

from fastapi import APIRouter, Depends, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response, StreamingResponse

from steelyard.annotation.pipeline import ItemState
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import LARGEST_NUMBER, Exporter, Manager, RowNumber, Text, database_of
from steelyard.workbench.pipeline.case_export import Evidence, exported_chunks
from steelyard.workbench.pipeline.case_import import ImportNote, import_cases
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.listings import ItemSelection, item_page
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, count_states, settings_of
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredProject
from steelyard.workbench.views.pages import form_version, page
from steelyard.workbench.views.settings_form import setting_fields, settings_from
from steelyard.workbench.views.uploads import UploadedCases, read_upload

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))
After = Annotated[int, Query(ge=0, le=LARGEST_NUMBER)]


async def _entered(request: Request) -> dict[str, str]:
    form = await request.form()
    return {name: value for name, value in form.items() if isinstance(value, str)}


async def _uploaded(request: Request) -> AsyncIterator[UploadFile]:
    async with request.form() as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise RefusedError("no file was sent", words="no file", where="file", do="choose a case file")
        yield file


# After the visitor: nobody's upload is read before it is known who sends it.
Entered = Annotated[dict[str, str], Depends(_entered)]
Uploaded = Annotated[UploadFile, Depends(_uploaded)]


def import_upload(request: Request, visitor: Visitor, project: int, sent: UploadedCases, *, batch: str) -> ImportNote:
    """Import cases that were sent as one batch: all of them, or nothing."""
    return database_of(request).write(
        lambda session: import_cases(
            session,
            project_of(session, project),
            sent.cases,
            batch=batch,
            by=visitor.person,
            at=time.time(),
            places=sent.places,
        )
    )


def project_of(session: Session, number: int) -> StoredProject:
    """Return a project. Answers 404 for one that does not exist."""
    project = session.get(StoredProject, number)
    if project is None:
        raise HTTPException(404)
    return project


def export_stream(request: Request, project: int, evidence: Evidence, *, by: int) -> StreamingResponse:
    """Return the finished items of a project as a case file that is sent while it is made; the log says who took it."""
    database = database_of(request)

    def note(session: Session) -> StoredProject:
        row = project_of(session, project)
        record(session, AuditEvent("exported", "project", row.id, by, {"evidence": evidence}), at=time.time())
        return row

    database.write(note)

    def lines() -> Iterator[bytes]:
        with database.reading() as session:
            yield from exported_chunks(session, project_of(session, project), evidence)

    name = f"project-{project}-{evidence}.jsonl"
    return StreamingResponse(
        lines(), media_type="application/x-ndjson", headers={"content-disposition": f'attachment; filename="{name}"'}
    )


@router.get("/manage")
def projects_page(request: Request, visitor: Manager) -> Response:
    """Show every project with its counts."""
    with database_of(request).reading() as session:
        projects = session.scalars(select(StoredProject).order_by(StoredProject.id)).all()
        rows = [(project, count_states(session, project.id)) for project in projects]
    return page(request, "manage.html", visitor, rows=rows)


@router.post("/manage/projects")
def new_project(request: Request, visitor: Manager, name: Text) -> Response:
    """Make a project with default settings."""
    project = database_of(request).write(
        lambda session: add_project(session, name, ProjectSettings(), by=visitor.person, at=time.time()).id
    )
    return RedirectResponse(f"/manage/projects/{project}", 303)


@router.get("/manage/projects/{project}")
def project_page(request: Request, visitor: Manager, project: RowNumber) -> Response:
    """Show a project: what is in it, its settings, import and export."""
    return _project_page(request, visitor, project)


@router.post("/manage/projects/{project}/settings")
def new_settings(request: Request, visitor: Manager, project: RowNumber, entered: Entered) -> Response:
    """Change the settings of a project, unless they were changed since the form was opened."""
    settings, version = settings_from(entered), entered.get("version", "")

    def change(session: Session) -> bool:
        row = project_of(session, project)
        # Of two forms that are sent at once, the second one has the settings of the first.
        session.refresh(row, with_for_update={"key_share": True})
        is_current = version in ("", form_version(settings_of(row)))
        if is_current:
            change_settings(session, row, settings, by=visitor.person, at=time.time())
        return is_current

    if not database_of(request).write(change):
        return _project_page(request, visitor, project, is_outdated=True)
    return RedirectResponse(f"/manage/projects/{project}", 303)


@router.post("/manage/projects/{project}/import")
def import_file(
    request: Request, visitor: Manager, project: RowNumber, uploaded: Uploaded, entered: Entered
) -> Response:
    """Take a case file in as one batch: all of it, or nothing where a line is wrong."""
    batch = entered.get("batch", "").strip()
    if not batch or len(batch) > 200:
        raise RefusedError(
            f"{batch[:50]!r} is not a name of a batch", words="name", where="batch", allowed="1 to 200 characters"
        )
    sent = read_upload(uploaded.file, uploaded.filename or "")
    imported = import_upload(request, visitor, project, sent, batch=batch)
    return _project_page(request, visitor, project, imported=imported)


@router.get("/manage/projects/{project}/export")
def export_file(request: Request, visitor: Exporter, project: RowNumber, evidence: Evidence = "aligned") -> Response:
    """Send the finished items as a case file."""
    return export_stream(request, project, evidence, by=visitor.person)


@router.get("/manage/projects/{project}/items")
def items_page(
    request: Request,
    visitor: Manager,
    project: RowNumber,
    *,
    state: str = "",
    batch: str = "",
    category: str = "",
    prompt: str = "",
    after: After = 0,
) -> Response:
    """List the items of a project, a page at a time."""
    wanted = ItemSelection(state, batch, category, prompt)
    with database_of(request).reading() as session:
        row = project_of(session, project)
        listed = item_page(session, row.id, wanted, after=after)
    states = get_args(ItemState)
    return page(request, "items.html", visitor, project=row, listed=listed, wanted=wanted, states=states)


def _project_page(
    request: Request,
    visitor: Manager,
    project: int,
    *,
    imported: ImportNote | None = None,
    is_outdated: bool = False,
) -> Response:
    with database_of(request).reading() as session:
        row = project_of(session, project)
        numbers = count_states(session, project)
    counts = {state: numbers[state] for state in get_args(ItemState) if state in numbers}
    settings = settings_of(row)
    values = {"fields": setting_fields(settings), "version": form_version(settings), "is_outdated": is_outdated}
    status = 409 if is_outdated else 200
    return page(
        request, "project.html", visitor, status=status, project=row, counts=counts, imported=imported, **values
    )
