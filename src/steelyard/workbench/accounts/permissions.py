"""Permissions: one for each route, and the permissions of each role.

A route names its permission in its signature (`needs`); a test walks all routes and all roles. A person who may do
something in general still reaches only what is theirs: the functions behind the routes look objects up by person.
"""

import hmac
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Literal

from fastapi import Depends, Form, Path, Request
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from steelyard.workbench.accounts.api_tokens import SCOPES, Scope
from steelyard.workbench.accounts.people import Visitor, is_signed, visitor_of_cookie, visitor_of_token
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import Role

Permission = Literal[
    "annotate",
    "align",
    "review as delivery",
    "review as operations",
    "validate",
    "adjudicate",
    "pass on",
    "decide on batches",
    "see progress",
    "see people",
    "export",
    "manage project",
    "manage people",
    "see audit log",
    "own account",
]
COOKIE = "steelyard_workbench"
_VISITOR = "steelyard.visitor"
_FORGED = "the form is not from this page, or its session is over: open the page again"
ALLOWED: dict[Role, frozenset[Permission]] = {
    "annotator": frozenset({"annotate", "align", "own account"}),
    "delivery": frozenset({"review as delivery", "adjudicate", "pass on", "see progress", "see people", "own account"}),
    "operations": frozenset(
        {
            "review as operations",
            "adjudicate",
            "pass on",
            "decide on batches",
            "see progress",
            "see people",
            "own account",
        }
    ),
    "researcher": frozenset(
        {"validate", "adjudicate", "decide on batches", "see progress", "see people", "export", "own account"}
    ),
    "administrator": frozenset(
        {"see progress", "see people", "export", "manage project", "manage people", "see audit log", "own account"}
    ),
}
"""Administrators neither annotate nor review: who can change accounts must not decide what the data say."""


class LoginNeeded(Exception):  # noqa: N818 - leads to the page of the login
    """A page was asked for without being logged in."""


def visitor_of(request: Request) -> Visitor | None:
    """Return who sends a request, by the session's cookie or an API token; null for nobody. Looked up once."""
    if _VISITOR not in request.scope:
        token, cookie = _token_in(request), request.cookies.get(COOKIE)
        visitor = None
        if token is not None or cookie:
            database = database_of(request)
            with database.looking_up() as session:
                if token is not None:
                    visitor = visitor_of_token(session, token, at=time.time())
                elif cookie:
                    visitor = visitor_of_cookie(session, cookie, at=time.time())
        request.scope[_VISITOR] = visitor
    return request.scope[_VISITOR]


def has_signed_cookie(request: Request) -> bool:
    """Tell, without a look-up, whether a request comes from a browser that was logged in once, and not by a token."""
    database = database_of(request)
    with database.looking_up() as session:
        return _token_in(request) is None and is_signed(session, request.cookies.get(COOKIE, ""))


def _token_in(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def database_of(request: Request) -> Database:
    """Return the database of the workbench that a request reached."""
    return request.app.state.database


async def known_visitor(request: Request, permission: Permission) -> Visitor:
    """Return who sends a request. Raises LoginNeeded for nobody; answers 403 to a person without the permission."""
    visitor = request.scope[_VISITOR] if _VISITOR in request.scope else await run_in_threadpool(visitor_of, request)
    return _allowed(request, visitor, permission)


def needs(permission: Permission) -> Callable[[Request], Awaitable[Visitor]]:
    """Return the dependency of a route that needs a permission: who sends the request.

    Raises LoginNeeded for nobody, and answers 403 to a person without the permission and to a change whose form or
    header lacks the session's token (CSRF).
    """

    async def check(request: Request) -> Visitor:
        visitor = await known_visitor(request, permission)
        if request.method not in ("GET", "HEAD") and visitor.csrf is not None:
            await _check_form_token(request, visitor.csrf)
        return visitor

    check.permission = permission  # pyrefly: ignore[missing-attribute] - what the test of all routes reads
    return check


def permitted(request: Request, permission: Permission) -> Visitor:
    """Return who sends a request without a form: `needs` for a function that runs in a thread already.

    Raises as `needs`; the session's token is in the header alone.
    """
    visitor = _allowed(request, visitor_of(request), permission)
    is_change = request.method not in ("GET", "HEAD")
    if is_change and visitor.csrf is not None and not _is_token(request.headers.get("x-csrf-token"), visitor.csrf):
        raise HTTPException(403, _FORGED)
    return visitor


def _allowed(request: Request, visitor: Visitor | None, permission: Permission) -> Visitor:
    """Return the visitor. Raises LoginNeeded for nobody, and answers 403 to a person without the permission.

    A token opens no page: the REST interface alone, and what the annotators' page loads and sends.
    """
    if visitor is None:
        raise LoginNeeded
    if visitor.scope is not None:
        is_reading, path = request.method in ("GET", "HEAD"), request.url.path
        allowed: tuple[Scope, ...] = ()
        if path.startswith("/annotate/"):
            allowed = ("annotate", "administer")
        elif path.startswith("/api/"):
            allowed = SCOPES if is_reading else ("administer",)
        if visitor.scope not in allowed:
            raise HTTPException(403, f"a token of the scope {visitor.scope!r} does not open this address")
    if permission not in ALLOWED[visitor.role]:
        raise HTTPException(403)
    return visitor


async def _check_form_token(request: Request, expected: str) -> None:
    sent = request.headers.get("x-csrf-token")
    if sent is None and "form" in request.headers.get("content-type", ""):
        field = (await request.form()).get("csrf", "")
        sent = field if isinstance(field, str) else ""
    if not _is_token(sent, expected):
        await request.close()
        raise HTTPException(403, _FORGED)


def _is_token(sent: str | None, expected: str) -> bool:
    return hmac.compare_digest((sent or "").encode(), expected.encode())


Annotator = Annotated[Visitor, Depends(needs("annotate"))]
Anyone = Annotated[Visitor, Depends(needs("own account"))]
Manager = Annotated[Visitor, Depends(needs("manage project"))]
PeopleManager = Annotated[Visitor, Depends(needs("manage people"))]
Exporter = Annotated[Visitor, Depends(needs("export"))]
Observer = Annotated[Visitor, Depends(needs("see progress"))]
PeopleObserver = Annotated[Visitor, Depends(needs("see people"))]
Auditor = Annotated[Visitor, Depends(needs("see audit log"))]
LARGEST_NUMBER = 2**63 - 1
Text = Annotated[str, Form()]
"""A text of a form."""
RowNumber = Annotated[int, Path(ge=1, le=LARGEST_NUMBER)]
"""The number of a row in an address. A larger one fits no database."""
