"""Logging in and out, the person's own language, password and tokens, and the way to one's queue."""

import time
from functools import partial
from math import ceil
from typing import Annotated

from fastapi import APIRouter, Form, Request
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.responses import RedirectResponse, Response

from steelyard.workbench.accounts.api_tokens import (
    LONGEST_TOKEN_DAYS,
    SCOPES,
    Scope,
    issue_token,
    revoke_token,
    tokens_of,
)
from steelyard.workbench.accounts.login_attempts import DEVICE_SECONDS
from steelyard.workbench.accounts.people import (
    SESSION_SECONDS,
    LoginRefused,
    Role,
    device_cookie,
    enter,
    log_in,
    log_out,
    record_failure,
    set_password,
)
from steelyard.workbench.accounts.permissions import COOKIE, Anyone, RowNumber, Text, database_of, visitor_of
from steelyard.workbench.routes.request_bodies import Endpoints, KnownRoute
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredApiToken, StoredPerson
from steelyard.workbench.views.pages import LANGUAGES, page

router = APIRouter(route_class=KnownRoute, include_in_schema=False)
ENDPOINTS = Endpoints((router,))
_HOME: dict[Role, str] = {
    "annotator": "/annotate",
    "delivery": "/review",
    "operations": "/review",
    "researcher": "/review",
    "administrator": "/manage",
}
Days = Annotated[int, Form(ge=1, le=LONGEST_TOKEN_DAYS)]


@router.get("/")
def home(visitor: Anyone) -> Response:
    """Lead to the queue of the visitor's role."""
    return RedirectResponse(_HOME[visitor.role], 303)


@router.get("/login")
def login_page(request: Request) -> Response:
    """Show the form, or the queue to who is logged in."""
    if visitor_of(request) is not None:
        return RedirectResponse("/", 303)
    return page(request, "login.html", None, name="", refusal=None)


@router.post("/login")
def login(request: Request, name: Text, password: Text) -> Response:
    """Log in."""
    database = database_of(request)
    address = request.client.host if request.client else ""
    now = time.time()
    try:
        cookie = enter(database, name, password, address=address, at=now, cookies=request.cookies)
        with database.looking_up() as session:
            device = device_cookie(session, name)
    except LoginRefused as refusal:
        answer = page(request, "login.html", None, status=_status(refusal, 401), name=name, refusal=refusal)
        answer.headers.update(_headers(refusal))
        return answer
    response = RedirectResponse("/", 303)
    for key, value, seconds in ((COOKIE, cookie, SESSION_SECONDS), (*device, DEVICE_SECONDS)):
        response.set_cookie(
            key,
            value,
            max_age=int(seconds),
            httponly=True,
            samesite="strict",
            secure=request.app.state.is_secure,
        )
    return response


@router.post("/logout")
def logout(request: Request, visitor: Anyone) -> Response:
    """End the session of this browser."""
    database = database_of(request)
    database.write(lambda session: log_out(session, request.cookies.get(COOKIE, "")))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


@router.get("/account")
def account_page(request: Request, visitor: Anyone) -> Response:
    """Show what a person can change of the own account."""
    return _account_page(request, visitor)


@router.post("/account/language")
def change_language(request: Request, visitor: Anyone, language: Text) -> Response:
    """Set the language of the pages."""
    if language not in LANGUAGES:
        problem = f"{language[:20]!r} is no language of the pages"
        raise RefusedError(problem, words="misfit", where="language", allowed=", ".join(LANGUAGES))

    def change(session: Session) -> None:
        session.get_one(StoredPerson, visitor.person).language = language

    database_of(request).write(change)
    return RedirectResponse("/account", 303)


@router.post("/account/password")
def change_password(request: Request, visitor: Anyone, old: Text, new: Text) -> Response:
    """Change the password, which needs the old one; every browser is logged out."""
    address = request.client.host if request.client else ""
    now = time.time()

    def change(session: Session) -> None:
        person = session.get_one(StoredPerson, visitor.person)
        log_in(session, person.name, old, address=address, at=now, cookies=request.cookies)
        set_password(session, person, new, by=visitor.person, at=now)

    try:
        database_of(request).write(change)
    except LoginRefused as refusal:
        with database_of(request).reading() as session:
            name = session.get_one(StoredPerson, visitor.person).name
        counted = partial(record_failure, name=name, address=address, at=now, cookies=request.cookies)
        database_of(request).write(counted)
        return _account_page(request, visitor, refusal=refusal)
    return RedirectResponse("/login", 303)


@router.post("/account/tokens")
def new_token(
    request: Request, visitor: Anyone, name: Text, scope: Annotated[Scope, Form()] = "read", days: Days = 90
) -> Response:
    """Issue a token and show it, this once."""
    token = database_of(request).write(
        lambda session: issue_token(
            session, session.get_one(StoredPerson, visitor.person), name, at=time.time(), scope=scope, days=days
        )
    )
    return _account_page(request, visitor, token=token)


@router.post("/account/tokens/{number}/revoke")
def end_token(request: Request, visitor: Anyone, number: RowNumber) -> Response:
    """Revoke a token of one's own; that of another person is not found."""

    def revoke(session: Session) -> bool:
        token = session.scalar(
            select(StoredApiToken).where(StoredApiToken.id == number, StoredApiToken.person_id == visitor.person)
        )
        if token is not None:
            revoke_token(session, token, by=visitor.person, at=time.time())
        return token is not None

    if not database_of(request).write(revoke):
        return page(request, "problem.html", visitor, status=404, number=404, reason="", before=None)
    return RedirectResponse("/account", 303)


def _account_page(
    request: Request,
    visitor: Anyone,
    *,
    token: str | None = None,
    refusal: LoginRefused | None = None,
) -> Response:
    with database_of(request).reading() as session:
        tokens = tokens_of(session, [visitor.person], at=time.time())
    status = 200 if refusal is None else _status(refusal, 403)
    values = {"tokens": tokens, "token": token, "refusal": refusal, "scopes": SCOPES}
    answer = page(request, "account.html", visitor, status=status, **values)
    if refusal is not None:
        answer.headers.update(_headers(refusal))
    return answer


def _status(refusal: LoginRefused, status: int) -> int:
    """Return the status of a refusal: ``status`` for a wrong password, 429 where too many failed before."""
    return status if refusal.wait is None else 429


def _headers(refusal: LoginRefused) -> dict[str, str]:
    return {} if refusal.wait is None else {"retry-after": str(ceil(refusal.wait))}
