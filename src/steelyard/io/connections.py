"""Exchanges with servers over connections that are kept, each bounded in time and size.

A server may never finish, answer with gigabytes, or send a response twice. HTTP client libraries bound a single read
but neither a whole response nor its size, so that this is written on `http.client`.
"""

import http.client
import io
import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from functools import cache
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

from steelyard.io.addresses import Key

_MAX_HEADER_BYTES = 1 << 17
_SAFE = "/%:@!$&'()*+,;=~?"


class RequestLimits(NamedTuple):
    """Limits and key of a request.

    ``timeout_seconds`` bounds each read, ``total_seconds`` a request with all its tries. ``wait_seconds`` is the first
    wait between tries, doubled each time up to ``longest_wait_seconds``. ``max_bytes`` bounds a response.
    """

    timeout_seconds: float
    num_tries: int
    wait_seconds: float
    key: Key
    total_seconds: float = 600.0
    max_bytes: int = 16 << 20
    longest_wait_seconds: float = 60.0


class HttpResponse(NamedTuple):
    """A whole response; the names of the headers are in lower case."""

    status: int
    content: bytes
    headers: Mapping[str, str]


class TooLarge(Exception):  # noqa: N818 - becomes the reason of a reply
    """The response is larger than allowed."""


class _Stale(Exception):  # noqa: N818 - the request is sent again on a new connection
    """A kept connection was closed by the server, or may hold the reply to another request (``repeated``)."""

    def __init__(self, repeated: bytes | None = None) -> None:
        super().__init__()
        self.repeated = repeated


