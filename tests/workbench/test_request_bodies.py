"""Bodies of requests: none is read before it is known who sends it and how large it is, and none takes for ever."""

import asyncio
import json

import pytest

from each_value import each
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.application import Options, application
from workbench_routes import HOLDERS, OPEN, ROUTES, filled

CHANGES = [key for key in ROUTES if key[0] not in ("GET", "HEAD")]
LARGE = 100 * 2**20


class Exchange:
    """A request to an application whose body comes from a list; it counts what was read of it."""

    def __init__(self, app, method, path, headers, messages=()):
        self.num_read = 0
        self.status = None
        self.body = b""
        self._messages = list(messages)
        address, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": address,
            "raw_path": address.encode(), "query_string": query.encode(), "root_path": "", "scheme": "http",
            "client": ("test", 1), "server": ("testserver", 80),
            "headers": [(name.encode(), value.encode()) for name, value in {"host": "testserver", **headers}.items()],
        }  # fmt: skip
        asyncio.run(asyncio.wait_for(app(scope, self._receive, self._send), 30))

    async def _receive(self):
        self.num_read += 1
        if not self._messages:
            # The rest of the body never comes.
            await asyncio.Event().wait()
        return {"type": "http.request", "body": self._messages.pop(0), "more_body": True}

    async def _send(self, message):
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


def refused_unread(visit, method, path, headers):
    exchange = Exchange(visit.app, method, path, headers)
    assert exchange.num_read == 0, path
    return exchange.status


@pytest.mark.slow
@each(("method", "path"), CHANGES)
@each("size", [1000, LARGE])
def test_no_byte_is_read_of_nobody(visit, method, path, size):
    address, status = filled(path, visit.site, "administrator", is_foreign=False), 401 if "/api/" in path else 303
    for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/x"):
        for who in (
            {},
            {"cookie": f"{COOKIE}=forged.forged"},
            {"authorization": "Bearer sty_unknown"},
            {"authorization": f"Bearer {visit.site.revoked}"},
        ):
            headers = {"content-type": kind, "content-length": str(size), **who}
            assert refused_unread(visit, method, address, headers) == status
    headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
    assert refused_unread(visit, method, address, headers) == status


@each(("method", "path"), CHANGES)
def test_no_byte_is_read_of_who_may_not_or_sends_too_much(visit, method, path):
    holders = HOLDERS[ROUTES[method, path].permission]
    for role, cookie in visit.site.cookies.items():
        address = filled(path, visit.site, role, is_foreign=False) if role in visit.site.token_numbers else path
        headers = {"cookie": f"{COOKIE}={cookie}", "content-type": "application/json", "content-length": str(LARGE)}
        if role != "other":
            assert refused_unread(visit, method, address, headers) == (413 if role in holders else 403), role


def test_a_session_that_is_over_has_no_large_body_read(visit):
    assert visit.browser("annotator").post("/logout", data={"csrf": visit.csrf("annotator")}).status_code == 303
    headers = {"cookie": f"{COOKIE}={visit.site.cookies['annotator']}", "content-length": str(2**17)}
    assert refused_unread(visit, "POST", f"/annotate/{visit.site.assignment}/answer", headers) == 303


def test_a_login_is_small(visit):
    assert ("POST", "/login") in OPEN
    headers = {"content-type": "application/x-www-form-urlencoded", "content-length": str(2**20)}
    assert refused_unread(visit, "POST", "/login", headers) == 413


@pytest.mark.parametrize("path", ["/login", "/api/v1/projects", "/manage/projects", "/annotate/{assignment}/answer"])
def test_a_body_that_does_not_come_to_its_end_is_given_up(visit, path):
    app = application(visit.database, Options(hosts=("testserver",), body_seconds=0.2))
    role = "annotator" if "annotate" in path else "administrator"
    kind = "application/json" if path.startswith(("/api", "/annotate")) else "application/x-www-form-urlencoded"
    headers = {"content-type": kind, "content-length": "1000", "cookie": f"{COOKIE}={visit.site.cookies[role]}"}
    headers |= {"x-csrf-token": visit.csrf(role), "accept": "application/json"}
    exchange = Exchange(app, "POST", path.format(assignment=visit.site.assignment), headers, [b"na"])
    assert exchange.status == 408
    assert "send it again" in json.loads(exchange.body)["error"]


def deep(text):
    return "[" * 100_000 + text + "]" * 100_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("projects", f'{{"name": "R", "settings": {{"rules": {deep("")}}}}}'),
        ("projects", f'{{"name": "R", "settings": {{"rules": [{"[]," * 600_000}0]}}}}'),
        ("projects", f'{{"name": {deep("1")}}}'),
        ("projects", f"{{{'[],' * 600_000}}}"),
        ("projects", f'{{"name": "R", "settings": {{"seed": {"9" * 2_000_000}}}}}'),
        ("projects/{project}/releases", f'{{"name": {deep("")}}}'),
        ("projects/{project}/qualification/people/{person}", deep("")),
        ("projects", '{"name": "\ud800"}'),
    ],
)
def test_a_bomb_is_refused_in_a_sentence(visit, path, body):
    address = f"/api/v1/{path.format(project=visit.site.project, person=visit.site.people['other'])}"
    program = visit.program(visit.site.tokens["researcher" if "releases" in path else "administrator"])
    content = body.encode(errors="surrogatepass")
    refused = program.post(address, content=content, headers={"content-type": "application/json"})
    assert refused.status_code in (400, 413, 422)
    assert len(refused.json()["error"]) < 1000
