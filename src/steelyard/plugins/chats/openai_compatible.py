"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, and most others.

The body of a completion is read strictly: a body of another shape is a failure, never an answer.
"""

import re
from functools import partial
from typing import Any, Literal

import msgspec

from steelyard.core.comparison import TOO_LONG, Question, Reply, Request
from steelyard.core.protocols import Chat
from steelyard.core.types import JsonObject, Meta
from steelyard.io.connections import Connections
from steelyard.io.http import Attempt, HttpReply, attempt, decoded_reply
from steelyard.plugins.chats._completion import is_empty, read_completion
from steelyard.plugins.chats._served import ServedChat, ServedConfig

_OVER_CONTEXT = (
    "exceed_context_size",
    "context_length_exceeded",
    "maximum context length",
    "longer than the model's context",
)
"""Answers of servers with status 400 to a prompt over their context: llama.cpp, OpenAI, vLLM and SGLang."""
_VERSION = re.compile(r"/(v\d+)$")
_BYTES_ALWAYS, _BYTES_PER_TOKEN = 1 << 20, 4096
"""The size limit of a reply: each token may come with the log-probabilities of twenty others."""


class Config(ServedConfig, frozen=True):
    """``base_url`` is the address up to ``/v1``; ``model`` the name by which the server knows the model.

    ``extra`` goes into every request unchanged, for example ``{chat_template_kwargs = {enable_thinking = false}}``.
    ``workers``, the times and the tries change no reply.
    """

    temperature: float | None = 0.0
    """The sampling temperature; none for the server's."""
    top_p: float | None = None
    """The share of probability of the likeliest tokens that are sampled from; none for the server's."""
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The server's name for the longest reply; newer models of OpenAI refuse max_tokens."""
    extra: Meta = msgspec.field(default_factory=dict)
    """Keys that are added to every request."""
    keeps_empty: bool = False
    """Take a reply without a text as an answer, as `sample` counts it; otherwise the request is sent again."""


def build(config: Config) -> Chat:
    """Return the client; nothing is sent yet. Raises ConfigError without the key."""
    return OpenAICompatible(config)


class OpenAICompatible(ServedChat):
    """A Chat by chat completions."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.config = config
        self._is_empty = partial(is_empty, keeps_empty=config.keeps_empty)

    def protocol(self) -> JsonObject:
        """Return what decides the replies: the server, the model, the temperature and the extra keys."""
        protocol: JsonObject = {
            "chat": "openai_compatible",
            "model": self.config.model,
            "base_url": self.address,
            "temperature": self.config.temperature,
            "extra": self.config.extra,
        }
        # Absent where it is not set: the ids of requests stay those of ledgers from before this setting.
        return protocol | ({} if self.config.top_p is None else {"top_p": self.config.top_p})

    def send(self, request: Request, connections: Connections, deadline: float) -> Attempt:
        """Send a question as a chat completion of one choice."""
        limits = self.limits._replace(max_bytes=_BYTES_ALWAYS + _BYTES_PER_TOKEN * request.question.max_tokens)
        url, body = self.url("chat/completions"), self._body(request.question)
        return attempt(url, body, limits, connections, deadline=deadline, is_empty=self._is_empty)

    def read(self, request: Request, response: HttpReply) -> Reply | None:
        """Return the reply of a completion; a refusal by the server's filter of contents is one."""
        if response.reason is None:
            return read_completion(request, response.value, keeps_empty=self.config.keeps_empty)
        if response.reason == "empty" and response.value is not None:
            # A reply without a text is billed.
            return read_completion(request, response.value)
        if '"content_filter"' in response.detail and response.reason.startswith("http_4"):
            return Reply(request=request.id, failure="refused", detail=f"content filter: {response.detail[:300]}")
        if response.reason == "http_400" and any(sign in response.detail for sign in _OVER_CONTEXT):
            return Reply(request=request.id, failure="failed", detail=f"{TOO_LONG}: {response.detail[:300]}")
        return None

    def batch_request(self, request: Request) -> tuple[str, JsonObject]:
        """Return the path of the endpoint, from the version on, and the body that `send` sends."""
        version = _VERSION.search(self.address)
        return f"/{version[1] if version else 'v1'}/chat/completions", self._body(request.question)

    def batch_reply(self, request: Request, status: int, body: Any) -> Reply:
        """Return the reply of a response in a batch's results, as `ask` reads it."""
        return self.signed_reply(request, decoded_reply(status, body, self.limits.key, is_empty=self._is_empty))

    def _body(self, question: Question) -> JsonObject:
        body: JsonObject = {
            "model": self.config.model,
            "messages": msgspec.to_builtins(question.messages),
            self.config.token_limit: question.max_tokens,
        }
        if self.config.temperature is not None:
            body["temperature"] = self.config.temperature
        if self.config.top_p is not None:
            body["top_p"] = self.config.top_p
        if question.seed is not None:
            body["seed"] = question.seed
        if question.alternatives:
            body |= {"logprobs": True, "top_logprobs": question.alternatives}
        return body | self.config.extra
