"""Send a server one JSON question and read its answer: bounded in time and size, and without our key in its words.

Every request of this project goes through `post`. A server is as foreign as a file: it may never end, answer with
gigabytes, or repeat the key that it was sent.
"""

import http.client
import io
import json
import re
import socket
import ssl
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

import msgspec

from steelyard.io.credentials import Key

_TRY_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
_LONGEST_DETAIL = 2000
_ROOM_FOR_HEADERS = 1 << 17
_SAFE = "/%:@!$&'()*+,;=~?"


class Manner(NamedTuple):
    """How a server is asked.

    ``timeout_seconds`` bounds each silence, ``total_seconds`` a question with all its tries, ``wait_seconds`` is the
    first wait between tries (then twice as long each time), ``max_bytes`` bounds an answer.
    """

    timeout_seconds: float
    num_tries: int
    wait_seconds: float
    key: Key
    total_seconds: float = 600.0
    max_bytes: int = 16 << 20


class Reply(NamedTuple):
    """A server's answer, or why there is none.

    ``reason``: ``unreachable``, ``timeout``, ``too_large``, ``empty``, ``malformed``, ``http_404`` and so on.
    """

    value: Any
    reason: str | None = None
    detail: str = ""


class _Attempt(NamedTuple):
    """One try: its reply, whether another may do better, and how long the server asks to wait before it."""

    reply: Reply
    may_pass: bool = False
    wait_seconds: float = 0.0


class _TooLarge(Exception):  # noqa: N818 - an answer, told as a reason
    """More bytes than are allowed."""


def post(url: str, question: Any, manner: Manner, *, is_empty: Callable[[Any], bool] = lambda value: False) -> Reply:
    """Ask, and ask again after a failure that may pass, until an answer, the last try or the end of the time.

    ``is_empty`` says that an answer of status 200 is none; it is asked for again.
    """
    body = json.dumps(question, ensure_ascii=False).encode()
    deadline = time.monotonic() + manner.total_seconds
    reply = Reply(None, "unreachable")
    for number in range(1, manner.num_tries + 1):
        reply, may_pass, asked_wait = _try(url, body, manner, deadline, is_empty)
        wait = min(max(manner.wait_seconds * 2 ** (number - 1), asked_wait), _LONGEST_WAIT)
        if not may_pass or number == manner.num_tries or time.monotonic() + wait >= deadline:
            break
        time.sleep(wait)
    return Reply(reply.value, reply.reason, manner.key.redact(reply.detail)[:_LONGEST_DETAIL])


def _try(url: str, body: bytes, manner: Manner, deadline: float, is_empty: Callable[[Any], bool]) -> _Attempt:
    try:
        status, content, asked_wait = _exchange(url, body, manner, deadline)
    except _TooLarge:
        return _Attempt(Reply(None, "too_large", f"the answer is longer than {manner.max_bytes:,} bytes"))
    except TimeoutError:
        is_over = time.monotonic() >= deadline
        seconds = manner.total_seconds if is_over else manner.timeout_seconds
        detail = f"{'no whole answer' if is_over else 'no answer'} in {seconds:g} s"
        return _Attempt(Reply(None, "timeout", detail), may_pass=not is_over)
    except (OSError, http.client.HTTPException) as error:
        return _Attempt(Reply(None, "unreachable", str(error)), may_pass=True)
    if 200 <= status < 300:
        return _read(content, manner.key, is_empty)
    reply = Reply(None, f"http_{status}", _words(content, manner.key))
    return _Attempt(reply, status in _TRY_AGAIN, asked_wait)


def _read(content: bytes, key: Key, is_empty: Callable[[Any], bool]) -> _Attempt:
    """Read the body of an answer that the server calls good."""
    if not content.strip():
        return _Attempt(Reply(None, "empty", "no body"), may_pass=True)
    try:
        value = key.redact(msgspec.json.decode(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _Attempt(Reply(None, "malformed", str(error)))
    if is_empty(value):
        return _Attempt(Reply(value, "empty", "no text"), may_pass=True)
    return _Attempt(Reply(value))


def _words(content: bytes, key: Key) -> str:
    """Return what an error says: JSON is read first, since its escapes can spell the key in other letters."""
    try:
        return json.dumps(key.redact(msgspec.json.decode(content)), ensure_ascii=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content.decode(errors="replace")


def _exchange(url: str, body: bytes, manner: Manner, deadline: float) -> tuple[int, bytes, float]:
    """Return the status, the body, and the seconds that the server asks to wait. Redirects are not followed.

    No proxy is used: what the environment says of proxies must not decide where prompts are sent.
    """
    parts = urlsplit(url)
    seconds = min(manner.timeout_seconds, deadline - time.monotonic())
    if seconds <= 0:
        raise TimeoutError
    host = parts.hostname or ""
    connection = (
        HTTPSConnection(host, parts.port, timeout=seconds, context=ssl.create_default_context())
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=seconds)
    )
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
    try:
        connection.connect()
        connection.sock = _TimedSocket(connection.sock, manner, deadline)
        path = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_SAFE)
        connection.request("POST", path, body, headers | manner.key.headers())
        with connection.getresponse() as response:
            content = response.read(manner.max_bytes + 1)
            if len(content) > manner.max_bytes:
                raise _TooLarge
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return response.status, content, _seconds(response.getheader("Retry-After"))
    finally:
        connection.close()


def _seconds(text: str | None) -> float:
    """Read a ``Retry-After`` in seconds; a date, or anything else, is 0."""
    return float(text) if text is not None and re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text.strip()) else 0.0


class _TimedSocket:
    """The part of a socket that http.client uses; what it reads is counted, and ends with the question's time."""

    def __init__(self, wrapped: socket.socket, manner: Manner, deadline: float) -> None:
        self.wrapped = wrapped
        self.manner = manner
        self.deadline = deadline

    def sendall(self, data: bytes) -> None:
        self.set_timeout()
        self.wrapped.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(cast(io.RawIOBase, _TimedReader(self)))

    def close(self) -> None:
        self.wrapped.close()

    def set_timeout(self) -> None:
        """Allow the next operation what is left of the time."""
        seconds = min(self.manner.timeout_seconds, self.deadline - time.monotonic())
        if seconds <= 0:
            raise TimeoutError
        self.wrapped.settimeout(seconds)


class _TimedReader(io.RawIOBase):
    """Reads from the socket; a slow drip cannot go on beyond the time, nor a flood beyond the size."""

    def __init__(self, timed: _TimedSocket) -> None:
        super().__init__()
        self.timed = timed
        self.raw = timed.wrapped.makefile("rb", buffering=0)
        self.num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.timed.set_timeout()
        number = cast(io.RawIOBase, self.raw).readinto(buffer)
        self.num_bytes += number or 0
        # Twice the size: a server may send each byte in a chunk of its own, which costs five more.
        if self.num_bytes > 2 * self.timed.manner.max_bytes + _ROOM_FOR_HEADERS:
            raise _TooLarge
        return number

    def close(self) -> None:
        self.raw.close()
        super().close()
