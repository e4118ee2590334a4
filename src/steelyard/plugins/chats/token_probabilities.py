"""Servers that give the probabilities of chosen next tokens: a verdict for one prefill, without a generated token.

vLLM's ``/generative_scoring`` gives the probability of the first label alone, so that each label takes a request, whose
prompt is cached after the first; a prompt over its limit is truncated without an error. SGLang's ``/v1/score`` gives
all labels at once. Written from vLLM's ``entrypoints/openai/generative_scoring/serving.py`` (0a37052d) and SGLang's
``entrypoints/openai/protocol.py``. Prompts are sent as token ids, so that the server neither adds nor changes any.
"""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.core.comparison import TOO_LONG, Alternative, Question, Reply, Request
from steelyard.core.errors import ConfigError, MissingPartError, ModelError
from steelyard.core.protocols import Chat
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.io.connections import Connections
from steelyard.io.http import Attempt, HttpReply, attempt
from steelyard.plugins.chats._served import ServedChat, ServedConfig

_ROUNDING = 1e-6
"""Excess over 1 that rounding may give the probabilities of a server."""


class Config(ServedConfig, frozen=True):
    """``base_url`` is the address up to ``/v1``; ``model`` the name by which the server knows the model.

    The judge's form has to be ``first_token``: nothing is generated, so that no reason can be read.
    """

    server: Literal["vllm", "sglang"] = "vllm"
    """The server's protocol: vLLM's /generative_scoring or SGLang's /v1/score."""
    tokenizer: str | None = None
    """The folder of the model's tokenizer; without one vLLM gives the tokens."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.server == "sglang" and self.tokenizer is None:
            problem = "SGLang does not render conversations as tokens"
            raise ConfigError(problem, where="chat.tokenizer", do="name the folder of the model's tokenizer")


def build(config: Config) -> Chat:
    """Return the client; nothing is sent yet. Raises ConfigError without the key, ModelError without a tokenizer."""
    return TokenProbabilities(config)


class _Tokens(msgspec.Struct):
    """The answer of ``/tokenize``."""

    tokens: list[int]
    max_model_len: int | None = None


class _ItemScore(msgspec.Struct):
    score: float


class _TokenCount(msgspec.Struct):
    prompt_tokens: int | None = None


class _Response(msgspec.Struct):
    """The answer of either server: ``data`` by vLLM, ``scores`` by SGLang."""

    data: list[_ItemScore] | None = None
    scores: list[list[float]] | None = None
    model: str | None = None
    usage: _TokenCount | None = None


class _Refused(Exception):  # noqa: N818 - becomes the failure of one reply
    """A question that cannot be asked, or an answer that cannot be trusted."""


class _Failed(Exception):  # noqa: N818 - becomes the attempt's own reply
    """An exchange without a response."""

    def __init__(self, tried: Attempt) -> None:
        super().__init__()
        self.tried = tried


class _Exchanges(NamedTuple):
    """The connections of one try and the time by which it has to end."""

    connections: Connections
    deadline: float


class TokenProbabilities(ServedChat):
    """A Chat that replies with the likeliest label and the probabilities of all, and writes no other token.

    Its run ends with a ModelError where the server does not tell how many tokens it read, or read fewer than were sent.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.config = config
        self._root = self.address.removesuffix("/v1")
        self._tokenizer = None if config.tokenizer is None else _loaded_tokenizer(config.tokenizer)
        self._label_ids: dict[str, int] = {}

    def protocol(self) -> JsonObject:
        """Return what decides the replies: the protocol, the server and the model."""
        return {
            "chat": "token_probabilities",
            "server": self.config.server,
            "model": self.config.model,
            "base_url": self.address,
        }

    def send(self, request: Request, connections: Connections, deadline: float) -> Attempt:
        """Ask for the probabilities of the labels; the attempt's value is the reply."""
        try:
            return Attempt(HttpReply(self._scored(request, _Exchanges(connections, deadline))))
        except _Failed as failed:
            return failed.tried
        except _Refused as problem:
            return Attempt(HttpReply(Reply(request=request.id, failure="failed", detail=str(problem))))

    def read(self, request: Request, response: HttpReply) -> Reply | None:
        """Return the reply that `send` made."""
        return response.value if response.reason is None else None

    def _scored(self, request: Request, exchanges: _Exchanges) -> Reply:
        labels = request.question.labels
        if not labels:
            raise _Refused("no_labels: nothing is generated here; say judge.form=first_token")
        ids = self._prompt_ids(request.question, exchanges)
        label_ids = [self._label_id(label, exchanges) for label in labels]
        if self.config.server == "sglang":
            probabilities = self._all_at_once(ids, label_ids, exchanges)
        else:
            probabilities = [self._first_of(ids, label, exchanges) for label in label_ids]
        # Log-probabilities and NaN are no probabilities of different tokens.
        is_likely = all(0 <= value <= 1 + _ROUNDING for value in probabilities)
        if not is_likely or sum(probabilities) > 1 + _ROUNDING * len(probabilities):
            listed = ", ".join(f"{value:g}" for value in probabilities)
            raise _Refused(f"malformed: no probabilities of different tokens ({listed})")
        likely = [(label, value) for label, value in zip(labels, probabilities, strict=True) if value > 0]
        best = max(range(len(labels)), key=probabilities.__getitem__)
        return Reply(
            request=request.id,
            text=labels[best],
            first_token=tuple(Alternative(token=label, logprob=math.log(value)) for label, value in likely),
            prompt_tokens=len(ids),
            reply_tokens=0,
        )

    def _first_of(self, ids: Sequence[int], label: int, exchanges: _Exchanges) -> float:
        """Return the probability of one label from vLLM, which scores the first label of a request alone."""
        body = {"query": [*ids[:-1]], "items": [[ids[-1]]], "label_token_ids": [label], "apply_softmax": False}
        response = self._exchange(f"{self._root}/generative_scoring", body, exchanges)
        self._check_length(response, len(ids))
        if response.data is None or len(response.data) != 1:
            raise _Refused("malformed: no single score for a single item")
        return response.data[0].score

    def _all_at_once(self, ids: Sequence[int], labels: Sequence[int], exchanges: _Exchanges) -> list[float]:
        body = {"query": [*ids[:-1]], "items": [[ids[-1]]], "label_token_ids": [*labels], "apply_softmax": False}
        response = self._exchange(f"{self._root}/v1/score", body, exchanges)
        self._check_length(response, len(ids))
        if response.scores is None or [len(row) for row in response.scores] != [len(labels)]:
            raise _Refused(f"malformed: not one row of {len(labels)} scores")
        return response.scores[0]

    def _check_length(self, response: _Response, num_sent: int) -> None:
        """Raise ModelError unless the server read every token: verdicts on truncated answers would look like others."""
        num_read = None if response.usage is None else response.usage.prompt_tokens
        if num_read is None:
            problem = "the server does not tell how many tokens it read, and may truncate"
            raise ModelError(problem, where=self.config.base_url, do="use a version of the server that counts tokens")
        if num_read < num_sent:
            problem = f"the server read {num_read:,} of {num_sent:,} tokens: it truncates without an error"
            do = "start it with a longer context, or leave out the longest responses"
            raise ModelError(problem, where=self.config.base_url, do=do)

    def _prompt_ids(self, question: Question, exchanges: _Exchanges) -> list[int]:
        """Return the tokens of the conversation up to where the reply begins."""
        if self._tokenizer is not None:
            from steelyard.networks.rendering import TemplateFailure, tokenise, write

            try:
                written = write(
                    self._tokenizer, self._tokenizer.chat_template, question.messages, add_generation_prompt=True
                )
                return tokenise(self._tokenizer, written, add=False).ids
            except TemplateFailure as error:
                raise _Refused(f"template: {error}") from error
        body = {"messages": msgspec.to_builtins(question.messages), "add_generation_prompt": True}
        rendered = self._tokens(body, exchanges)
        if rendered.max_model_len is not None and len(rendered.tokens) > rendered.max_model_len:
            raise _Refused(f"{TOO_LONG}: {len(rendered.tokens):,} tokens; the server reads {rendered.max_model_len:,}")
        return rendered.tokens

    def _label_id(self, label: str, exchanges: _Exchanges) -> int:
        """Return the token of a label. Raises ModelError for one of several tokens: the first says too little."""
        if label in self._label_ids:
            return self._label_ids[label]
        if self._tokenizer is not None:
            ids = self._tokenizer(label, add_special_tokens=False).input_ids
        else:
            ids = self._tokens({"prompt": label, "add_special_tokens": False}, exchanges).tokens
        if len(ids) != 1:
            problem = f"the label {label!r} is {len(ids)} tokens of this model"
            raise ModelError(
                problem,
                where=self.config.model,
                do=Advice("use ", Remedy("chat.kind", "openai_compatible"), ", which writes the label"),
            )
        self._label_ids[label] = ids[0]
        return ids[0]

    def _tokens(self, body: JsonObject, exchanges: _Exchanges) -> _Tokens:
        value = self._value(f"{self._root}/tokenize", body, exchanges)
        try:
            rendered = msgspec.convert(value, _Tokens)
        except msgspec.ValidationError as error:
            raise _Refused(f"malformed: {error}") from error
        if not rendered.tokens:
            raise _Refused("malformed: no tokens")
        return rendered

    def _exchange(self, url: str, body: JsonObject, exchanges: _Exchanges) -> _Response:
        try:
            return msgspec.convert(self._value(url, body, exchanges), _Response)
        except msgspec.ValidationError as error:
            raise _Refused(f"malformed: {error}") from error

    def _value(self, url: str, body: JsonObject, exchanges: _Exchanges) -> Any:
        tried = attempt(
            url, {"model": self.config.model} | body, self.limits, exchanges.connections, deadline=exchanges.deadline
        )
        if tried.reply.reason is not None:
            raise _Failed(tried)
        return tried.reply.value


def _loaded_tokenizer(folder: str) -> Any:
    """Return the tokenizer of a folder. Raises ModelError without one or without a chat template."""
    try:
        from transformers.models.auto import AutoTokenizer
    except ModuleNotFoundError as error:
        problem = f"tokenizers need a package that is not installed ({error.name})"
        raise MissingPartError(problem, do="pip install 'steelyard[train]'") from error
    from steelyard.networks.pretrained import load_pretrained

    try:
        tokenizer = load_pretrained(AutoTokenizer, folder)
    except (OSError, ValueError, KeyError) as error:
        problem = f"cannot be loaded as a tokenizer ({str(error).splitlines()[0]})"
        raise ModelError(problem, where=folder, do="name the model's folder") from error
    if not isinstance(tokenizer.chat_template, str):
        raise ModelError("the tokenizer has no chat template", where=folder, do="name the folder of a chat model")
    return tokenizer
