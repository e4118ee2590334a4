"""Parts that chats behind a server share: the settings, the pace of requests, refusals, and what is logged of it.

A chat adds how a request is sent and how a response is read. The first retry and the first failure of each reason are
logged: a server that is silent for minutes looks like a stopped program.
"""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing
from threading import Lock

import msgspec

from steelyard.core.comparison import Reply, Request
from steelyard.core.config import Config, Positive
from steelyard.core.errors import ModelError
from steelyard.io.addresses import check_address, read_key
from steelyard.io.connections import Connections, RequestLimits
from steelyard.io.dispatch import Finished, dispatch
from steelyard.io.http import Attempt, HttpReply, attempt
from steelyard.io.pacing import RequestPace
from steelyard.io.progress import log

_CONFIGURATION_ERRORS = tuple(f"http_{status}" for status in (301, 302, 303, 307, 308, 401, 402, 403, 404, 405))
_MAX_REMARKS = 10
_PROBE_SECONDS = 10.0
_VERSION = re.compile(r"/v\d+$")


class ServedConfig(Config, frozen=True):
    """``base_url`` is the address up to ``/v1``; ``model`` the name by which the server knows the model.

    ``workers``, the times and the tries change no reply.
    """

    base_url: str
    """The address of the server, up to /v1."""
    model: str
    """The name of the model on the server."""
    secret: str | None = None
    """The NAME of the environment variable that holds the key; the key is never written."""
    name: str | None = None
    """The name in the judgments. Default: the model's name."""
    workers: Positive = 64
    """The largest number of requests at a time: it begins at 8, and follows what the server bears."""
    timeout_seconds: float = 120.0
    """The longest silence of the server, in seconds."""
    total_seconds: float = 600.0
    """The longest time for one request with all its tries, in seconds."""
    num_tries: Positive = 5
    """Number of tries of a request that fails, in all."""
    wait_seconds: float = 0.5
    """The wait before the second try, in seconds; it doubles with each further try, unless the server asks for more."""
    longest_wait_seconds: float = 60.0
    """The longest wait to which it doubles, in seconds."""

    def __post_init__(self) -> None:
        check_address(self.base_url, where="chat.base_url")


class ServedChat(ABC):
    """A Chat behind a server. The detail of a failed request begins with its reason.

    Reasons are ``timeout``, ``unreachable``, ``too_large``, ``empty``, ``malformed``, ``http_500`` and so on.
    """

    def __init__(self, config: ServedConfig) -> None:
        self.server = config
        self.name = config.name or config.model
        self.address = config.base_url.rstrip("/")
        self.was_answered = False
        self.limits = RequestLimits(
            timeout_seconds=config.timeout_seconds,
            num_tries=config.num_tries,
            wait_seconds=config.wait_seconds,
            key=read_key(config.secret, where="chat.secret"),
            total_seconds=config.total_seconds,
            longest_wait_seconds=config.longest_wait_seconds,
        )
        self._slots: int | None = None
        self._logged: set[str] = set()
        self._lock = Lock()

    def url(self, path: str) -> str:
        """Return the address of an endpoint; a query of the server's address stays behind it."""
        address, sign, query = self.address.partition("?")
        return f"{address.rstrip('/')}/{path}{sign}{query}"

    @abstractmethod
    def send(self, request: Request, connections: Connections, deadline: float) -> Attempt:
        """Send a request once, to end before ``deadline`` of `time.monotonic`."""

    @abstractmethod
    def read(self, request: Request, response: HttpReply) -> Reply | None:
        """Return the reply that a response is; null for a failure without more to say than its reason."""

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, as they come.

        Raises ModelError where no server answers, or where it refuses the address, the model or the key.
        """
        pace = RequestPace(min(self.server.workers, self._slots or self.server.workers))
        with closing(dispatch(requests, self._sent, self.limits, pace, self._log_retry)) as finished:
            for request in finished:
                yield self._logged_reply(self._reply(request))

    def num_slots(self) -> int | None:
        """Return the number of slots of a llama.cpp server, which get as many requests at a time from then on.

        Null for any other server. It is requested (``GET /props``) without encryption only: services on the internet
        have other servers, or a proxy in front.
        """
        if not self.address.startswith("http://"):
            return None
        url = f"{_VERSION.sub('', self.address)}/props"
        limits = self.limits._replace(timeout_seconds=min(self.limits.timeout_seconds, _PROBE_SECONDS))
        with closing(Connections()) as connections:
            reply = attempt(url, None, limits, connections, deadline=time.monotonic() + _PROBE_SECONDS).reply
        slots = reply.value.get("total_slots") if reply.reason is None and isinstance(reply.value, dict) else None
        self._slots = slots if type(slots) is int and slots > 0 else None
        return self._slots

    def _sent(self, request: Request, connections: Connections, deadline: float) -> Attempt:
        """Send a request. Raises ModelError where no request can succeed."""
        tried = self.send(request, connections, deadline)
        response = tried.reply
        if tried.waits.pause > self.server.total_seconds:
            problem = f"the server asks to wait {tried.waits.pause:,.0f} s: an allowance is used up"
            do = "run the same again then, or set chat.total_seconds to more"
            raise ModelError(problem, where=self.server.base_url, do=do)
        if response.reason in _CONFIGURATION_ERRORS:
            problem = f"the server answers {response.reason.removeprefix('http_')} ({response.detail[:300]})"
            raise ModelError(problem, where=self.server.base_url, do="check chat.base_url, chat.model and chat.secret")
        self.was_answered = self.was_answered or response.reason != "unreachable"
        return tried

    def _reply(self, finished: Finished[Request]) -> Reply:
        request, response = finished.job, finished.reply
        if response.reason == "unreachable" and not self.was_answered:
            problem = f"no server answers ({response.detail})"
            raise ModelError(problem, where=self.server.base_url, do="start it, or check chat.base_url")
        reply = self.signed_reply(request, response)
        # The tokens of an empty reply are known, and counted as those of a failed one.
        is_counted = response.reason is not None and reply.prompt_tokens is not None
        tries = finished.unanswered_tries - is_counted
        return msgspec.structs.replace(reply, seconds=round(finished.seconds, 3), unanswered_tries=tries)

    def signed_reply(self, request: Request, response: HttpReply) -> Reply:
        """Return the reply that a response is, with the server's address and the seed that was sent."""
        reply = self.read(request, response)
        if reply is None:
            reply = Reply(request=request.id, failure="failed", detail=f"{response.reason}: {response.detail[:300]}")
        return msgspec.structs.replace(reply, endpoint=self.address, seed=request.question.seed)

    def _logged_reply(self, reply: Reply) -> Reply:
        """Return the reply; each oddity of the server is logged once."""
        if reply.model is not None and reply.model != self.server.model:
            self._log_once(
                f"{self.name}: the server was asked for {self.server.model!r} and answers as {reply.model!r}"
            )
        if reply.odd_usage is not None:
            self._log_once(f"{self.name}: impossible numbers of tokens are not counted ({reply.odd_usage})")
        if reply.failure == "failed":
            self._log_once(f"{self.name}: a request failed ({reply.detail}); further ones are counted")
        return reply

    def _log_retry(self, response: HttpReply, number: int) -> None:
        what = f"try {number} of {self.server.num_tries}; {response.detail[:200]}".rstrip("; ")
        self._log_once(f"{self.name}: {response.reason}, asking again ({what})")

    def _log_once(self, remark: str) -> None:
        about = remark.partition("(")[0]
        with self._lock:
            is_new = about not in self._logged and len(self._logged) < _MAX_REMARKS
            self._logged.add(about)
        if is_new:
            log(remark)
