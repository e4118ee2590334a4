"""The application: what every request passes through, and the files that pages load.

No page runs a script that is not a file of this program (CSP), none is framed, and none loads anything from elsewhere.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec
from fastapi import FastAPI, Request
from fastapi.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.core.types import JsonObject, prepare_records
from steelyard.workbench import routes
from steelyard.workbench.accounts.people import make_key
from steelyard.workbench.figures.fit_keeper import FitKeeper
from steelyard.workbench.pipeline.counters import count_what_is_stored
from steelyard.workbench.problems import HANDLERS, on_fault, refuse_host
from steelyard.workbench.routes.fast_routes import FastThreads
from steelyard.workbench.routes.request_bodies import Endpoints, bounded
from steelyard.workbench.storage.database import Database
from steelyard.workbench.views.pages import FOLDER
from steelyard.workbench.views.uploads import sweep_uploads

_VENDORED = Path(str(files("steelyard.report"))) / "templates" / "vendored"
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
_NOT_KEPT = (b"cache-control", b"no-store")
_PORT = re.compile(r":[0-9]*$")


class Options(NamedTuple):
    """The ways to reach the workbench.

    ``hosts``: names in addresses. ``is_secure``: people reach it by HTTPS alone. ``body_seconds``: how long a body may
    take that comes slowly.
    """

    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    is_secure: bool = False
    is_simulated: bool = False
    body_seconds: float = 20.0


def application(database: Database, options: Options | None = None) -> FastAPI:
    """Return the application over a database that is migrated already."""
    prepare_records()
    sweep_uploads()
    options = options or Options()
    database.write(make_key)
    database.write(count_what_is_stored)
    app = FastAPI(title="Steelyard workbench", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.database = database
    app.state.fits = FitKeeper(database)
    app.state.is_secure = options.is_secure
    app.state.is_simulated = options.is_simulated
    app.state.fast_threads = FastThreads()
    # No list names the files of routes: each declares what it serves.
    names = sorted(name for _, name, _ in pkgutil.iter_modules(routes.__path__))
    modules = [vars(importlib.import_module(f"{routes.__name__}.{name}")) for name in names]
    endpoints: list[Endpoints] = [module["ENDPOINTS"] for module in modules if "ENDPOINTS" in module]
    # First: they come most often, and a request is compared with one route after another.
    app.router.routes.extend(route for each in endpoints for route in each.frequent)
    for router in (router for each in endpoints for router in each.routers):
        app.include_router(router)
    app.openapi = partial(_description, app, app.openapi, endpoints)
    app.mount("/static", StaticFiles(directory=FOLDER / "static"))
    app.mount("/vendored", StaticFiles(directory=_VENDORED))
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    # Answered outside everything else, so that these headers are not added by the guard.
    app.add_exception_handler(Exception, partial(on_fault, headers=_headers(is_secure=options.is_secure)))
    app.add_middleware(_RequestGuard, options=options)
    return app


def _description(app: FastAPI, describe: Callable[[], JsonObject], endpoints: Sequence[Endpoints]) -> JsonObject:
    """Return the description of the REST interface, with the records that some answers and requests are."""
    if app.openapi_schema is None:
        records = [record for each in endpoints for record in each.answers]
        _, schemas = msgspec.json.schema_components(records, ref_template="#/components/schemas/{name}")
        models = [model for each in endpoints for model in each.requests]
        schemas |= {model.__name__: model.model_json_schema() for model in models}
        describe()["components"]["schemas"].update(schemas)
    assert app.openapi_schema is not None, "made by then"
    return app.openapi_schema


class _RequestGuard:
    """Refuses requests for other hosts, bounds size and time of the others, and adds the headers of every answer."""

    def __init__(self, app: ASGIApp, *, options: Options) -> None:
        self._app = app
        self._hosts = frozenset(host.lower() for host in options.hosts)
        self._headers = _headers(is_secure=options.is_secure)
        self._patience = options.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                is_file = scope["path"].startswith(("/static/", "/vendored/"))
                caching = [] if is_file and message["status"] < 400 else [_NOT_KEPT]
                message = {**message, "headers": [*message["headers"], *self._headers, *caching]}
            await send(message)

        # A name of another site that points here would let its pages read these (DNS rebinding).
        hosts = [value.decode("latin-1").lower() for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or _PORT.sub("", hosts[0]) not in self._hosts:
            await refuse_host(Request(scope))(scope, receive, send_guarded)
            return
        if scope["method"] == "HEAD":
            # All that can be read has these headers: the server leaves the body out.
            scope = {**scope, "method": "GET"}
        await self._app(scope, bounded(scope, receive, patience=self._patience), send_guarded)


def _headers(*, is_secure: bool) -> list[tuple[bytes, bytes]]:
    return _HEADERS + ([(b"strict-transport-security", b"max-age=31536000")] if is_secure else [])
