"""The client of a chat server: bounded requests in flight, tried again where that can help; a failure is no reply."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import msgspec

from steelyard.core.comparison import Question, Reply, Request
from steelyard.core.errors import ModelError
from steelyard.io import exchange
from steelyard.io.credentials import read_key
from steelyard.io.progress import log
from steelyard.plugins.chats._completion import is_empty, read_completion
from steelyard.plugins.chats.openai_compatible import Config, described

_ASKED_WRONGLY = ("http_401", "http_403", "http_404", "http_405")
_BYTES_ALWAYS, _BYTES_PER_TOKEN = 1 << 20, 4096
"""What a reply may measure: each token may come with the log-probabilities of twenty others."""


class OpenAICompatible:
    """A Chat. Requests that fail have ``timeout``, ``unreachable``, ``too_large``, ``empty``, ``malformed``,
    ``http_500`` and so on in front of their detail.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.name or config.model
        self.was_answered = False
        self._told: set[str] = set()
        self._url = config.base_url.rstrip("/") + "/chat/completions"
        self._manner = exchange.Manner(
            timeout_seconds=config.timeout_seconds,
            num_tries=config.num_tries,
            wait_seconds=config.wait_seconds,
            key=read_key(config.secret, where="chat.secret"),
            total_seconds=config.total_seconds,
        )

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, as they come. Raises ModelError where no server answers, or it is asked wrongly."""
        waiting, running = iter(requests), set[Future[Reply]]()
        with ThreadPoolExecutor(self.config.workers) as pool:
            try:
                while True:
                    room = self.config.workers - len(running)
                    running |= {pool.submit(self._asked, one) for one in islice(waiting, room)}
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield self._checked(future.result())
            finally:
                pool.shutdown(cancel_futures=True)

    def protocol(self) -> dict[str, Any]:
        """The server, the model and the temperature."""
        return described(self.config)

    def _asked(self, request: Request) -> Reply:
        manner = self._manner._replace(max_bytes=_BYTES_ALWAYS + _BYTES_PER_TOKEN * request.question.max_tokens)
        found = exchange.post(self._url, self._body(request.question), manner, is_empty=is_empty)
        if found.reason in _ASKED_WRONGLY:
            said = f"the server answers {found.reason.removeprefix('http_')} ({found.detail[:300]})"
            raise ModelError(said, where=self.config.base_url, do="check chat.base_url, chat.model and chat.secret")
        if found.reason == "unreachable" and not self.was_answered:
            said = f"no server answers ({found.detail})"
            raise ModelError(said, where=self.config.base_url, do="start it, or check chat.base_url")
        self.was_answered = self.was_answered or found.reason != "unreachable"
        if found.reason is None:
            return read_completion(request, found.value)
        if '"content_filter"' in found.detail and found.reason.startswith("http_4"):
            return Reply(request=request.id, failure="refused", detail=f"content filter: {found.detail[:300]}")
        return Reply(request=request.id, failure="failed", detail=f"{found.reason}: {found.detail[:300]}")

    def _body(self, question: Question) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.config.model,
            "messages": msgspec.to_builtins(question.messages),
            self.config.token_limit: question.max_tokens,
        }
        if self.config.temperature is not None:
            body["temperature"] = self.config.temperature
        if question.alternatives:
            body |= {"logprobs": True, "top_logprobs": question.alternatives}
        return body | self.config.extra

    def _checked(self, reply: Reply) -> Reply:
        """The reply; what is odd about its server is told once each."""
        if reply.model is not None and reply.model != self.config.model:
            self._tell(f"{self.name}: the server was asked for {self.config.model!r} and answers as {reply.model!r}")
        if reply.odd_usage is not None:
            self._tell(f"{self.name}: impossible numbers of tokens are not counted ({reply.odd_usage})")
        return reply

    def _tell(self, remark: str) -> None:
        about = remark.partition("(")[0]
        if about not in self._told and len(self._told) < _MOST_REMARKS:
            self._told.add(about)
            log(remark)


_MOST_REMARKS = 10
