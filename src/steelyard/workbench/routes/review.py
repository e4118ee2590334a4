"""The queues of the layers: items that annotators could not settle, items to review, and whole batches.

The layer is that of the visitor's role. People who annotated or aligned an item never get it here: 404.
"""

import time
from collections.abc import Callable
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Form, Request
from sqlalchemy.orm import Session
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from steelyard.annotation.pipeline import SETTLED_BY, Layer, TransitionRefused
from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import ALLOWED, Permission, RowNumber, Text, database_of, needs
from steelyard.workbench.pipeline.alignment import QueuePage, adjudicate, items_to_adjudicate, pass_on
from steelyard.workbench.pipeline.disputes import evidence_of
from steelyard.workbench.pipeline.doubted_truths import doubted_truths, rule_on_truth, was_doubted
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.reviewing import (
    STATE_OF,
    Verdict,
    batches_of,
    count_review,
    decide,
    decide_batch,
    has_left,
    item_for,
    items_to_review,
    locked_item,
    remark_in_review,
    reviewed_item,
)
from steelyard.workbench.routes.answer_forms import Seconds, SentForm, entered_answer
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.tables import StoredItem, StoredProject
from steelyard.workbench.views.item_views import view_item
from steelyard.workbench.views.pages import language_of, page, refusal_text

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))
Reviewer = Annotated[Visitor, Depends(needs("adjudicate"))]
Escalator = Annotated[Visitor, Depends(needs("pass on"))]
Researcher = Annotated[Visitor, Depends(needs("validate"))]
BatchReviewer = Annotated[Visitor, Depends(needs("decide on batches"))]
Decision = Annotated[Literal["accept", "reject"], Form()]
_LAYER_OF: dict[Permission, Layer] = {
    "review as delivery": "delivery",
    "review as operations": "operations",
    "validate": "research",
}
_WAITS_WITH: dict[Layer, str] = {layer: state for state, layer in SETTLED_BY.items()}


@router.get("/review")
def review_page(
    request: Request,
    visitor: Reviewer,
    *,
    batch: str = "",
    category: str = "",
    language: str = "",
    adjudicate_after: str = "",
    review_after: str = "",
) -> Response:
    """List what waits for the visitor's layer, a page at a time, and the batches for who may decide on them."""
    layer = _layer(visitor)
    to_adjudicate = QueuePage(batch, category, language, adjudicate_after)
    to_review = to_adjudicate._replace(after=review_after)
    with database_of(request).reading() as session:
        items_adjudicated_next = items_to_adjudicate(session, layer, visitor.person, to_adjudicate)
        items_reviewed_next = items_to_review(session, layer, visitor.person, to_review)
        return page(
            request,
            "review.html",
            visitor,
            layer=layer,
            wanted={"batch": batch, "category": category, "language": language},
            to_adjudicate=items_adjudicated_next,
            adjudicate_after=to_adjudicate.following(items_adjudicated_next),
            to_review=items_reviewed_next,
            review_after=to_review.following(items_reviewed_next),
            doubts=doubted_truths(session, visitor.person) if "validate" in ALLOWED[visitor.role] else [],
            batches=batches_of(session, layer, visitor.person) if "decide on batches" in ALLOWED[visitor.role] else [],
        )


@router.get("/review/{item}")
def review_item_page(request: Request, visitor: Reviewer, item: int) -> Response:
    """Show an item with all answers, the discussion, earlier decisions, and the form of the layer."""
    return _item_page(request, visitor, item)


@router.post("/review/{item}/decision")
def decision(
    request: Request,
    visitor: Reviewer,
    item: int,
    *,
    verdict: Decision,
    reason: Text = "",
    seconds: Seconds = 0.0,
    restores: Annotated[bool, Form()] = False,
    round_shown: Annotated[int | None, Form(alias="round")] = None,
) -> Response:
    """Accept an item, or send it back with a reason: the round of it that the page showed, no other."""
    now, layer = time.time(), _layer(visitor)

    def work(session: Session, stored: StoredItem, _: float) -> None:
        chosen = Verdict(verdict == "accept", reason.strip(), restores, round_shown)
        decide(session, stored.id, chosen, layer=layer, person=visitor.person, at=now)

    return _changed(request, visitor, item, work, seconds=seconds, at=now)


@router.post("/review/{item}/remarks")
def remark(request: Request, visitor: Reviewer, item: int, text: Text, *, seconds: Seconds = 0.0) -> Response:
    """Keep a remark."""
    now = time.time()

    def work(session: Session, stored: StoredItem, _: float) -> None:
        remark_in_review(session, stored, text, layer=_layer(visitor), person=visitor.person, at=now)

    return _changed(request, visitor, item, work, seconds=seconds, at=now)


@router.post("/review/{item}/tasks/{task}")
def adjudication(
    request: Request, visitor: Reviewer, item: int, task: int, form: SentForm, *, seconds: Seconds = 0.0
) -> Response:
    """Settle a task of an item that waits for the layer."""
    now, layer = time.time(), _layer(visitor)

    def work(session: Session, stored: StoredItem, spent: float) -> None:
        _check_waits(stored, _WAITS_WITH[layer])
        answer = entered_answer(session, evidence_of(session, [stored])[stored.id], task, form)
        adjudicate(session, stored.id, task, answer, layer=layer, person=visitor.person, at=now, seconds=spent)

    return _changed(request, visitor, item, work, seconds=seconds, at=now)


