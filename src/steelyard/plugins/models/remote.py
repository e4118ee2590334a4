"""A reward model behind an HTTP server (vLLM, SGLang, TEI, OpenRLHF, LLaMA-Factory, slime), each in its dialect.

Conversations are rendered here by the rules of a local model where ``tokenizer`` names the model's own, and sent as
tokens where the dialect allows that; else as text, as messages, or as prompt and answer apart.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from steelyard.core.checks import STOPPED, TOO_LONG
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.iteration import batched
from steelyard.core.text import prompt_text, response_text
from steelyard.core.types import Case, JsonObject, Message, Response, Scores
from steelyard.io.addresses import check_address, read_key
from steelyard.io.connections import Connections, RequestLimits
from steelyard.io.dispatch import dispatch
from steelyard.io.http import Attempt, HttpReply, attempt
from steelyard.io.pacing import RequestPace
from steelyard.io.progress import InterruptedRun, log
from steelyard.plugins.models._dialects import DIALECTS, Content, Dialect, Malformed, Send, ServedModel, ServerItem

if TYPE_CHECKING:
    from steelyard.networks.conversation import Rendering

_CASES_AT_A_TIME = 64
_CONFIGURATION_ERRORS = ("http_401", "http_403", "http_404", "http_405")


class Config(BaseConfig, frozen=True):
    """Settings of the client. ``batch_size``, ``workers`` and the times change no score."""

    url: str
    """The address of the server, with or without the path of the dialect."""
    dialect: Literal[
        "vllm_classify",
        "vllm_pooling",
        "sglang",
        "sglang_embeddings",
        "tei_predict",
        "tei_rerank",
        "openrlhf",
        "llamafactory",
        "slime",
    ]
    """The protocol of the server."""
    model: str | None = None
    """The name of the model on the server."""
    tokenizer: str | None = None
    """The folder of the model's tokenizer, to render conversations here and not on the server."""
    chat_template: str | None = None
    """With tokenizer: the chat template. Default: the tokenizer's own."""
    strip: bool = False
    """Remove white space at the end of the text."""
    max_length: Positive = 2048
    """The limit of a text in tokens."""
    send: Literal["tokens", "text", "messages", "pair"] | None = None
    """The form sent. Default: tokens, text, messages or pair, as the dialect and the settings allow."""
    label: int | None = None
    """Which number is the reward where a server gives several; -1 is the last."""
    task: str | None = None
    """The pooling task of vLLM."""
    secret: str | None = None
    """The NAME of the environment variable that holds the key; the key is never written."""
    batch_size: Positive = 16
    """The number of answers in a request."""
    workers: Positive = 4
    """The number of requests at a time."""
    timeout_seconds: float = 60.0
    """The longest silence of the server, in seconds."""
    total_seconds: float = 600.0
    """The longest time for one request with all its tries, in seconds."""
    num_tries: Positive = 4
    """Number of tries of a request that fails, in all."""
    wait_seconds: float = 1.0
    """The wait before the second try, in seconds; it doubles with each further try."""

    def __post_init__(self) -> None:
        check_address(self.url, where="model.url")


class Unsent(NamedTuple):
    """An answer that cannot be sent, with the reason."""

    reason: str


def sent_form(config: Config, dialect: Dialect) -> Send:
    """Return the form of the answers sent. Raises ConfigError for one that the dialect or the tokenizer lacks."""
    usual: Send = dialect.sends[0] if config.tokenizer is not None or len(dialect.sends) == 1 else dialect.sends[-1]
    send = config.send or usual
    if send not in dialect.sends:
        allowed = ", ".join(dialect.sends)
        raise ConfigError(f"{config.dialect} is not sent {send}", where="model.send", allowed=allowed)
    if send in ("tokens", "text") and config.tokenizer is None:
        problem = f"{config.dialect} is sent {send}, which needs a tokenizer"
        raise ConfigError(problem, where="model.tokenizer", do="name the folder of the model's own tokenizer")
    return send


