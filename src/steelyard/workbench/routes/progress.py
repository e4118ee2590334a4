"""How projects go: pages of figures for the layers, researchers and administrators, and the same figures as JSON."""

import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from steelyard.annotation.annotator_metrics import FALSE_ALARMS, FEWEST_ANSWERS, FEWEST_OTHERS
from steelyard.annotation.rater_reliability import FEWEST_SHARED
from steelyard.core.types import JsonObject
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import LARGEST_NUMBER, Observer, PeopleObserver, RowNumber
from steelyard.workbench.figures.agreement_figures import AgreementFigures, agreement_figures
from steelyard.workbench.figures.dashboards import PAPER_ANSWERS_A_DAY, ProgressFigures, progress_figures
from steelyard.workbench.figures.figure_plots import (
    agreement_plots,
    gold_plot,
    native_plot,
    progress_plots,
    reliability_plot,
)
from steelyard.workbench.figures.fit_keeper import FitKeeper
from steelyard.workbench.figures.hard_items import FEWEST_ITEMS, LEVEL, DisagreementFigures, disagreement_figures
from steelyard.workbench.figures.native_figures import NativeFigures, is_native_check, native_figures
from steelyard.workbench.figures.people_figures import PeopleFigures, people_figures
from steelyard.workbench.figures.reviewer_figures import rows_shown_to
from steelyard.workbench.pipeline.planted_reviews import shown_to
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.qualification.results import QualificationFigures
from steelyard.workbench.routes.manage import project_of
from steelyard.workbench.routes.request_bodies import KnownRoute
from steelyard.workbench.routes.rest import PREFIX, TOKEN, errors
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from steelyard.workbench.views.item_views import item_panels
from steelyard.workbench.views.pages import language_of, page, words_of

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
figures = APIRouter(route_class=KnownRoute, prefix=PREFIX, dependencies=[TOKEN])


def documented(kind: type) -> dict[int | str, JsonObject]:
    """Return the description of an answer that is a record: `record_schemas` has the record itself."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{kind.__name__}"}}}
    return {200: {"description": "The figures.", "content": content}, **errors(404, 422)}


def record_schemas() -> JsonObject:
    """Return the schemas of the records that answers are, for the description of the interface."""
    _, components = msgspec.json.schema_components(_RECORDS, ref_template="#/components/schemas/{name}")
    return components


_RECORDS: tuple[type, ...] = (
    NativeFigures,
    ProgressFigures,
    AgreementFigures,
    PeopleFigures,
    QualificationFigures,
    DisagreementFigures,
)


@router.get("/progress")
def projects_page(request: Request, visitor: Observer) -> Response:
    """List the projects, or show the only one."""
    with _database(request).reading() as session:
        projects = session.scalars(select(StoredProject).order_by(StoredProject.id)).all()
    if len(projects) == 1:
        return RedirectResponse(f"/progress/{projects[0].id}", 303)
    return page(request, "progress_projects.html", visitor, projects=projects)


@router.get("/progress/{project}")
def progress_page(request: Request, visitor: Observer, project: RowNumber) -> Response:
    """Show how far a project is, and when it will end."""
    with _database(request).reading() as session:
        row = project_of(session, project)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        made = progress_figures(session, row, at=time.time(), planted=planted)
    words = words_of(language_of(request, visitor))
    values = {"figures": made, "plots": progress_plots(made, words), "paper": PAPER_ANSWERS_A_DAY}
    return page(request, "progress.html", visitor, project=row, settings=settings_of(row), **values)


@router.get("/progress/{project}/agreement")
def agreement_page(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Show how far people agree, what passes the gate, and what reviews send back."""
    with _database(request).reading() as session:
        row = project_of(session, project)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        made = agreement_figures(session, row, planted)
    language, least = language_of(request, visitor), settings_of(row).rules.least_agreement
    plots = agreement_plots(made, words_of(language), language=language, least=least)
    return page(request, "agreement.html", visitor, project=row, figures=made, plots=plots)