@router.post("/review/{item}/unresolved")
def unresolved(request: Request, visitor: Escalator, item: int, reason: Text, *, seconds: Seconds = 0.0) -> Response:
    """Pass an item on to the next layer."""
    now, state = time.time(), _WAITS_WITH[_layer(visitor)]

    def work(session: Session, stored: StoredItem, _: float) -> None:
        _check_waits(stored, state)
        pass_on(session, stored.id, reason, state=state, person=visitor.person, at=now)

    return _changed(request, visitor, item, work, seconds=seconds, at=now)


@router.post("/review/{item}/truth")
def ruling(request: Request, visitor: Researcher, item: RowNumber, *, verdict: Decision, reason: Text = "") -> Response:
    """Keep the settled answer of an item that people doubt, or withdraw it. 404 for an item that nobody doubted."""
    now = time.time()

    def work(session: Session) -> None:
        if session.get(StoredItem, item) is None:
            raise HTTPException(404)
        if not was_doubted(session, item) and not any(
            doubt.item.id == item for doubt in doubted_truths(session, visitor.person)
        ):
            raise HTTPException(404)
        chosen = Verdict(verdict == "accept", reason.strip())
        rule_on_truth(session, item, chosen, person=visitor.person, at=now)

    database_of(request).write(work)
    return RedirectResponse("/review", 303)


@router.post("/review/projects/{project}/batches")
def batch_decision(
    request: Request, visitor: BatchReviewer, project: int, batch: Text, *, verdict: Decision, reason: Text = ""
) -> Response:
    """Send a whole batch back, finished items too, or accept all items of it that wait for the layer."""
    now, layer = time.time(), _layer(visitor)

    def work(session: Session) -> None:
        stored = session.get(StoredProject, project)
        if stored is None:
            raise HTTPException(404)
        chosen = Verdict(verdict == "accept", reason.strip())
        decide_batch(session, stored, batch, chosen, layer=layer, person=visitor.person, at=now)

    database_of(request).write(work)
    return RedirectResponse("/review", 303)


def _layer(visitor: Visitor) -> Layer:
    return next(layer for permission, layer in _LAYER_OF.items() if permission in ALLOWED[visitor.role])


def _check_waits(item: StoredItem, state: str) -> None:
    """Raise TransitionRefused for an item that is to be reviewed, and not to be settled."""
    if item.state != state:
        raise TransitionRefused(f"the item is {item.state!r} by now")


def _item_of(session: Session, visitor: Visitor, item: int) -> StoredItem | None:
    return item_for(session, item, visitor.person, _states(visitor))


def _states(visitor: Visitor) -> tuple[str, str]:
    """Return the states of the items in the queues of the visitor's layer."""
    layer = _layer(visitor)
    return STATE_OF[layer], _WAITS_WITH[layer]


def _changed(
    request: Request,
    visitor: Visitor,
    item: int,
    work: Callable[[Session, StoredItem, float], None],
    *,
    seconds: float,
    at: float,
) -> Response:
    """Run ``work`` on an item of the layer's queues and show it again, or the queues once it has moved on.

    404 for an item that never was in either queue, 409 for one that has left it since. A form that lacks something is
    said on the item's page. ``seconds``: the active time that the page reports, which counts in any case.
    """

    def count(session: Session, stored: StoredItem) -> float:
        layer, person = _layer(visitor), visitor.person
        return count_review(session, stored, layer=layer, person=person, reported=seconds, at=at)

    def run(session: Session) -> None:
        shown = _item_of(session, visitor, item)
        if shown is None:
            if has_left(session, item, visitor.person, _states(visitor)):
                raise TransitionRefused("the item has left the queue")
            raise HTTPException(404)
        locked = locked_item(session, item)
        # What is done is done to the item as it was shown: a planted review has another state than its item.
        stored = locked if shown in session else shown
        work(session, stored, count(session, stored))

    try:
        database_of(request).write(run)
    except ConfigError as error:
        # The refusal has undone what was counted. Nothing counts on an item that has moved on meanwhile.
        database_of(request).write(
            lambda session: (shown := _item_of(session, visitor, item)) and count(session, shown)
        )
        refusal = refusal_text(error, language_of(request, visitor))
        return _item_page(request, visitor, item, refusal=refusal, status=400)
    with database_of(request).reading() as session:
        is_left = _item_of(session, visitor, item) is None
    return RedirectResponse("/review" if is_left else f"/review/{item}", 303)


def _item_page(request: Request, visitor: Visitor, item: int, *, refusal: str = "", status: int = 200) -> Response:
    with database_of(request).reading() as session:
        reviewed = reviewed_item(session, item, visitor.person, _states(visitor))
        if reviewed is None:
            raise HTTPException(404)
        stored, evidence, decisions, remarks = reviewed
        settings = settings_of(session.get_one(StoredProject, stored.project_id))
        return page(
            request,
            "review_item.html",
            visitor,
            status=status,
            view=view_item(session, stored, evidence, visitor.person, settings, remarks=remarks),
            decisions=decisions,
            reasons=settings.discard_reasons,
            is_review=stored.state == STATE_OF[_layer(visitor)],
            is_last=_layer(visitor) == "research",
            refusal=refusal,
            is_late=False,
        )
