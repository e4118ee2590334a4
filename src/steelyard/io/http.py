"""JSON requests to servers, one try at a time. Every failure has a reason, and no detail has a key.

Every request of this project goes through `attempt`.
"""

import codecs
import http.client
import json
import random
import socket
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from steelyard.io.addresses import Key
from steelyard.io.connections import Connections, HttpResponse, RequestLimits, TooLarge
from steelyard.io.pacing import ServerWaits, server_waits

_RETRIABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_REFUSALS = frozenset({429, 503, 529})
_NEVER_SENT = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
"""Errors of a connection before anything was sent over it."""
_MAX_DETAIL = 2000
_MAX_BEGIN, _MAX_SHOWN = 10_000, 80


class HttpReply(NamedTuple):
    """A server's JSON response, or the reason for its absence.

    ``reason``: ``unreachable``, ``timeout``, ``too_large``, ``empty``, ``malformed``, ``http_404`` and so on.
    """

    value: Any
    reason: str | None = None
    detail: str = ""


class Attempt(NamedTuple):
    """One try: its reply, whether another may succeed, and the waits that the server asks for.

    ``is_refused``: the server had no room for the request, or did not answer in time. ``is_unanswered``: the server may
    have computed an answer, and bill it, but none could be read.
    """

    reply: HttpReply
    is_retriable: bool = False
    is_refused: bool = False
    waits: ServerWaits = ServerWaits()
    is_unanswered: bool = False


def retry_wait(limits: RequestLimits, num_tries: int, tried: Attempt) -> float:
    """Return the seconds before the next try: doubled with each, and at least what the server asks for.

    Up to half is added at random, which keeps requests that failed together from coming back together.
    """
    doubled = min(limits.wait_seconds * 2.0 ** (num_tries - 1), limits.longest_wait_seconds)
    return max(doubled, tried.waits.retry_after) + doubled * random.random() / 2


def attempt(
    url: str,
    request: Any,
    limits: RequestLimits,
    connections: Connections,
    *,
    deadline: float,
    is_empty: Callable[[Any], bool] = lambda value: False,
) -> Attempt:
    """Send a request once, to end before ``deadline`` of `time.monotonic`: by POST, or null by GET.

    The reply holds no key.
    """
    body = None if request is None else json.dumps(request, ensure_ascii=False).encode(errors="surrogatepass")
    try:
        response = connections.exchange(url, body, limits, deadline)
    except TooLarge:
        detail = f"the answer is longer than {limits.max_bytes:,} bytes"
        return Attempt(HttpReply(None, "too_large", detail), is_unanswered=True)
    except TimeoutError:
        is_over = time.monotonic() >= deadline
        seconds = limits.total_seconds if is_over else limits.timeout_seconds
        detail = f"{'no whole answer' if is_over else 'no answer'} in {seconds:g} s"
        reply = HttpReply(None, "timeout", detail)
        return Attempt(reply, is_retriable=not is_over, is_refused=True, is_unanswered=True)
    except (OSError, http.client.HTTPException, ValueError) as error:
        detail = limits.key.redact(str(error))[:_MAX_DETAIL]
        is_unanswered = not isinstance(error, _NEVER_SENT)
        return Attempt(HttpReply(None, "unreachable", detail), is_retriable=True, is_unanswered=is_unanswered)
    is_refused = response.status in _REFUSALS
    waits = server_waits(response.headers, is_refused=is_refused, now=datetime.now(UTC))
    if 200 <= response.status < 300:
        return _read(response, limits.key, is_empty)._replace(waits=waits)
    detail = _error_text(response.content, limits.key)
    if 300 <= response.status < 400 and (location := response.headers.get("location")):
        detail = f"it redirects to {limits.key.redact(location)}; {detail}".rstrip("; ")
    reply = _refusal(response.status, detail)
    return Attempt(reply, response.status in _RETRIABLE, is_refused, waits)


def decoded_reply(status: int, body: Any, key: Key, *, is_empty: Callable[[Any], bool]) -> HttpReply:
    """Return what `attempt` does of a response that came in another way: its status and its decoded body."""
    value = key.redact(body)
    if not 200 <= status < 300:
        return _refusal(status, json.dumps(value, ensure_ascii=False))
    return _content(value, is_empty)


def _refusal(status: int, detail: str) -> HttpReply:
    return HttpReply(None, f"http_{status}", detail[:_MAX_DETAIL])


def _content(value: Any, is_empty: Callable[[Any], bool]) -> HttpReply:
    return HttpReply(value, "empty", "no text") if is_empty(value) else HttpReply(value)


def _read(response: HttpResponse, key: Key, is_empty: Callable[[Any], bool]) -> Attempt:
    """Decode the body of a successful response."""
    content = response.content.removeprefix(codecs.BOM_UTF8)
    if not content.strip():
        return Attempt(HttpReply(None, "empty", "no body"), is_retriable=True, is_unanswered=True)
    try:
        value = key.redact(msgspec.json.decode(content))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        kind = " ".join(response.headers.get(f"content-{name}", "") for name in ("type", "encoding")).strip()
        begin = key.redact(content[:_MAX_BEGIN].decode(errors="replace"))[:_MAX_SHOWN]
        reply = HttpReply(None, "malformed", f"{error}; {kind or 'the body'} begins {begin!r}")
        # A body that was cut on its way is whole the next time.
        return Attempt(reply, is_retriable=True, is_unanswered=True)
    except RecursionError as error:
        return Attempt(HttpReply(None, "malformed", str(error)), is_unanswered=True)
    reply = _content(value, is_empty)
    is_empty_reply = reply.reason is not None
    return Attempt(reply, is_retriable=is_empty_reply, is_unanswered=is_empty_reply)


def _error_text(content: bytes, key: Key) -> str:
    """Return the text of an error response. JSON is decoded first, since its escapes can hide the key."""
    try:
        return json.dumps(key.redact(msgspec.json.decode(content)), ensure_ascii=False)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return key.redact(content.decode(errors="replace"))