class Connections:
    """Connections to servers, kept for the next request. Threads may share it; `close` ends every exchange.

    No proxy is used: environment variables must not decide where prompts are sent. Redirects are not followed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        self._all: set[_Connection] = set()
        self._is_closed = False
        self._allows_repeats = False

    def exchange(self, url: str, body: bytes | None, limits: RequestLimits, deadline: float) -> HttpResponse:
        """Send a body by POST, or null by GET, and return the response.

        A kept connection that turns out to be closed is replaced at once.

        A server that sends a response twice would answer the next request with it. A response equal to the last one on
        its connection is therefore asked for again on a new one; where that is equal too, the server's replies are.
        """
        repeated: bytes | None = None
        while True:
            connection = self._take(url, is_new=repeated is not None)
            is_kept = False
            try:
                response = connection.exchange(url, body, limits, deadline, allows_repeats=self._allows_repeats)
                is_kept = connection.is_reusable
            except _Stale as error:
                repeated = repeated or error.repeated
                continue
            finally:
                self._give_back(connection, is_kept=is_kept)
            self._allows_repeats = self._allows_repeats or response.content == repeated
            return response

    def close(self) -> None:
        """Close every connection, also those in use: a request that waits on one gets an error."""
        with self._lock:
            self._is_closed = True
            connections = list(self._all)
        for connection in connections:
            connection.interrupt()
        for connection in self._idle:
            connection.close()

    def _take(self, url: str, *, is_new: bool) -> "_Connection":
        origin = urlsplit(url)[:2]
        with self._lock:
            if self._is_closed:
                raise ConnectionAbortedError("closed")
            while self._idle and not is_new:
                connection = self._idle.pop()
                if connection.origin == origin and connection.is_fresh():
                    return connection
                self._all.discard(connection)
                connection.close()
            connection = _Connection(origin)
            self._all.add(connection)
            return connection

    def _give_back(self, connection: "_Connection", *, is_kept: bool) -> None:
        with self._lock:
            if is_kept and not self._is_closed:
                self._idle.append(connection)
                return
            self._all.discard(connection)
        connection.close()


class _Connection:
    """A connection to one server. ``is_reusable``: the last response ended where it said, and the server keeps it."""

    def __init__(self, origin: tuple[str, str]) -> None:
        self.origin = origin
        self.is_reusable = False
        self._connection: HTTPConnection | None = None
        self._num_exchanges = 0
        self._last_content = b""

    def exchange(
        self, url: str, body: bytes | None, limits: RequestLimits, deadline: float, *, allows_repeats: bool
    ) -> HttpResponse:
        """Send a body by POST, or null by GET, and return the response.

        Raises _Stale where a kept connection ends before a response begins, or without ``allows_repeats`` where the
        response is the one before.
        """
        self.is_reusable = False
        timed = _TimedSocket(self._socket(url, limits, deadline), limits, deadline)
        self._num_exchanges += 1
        try:
            timed.sendall(_head(url, body, limits.key) + (body or b""))
            response = HTTPResponse(cast(socket.socket, timed), method="GET" if body is None else "POST")
            response.begin()
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            if self._num_exchanges > 1 and not timed.num_bytes:
                raise _Stale from error
            raise
        try:
            content = response.read(limits.max_bytes + 1)
            if len(content) > limits.max_bytes:
                raise TooLarge
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            headers = {name.lower(): value for name, value in response.headers.items()}
            will_close = response.will_close
        finally:
            response.close()
        if response.status == http.client.OK:
            if content and content == self._last_content and not allows_repeats:
                raise _Stale(content)
            self._last_content = content
        self.is_reusable = not will_close and not timed.has_rest
        return HttpResponse(response.status, content, headers)

    def is_fresh(self) -> bool:
        """Return whether the server has neither closed the connection nor sent what nobody asked for."""
        sock = None if self._connection is None else self._connection.sock
        if sock is None:
            return False
        if isinstance(sock, ssl.SSLSocket) and sock.pending():
            return False
        poll = select.poll()
        poll.register(sock, select.POLLIN)
        return not poll.poll(0)

    def interrupt(self) -> None:
        """Make the thread that waits on this connection go on, with an error."""
        sock = None if self._connection is None else self._connection.sock
        if sock is not None:
            try:
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                return  # not connected any more

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _socket(self, url: str, limits: RequestLimits, deadline: float) -> socket.socket:
        if self._connection is None:
            parts = urlsplit(url)
            seconds = min(limits.timeout_seconds, deadline - time.monotonic())
            if seconds <= 0:
                raise TimeoutError
            host = parts.hostname or ""
            self._connection = (
                HTTPSConnection(host, parts.port, timeout=seconds, context=_tls())
                if parts.scheme == "https"
                else HTTPConnection(host, parts.port, timeout=seconds)
            )
            self._connection.connect()
        if self._connection.sock is None:
            raise ConnectionAbortedError("closed")
        return self._connection.sock


@cache
def _tls() -> ssl.SSLContext:
    # Reading the system's certificates takes tens of milliseconds.
    return ssl.create_default_context()


def _head(url: str, body: bytes | None, key: Key) -> bytes:
    """Return the head of a POST request with a JSON body, or of a GET request without one."""
    parts = urlsplit(url)
    path = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_SAFE)
    headers = {
        "Host": parts.netloc.encode("idna").decode() if not parts.netloc.isascii() else parts.netloc,
        "Accept-Encoding": "identity",
        "Accept": "application/json",
    } | key.headers()
    if body is not None:
        headers |= {"Content-Length": str(len(body)), "Content-Type": "application/json"}
    lines = [
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
        *(f"{name}: {value}" for name, value in headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode("ascii")


class _TimedSocket:
    """The part of a socket that http.client uses, with a deadline and a byte count for one whole response."""

    def __init__(self, wrapped: socket.socket, limits: RequestLimits, deadline: float) -> None:
        self.wrapped = wrapped
        self.limits = limits
        self.deadline = deadline
        self.num_bytes = 0
        self.has_rest = False

    def sendall(self, content: bytes) -> None:
        self.set_timeout()
        self.wrapped.sendall(content)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return _Reader(_TimedReader(self))

    def set_timeout(self) -> None:
        """Limit the next operation to the remaining time."""
        seconds = min(self.limits.timeout_seconds, self.deadline - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        self.wrapped.settimeout(seconds)


class _TimedReader(io.RawIOBase):
    """A reader that stops a slow trickle at the deadline and a flood at the size limit."""

    def __init__(self, timed: _TimedSocket) -> None:
        super().__init__()
        self.timed = timed
        self.raw = timed.wrapped.makefile("rb", buffering=0)
        self.is_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.is_ended:
            return 0
        self.timed.set_timeout()
        number = cast(io.RawIOBase, self.raw).readinto(buffer) or 0
        self.timed.num_bytes += number
        # Twice the size: a server may send each byte in its own chunk, which adds five bytes.
        if self.timed.num_bytes > 2 * self.timed.limits.max_bytes + _MAX_HEADER_BYTES:
            raise TooLarge
        return number

    def close(self) -> None:
        self.raw.close()
        super().close()


class _Reader(io.BufferedReader):
    """The reader of one response. Bytes beyond its end answer no request: they end the connection's use."""

    def close(self) -> None:
        if not self.closed:
            raw = cast(_TimedReader, self.raw)
            raw.is_ended = True
            raw.timed.has_rest = bool(self.peek(1))
        super().close()
