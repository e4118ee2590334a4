"""A client of an application in this process that sends all requests of a run through one event loop.

The test client of Starlette starts a loop, its thread and a thread for the answer anew for each request, and visits the
loop nine times: a third of the processor time of the tests of routes. It is used where a fault becomes an answer.
"""

import asyncio
from contextlib import nullcontext
from urllib.parse import unquote

from anyio.from_thread import start_blocking_portal
from starlette.testclient import httpx


class QuickClient(httpx.Client):
    """A browser or a program without a network; it follows no redirection unless told, and raises faults.

    ``portal``: the loop in a thread of its own that a session of tests opens and closes; null is one for each request.
    """

    portal = None

    def __init__(self, app, *, follow_redirects=False, headers=None):
        super().__init__(
            transport=_Transport(app, self.portal),
            base_url="http://testserver",
            follow_redirects=follow_redirects,
            headers={"user-agent": "testclient"} | (headers or {}),
        )


class _Transport(httpx.BaseTransport):
    def __init__(self, app, portal):
        self._app, self._portal = app, portal

    def handle_request(self, request):
        path, _, query = request.url.raw_path.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "root_path": "",
            "scheme": request.url.scheme,
            "query_string": query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "client": ("testclient", 50000),
            "server": (request.url.host, request.url.port or 80),
            "state": {},
        }
        with nullcontext(self._portal) if self._portal else start_blocking_portal() as portal:
            answer = portal.call(_answered, self._app, scope, request.read())
        return httpx.Response(**answer, request=request)


async def _answered(app, scope, body):
    """Return status, headers and content of the answer. The application hears of an end only after its own."""
    waiting = [{"type": "http.request", "body": body}]
    complete = asyncio.Event()
    start, chunks = {}, []

    async def receive():
        if waiting:
            return waiting.pop()
        await complete.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.start":
            assert not start, "an answer begins twice"
            start.update(status_code=message["status"], headers=message["headers"])
            return
        assert start, "a body comes before its answer"
        assert not complete.is_set(), "a body comes after the end of its answer"
        chunks.append(bytes(message.get("body", b"")))
        if not message.get("more_body", False):
            complete.set()

    await app(scope, receive, send)
    assert start, "no answer"
    assert complete.is_set(), "an answer without an end"
    return start | {"content": b"" if scope["method"] == "HEAD" else b"".join(chunks)}
