"""Bodies of requests: who sends one, how large it is and how long it takes, before a byte of it is decoded.

A route of the class `KnownRoute` reads nothing of a body from nobody, from a person without its permission, or beyond
the limit of its address. JSON is decoded in a thread, so that a large body of one person holds up nobody else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope

from steelyard.core.types import JsonObject
from steelyard.workbench.accounts.permissions import Permission, known_visitor

ModelT = TypeVar("ModelT", bound=BaseModel)


class RequestLimit(NamedTuple):
    """The most bytes of a request, and what to do about a larger one."""

    num_bytes: int
    do: str

    def refusal(self) -> HTTPException:
        """Return the answer to a larger request."""
        size = f"{self.num_bytes // 2**20} MiB" if self.num_bytes >= 2**20 else f"{self.num_bytes // 2**10} KiB"
        return HTTPException(413, f"the request is larger than {size}: {self.do}")


REQUESTS = RequestLimit(2 * 2**20, "send less at a time")
UPLOADS = RequestLimit(64 * 2**20, "import a large file on the server: steelyard workbench import")
LOGINS = RequestLimit(16 * 2**10, "send a name and a password")
_LIMITS = {"/import": UPLOADS, "/login": LOGINS}
_SLOWEST = 10_000
"""Bytes a second at which a body may come once the patience is over."""
_MOST_VALUES = 1_000_000
"""Marks between values in a JSON body, beyond which it is not decoded: values take far more room than their text."""
_READING = ("GET", "HEAD")


def request_limit(path: str) -> RequestLimit:
    """Return the limit of the requests to an address."""
    return _LIMITS.get(path[path.rfind("/") :], REQUESTS)


def bounded(scope: Scope, receive: Receive, *, patience: float) -> Receive:
    """Return ``receive`` within limits: 413 for more bytes than the address takes, 408 for a body that is too slow.

    ``patience``: seconds that a body may take in any case.
    """
    limit = request_limit(scope["path"])
    num_received, is_whole, start = 0, False, None

    async def receive_bounded() -> Message:
        nonlocal num_received, is_whole, start
        if is_whole:
            # What comes now is that the other side has gone.
            return await receive()
        start = asyncio.get_running_loop().time() if start is None else start
        try:
            async with asyncio.timeout_at(start + patience + num_received / _SLOWEST):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "the request did not come to its end: send it again") from None
        num_received += len(message.get("body", b""))
        is_whole = not message.get("more_body", False)
        if num_received > limit.num_bytes:
            raise limit.refusal()
        return message

    return receive_bounded


async def admit(request: Request, permission: Permission | None) -> None:
    """Check who sends a request, and the size that it says it has, before its body is read.

    ``permission``: null where nobody may send it, too. Raises as `known_visitor`, 403 where
    nobody has to be known and another site sends the form, and 413 for a body that is too large.
    """
    if permission is not None:
        await known_visitor(request, permission)
    elif _is_from_elsewhere(request):
        raise HTTPException(403, "the form is from another site: open the page of the workbench")
    limit = request_limit(request.url.path)
    if declared_size(request) > limit.num_bytes:
        raise limit.refusal()


def _is_from_elsewhere(request: Request) -> bool:
    """Tell whether a browser says that a page of another origin sent a request. Programs say nothing."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        return site not in ("same-origin", "none")
    # Browsers leave the site out on plain HTTP, and older ones everywhere.
    schemes = ("https",) if request.app.state.is_secure else ("http", "https")
    here = [f"{scheme}://{request.headers.get('host', '')}".lower() for scheme in schemes]
    return origin is not None and origin.lower() not in here


def declared_size(request: Request) -> int:
    """Return the number of bytes that the headers of a request announce; 0 where they say nothing."""
    size = request.headers.get("content-length", "")
    return int(size) if size.isascii() and size.isdigit() and len(size) < 19 else 0


class KnownRoute(APIRoute):
    """A route whose bodies are read once it is known that their sender has its permission."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request. FastAPI decodes bodies before it asks for the visitor."""
        answer = super().get_route_handler()
        permission = _permission_in(self.dependant)

        async def answer_known(request: Request) -> Response:
            if request.method not in _READING:
                await admit(request, permission)
            return await answer(request)

        return answer_known


class Endpoints(NamedTuple):
    """The ``ENDPOINTS`` of a file of routes, which the application serves.

    ``frequent`` are compared with a request before all others. ``requests`` are bodies that programs send as JSON, and
    ``answers`` records that they get, for the description of the interface.
    """

    routers: tuple[APIRouter, ...]
    frequent: tuple[BaseRoute, ...] = ()
    requests: tuple[type[BaseModel], ...] = ()
    answers: tuple[type, ...] = ()


def _permission_in(dependant: Dependant) -> Permission | None:
    inside = map(_permission_in, dependant.dependencies)
    permissions: list[Permission | None] = [getattr(dependant.call, "permission", None), *inside]
    return next((permission for permission in permissions if permission is not None), None)


async def request_body(request: Request) -> bytes:
    """Return the body of a request as it was sent."""
    return await request.body()


def json_body(model: type[ModelT]) -> Callable[[Request], Awaitable[ModelT]]:
    """Return the dependency of a route that takes JSON: the body as a model. It follows the visitor in the signature.

    Raises RequestValidationError for another form.
    """

    async def read(request: Request) -> ModelT:
        body = await request.body()
        if "json" not in request.headers.get("content-type", ""):
            raise RequestValidationError([{"loc": ("body",), "type": "content_type", "msg": "no JSON"}])
        return await run_in_threadpool(_decoded, body, model)

    return read


def json_description(model: type[BaseModel]) -> JsonObject:
    """Return the description of a route whose body is a model of `json_body`."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _decoded(body: bytes, model: type[ModelT]) -> ModelT:
    if sum(map(body.count, (b",", b":", b"[", b"{"))) > _MOST_VALUES:
        reason = f"more than {_MOST_VALUES:,} values: send less at a time"
        raise RequestValidationError([{"loc": ("body",), "type": "too_long", "msg": reason}])
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        few = error.errors(include_url=False, include_context=False, include_input=False)[:5]
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in few]) from None
