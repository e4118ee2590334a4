"""The server of the pages: only GET, only on this machine unless told otherwise, and no path from an address.

A page of another site must not read these through a name that it points at this machine (DNS rebinding): the ``Host``
of a request must be an address, ``localhost``, or the host that the user named.
"""

import ipaddress
import socket
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from steelyard.core.errors import FileError, OutputError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import prepare_records
from steelyard.evaluation.tables import Sentence
from steelyard.viewing.pages import PageError, Pages
from steelyard.viewing.runs import RunList

_LARGEST_VERSION = 2**53
_HEADERS = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"frame-ancestors 'none'; base-uri 'none'; object-src 'none'; form-action 'self'"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]


def application(folder: Path, *, host: str = "127.0.0.1") -> ASGIApp:
    """Return the application that serves the runs below the folder; ``host`` is the one that the user named."""
    pages = Pages(RunList(folder))

    def page(make: Callable[[Request, str], str]) -> Callable[[Request], Response]:
        # A function that is not `async` runs in a thread: a long report does not hold up the others.
        return lambda request: _html(make(request, _language(request)))

    def changes(request: Request) -> Response:
        after = request.query_params.get("after", "")
        number = int(after) if after.isascii() and after.isdigit() and len(after) < 17 else -1
        return JSONResponse(pages.changes(min(number, _LARGEST_VERSION)))

    def live(request: Request) -> Response:
        return JSONResponse(pages.live(request.path_params["run"], _language(request)))

    def several(make: Callable[..., str]) -> Callable[[Request], Response]:
        return page(lambda request, language: make(request.query_params.getlist("run"), language))

    def on_page_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, PageError), "registered for it"
        return _html(pages.problem(error, _language(request)), error.status)

    def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException), "registered for it"
        problem = PageError(error.status_code, Sentence("problem_no_page"))
        return _html(pages.problem(problem, _language(request)), error.status_code)

    routes = [
        Route("/", page(lambda request, language: pages.home(language)), methods=["GET"]),
        Route("/changes", changes, methods=["GET"]),
        Route("/runs/{run:str}", page(lambda request, language: pages.run(request.path_params["run"], language))),
        Route("/runs/{run:str}/live", live, methods=["GET"]),
        Route("/report", several(pages.report), methods=["GET"]),
        Route("/compare", several(pages.compare), methods=["GET"]),
        Route("/leaderboard", several(pages.leaderboard), methods=["GET"]),
    ]
    handlers: dict[Any, Any] = {PageError: on_page_error, HTTPException: on_http_error}
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), host)


class _Guard:
    """Refuses requests that are not GET or HEAD, or for a foreign host, and adds the headers of every answer."""

    def __init__(self, inner: ASGIApp, host: str) -> None:
        self._inner = inner
        self._host = host
        self._is_local = is_loopback(host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_HEADERS]}
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._inner)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1 or not self._is_allowed(_without_port(hosts[0])):
            refused = "This server does not answer for that host. Open it by its address, or start it for that host.\n"
            return Response(refused, 421, media_type="text/plain")
        if scope["method"] not in ("GET", "HEAD"):
            return Response("Only GET.\n", 405, {"allow": "GET, HEAD"}, media_type="text/plain")
        return None

    def _is_allowed(self, name: str) -> bool:
        if name.lower() in ("localhost", self._host.lower()):
            return True
        address = _address(name)
        return address is not None and (address.is_loopback or not self._is_local)


def serve(folder: Path, *, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Serve until Ctrl-C or another stop signal. ``announce`` gets the address once it can be opened.

    Raises FileError for a folder that is not there, OutputError where the port is taken or the host is not one of this
    machine, KeyboardInterrupt at the end.
    """
    _check_folder(folder)
    with listening(host, port) as listener:
        announce(url_of(host, listener))
        _server(folder, host).run(sockets=[listener])


class BackgroundServer:
    """A server in a thread, for a notebook: ``url`` can be opened as soon as it is made. Raises the errors of `serve`.

    The thread ends with the process, or with `stop`.
    """

    def __init__(self, folder: Path, *, host: str, port: int) -> None:
        _check_folder(folder)
        self._listener = listening(host, port)
        self.url = url_of(host, self._listener)
        self._server = _server(folder, host)
        self._thread = Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """True while the pages can be opened."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop and free the port. A second call does nothing."""
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        problem = "this is a file" if folder.exists() else "there is no such folder"
        raise FileError(problem, where=str(folder), do="name a folder that holds runs")


def url_of(host: str, listener: socket.socket) -> str:
    """Return the address that a browser opens."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


def _server(folder: Path, host: str) -> uvicorn.Server:
    prepare_records()
    config = uvicorn.Config(
        application(folder, host=host),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host."""
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises OutputError where the port is taken or the host is not of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError) as error:
        do = Advice("name an address of this machine, or omit ", Remedy("host"))
        raise OutputError(f"the host {host!r} is not known", do=do) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        problem = f"{host}:{port} cannot be opened ({(error.strerror or str(error)).lower()})"
        raise OutputError(
            problem, do=Advice("choose another port: ", Remedy("port", 0), " takes a free one")
        ) from error
    return listener


def _html(text: str, status: int = 200) -> HTMLResponse:
    """Return a page; of a name that is not UTF-8 the odd bytes are shown as escapes."""
    return HTMLResponse(text.encode(errors="backslashreplace"), status)


def _language(request: Request) -> str:
    """Return the language in which a page opens before the reader has chosen one: that of the browser."""
    return "zh" if request.headers.get("accept-language", "").lower().startswith("zh") else "en"


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
