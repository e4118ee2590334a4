"""A causal language model in a folder, with its own chat template: greedy or sampling, on this machine, no server."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from steelyard.core.comparison import MODEL_LIMIT, TOO_LONG, Alternative, Reply, Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import MissingPartError, ModelError, Place
from steelyard.core.iteration import batched
from steelyard.core.numerics import derived_seed
from steelyard.core.protocols import Chat
from steelyard.core.remedies import FILE, Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.io.encodings import check_utf8
from steelyard.io.lines import check_text

if TYPE_CHECKING:
    from torch import Tensor


class Config(BaseConfig, frozen=True):
    """``path`` is the model's folder; ``name`` signs the verdicts, the folder's name where it is null.

    ``chat_template`` is a Jinja file for models without one of their own. A row of a batch is padded, which moves the
    last digits and can turn a token that is nearly as likely as another: with ``batch_size=1`` a reply depends on
    nothing but its question. Above ``temperature`` 0 the reply is sampled with the seed of the question, and does not
    depend on the batch either.
    """

    path: str
    """The model's folder."""
    name: str | None = None
    """The name in the judgments. Default: the folder's name."""
    chat_template: str | None = None
    """A Jinja file, for models without a template of their own."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """The number type of the model."""
    batch_size: int = 1
    """The number of questions in a batch; with more than 1, padding can change a reply at temperature 0."""
    temperature: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """The sampling temperature; at 0 every token is the likeliest one."""
    top_p: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    """The share of probability of the likeliest tokens that are sampled from."""


def build(config: Config) -> Chat:
    """Return the model, loaded. Raises ModelError for a folder without a causal language model or a chat template."""
    try:
        return Local(config)
    except ModuleNotFoundError as error:
        problem = f"local models need a package that is not installed ({error.name})"
        raise MissingPartError(problem, do="pip install 'steelyard[train]'") from error


class Local:
    """A Chat. The detail of a failed request begins with its reason: ``template`` (refused roles), ``marks`` or
    ``too_long``.
    """

    def __init__(self, config: Config) -> None:
        from steelyard.networks.devices import best_device, has_slow_bfloat16, widen_products
        from steelyard.networks.loading import load_causal, load_tokenizer

        self.config = config
        self.name = config.name or Path(config.path).name
        if not Path(config.path).is_dir():
            raise ModelError("there is no such model folder", where=config.path, do="download the model first")
        self.tokenizer, model = load_tokenizer(config.path), load_causal(config.path, dtype=config.dtype)
        if has_slow_bfloat16(best_device()):
            widen_products(model)
        self.model = model.to(best_device()).eval()
        self.template = _template(config, self.tokenizer)
        configured = self.model.generation_config.eos_token_id
        marks = [self.tokenizer.eos_token_id, *(configured if isinstance(configured, list) else [configured])]
        self.ends: set[int] = {mark for mark in marks if mark is not None}
        if not self.ends:
            raise ModelError("has no EOS token: its replies would never end", where=self.tokenizer.name_or_path)

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, in order."""
        for window in batched(requests, self.config.batch_size):
            encoded = {request.id: self._encoded(request) for request in window}
            for request in window:
                if isinstance(problem := encoded[request.id], str):
                    yield Reply(request=request.id, failure="failed", detail=problem)
            readable = [(request, ids) for request in window if isinstance(ids := encoded[request.id], list)]
            yield from self._replies(readable)

    def protocol(self) -> JsonObject:
        """Return the model, its template, the number type, and the batch or the settings of sampling."""
        is_sampling = self.config.temperature > 0
        sampling = {"temperature": self.config.temperature, "top_p": self.config.top_p}
        return {
            "chat": "local",
            "model": Path(self.config.path).name,
            "template": hashlib.sha256(self.template.encode()).hexdigest()[:16],
            "dtype": self.config.dtype,
            **(sampling if is_sampling else {"batch_size": self.config.batch_size}),
        }

    def _encoded(self, request: Request) -> list[int] | str:
        """Return the prompt's token ids, or why there are none. Special tokens spelt in a text stay text."""
        from steelyard.networks.rendering import TemplateFailure, tokenise, write

        try:
            written = write(self.tokenizer, self.template, request.question.messages, add_generation_prompt=True)
            ids = tokenise(self.tokenizer, written, add=False).ids
        except TemplateFailure as error:
            return f"template: {error}"
        except ModelError as error:
            return f"marks: {error.problem}"
        limit = self.model.config.get_text_config().to_dict().get("max_position_embeddings")
        if limit is not None and len(ids) + request.question.max_tokens > limit:
            room = f"{len(ids)} tokens and {request.question.max_tokens} for the reply"
            return f"{TOO_LONG}: {room}{MODEL_LIMIT}{limit}"
        return ids

    def _replies(self, encoded: Sequence[tuple[Request, list[int]]]) -> Iterator[Reply]:
        """Yield the replies of a batch; requests with another token limit are batches of their own."""
        for longest in sorted({request.question.max_tokens for request, _ in encoded}):
            group = [(request, ids) for request, ids in encoded if request.question.max_tokens == longest]
            is_sampling = self.config.temperature > 0
            needs_first = not is_sampling or any(request.question.alternatives for request, _ in group)
            first = self._first_logs([ids for _, ids in group]) if needs_first else [None] * len(group)
            written = (
                self._sampled(group, longest) if is_sampling else self._written([ids for _, ids in group], longest)
            )
            for (request, ids), row, logs in zip(group, written, first, strict=True):
                is_whole = bool(row) and row[-1] in self.ends
                text = self.tokenizer.decode(row, skip_special_tokens=True)
                yield Reply(
                    request=request.id,
                    text=text,
                    failure=None if is_whole else "cut off",
                    detail=None if is_whole else f"at {longest} tokens",
                    first_token=self._alternatives(logs, request.question.alternatives),
                    prompt_tokens=len(ids),
                    reply_tokens=len(row),
                    model=self.name,
                    seed=request.question.seed,
                )

    def _first_logs(self, rows: Sequence[list[int]]) -> "Tensor":
        """Return the log-probabilities of the first token of each reply, shape (row, vocabulary)."""
        import torch

        ids, attended = self._padded(rows)
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        with torch.inference_mode():
            logits = self.model(
                input_ids=ids, attention_mask=attended, position_ids=positions, use_cache=False, logits_to_keep=1
            ).logits
            return logits[:, -1].float().log_softmax(dim=-1)

    def _written(self, rows: Sequence[list[int]], longest: int) -> list[list[int]]:
        """Return the tokens that the model generates after each row, up to its first EOS token."""
        import torch
        from transformers.generation.configuration_utils import GenerationConfig

        ids, attended = self._padded(rows)
        # Greedy decoding overrides the folder's own settings: a judge's verdicts must be reproducible.
        settings = GenerationConfig(
            max_new_tokens=longest, do_sample=False, eos_token_id=sorted(self.ends), pad_token_id=min(self.ends)
        )
        with torch.inference_mode():
            generated = self.model.generate(ids, attention_mask=attended, generation_config=settings)
        rows = generated[:, ids.shape[1] :].tolist()
        sizes = [next((place for place, token in enumerate(row, 1) if token in self.ends), len(row)) for row in rows]
        return [row[:size] for row, size in zip(rows, sizes, strict=True)]

    def _sampled(self, encoded: Sequence[tuple[Request, list[int]]], longest: int) -> list[list[int]]:
        """Return the tokens that are sampled after each row, up to its first EOS token."""
        from steelyard.networks.sampled_tokens import ERROR_OF_DTYPE, SampledRow, SamplingRule, sample_tokens

        rows = [
            SampledRow(ids, derived_seed(0, request.id) if request.question.seed is None else request.question.seed)
            for request, ids in encoded
        ]
        rule = SamplingRule(self.config.temperature, self.config.top_p)
        error = ERROR_OF_DTYPE[self.config.dtype]
        return sample_tokens(self.model, rows, rule, longest=longest, ends=self.ends, error=error)

    def _padded(self, rows: Sequence[list[int]]) -> "tuple[Tensor, Tensor]":
        """Return the token ids, padded on the left, and the attention mask, both of shape (row, token)."""
        import torch

        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=self.model.device)
        attended = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self.model.device)
        return ids, attended

    def _alternatives(self, logs: "Tensor | None", number: int) -> tuple[Alternative, ...] | None:
        if not number or logs is None:
            return None
        best = logs.topk(min(number, len(logs)))
        return tuple(
            Alternative(token=self.tokenizer.decode([token]), logprob=logprob)
            for logprob, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        )


def _template(config: Config, tokenizer: Any) -> str:
    if config.chat_template is not None:
        check_text(Path(config.chat_template))
        return check_utf8(Path(config.chat_template).read_bytes(), Place(config.chat_template))
    if not isinstance(tokenizer.chat_template, str):
        do = Advice("name a Jinja file: ", Remedy("chat.chat_template", FILE))
        raise ModelError("the model has no chat template: it was not made to be asked", where=config.path, do=do)
    return tokenizer.chat_template
