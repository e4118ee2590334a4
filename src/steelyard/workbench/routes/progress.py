"""Progress of projects: pages of figures for the layers, researchers and administrators."""

import time

from fastapi import APIRouter, Request
from sqlalchemy import select
from starlette.responses import RedirectResponse, Response

from steelyard.annotation.annotator_metrics import FALSE_ALARMS, FEWEST_ANSWERS, FEWEST_OTHERS
from steelyard.annotation.rater_reliability import FEWEST_SHARED
from steelyard.workbench.accounts.permissions import Observer, PeopleObserver, RowNumber, database_of
from steelyard.workbench.figures.agreement_figures import agreement_figures
from steelyard.workbench.figures.dashboards import PAPER_ANSWERS_A_DAY, progress_figures
from steelyard.workbench.figures.figure_plots import (
    agreement_plots,
    gold_plot,
    native_plot,
    progress_plots,
    reliability_plot,
)
from steelyard.workbench.pipeline.planted_reviews import (
    shown_to,
)
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.routes.manage import project_of
from steelyard.workbench.routes.progress_figures import native_shown, people_shown, refresh_fit
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.tables import StoredProject
from steelyard.workbench.views.pages import language_of, page, words_of

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))


@router.get("/progress")
def projects_page(request: Request, visitor: Observer) -> Response:
    """List the projects, or show the only one."""
    with database_of(request).reading() as session:
        projects = session.scalars(select(StoredProject).order_by(StoredProject.id)).all()
    if len(projects) == 1:
        return RedirectResponse(f"/progress/{projects[0].id}", 303)
    return page(request, "progress_projects.html", visitor, projects=projects)


@router.get("/progress/{project}")
def progress_page(request: Request, visitor: Observer, project: RowNumber) -> Response:
    """Show how far a project is, and when it will end."""
    with database_of(request).reading() as session:
        row = project_of(session, project)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        made = progress_figures(session, row, at=time.time(), planted=planted)
    words = words_of(language_of(request, visitor))
    values = {"figures": made, "plots": progress_plots(made, words), "paper": PAPER_ANSWERS_A_DAY}
    return page(request, "progress.html", visitor, project=row, settings=settings_of(row), **values)


@router.get("/progress/{project}/agreement")
def agreement_page(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Show how far people agree, what passes the gate, and what reviews send back."""
    with database_of(request).reading() as session:
        row = project_of(session, project)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        made = agreement_figures(session, row, planted)
    language, least = language_of(request, visitor), settings_of(row).rules.least_agreement
    plots = agreement_plots(made, words_of(language), language=language, least=least)
    return page(request, "agreement.html", visitor, project=row, figures=made, plots=plots)


@router.get("/progress/{project}/people")
def people_page(request: Request, visitor: PeopleObserver, project: RowNumber) -> Response:
    """Show what answers say of people, with the evidence."""
    refresh_fit(request, project)
    with database_of(request).reading() as session:
        row = project_of(session, project)
        made = people_shown(session, row, visitor)
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
    with database_of(request).reading() as session:
        row = project_of(session, project)
        made = native_shown(session, row, visitor)
    plot = native_plot(made.languages, words_of(language_of(request, visitor)))
    return page(request, "native.html", visitor, project=row, figures=made, plot=plot)