@router.get("/progress/{project}/people")
def people_page(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Show what answers say of people, with the evidence."""
    _refresh_fit(request, project)
    with _database(request).reading() as session:
        row = project_of(session, project)
        made = _people(session, row, visitor)
    words = words_of(language_of(request, visitor))
    plots = {"plot": gold_plot(made, words), "reliability": reliability_plot(made, words)}
    limits = {
        "false_alarms": FALSE_ALARMS,
        "fewest": FEWEST_ANSWERS,
        "others": FEWEST_OTHERS,
        "fewest_shared": FEWEST_SHARED,
    }
    return page(request, "annotator_metrics.html", visitor, project=row, figures=made, **plots, **limits)


@router.get("/progress/{project}/native")
def native_page(request: Request, visitor: Observer, project: RowNumber) -> Response:
    """Show what native speakers say of the finished items, by language. 404 for a project of other tasks."""
    with _database(request).reading() as session:
        row = project_of(session, project)
        made = _native(session, row, visitor)
    plot = native_plot(made.languages, words_of(language_of(request, visitor)))
    return page(request, "native.html", visitor, project=row, figures=made, plot=plot)


@figures.get("/projects/{project}/figures/native", responses=documented(NativeFigures))
def show_native_figures(request: Request, visitor: Observer, project: RowNumber) -> Response:
    """Return what native speakers say of the finished items by language; 404 for a project of other tasks."""
    return _sent(request, project, lambda session, row: _native(session, row, visitor))


@router.get("/progress/{project}/disagreement")
def disagreement_page(
    request: Request,
    visitor: PeopleObserver,
    project: RowNumber,
    category: str | None = None,
    after: Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER)] = None,
) -> Response:
    """Show the items about which people differ more than their noise explains, and the categories that have most."""
    _refresh_fit(request, project)
    with _database(request).reading() as session:
        row = project_of(session, project)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        made = disagreement_figures(session, row, category=category, after=after, planted=planted)
        items = [each.item for each in made.items]
        views = item_panels(session, items, visitor.person, settings_of(row), planted)
    limits = {"fewest_shared": FEWEST_SHARED, "level": LEVEL, "fewest": FEWEST_ITEMS}
    values = {"figures": made, "views": views, "category": category, **limits}
    return page(request, "disagreement.html", visitor, project=row, **values)


@router.get("/progress/{project}/items/{item}")
def item_page(request: Request, visitor: PeopleObserver, project: RowNumber, item: RowNumber) -> Response:
    """Show an item with all answers to its present tasks, to be read."""
    with _database(request).reading() as session:
        row = project_of(session, project)
        stored = session.get(StoredItem, item)
        if stored is None or stored.project_id != row.id:
            raise HTTPException(404)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        view = item_panels(session, [item], visitor.person, settings_of(row), planted)[item]
    return page(request, "read_item.html", visitor, project=row, view=view, refusal="", is_late=False)


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
    _refresh_fit(request, project)
    return _sent(request, project, lambda session, row: _people(session, row, visitor))


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
    _refresh_fit(request, project)

    def made(session: Session, row: StoredProject) -> DisagreementFigures:
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        return disagreement_figures(session, row, category=category, after=after, planted=planted)

    return _sent(request, project, made)


def _refresh_fit(request: Request, project: int) -> None:
    """Let a fit of the project's people be made where one is due; the page does not wait for a long one."""
    keeper: FitKeeper = request.app.state.fits
    keeper.refresh(project)


def _native(session: Session, project: StoredProject, visitor: Visitor) -> NativeFigures:
    if not is_native_check(project):
        raise HTTPException(404)
    return native_figures(session, project, shown_to(session, project.id, visitor.person, visitor.role))


def _people(session: Session, project: StoredProject, visitor: Visitor) -> PeopleFigures:
    made = people_figures(session, project)
    return msgspec.structs.replace(made, reviewers=rows_shown_to(visitor.role, made.reviewers))


def _sent(request: Request, project: int, work: Callable[[Session, StoredProject], Any]) -> Response:
    with _database(request).reading() as session:
        made = work(session, project_of(session, project))
    return Response(msgspec.json.encode(made), media_type="application/json")


def _database(request: Request) -> Database:
    return request.app.state.database
