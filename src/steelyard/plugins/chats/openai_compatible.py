"""Any server that speaks OpenAI's chat completions: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, and most others.

Requests in flight are bounded, and tried again where that can help. The body of a completion is read strictly: a body
of another shape is a failure, never an answer.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.comparison import Alternative, Failure, Question, Reply, Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ModelError
from steelyard.core.protocols import Chat
from steelyard.core.types import JsonObject, Meta
from steelyard.io.http import RequestLimits, check_address, post, read_key
from steelyard.io.progress import log

_CONFIGURATION_ERRORS = ("http_401", "http_403", "http_404", "http_405")
_BYTES_ALWAYS, _BYTES_PER_TOKEN = 1 << 20, 4096
"""The size limit of a reply: each token may come with the log-probabilities of twenty others."""
_MAX_REMARKS = 10


_LONGEST_TOKEN = 128
"""The longest token in characters: public vocabularies have runs of spaces of this length."""
_MOST_TEMPLATE, _MOST_OVER = 10_000, 1_000


class Config(BaseConfig, frozen=True):
    """``base_url`` is the address up to ``/v1``; ``model`` the name by which the server knows the model.

    ``extra`` goes into every request unchanged, for example ``{chat_template_kwargs = {enable_thinking = false}}``.
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
    temperature: float | None = 0.0
    """The sampling temperature; none for the server's."""
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The server's name for the longest reply; newer models of OpenAI refuse max_tokens."""
    extra: Meta = msgspec.field(default_factory=dict)
    """Keys that are added to every request."""
    workers: int = 8
    """The number of requests at a time."""
    timeout_seconds: float = 120.0
    """The longest silence of the server, in seconds."""
    total_seconds: float = 600.0
    """The longest time for one request with all its tries, in seconds."""
    num_tries: int = 5
    """How often a request that failed is tried in all."""
    wait_seconds: float = 0.5
    """The wait before the second try, in seconds; it doubles with each further try."""

    def __post_init__(self) -> None:
        check_address(self.base_url, where="chat.base_url")


def build(config: Config) -> Chat:
    """Return the client; nothing is sent yet. Raises ConfigError without the key."""
    return OpenAICompatible(config)