class Renderer:
    """Renders answers for a server by the rules of a local model."""

    def __init__(self, config: Config, dialect: Dialect, send: Send) -> None:
        self.send: Send = send
        self.dialect = dialect
        self.tokenizer: Any = None
        self.rendering: Rendering | None = None
        if send in ("tokens", "text"):
            from steelyard.networks.conversation import choose_rendering
            from steelyard.networks.loading import load_tokenizer

            self.tokenizer = load_tokenizer(str(config.tokenizer))
            self.rendering = choose_rendering(
                self.tokenizer,
                config.chat_template,
                model=str(config.tokenizer),
                strip=config.strip,
                max_length=config.max_length,
            )

    @property
    def adds_marks(self) -> bool:
        """Return whether the server should put its tokenizer's marks around a text, where it has that option."""
        return self.send == "text" and self.rendering is not None and self.rendering.special_tokens == "tokenizer"

    def protocol(self) -> JsonObject:
        """Return how a conversation is rendered; empty where the server renders it."""
        rendering = self.rendering
        if rendering is None:
            return {}
        return {
            "template_hash": rendering.template_hash,
            "special_tokens": rendering.special_tokens,
            "strip": rendering.strip,
            "max_length": rendering.max_length,
        }

    def item(self, case: Case, response: Response) -> ServerItem | Unsent:
        """Return the item of an answer, or why it cannot be sent."""
        content = self._content(case, response)
        if isinstance(content, Unsent):
            return content
        return ServerItem(content, prompt_text(case), response_text(response))

    def _content(self, case: Case, response: Response) -> Content | Unsent:
        answer = response.messages or (Message(role="assistant", content=response.text or ""),)
        if self.send == "messages":
            return [{"role": turn.role, "content": turn.content} for turn in (*case.prompt.messages, *answer)]
        if self.send == "pair":
            return Unsent("turns") if response.text is None else response.text
        from steelyard.networks.conversation import encode, render

        assert self.rendering is not None
        encoded = encode(self.tokenizer, self.rendering, case, response)
        if encoded.is_over_length:
            return Unsent(TOO_LONG)
        if self.send == "tokens":
            return list(encoded.ids)
        if encoded.is_repaired:
            return Unsent("marks")
        text = render(self.tokenizer, self.rendering, case, response).text
        return self._with_one_mark(text.rstrip() if self.rendering.strip else text)

    def _with_one_mark(self, text: str) -> str:
        """Return the text for which the server's tokens have one BOS token: the template's or the tokenizer's."""
        bos = self.tokenizer.bos_token
        adds_bos = bool(bos) and self.tokenizer("a").input_ids[:1] == [self.tokenizer.bos_token_id]
        assert self.rendering is not None
        if self.dialect.marks == "always" and adds_bos and self.rendering.special_tokens == "template":
            return text.removeprefix(bos)
        if self.dialect.marks == "never" and self.rendering.special_tokens == "tokenizer":
            return bos + text
        return text


class RequestSlot(NamedTuple):
    """An item with its case's position in the window and its response's id."""

    case: int
    response: str
    item: ServerItem


