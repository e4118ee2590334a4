"""Requests that annotators send by the hundred: who sends one, what it asks and its answer, in one visit to a thread.

FastAPI takes the steps of a request one by one: it visits a thread for the person who sends it and another one for the
answer, and checks each parameter with a model of its own. For an answer that takes two milliseconds that is a third of
the processor time. These requests are plain routes of Starlette: what they ask is a record of msgspec, as everywhere.

A few threads serve all of them, in the order in which they came. Many more would mostly wait for each other: they share
one interpreter, and a transaction that waits for it holds its locks meanwhile.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import msgspec
from fastapi.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import Permission, has_signed_cookie, permitted
from steelyard.workbench.routes.request_bodies import admit, declared_size
from steelyard.workbench.storage.database import Database

_PERMISSION: Permission = "annotate"
_AT_A_TIME = 3
_SMALL = 2**16
"""Bytes of a body that most answers are far below."""
_PATIENCE = 2.0
"""Seconds after which a request no longer waits for the few threads: those may wait for something that takes long."""
QueryT = TypeVar("QueryT")
ResultT = TypeVar("ResultT")


class FastRequest(NamedTuple, Generic[QueryT]):
    """A request, who sends it, what its path and its query hold, and its body."""

    request: Request
    visitor: Visitor
    query: QueryT
    body: bytes

    @property
    def database(self) -> Database:
        """The database of the workbench."""
        return self.request.app.state.database


class FastThreads:
    """A few threads for short work, begun in the order in which it came."""

    def __init__(self, at_a_time: int = _AT_A_TIME, *, patience: float = _PATIENCE) -> None:
        self._threads = ThreadPoolExecutor(at_a_time, thread_name_prefix="fast route")
        self._patience = patience

    async def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Return the result of ``work``. What has not begun when the patience ends gets a thread of all others."""
        job = self._threads.submit(work)
        result = asyncio.wrap_future(job)
        finished, _ = await asyncio.wait([result], timeout=self._patience)
        if not finished and job.cancel():
            return await run_in_threadpool(work)
        return await result


def fast_route(
    method: str, path: str, query: type[QueryT]
) -> Callable[[Callable[[FastRequest[QueryT]], bytes]], Route]:
    """Make a route of a function that answers with JSON. ``query``: the record of its path and query.

    A request without the permission to annotate is answered as by the dependency `needs`, one that asks something else
    with 422.
    """

    def made(answer: Callable[[FastRequest[QueryT]], bytes]) -> Route:
        def answered(request: Request, body: bytes) -> bytes:
            visitor = permitted(request, _PERMISSION)
            try:
                read = msgspec.convert({**request.query_params, **request.path_params}, query, strict=False)
            except msgspec.ValidationError as error:
                raise HTTPException(422, str(error)) from None
            return answer(FastRequest(request, visitor, read, body))

        async def endpoint(request: Request) -> Response:
            # A small body of a browser is read before it is known whose, which its thread looks up anyway.
            if method != "GET" and not (0 < declared_size(request) <= _SMALL and has_signed_cookie(request)):
                await admit(request, _PERMISSION)
            work = partial(answered, request, await request.body())
            threads: FastThreads = request.app.state.fast_threads
            return Response(await threads.run(work), media_type="application/json")

        endpoint.permission = _PERMISSION  # pyrefly: ignore[missing-attribute] - what the test of all routes reads
        route = Route(path, endpoint, methods=[method], include_in_schema=False)
        # Starlette answers HEAD where there is GET; it would reserve a task.
        route.methods = {method}
        return route

    return made