class OpenAICompatible:
    """A Chat. The detail of a failed request begins with its reason.

    Reasons are ``timeout``, ``unreachable``, ``too_large``, ``empty``, ``malformed``, ``http_500`` and so on.
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.name or config.model
        self.was_answered = False
        self._logged: set[str] = set()
        self._url = config.base_url.rstrip("/") + "/chat/completions"
        self._limits = RequestLimits(
            timeout_seconds=config.timeout_seconds,
            num_tries=config.num_tries,
            wait_seconds=config.wait_seconds,
            key=read_key(config.secret, where="chat.secret"),
            total_seconds=config.total_seconds,
        )

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, as they come.

        Raises ModelError where no server answers, or where it refuses the address, the model or the key.
        """
        waiting, running = iter(requests), set[Future[Reply]]()
        with ThreadPoolExecutor(self.config.workers) as pool:
            try:
                while True:
                    room = self.config.workers - len(running)
                    running |= {pool.submit(self._reply, request) for request in islice(waiting, room)}
                    if not running:
                        return
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield self._checked(future.result())
            finally:
                pool.shutdown(cancel_futures=True)

    def protocol(self) -> JsonObject:
        """Return what decides the replies: the server, the model, the temperature and the extra keys."""
        return {
            "chat": "openai_compatible",
            "model": self.config.model,
            "base_url": self.config.base_url.rstrip("/"),
            "temperature": self.config.temperature,
            "extra": self.config.extra,
        }

    def _reply(self, request: Request) -> Reply:
        limits = self._limits._replace(max_bytes=_BYTES_ALWAYS + _BYTES_PER_TOKEN * request.question.max_tokens)
        response = post(self._url, self._body(request.question), limits, is_empty=is_empty)
        if response.reason in _CONFIGURATION_ERRORS:
            problem = f"the server answers {response.reason.removeprefix('http_')} ({response.detail[:300]})"
            raise ModelError(problem, where=self.config.base_url, do="check chat.base_url, chat.model and chat.secret")
        if response.reason == "unreachable" and not self.was_answered:
            problem = f"no server answers ({response.detail})"
            raise ModelError(problem, where=self.config.base_url, do="start it, or check chat.base_url")
        self.was_answered = self.was_answered or response.reason != "unreachable"
        if response.reason is None:
            return read_completion(request, response.value)
        if '"content_filter"' in response.detail and response.reason.startswith("http_4"):
            return Reply(request=request.id, failure="refused", detail=f"content filter: {response.detail[:300]}")
        return Reply(request=request.id, failure="failed", detail=f"{response.reason}: {response.detail[:300]}")

    def _body(self, question: Question) -> JsonObject:
        body: JsonObject = {
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
        """Return the reply; each oddity of the server is logged once."""
        if reply.model is not None and reply.model != self.config.model:
            self._log_once(
                f"{self.name}: the server was asked for {self.config.model!r} and answers as {reply.model!r}"
            )
        if reply.odd_usage is not None:
            self._log_once(f"{self.name}: impossible numbers of tokens are not counted ({reply.odd_usage})")
        return reply

    def _log_once(self, remark: str) -> None:
        about = remark.partition("(")[0]
        if about not in self._logged and len(self._logged) < _MAX_REMARKS:
            self._logged.add(about)
            log(remark)


class _Top(msgspec.Struct):
    token: str
    logprob: float


class _Token(msgspec.Struct):
    token: str
    logprob: float
    top_logprobs: list[_Top] = []


class _Logprobs(msgspec.Struct):
    content: list[_Token] | None = None


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None
    role: Literal["assistant"] = "assistant"


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: Any = None


class _Usage(NamedTuple):
    """Token counts of the server, null where it gives none; ``odd`` names impossible ones."""

    prompt: int | None
    written: int | None
    odd: str | None


def is_empty(body: Any) -> bool:
    """Return whether a body is a completion without a choice, or without a text and a reason for its absence."""
    try:
        completion = msgspec.convert(body, _Completion)
    except msgspec.ValidationError:
        return False
    return not completion.choices or _is_silent(completion.choices[0])


def read_completion(request: Request, body: Any) -> Reply:
    """Return the first choice as a reply. A body of another shape, or one without a choice or a text, is a failure."""
    try:
        completion = msgspec.convert(body, _Completion)
    except msgspec.ValidationError as error:
        return Reply(request=request.id, failure="failed", detail=f"malformed: {error}")
    if not completion.choices:
        return Reply(request=request.id, failure="failed", detail="empty: no choices")
    choice, usage = completion.choices[0], _usage(completion.usage, request.question)
    failure, detail = _failure(choice, usage, request.question.max_tokens)
    return Reply(
        request=request.id,
        text=choice.message.content,
        failure=failure,
        detail=detail,
        first_token=_first_token(choice.logprobs),
        prompt_tokens=usage.prompt,
        reply_tokens=usage.written,
        model=completion.model,
        odd_usage=usage.odd,
    )


def _usage(usage: Any, question: Question) -> _Usage:
    """Return the plausible counts; an implausible one is left out, since counts are summed over all replies.

    A prompt has at most as many tokens as bytes, plus the template's; servers may write some tokens over the limit.
    """
    counts = usage if isinstance(usage, dict) else {}
    num_bytes = sum(len(message.content.encode(errors="replace")) for message in question.messages)
    most = {"prompt_tokens": num_bytes + _MOST_TEMPLATE, "completion_tokens": 2 * question.max_tokens + _MOST_OVER}
    odd = [] if usage is None or isinstance(usage, dict) else [f"usage: {str(usage)[:40]}"]
    numbers: list[int | None] = []
    for name, limit in most.items():
        value = counts.get(name)
        is_count = type(value) is int and 0 <= value <= limit
        numbers.append(value if is_count else None)
        if value is not None and not is_count:
            odd.append(f"{name}: {str(value)[:40]}")
    return _Usage(numbers[0], numbers[1], ", ".join(odd) or None)


def _failure(choice: _Choice, usage: _Usage, max_tokens: int) -> tuple[Failure | None, str | None]:
    if choice.message.refusal or choice.finish_reason == "content_filter":
        return "refused", choice.message.refusal or "content filter"
    is_full = usage.written is not None and usage.written >= max_tokens
    # Some servers give no reason for the end; then the number of tokens has to tell.
    if choice.finish_reason == "length" or (choice.finish_reason is None and is_full):
        return "cut off", f"at {max_tokens} tokens"
    if _is_silent(choice):
        return "failed", f"empty: no text ({choice.finish_reason})"
    if choice.message.content is not None and len(choice.message.content) > _LONGEST_TOKEN * (max_tokens + 1):
        return "failed", f"too_large: {len(choice.message.content):,} characters for {max_tokens} tokens"
    return None, None


def _is_silent(choice: _Choice) -> bool:
    """Return whether the text is missing without a reason; a first token can be read without it."""
    is_explained = choice.message.refusal or choice.finish_reason in ("length", "content_filter") or choice.logprobs
    return not (choice.message.content or "").strip() and not is_explained


def _first_token(logprobs: _Logprobs | None) -> tuple[Alternative, ...] | None:
    """Return the likely first tokens, including the written one; spellings of one word are separate tokens."""
    if logprobs is None or not logprobs.content:
        return None
    first = logprobs.content[0]
    tokens: list[Any] = [*first.top_logprobs]
    if first.token not in [token.token for token in tokens]:
        tokens.append(first)
    return tuple(Alternative(token=token.token, logprob=token.logprob) for token in tokens)
