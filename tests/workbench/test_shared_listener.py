"""The listener of several processes: each takes one connection at a time, so that all get their share."""

import asyncio
import multiprocessing
import socket

import pytest

from steelyard.viewing.server import listening
from steelyard.workbench.serving import _SharedListener

pytestmark = pytest.mark.slow


@pytest.fixture
def listener():
    plain = listening("127.0.0.1", 0)
    with _SharedListener(plain.family, plain.type, plain.proto, fileno=plain.detach()) as shared:
        yield shared


@pytest.fixture
def visitors(listener):
    """Six connections that wait to be taken."""
    made = [socket.create_connection(listener.getsockname()) for _ in range(6)]
    yield made
    for each in made:
        each.close()


def taken(listener):
    """Whether a connection is taken."""
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return False
    connection.close()
    return True


def test_one_at_a_time_is_taken_until_none_waits(listener, visitors):
    listener.setblocking(False)
    assert [taken(listener) for _ in range(12)] == [True, False] * 6
    assert [taken(listener) for _ in range(3)] == [False] * 3
    # Who comes after a look at an empty queue is taken at the next one.
    with socket.create_connection(listener.getsockname()):
        assert taken(listener)


def test_no_server_takes_all_who_wait(listener, visitors):
    """Two servers in one loop: with a plain listener the first has all six."""
    counts = [0, 0]

    async def count(number, writer):
        counts[number] += 1
        writer.close()

    async def run():
        shared = [listener, _SharedListener(fileno=listener.dup().detach())]
        servers = [
            await asyncio.start_server(lambda _, writer, number=number: count(number, writer), sock=each)
            for number, each in enumerate(shared)
        ]
        while sum(counts) < len(visitors):
            await asyncio.sleep(0.001)
        for server in servers:
            server.close()
            await server.wait_closed()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert sum(counts) == 6
    assert min(counts) >= 2


def in_process(listener, answers):
    """Take two connections in a process of its own."""
    listener.setblocking(False)
    answers.put([type(listener).__name__, *(taken(listener) for _ in range(3))])


def test_it_reaches_a_process_that_is_started(listener, visitors):
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=in_process, args=(listener, answers))
    process.start()
    assert answers.get(timeout=60) == ["_SharedListener", True, False, True]
    process.join()
