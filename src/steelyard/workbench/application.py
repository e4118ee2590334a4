"""The application: what every request passes through, the files that pages load, and the pages of errors.

No page runs a script that is not a file of this program (CSP), none is framed, and none loads anything from elsewhere.
"""

from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.core.errors import UserError
from steelyard.core.types import JsonObject, prepare_records
from steelyard.io.progress import log
from steelyard.workbench.accounts.people import make_key
from steelyard.workbench.accounts.permissions import LoginNeeded, visitor_of
from steelyard.workbench.figures.fit_keeper import FitKeeper
from steelyard.workbench.pipeline.tallies import count_what_is_stored
from steelyard.workbench.routes import (
    account,
    align,
    annotate,
    manage,
    manage_people,
    manage_qualification,
    progress,
    qualify,
    releases,
    rest,
    review,
)
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.database_errors import NoRoomError, UnavailableError
from steelyard.workbench.views.pages import FOLDER, page
from steelyard.workbench.views.uploads import request_limit

_VENDORED = Path(str(files("steelyard.report"))) / "templates" / "vendored"
_FORM_LIMITS = ("exceeded maximum size", "Too many f")
"""What the parser of forms says of a field, a part or a number of them that is too large, with status 400."""
_ROUTERS = (
    account.router,
    align.router,
    qualify.router,
    annotate.router,
    manage.router,
    manage_people.router,
    manage_qualification.router,
    progress.router,
    releases.router,
    rest.router,
    progress.figures,
    manage_qualification.figures,
    releases.figures,
    rest.description,
    review.router,
)
_POLICY = (
    b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; object-src 'none'; "
    b"form-action 'self'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]


_UNAVAILABLE = "the database of the workbench does not answer; tell an administrator, and send it again later"
_NO_ROOM = "the disk of the workbench is full; tell an administrator, and send it again later"


class Options(NamedTuple):
    """How the workbench is reached. ``hosts``: names in addresses; ``is_secure``: people reach it by HTTPS alone."""

    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    is_secure: bool = False
    is_simulated: bool = False


def application(database: Database, options: Options | None = None) -> FastAPI:
    """Return the application over a database that is migrated already."""
    prepare_records()
    options = options or Options()
    database.write(make_key)
    database.write(count_what_is_stored)
    app = FastAPI(title="Steelyard workbench", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.database = database
    app.state.fits = FitKeeper(database)
    app.state.is_secure = options.is_secure
    app.state.is_simulated = options.is_simulated
    for router in _ROUTERS:
        app.include_router(router)
    app.openapi = partial(_description, app, app.openapi)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"))
    app.mount("/vendored", StaticFiles(directory=_VENDORED))
    handlers: dict[Any, Callable[..., Response]] = {
        LoginNeeded: _on_login_needed,
        HTTPException: _on_http_error,
        RequestValidationError: _on_wrong_request,
        UserError: _on_user_error,
        NoRoomError: _on_no_room,
        UnavailableError: _on_unavailable,
        TransitionRefused: _on_transition_refused,
        # Numbers and texts that no database stores: beyond 64 bits, NUL, half of a surrogate pair.
        DataError: _on_unstorable,
        OverflowError: _on_unstorable,
        UnicodeEncodeError: _on_unstorable,
    }
    for kind, handler in handlers.items():
        app.add_exception_handler(kind, handler)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(options.hosts))
    app.add_middleware(_RequestGuard, is_secure=options.is_secure)
    return app


def _description(app: FastAPI, describe: Callable[[], JsonObject]) -> JsonObject:
    """Return the description of the REST interface, with the records that some answers are."""
    if app.openapi_schema is None:
        describe()["components"]["schemas"].update(progress.record_schemas())
    assert app.openapi_schema is not None, "made by then"
    return app.openapi_schema


class _RequestGuard:
    """Bounds the size of requests and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, *, is_secure: bool) -> None:
        self._app = app
        self._headers = _HEADERS + ([(b"strict-transport-security", b"max-age=31536000")] if is_secure else [])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = request_limit(scope["path"])
        num_left = limit.num_bytes

        async def receive_bounded() -> Message:
            nonlocal num_left
            message = await receive()
            num_left -= len(message.get("body", b""))
            if num_left < 0:
                raise HTTPException(413, f"the request is larger than {limit.num_bytes // 2**20} MiB: {limit.do}")
            return message

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                caching = [] if _is_file(scope) else [(b"cache-control", b"no-store")]
                message = {**message, "headers": [*message["headers"], *self._headers, *caching]}
            await send(message)

        await self._app(scope, receive_bounded, send_guarded)


def _is_file(scope: Scope) -> bool:
    return scope["path"].startswith(("/static/", "/vendored/"))


def _wants_data(request: Request) -> bool:
    return request.url.path.startswith("/api/") or "application/json" in request.headers.get("accept", "")


def _on_login_needed(request: Request, error: LoginNeeded) -> Response:
    if _wants_data(request):
        return JSONResponse({"error": "log in, or send a token: Authorization: Bearer TOKEN"}, 401)
    return RedirectResponse("/login", 303)


def _on_http_error(request: Request, error: HTTPException) -> Response:
    is_too_large = error.status_code == 400 and any(words in error.detail for words in _FORM_LIMITS)
    return _problem(request, 413 if is_too_large else error.status_code, error.detail)


def _on_wrong_request(request: Request, error: RequestValidationError) -> Response:
    # Only places and reasons: what was sent may hold a password.
    reasons = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
    is_json = "json" in request.headers.get("content-type", "")
    if not is_json and any(each["loc"] == ("body",) and each["type"] != "missing" for each in error.errors()):
        reasons += "; send Content-Type: application/json"
    return _problem(request, 422, reasons)


def _on_user_error(request: Request, error: UserError) -> Response:
    return _problem(request, 400, str(error))


def _on_no_room(request: Request, error: NoRoomError) -> Response:
    # 507 says that the same request may succeed later: the annotators' page keeps the answer and sends it again.
    # Where the database is, is for whoever runs the server.
    log(f"error: {error}")
    return _problem(request, 507, f"nothing was stored: {_NO_ROOM}")


def _on_unavailable(request: Request, error: UnavailableError) -> Response:
    # 503 says the same as 507: what the annotators' page holds is sent again.
    log(f"error: {error}")
    reason = f"nothing was stored: {_UNAVAILABLE}"
    if _wants_data(request):
        return JSONResponse({"error": reason}, 503)
    # Who is logged in stands in the database, too.
    return page(request, "problem.html", None, status=503, number=503, reason=reason, before=None)


def _on_transition_refused(request: Request, error: TransitionRefused) -> Response:
    return _problem(request, 409, f"somebody else was faster: {error}")


def _on_unstorable(request: Request, error: Exception) -> Response:
    return _problem(request, 400, "a number is too large, or a text has characters that cannot be stored")


def _problem(request: Request, status: int, reason: str) -> Response:
    if _wants_data(request):
        return JSONResponse({"error": reason}, status)
    values = {"number": status, "reason": reason, "before": _page_before(request)}
    return page(request, "problem.html", visitor_of(request), status=status, **values)


def _page_before(request: Request) -> str | None:
    """Return the address of the workbench's page that the request came from; null where it is not another one."""
    try:
        before = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    if before.netloc != request.headers.get("host") or before.path == request.url.path:
        return None
    # Two slashes at the beginning would lead to another host.
    return "/" + before.path.lstrip("/") + (f"?{before.query}" if before.query else "")
