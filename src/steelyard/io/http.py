"""Requests to servers: addresses, API keys, and one JSON request bounded in time and size.

Every request of this project goes through `post`. A server may never finish, answer with gigabytes, or repeat the key
that it was sent: a key is sent in one header and written nowhere. HTTP client libraries bound a single read but neither
a whole response nor its size, so that this is written on `http.client`.
"""

import base64
import html
import http.client
import io
import json
import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPSConnection
from typing import Any, NamedTuple, cast
from urllib.parse import SplitResult, parse_qsl, quote, urlsplit

import msgspec

from steelyard.core.errors import ConfigError

_RETRIABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_MAX_WAIT_SECONDS = 60.0
_MAX_DETAIL = 2000
_MAX_HEADER_BYTES = 1 << 17
_SAFE = "/%:@!$&'()*+,;=~?"
HIDDEN = "[key]"
_MIN_KEY_LENGTH = 4
_SECRET_NAME = re.compile(r"(?i).*(key|token|secret|password|signature|auth|credential)s?|sig|pwd|pass")


class Key:
    """The API key of a server, or none. Neither `str` nor `repr` shows it."""

    def __init__(self, value: str | None = None) -> None:
        self._value = value
        self._spellings = None if value is None else _spellings(value)

    def headers(self) -> dict[str, str]:
        """Return the authorisation header; empty without a key."""
        return {} if self._value is None else {"Authorization": f"Bearer {self._value}"}

    def redact(self, value: Any) -> Any:
        """Return a text, or JSON with texts in it, with the key replaced in each of its encodings."""
        if self._spellings is None:
            return value
        if isinstance(value, str):
            return self._spellings.sub(HIDDEN, value)
        if isinstance(value, dict):
            return {self.redact(name): self.redact(inner) for name, inner in value.items()}
        return [self.redact(inner) for inner in value] if isinstance(value, list) else value

    def __repr__(self) -> str:
        return f"Key({'' if self._value is None else HIDDEN})"


def read_key(variable: str | None, *, where: str) -> Key:
    """Return the key in an environment variable; null without a variable.

    Raises ConfigError for a variable that is not set or does not hold a key; its value is never shown.
    """
    if variable is None:
        return Key()
    value = os.environ.get(variable, "").strip()
    if not value:
        raise ConfigError(f"there is no environment variable {variable!r}", where=where, do="set it to the key")
    if len(value) < _MIN_KEY_LENGTH or not value.isascii() or not value.isprintable() or " " in value:
        problem = f"the environment variable {variable!r} does not hold a key"
        raise ConfigError(problem, where=where, allowed=f"{_MIN_KEY_LENGTH} or more ASCII characters without spaces")
    return Key(value)


def check_address(url: str, *, where: str) -> None:
    """Raise ConfigError unless the URL is an http address without a password or a key.

    Addresses are written into records. The error does not repeat the address.
    """
    parts = _split(url)
    if parts is None:
        raise ConfigError("this is no address of a server", where=where, allowed="http://HOST:PORT/PATH, or https")
    part = where.partition(".")[0]
    do = f"put the key into an environment variable, and name that: --set {part}.secret=VARIABLE"
    if "@" in parts.netloc:
        raise ConfigError("the address holds a user name or password, and addresses are recorded", where=where, do=do)
    if any(_SECRET_NAME.fullmatch(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True)):
        raise ConfigError("the address holds a key, and addresses are recorded", where=where, do=do)


class RequestLimits(NamedTuple):
    """Limits and key of a request.

    ``timeout_seconds`` bounds each read, ``total_seconds`` a request with all its tries. ``wait_seconds`` is the first
    wait between tries, doubled each time. ``max_bytes`` bounds a response.
    """

    timeout_seconds: float
    num_tries: int
    wait_seconds: float
    key: Key
    total_seconds: float = 600.0
    max_bytes: int = 16 << 20


class HttpReply(NamedTuple):
    """A server's JSON response, or the reason for its absence.

    ``reason``: ``unreachable``, ``timeout``, ``too_large``, ``empty``, ``malformed``, ``http_404`` and so on.
    """

    value: Any
    reason: str | None = None
    detail: str = ""


class _Attempt(NamedTuple):
    """One try: its reply, whether a retry may succeed, and the wait that the server requests before it."""

    reply: HttpReply
    is_retriable: bool = False
    wait_seconds: float = 0.0


class _TooLarge(Exception):  # noqa: N818 - becomes the reason of a reply
    """The response is larger than allowed."""


def post(
    url: str, request: Any, limits: RequestLimits, *, is_empty: Callable[[Any], bool] = lambda value: False
) -> HttpReply:
    """Send a request, and retry after a transient failure until a response, the last try or the end of the time.

    ``is_empty`` recognises a response of status 200 without content; it is retried.
    """
    body = json.dumps(request, ensure_ascii=False).encode()
    deadline = time.monotonic() + limits.total_seconds
    reply = HttpReply(None, "unreachable")
    for number in range(1, limits.num_tries + 1):
        reply, is_retriable, server_wait = _try(url, body, limits, deadline, is_empty)
        wait = min(max(limits.wait_seconds * 2 ** (number - 1), server_wait), _MAX_WAIT_SECONDS)
        if not is_retriable or number == limits.num_tries or time.monotonic() + wait >= deadline:
            break
        time.sleep(wait)
    return HttpReply(reply.value, reply.reason, limits.key.redact(reply.detail)[:_MAX_DETAIL])


