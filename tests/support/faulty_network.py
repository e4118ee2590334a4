"""A network between a browser and a server that delays, throttles, cuts connections, and sends requests twice.

It forwards one request for each connection, as proxies without keep-alive do, and knows no more of HTTP than that.
"""

import asyncio
import threading
from typing import NamedTuple


class Fault(NamedTuple):
    """What happens to a request. Seconds go by before it reaches the server, and again before its answer comes back.

    ``lost``: the part that is cut off, ``request`` in its middle, ``answer`` in its middle, or ``all of the answer``.
    ``is_sent_twice``: as by a machine between that tries again. ``bytes_a_second`` throttles the answer.
    """

    seconds: float = 0.0
    lost: str = ""
    is_sent_twice: bool = False
    bytes_a_second: int = 0


class FaultyNetwork:
    """Listens at the host of a server, on a port of its own. ``faults`` gives what happens by method and path."""

    def __init__(self, host, port):
        self.host, self._target = host, (host, port)
        self.faults = lambda method, path: Fault()
        self.requests = []
        # The loop itself keeps no task from the garbage collector.
        self._tasks = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        serving = asyncio.start_server(self._serve, host, 0)
        self._server = asyncio.run_coroutine_threadsafe(serving, self._loop).result()
        self.port = self._server.sockets[0].getsockname()[1]

    @property
    def origin(self):
        """The address that a browser opens."""
        return f"http://{self.host}:{self.port}"

    def close(self):
        """Listen no longer."""

        async def end():
            self._server.close()
            waiting = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            request = await _request(reader)
            if request:
                await self._pass(request, writer)
        except (OSError, asyncio.IncompleteReadError):
            # The browser has gone, or the server was killed.
            pass
        finally:
            writer.close()

    async def _pass(self, request, writer):
        method, path = request.split(b" ", 2)[:2]
        fault = self.faults(method.decode(), path.decode())
        self.requests.append((method.decode(), path.decode()))
        await asyncio.sleep(fault.seconds)
        if fault.lost == "request":
            await self._ask(request[: len(request) // 2], is_whole=False)
            return
        for _ in range(1 + fault.is_sent_twice):
            answer = await self._ask(request)
        await asyncio.sleep(fault.seconds)
        if fault.lost == "all of the answer":
            return
        await _send(writer, answer[: len(answer) // 2] if fault.lost == "answer" else answer, fault.bytes_a_second)

    async def _ask(self, request, *, is_whole=True):
        reader, writer = await asyncio.open_connection(*self._target)
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read() if is_whole else b""
        finally:
            writer.close()


async def _request(reader):
    """Return the request of a connection, to be the only one; empty where the browser opens one ahead."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    fields = {line.partition(b":")[0].lower(): line for line in lines}
    length = int(fields.get(b"content-length", b":0").partition(b":")[2])
    fields[b"connection"] = b"Connection: close"
    return b"\r\n".join([first, *fields.values(), b"", b""]) + await reader.readexactly(length)


async def _send(writer, answer, bytes_a_second):
    block = bytes_a_second // 10 or len(answer) or 1
    for start in range(0, len(answer), block):
        writer.write(answer[start : start + block])
        await writer.drain()
        if bytes_a_second:
            await asyncio.sleep(0.1)
