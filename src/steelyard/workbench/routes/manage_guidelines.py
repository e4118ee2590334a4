"""Managing the guidelines of a project: their versions, drafts as they will look, and new texts."""

import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from steelyard.workbench.accounts.permissions import LARGEST_NUMBER, Manager, RowNumber, Text, database_of
from steelyard.workbench.routes.manage import project_of
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.tables import StoredGuideline
from steelyard.workbench.views.guidelines import (
    NewGuideline,
    add_guideline,
    categories_of,
    latest_guidelines,
    stored_category,
)
from steelyard.workbench.views.pages import language_of, page

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))


@router.get("/manage/projects/{project}/guidelines")
def guidelines_page(
    request: Request, visitor: Manager, project: RowNumber, version: Annotated[int, Query(ge=0, le=LARGEST_NUMBER)] = 0
) -> Response:
    """Show the guidelines of a project, and the text of one version in the form."""
    with database_of(request).reading() as session:
        project_of(session, project)
        shown = session.get(StoredGuideline, version) if version else None
        if version and (shown is None or shown.project_id != project):
            raise HTTPException(404)
    draft = (
        NewGuideline("", language_of(request, visitor), "")
        if shown is None
        else NewGuideline(shown.category, shown.language, shown.text)
    )
    return _guidelines_page(request, visitor, project, draft)


@router.post("/manage/projects/{project}/guidelines")
def write_guideline(
    request: Request,
    visitor: Manager,
    project: RowNumber,
    *,
    text: Text = "",
    language: Text = "en",
    category: Text = "",
    step: Text = "save",
) -> Response:
    """Save a text as the newest version, or show how it will look (``step`` is ``preview``)."""
    draft = NewGuideline(category.strip(), language, text.replace("\r\n", "\n"))
    if step == "preview":
        with database_of(request).reading() as session:
            project_of(session, project)
            draft = draft._replace(category=stored_category(session, draft.category))
        return _guidelines_page(request, visitor, project, draft, is_preview=True)

    def add(session: Session) -> None:
        of_items = draft._replace(category=stored_category(session, draft.category))
        add_guideline(session, project_of(session, project), of_items, by=visitor.person, at=time.time())

    database_of(request).write(add)
    return RedirectResponse(f"/manage/projects/{project}/guidelines", 303)


def _guidelines_page(
    request: Request, visitor: Manager, project: int, draft: NewGuideline, *, is_preview: bool = False
) -> Response:
    with database_of(request).reading() as session:
        row = project_of(session, project)
        latest = latest_guidelines(session, project)
        categories = categories_of(session, project)
        versions = session.scalars(
            select(StoredGuideline)
            .where(
                StoredGuideline.project_id == project,
                StoredGuideline.category == draft.category,
                StoredGuideline.language == draft.language,
            )
            .order_by(StoredGuideline.version.desc())
            .limit(100)
        ).all()
    values = {"latest": latest, "categories": categories, "versions": versions, "draft": draft}
    return page(request, "guidelines.html", visitor, project=row, is_preview=is_preview, **values)