class Remote:
    """A RewardModel on a server.

    Unscored: ``cut``, ``marks`` (the text spells a special token that the server would obey), ``turns``, ``malformed``,
    ``unreachable``, ``timeout``, ``too_large``, ``empty``, ``http_…``, ``labels`` (several numbers and no ``label``).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.dialect = DIALECTS[config.dialect]
        self.send = sent_form(config, self.dialect)
        self.renderer = Renderer(config, self.dialect, self.send)
        self.url = config.url.rstrip("/").removesuffix(self.dialect.path) + self.dialect.path
        self.served = ServedModel(config.model, config.task, self.renderer.adds_marks)
        self.limits = RequestLimits(
            timeout_seconds=config.timeout_seconds,
            num_tries=config.num_tries,
            wait_seconds=config.wait_seconds,
            key=read_key(config.secret, where="model.secret"),
            total_seconds=config.total_seconds,
        )
        self.pace = RequestPace(config.workers)
        self.was_answered = False
        self._logged: set[str | None] = set()

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """Yield one Scores per case, in order.

        Raises ModelError where no server answers, or where it refuses the address, the model or the key. After a stop
        signal the replies under way are awaited, and InterruptedRun follows on the cases that have one; their answers
        that were not sent have the reason ``stopped``.
        """
        for window in batched(cases, _CASES_AT_A_TIME):
            yield from self._scores(window)

    def protocol(self) -> JsonObject:
        """Return the dialect, the served model, and how conversations are rendered."""
        config = self.config
        return {
            "model": config.model or config.dialect,
            "dialect": config.dialect,
            "send": self.send,
            "label": config.label,
            "task": config.task,
        } | self.renderer.protocol()

    def _scores(self, cases: Sequence[Case]) -> Iterator[Scores]:
        results: list[dict[str, float | str]] = [{} for _ in cases]
        slots: list[RequestSlot] = []
        for place, case in enumerate(cases):
            for response in case.responses:
                item = self.renderer.item(case, response)
                if isinstance(item, Unsent):
                    results[place][response.id] = item.reason
                else:
                    slots.append(RequestSlot(place, response.id, item))
        stop: InterruptedRun | None = None
        try:
            for slot, value in self._answers(self._batches(slots)):
                results[slot.case][slot.response] = value
        except InterruptedRun as error:
            stop = error
            while results and not results[-1]:
                results.pop()
        for case, values in zip(cases, results, strict=stop is None):
            in_order = {response.id: values.get(response.id, STOPPED) for response in case.responses}
            yield Scores(
                prompt=case.prompt.id,
                language=case.prompt.language,
                scores={name: None if isinstance(value, str) else value for name, value in in_order.items()},
                unscored={name: value for name, value in in_order.items() if isinstance(value, str)},
            )
        if stop is not None:
            raise stop

    def _batches(self, slots: Sequence[RequestSlot]) -> list[list[RequestSlot]]:
        size = 1 if self.send == "messages" or self.dialect.is_single else self.config.batch_size
        batches: list[list[RequestSlot]] = []
        for slot in slots:
            is_full = not batches or len(batches[-1]) == size
            if is_full or (self.dialect.is_by_case and batches[-1][0].case != slot.case):
                batches.append([])
            batches[-1].append(slot)
        return batches

    def _answers(self, batches: Sequence[Sequence[RequestSlot]]) -> Iterator[tuple[RequestSlot, float | str]]:
        """Yield a number or a reason for each item; those of a batch that the server refuses are sent alone."""
        refused: list[Sequence[RequestSlot]] = []
        with closing(dispatch(batches, self._sent, self.limits, self.pace, self._log_retry)) as finished:
            for batch, reply, *_ in finished:
                if reply.reason is None:
                    self.was_answered = True
                    yield from zip(batch, self._read(reply.value, batch), strict=True)
                    continue
                self._check(reply)
                if len(batch) > 1 and reply.reason.startswith("http_4"):
                    refused += [[slot] for slot in batch]
                else:
                    yield from ((slot, reply.reason) for slot in batch)
        if refused:
            yield from self._answers(refused)

    def _sent(self, batch: Sequence[RequestSlot], _: Connections, deadline: float) -> Attempt:
        question = self.dialect.question([slot.item for slot in batch], self.served)
        # A new connection: on one that is kept, a reply equal to the last is asked for again, and equal texts
        # have equal rewards.
        with closing(Connections()) as connections:
            return attempt(self.url, question, self.limits, connections, deadline=deadline)

    def _log_retry(self, reply: HttpReply, number: int) -> None:
        """Log the first retry of each reason: a server that is silent for minutes looks like a stopped program."""
        if reply.reason not in self._logged:
            self._logged.add(reply.reason)
            what = f"try {number} of {self.config.num_tries}; {reply.detail[:200]}".rstrip("; ")
            log(f"{self.url}: {reply.reason}, asking again ({what})")

    def _check(self, reply: HttpReply) -> None:
        detail = f" ({reply.detail[:200]})" if reply.detail else ""
        if reply.reason in _CONFIGURATION_ERRORS:
            do = "check model.url, model.dialect, model.model and the secret"
            raise ModelError(f"the server answers {reply.reason}{detail}", where=self.url, do=do)
        if reply.reason == "unreachable" and not self.was_answered:
            raise ModelError(f"no server answers{detail}", where=self.url, do="start it, or check model.url")

    def _read(self, value: Any, batch: Sequence[RequestSlot]) -> list[float | str]:
        try:
            rows = self.dialect.read(value, len(batch))
        except Malformed:
            return ["malformed"] * len(batch)
        texts = {str(slot.item.content) + slot.item.answer for slot in batch}
        if len(texts) > 1 and all(row == [1.0] for row in rows):
            problem = f"the server gives exactly 1 to {len(texts)} different texts: a softmax over one label"
            raise ModelError(
                problem, where=self.url, do="serve the raw logit: this version ignores the request's setting"
            )
        return [self._reward(row) for row in rows]

    def _reward(self, row: Sequence[float]) -> float | str:
        if self.config.label is None:
            return row[0] if len(row) == 1 else "labels"
        return row[self.config.label] if -len(row) <= self.config.label < len(row) else "labels"


def build(config: Config) -> Remote:
    """Return the client; nothing is sent yet. Raises ConfigError for a form that the dialect does not take."""
    return Remote(config)