def _try(url: str, body: bytes, limits: RequestLimits, deadline: float, is_empty: Callable[[Any], bool]) -> _Attempt:
    try:
        status, content, server_wait = _exchange(url, body, limits, deadline)
    except _TooLarge:
        return _Attempt(HttpReply(None, "too_large", f"the answer is longer than {limits.max_bytes:,} bytes"))
    except TimeoutError:
        is_over = time.monotonic() >= deadline
        seconds = limits.total_seconds if is_over else limits.timeout_seconds
        detail = f"{'no whole answer' if is_over else 'no answer'} in {seconds:g} s"
        return _Attempt(HttpReply(None, "timeout", detail), is_retriable=not is_over)
    except (OSError, http.client.HTTPException) as error:
        return _Attempt(HttpReply(None, "unreachable", str(error)), is_retriable=True)
    if 200 <= status < 300:
        return _read(content, limits.key, is_empty)
    reply = HttpReply(None, f"http_{status}", _error_text(content, limits.key))
    return _Attempt(reply, status in _RETRIABLE, server_wait)


def _read(content: bytes, key: Key, is_empty: Callable[[Any], bool]) -> _Attempt:
    """Decode the body of a successful response."""
    if not content.strip():
        return _Attempt(HttpReply(None, "empty", "no body"), is_retriable=True)
    try:
        value = key.redact(msgspec.json.decode(content))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _Attempt(HttpReply(None, "malformed", str(error)))
    if is_empty(value):
        return _Attempt(HttpReply(value, "empty", "no text"), is_retriable=True)
    return _Attempt(HttpReply(value))


def _error_text(content: bytes, key: Key) -> str:
    """Return the text of an error response. JSON is decoded first, since its escapes can hide the key."""
    try:
        return json.dumps(key.redact(msgspec.json.decode(content)), ensure_ascii=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return content.decode(errors="replace")


def _exchange(url: str, body: bytes, limits: RequestLimits, deadline: float) -> tuple[int, bytes, float]:
    """Return the status, the body, and the wait in seconds that the server requests. Redirects are not followed.

    No proxy is used: environment variables must not decide where prompts are sent.
    """
    parts = urlsplit(url)
    seconds = min(limits.timeout_seconds, deadline - time.monotonic())
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
        connection.sock = _TimedSocket(connection.sock, limits, deadline)
        path = quote(f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}", safe=_SAFE)
        connection.request("POST", path, body, headers | limits.key.headers())
        with connection.getresponse() as response:
            content = response.read(limits.max_bytes + 1)
            if len(content) > limits.max_bytes:
                raise _TooLarge
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)
            return response.status, content, _seconds(response.getheader("Retry-After"))
    finally:
        connection.close()


def _seconds(text: str | None) -> float:
    """Parse a ``Retry-After`` header in seconds; a date, or anything else, is 0."""
    return float(text) if text is not None and re.fullmatch(r"\d{1,6}(\.\d{1,6})?", text.strip()) else 0.0


class _TimedSocket:
    """The part of a socket that http.client uses, with a deadline and a byte count for the whole response."""

    def __init__(self, wrapped: socket.socket, limits: RequestLimits, deadline: float) -> None:
        self.wrapped = wrapped
        self.limits = limits
        self.deadline = deadline

    def sendall(self, data: bytes) -> None:
        self.set_timeout()
        self.wrapped.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(cast(io.RawIOBase, _TimedReader(self)))

    def close(self) -> None:
        self.wrapped.close()

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
        self.num_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self.timed.set_timeout()
        number = cast(io.RawIOBase, self.raw).readinto(buffer)
        self.num_bytes += number or 0
        # Twice the size: a server may send each byte in its own chunk, which adds five bytes.
        if self.num_bytes > 2 * self.timed.limits.max_bytes + _MAX_HEADER_BYTES:
            raise _TooLarge
        return number

    def close(self) -> None:
        self.raw.close()
        super().close()


def _split(url: str) -> SplitResult | None:
    """Return the parts of an http address, null for anything else."""
    try:
        parts = urlsplit(url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if is_address and not any(sign.isspace() or not sign.isprintable() for sign in url) else None


def _spellings(value: str) -> re.Pattern[str]:
    """Match the key in the encodings in which servers repeat their input, in upper or lower case."""
    whole = "".join(f"(?:{'|'.join(_encodings(sign))})" for sign in value)
    encoded = [base64.b64encode(text.encode()).decode().rstrip("=") for text in (value, f"Bearer {value}", f":{value}")]
    return re.compile("|".join([whole, *map(re.escape, encoded)]), re.IGNORECASE)


def _encodings(sign: str) -> list[str]:
    """Return the spellings of one ASCII character: plain, escaped, and as in URLs, JSON and HTML."""
    code = ord(sign)
    spellings = [sign, f"\\{sign}", f"%{code:02x}", f"\\u{code:04x}", f"&#{code};", f"&#x{code:x};", html.escape(sign)]
    return [re.escape(spelling) for spelling in dict.fromkeys(spellings)]
