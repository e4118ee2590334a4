"""Progress of projects for programs: the figures of the pages as JSON, and the schemas of these records."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import Response

from steelyard.core.types import JsonObject
from steelyard.workbench.accounts.permissions import LARGEST_NUMBER, Observer, PeopleObserver, RowNumber, database_of
from steelyard.workbench.figures.agreement_figures import AgreementFigures, agreement_figures
from steelyard.workbench.figures.dashboards import ProgressFigures, progress_figures
from steelyard.workbench.figures.fit_keeper import FitKeeper
from steelyard.workbench.figures.hard_items import DisagreementFigures, disagreement_figures
from steelyard.workbench.figures.native_figures import NativeFigures, is_native_check, native_figures
from steelyard.workbench.figures.people_figures import PeopleFigures, people_figures
from steelyard.workbench.figures.reviewer_figures import rows_shown_to
from steelyard.workbench.pipeline.planted_reviews import shown_to
from steelyard.workbench.qualification.results import QualificationFigures
from steelyard.workbench.routes.manage import project_of
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.routes.rest import PREFIX, TOKEN, errors
from steelyard.workbench.storage.tables import StoredProject

figures = APIRouter(route_class=KnownRoute, prefix=PREFIX, dependencies=[TOKEN])
ENDPOINTS = Endpoints(
    (figures,),
    answers=(
        NativeFigures,
        ProgressFigures,
        AgreementFigures,
        PeopleFigures,
        QualificationFigures,
        DisagreementFigures,
    ),
)


def documented(kind: type) -> dict[int | str, JsonObject]:
    """Return the description of an answer that is a record: the application adds the record itself."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
    return {200: {"description": "The figures.", "content": content}, **errors(404, 422)}


@figures.get("/projects/{project}/figures/native", responses=documented(NativeFigures))
def show_native_figures(request: Request, visitor: Observer, project: RowNumber) -> Response:
    """Return what native speakers say of the finished items by language; 404 for a project of other tasks."""
    return _sent(request, project, lambda session, row: native_shown(session, row, visitor))


@figures.get("/projects/{project}/figures/progress", responses=documented(ProgressFigures))
def show_progress_figures(request: Request, visitor: Observer, project: RowNumber) -> Response:
    """Return items by state, batch and category, answers by day and person, and the forecast of end and cost."""

    def made(session: Session, row: StoredProject) -> ProgressFigures:
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        return progress_figures(session, row, at=time.time(), planted=planted)

    return _sent(request, project, made)


@figures.get("/projects/{project}/figures/agreement", responses=documented(AgreementFigures))
def show_agreement_figures(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Return agreement by category, person and pair of people, the rate of the gate, and those of the reviews."""

    def made(session: Session, row: StoredProject) -> AgreementFigures:
        return agreement_figures(session, row, shown_to(session, row.id, visitor.person, visitor.role))

    return _sent(request, project, made)


@figures.get("/projects/{project}/figures/people", responses=documented(PeopleFigures))
def show_people_figures(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Return gold accuracy, reliability, speed and sameness of each person, with the evidence of every flag."""
    refresh_fit(request, project)
    return _sent(request, project, lambda session, row: people_shown(session, row, visitor))


@figures.get("/projects/{project}/figures/disagreement", responses=documented(DisagreementFigures))
def show_disagreement_figures(
    request: Request,
    visitor: PeopleObserver,
    project: RowNumber,
    category: str | None = None,
    after: Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER)] = None,
) -> Response:
    """Return the items about which people differ more than their noise explains, the worst first, and the categories.

    ``after``: the item that ended the page before.
    """
    refresh_fit(request, project)

    def made(session: Session, row: StoredProject) -> DisagreementFigures:
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        return disagreement_figures(session, row, category=category, after=after, planted=planted)

    return _sent(request, project, made)


def refresh_fit(request: Request, project: int) -> None:
    """Let a fit of the project's people be made where one is due; the page does not wait for a long one."""
    keeper: FitKeeper = request.app.state.fits
    keeper.refresh(project)


def native_shown(session: Session, project: StoredProject, visitor: Observer) -> NativeFigures:
    """Return what native speakers say of the finished items; 404 for a project of other tasks."""
    if not is_native_check(project):
        raise HTTPException(404)
    return native_figures(session, project, shown_to(session, project.id, visitor.person, visitor.role))


def people_shown(session: Session, project: StoredProject, visitor: Observer) -> PeopleFigures:
    """Return what answers say of people, with the reviewers whom the visitor may see."""
    made = people_figures(session, project)
    return msgspec.structs.replace(made, reviewers=rows_shown_to(visitor.role, made.reviewers))


def _sent(request: Request, project: int, work: Callable[[Session, StoredProject], Any]) -> Response:
    with database_of(request).reading() as session:
        made = work(session, project_of(session, project))
    return Response(msgspec.json.encode(made), media_type="application/json")
