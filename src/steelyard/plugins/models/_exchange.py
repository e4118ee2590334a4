"""One JSON question to a server and its answer: retried where that can help, and never guessed at."""

import http.client
import json
import time
import urllib.error
import urllib.request
from typing import Any, NamedTuple

_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0


class Manner(NamedTuple):
    """How a server is asked: how often and how long one waits, and what proves that one may ask."""

    timeout_seconds: float
    num_tries: int
    wait_seconds: float
    token: str | None = None


class Reply(NamedTuple):
    """A server's answer, or why there is none: ``unreachable``, ``timeout``, ``malformed``, ``http_404`` and so on."""

    value: Any
    reason: str | None = None
    detail: str = ""


def post(url: str, question: Any, manner: Manner) -> Reply:
    """Ask, and ask again after a failure that may pass, twice as long each time between the tries."""
    body = json.dumps(question, ensure_ascii=False).encode()
    reply = Reply(None, "unreachable")
    for number in range(manner.num_tries):
        if number:
            time.sleep(min(manner.wait_seconds * 2 ** (number - 1), _LONGEST_WAIT))
        reply, may_pass = _once(url, body, manner)
        if not may_pass:
            break
    return reply


def _once(url: str, body: bytes, manner: Manner) -> tuple[Reply, bool]:
    """The answer, and whether it is a failure that may pass."""
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if manner.token is not None:
        headers["Authorization"] = f"Bearer {manner.token}"
    request = urllib.request.Request(url, data=body, headers=headers, method="POST")
    # No proxy: what the environment says of proxies must not decide where prompts are sent.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=manner.timeout_seconds) as response:
            return _decoded(response.read()), False
    except urllib.error.HTTPError as error:
        with error:
            detail = error.read(2000).decode(errors="replace")
        return Reply(None, f"http_{error.code}", detail), error.code in _TRY_AGAIN
    except TimeoutError as error:
        return Reply(None, "timeout", str(error)), True
    except urllib.error.URLError as error:
        reason = "timeout" if isinstance(error.reason, TimeoutError) else "unreachable"
        return Reply(None, reason, str(error.reason)), True
    except (OSError, http.client.HTTPException) as error:
        return Reply(None, "unreachable", str(error)), True


def _decoded(body: bytes) -> Reply:
    try:
        return Reply(json.loads(body))
    except ValueError as error:
        return Reply(None, "malformed", str(error))
