"""The queue of alignment: items on which a person and another one differ, their discussion, and their proposals."""

import time
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import Text, database_of, needs
from steelyard.workbench.pipeline.adjudication_times import count_adjudication
from steelyard.workbench.pipeline.alignment import (
    QueuePage,
    add_remark,
    has_moved_on,
    items_to_align,
    pass_on,
    propose,
    tasks_to_align,
)
from steelyard.workbench.pipeline.disputes import TaskEvidence
from steelyard.workbench.pipeline.item_states import lock_item
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.routes.answer_forms import Seconds, SentForm, entered_answer
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from steelyard.workbench.views.item_views import view_item
from steelyard.workbench.views.pages import language_of, page, refusal_text

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))
Aligner = Annotated[Visitor, Depends(needs("align"))]


@router.get("/align")
def align_page(request: Request, visitor: Aligner, after: str = "") -> Response:
    """List the items that the visitor has to align, a page at a time, those first that wait for this person."""
    with database_of(request).reading() as session:
        queue, following = items_to_align(session, visitor.person, QueuePage(after=after))
        return page(request, "align.html", visitor, queue=queue, following=following, is_first=not after)


@router.get("/align/{item}")
def align_item_page(request: Request, visitor: Aligner, item: int) -> Response:
    """Show an item with both answers to each disputed task, the discussion and the forms."""
    return _item_page(request, visitor, item)


@router.post("/align/{item}/remarks")
def remark(request: Request, visitor: Aligner, item: int, text: Text, *, seconds: Seconds = 0.0) -> Response:
    """Keep a remark."""
    now = time.time()

    def keep(session: Session, _: list[TaskEvidence], spent: float) -> None:
        add_remark(session, lock_item(session, item), text, person=visitor.person, at=now)

    return _changed(request, visitor, item, keep, seconds=seconds, at=now)


@router.post("/align/{item}/tasks/{task}")
def proposal(
    request: Request, visitor: Aligner, item: int, task: int, form: SentForm, *, seconds: Seconds = 0.0
) -> Response:
    """Store a proposal; the task is settled if the other person's latest one agrees."""
    now = time.time()

    def store(session: Session, tasks: list[TaskEvidence], spent: float) -> None:
        answer = entered_answer(session, tasks, task, form)
        propose(session, item, task, answer, person=visitor.person, at=now, seconds=spent)

    return _changed(request, visitor, item, store, seconds=seconds, at=now)


@router.post("/align/{item}/unresolved")
def unresolved(request: Request, visitor: Aligner, item: int, reason: Text, *, seconds: Seconds = 0.0) -> Response:
    """Pass an item on to delivery, with the reason why it cannot be settled."""
    now = time.time()

    def climb(session: Session, _: list[TaskEvidence], spent: float) -> None:
        pass_on(session, item, reason, state="aligning", person=visitor.person, at=now)

    return _changed(request, visitor, item, climb, seconds=seconds, at=now)


def _changed(
    request: Request,
    visitor: Visitor,
    item: int,
    work: Callable[[Session, list[TaskEvidence], float], None],
    *,
    seconds: float,
    at: float,
) -> Response:
    """Run ``work`` on the visitor's tasks of an item and show the item again, or the queue once it has moved on.

    404 for an item that was never the visitor's to align, 409 for one that has moved on since. What else cannot be done
    is said on the item's page. ``seconds``: the active time that the page reports, which counts in any case.
    """

    def count(session: Session) -> float:
        stored = session.get_one(StoredItem, item)
        return count_adjudication(session, stored, stage="alignment", person=visitor.person, reported=seconds, at=at)

    def run(session: Session) -> None:
        tasks = tasks_to_align(session, item, visitor.person)
        if tasks is None:
            if has_moved_on(session, item, visitor.person):
                raise TransitionRefused("the item is no longer in alignment")
            raise HTTPException(404)
        work(session, tasks, count(session))

    try:
        database_of(request).write(run)
    except ConfigError as error:
        database_of(request).write(count)
        refusal = refusal_text(error, language_of(request, visitor))
        return _item_page(request, visitor, item, refusal=refusal, status=400)
    except TransitionRefused:
        with database_of(request).reading() as session:
            if tasks_to_align(session, item, visitor.person) is None:
                # Settled by this person's first click, or by the other meanwhile: a page of its own says so.
                raise
        return _item_page(request, visitor, item, is_late=True, status=409)
    with database_of(request).reading() as session:
        is_left = tasks_to_align(session, item, visitor.person) is None
    return RedirectResponse("/align" if is_left else f"/align/{item}", 303)


def _item_page(
    request: Request, visitor: Visitor, item: int, *, refusal: str = "", is_late: bool = False, status: int = 200
) -> Response:
    with database_of(request).reading() as session:
        tasks = tasks_to_align(session, item, visitor.person)
        if tasks is None:
            raise HTTPException(404)
        stored = session.get_one(StoredItem, item)
        settings = settings_of(session.get_one(StoredProject, stored.project_id))
        view = view_item(session, stored, tasks, visitor.person, settings)
        return page(
            request,
            "align_item.html",
            visitor,
            status=status,
            view=view,
            reasons=settings.discard_reasons,
            refusal=refusal,
            is_late=is_late,
        )
