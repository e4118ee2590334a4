"""Items of a project to be read: those about which people differ most, and each with all of its answers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from steelyard.annotation.rater_reliability import FEWEST_SHARED
from steelyard.workbench.accounts.permissions import LARGEST_NUMBER, PeopleObserver, RowNumber, database_of
from steelyard.workbench.figures.hard_items import FEWEST_ITEMS, LEVEL, disagreement_figures
from steelyard.workbench.pipeline.planted_reviews import (
    item_with_number,
    planted_with_number,
    review_shown,
    reviews_of,
    shown_to,
)
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.review_placement import ROLE_OF
from steelyard.workbench.routes.manage import project_of
from steelyard.workbench.routes.progress_figures import refresh_fit
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.tables import StoredItem
from steelyard.workbench.views.item_views import item_panels
from steelyard.workbench.views.pages import page

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))


@router.get("/progress/{project}/disagreement")
def disagreement_page(
    request: Request,
    visitor: PeopleObserver,
    project: RowNumber,
    category: str | None = None,
    after: Annotated[int | None, Query(ge=1, le=LARGEST_NUMBER)] = None,
) -> Response:
    """Show the items about which people differ more than their noise explains, and the categories that have most."""
    refresh_fit(request, project)
    with database_of(request).reading() as session:
        row = project_of(session, project)
        planted = shown_to(session, row.id, visitor.person, visitor.role)
        made = disagreement_figures(session, row, category=category, after=after, planted=planted)
        items = [each.item for each in made.items]
        reviews = reviews_of(session, planted, items)
        views = item_panels(session, items, visitor.person, settings_of(row), reviews)
    limits = {"fewest_shared": FEWEST_SHARED, "level": LEVEL, "fewest": FEWEST_ITEMS}
    values = {"figures": made, "views": views, "category": category, **limits}
    return page(request, "disagreement.html", visitor, project=row, **values)


@router.get("/progress/{project}/items/{item}")
def item_page(request: Request, visitor: PeopleObserver, project: RowNumber, item: RowNumber) -> Response:
    """Show an item with all answers to its present tasks, to be read."""
    with database_of(request).reading() as session:
        row = project_of(session, project)
        planted = reviews_of(session, shown_to(session, row.id, visitor.person, visitor.role), [item])
        # Who reviews nothing sees what the layer sees, and that it is planted.
        review = None if visitor.role in ROLE_OF.values() else planted_with_number(session, item)
        if review is not None:
            planted = {review.item_id: review_shown(session, review)}
        stored = session.get(StoredItem, item_with_number(planted, item) or -1)
        if stored is None or stored.project_id != row.id:
            raise HTTPException(404)
        view = item_panels(session, [item], visitor.person, settings_of(row), planted)[item]
    values = {"view": view, "review": review, "refusal": "", "is_late": False}
    return page(request, "read_item.html", visitor, project=row, **values)
