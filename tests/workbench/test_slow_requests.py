"""Connections that begin a request and do not end it: they are closed, and others are not."""

import asyncio

import pytest
import uvicorn
from starlette.responses import Response
from uvicorn.server import ServerState

from steelyard.workbench.application import Options
from steelyard.workbench.serving import Reach, TimedProtocol, _Making, _settings

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


class QuickProtocol(TimedProtocol):
    header_seconds = 0.3


async def app(scope, receive, send):
    await Response("hello")(scope, receive, send)


def conversation(*parts, pause=0.0):
    """Send parts to a server, with a pause after each; returns all that came back, and whether it closed by itself."""

    async def run():
        config = uvicorn.Config(app, http=QuickProtocol, ws="none", lifespan="off", timeout_keep_alive=600)
        config.load()
        state, loop = ServerState(), asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: QuickProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        answers, is_closed = b"", False
        try:
            async with asyncio.timeout(3):
                for part in parts:
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(pause)
                while block := await reader.read(1000):
                    answers += block
                is_closed = True
        except TimeoutError:
            pass
        except ConnectionError:
            is_closed = True
        writer.close()
        server.close()
        return answers.count(b"hello"), is_closed

    return asyncio.run(run())


@pytest.mark.parametrize(
    "parts",
    [
        (),
        (HEAD,),
        tuple(HEAD[place : place + 1] for place in range(len(HEAD))),
        (b"X",),
        (HEAD, b"A: b\r\n"),
    ],
)
def test_headers_that_do_not_end_are_not_waited_for(parts):
    assert conversation(*parts, pause=0.05) == (0, True)


def test_a_second_request_that_does_not_end_is_not_waited_for():
    assert conversation(HEAD + b"\r\n", HEAD, pause=0.2) == (1, True)


def test_a_body_that_goes_on_after_the_answer_is_not_read_for_ever():
    begun = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"
    assert conversation(begun, *[b"x"] * 10, pause=0.1)[1]


@pytest.mark.slow
def test_a_connection_between_requests_stays():
    assert conversation(HEAD + b"\r\n", HEAD + b"\r\n", pause=0.6) == (2, False)


def test_the_workbench_is_served_so():
    assert _settings(_Making("sqlite:///none.db", Options()), Reach().proxy, 1).http is TimedProtocol
