"""The torch half of ``local``: prompts by the model's template, replies greedy, first tokens with their odds."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from steelyard.core.comparison import Alternative, Reply, Request
from steelyard.core.errors import ModelError, Place
from steelyard.io.lines import check_text, check_utf8
from steelyard.networks.pretrained import load_pretrained
from steelyard.networks.rendering import TemplateFailure, tokenise, write
from steelyard.plugins.chats.local import Config


class Local:
    """A Chat. Requests that fail have ``template`` (it refuses the roles) or ``too_long`` in front of their detail."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.name = config.name or Path(config.path).name
        self.tokenizer, self.model = _loaded(config)
        self.template = _template(config, self.tokenizer)
        self.ends = _end_ids(self.model, self.tokenizer)

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """One reply a request, in order."""
        waiting = iter(requests)
        while window := list(islice(waiting, self.config.batch_size)):
            encoded = {request.id: self._encoded(request) for request in window}
            for request in window:
                if isinstance(said := encoded[request.id], str):
                    yield Reply(request=request.id, failure="failed", detail=said)
            yield from self._replies([(one, ids) for one in window if isinstance(ids := encoded[one.id], list)])

    def protocol(self) -> dict[str, Any]:
        """The model, its template, the number type and the batch."""
        return {
            "chat": "local",
            "model": Path(self.config.path).name,
            "template": hashlib.sha256(self.template.encode()).hexdigest()[:16],
            "dtype": self.config.dtype,
            "batch_size": self.config.batch_size,
        }

    def _encoded(self, request: Request) -> list[int] | str:
        """The prompt's token ids, or why there are none. What a text spells of special tokens stays text."""
        try:
            written = write(self.tokenizer, self.template, request.question.messages, add_generation_prompt=True)
            ids = tokenise(self.tokenizer, written, add=False).ids
        except TemplateFailure as error:
            return f"template: {error}"
        except ModelError as error:
            return f"marks: {error.problem}"
        limit = self.model.config.get_text_config().to_dict().get("max_position_embeddings")
        if limit is not None and len(ids) + request.question.max_tokens > limit:
            return f"too_long: {len(ids)} tokens and {request.question.max_tokens} for the reply; the model has {limit}"
        return ids

    def _replies(self, asked: Sequence[tuple[Request, list[int]]]) -> Iterator[Reply]:
        """The replies of one batch; rows with another longest reply are batches of their own."""
        for longest in sorted({request.question.max_tokens for request, _ in asked}):
            own = [(request, ids) for request, ids in asked if request.question.max_tokens == longest]
            first = self._first_logs([ids for _, ids in own])
            written = self._written([ids for _, ids in own], longest)
            for (request, ids), row, logs in zip(own, written, first, strict=True):
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
                )

    @torch.inference_mode()
    def _first_logs(self, rows: Sequence[list[int]]) -> Float[Tensor, "row vocabulary"]:
        ids, attended = self._padded(rows)
        positions = (attended.cumsum(1) - 1).clamp(min=0)
        logits = self.model(
            input_ids=ids, attention_mask=attended, position_ids=positions, use_cache=False, logits_to_keep=1
        ).logits
        return logits[:, -1].float().log_softmax(dim=-1)

    @torch.inference_mode()
    def _written(self, rows: Sequence[list[int]], longest: int) -> list[list[int]]:
        """What the model writes after each row, up to its first end mark."""
        from transformers import GenerationConfig

        ids, attended = self._padded(rows)
        # Greedy whatever the folder's own settings are: a judge that draws lots is no judge.
        settings = GenerationConfig(
            max_new_tokens=longest, do_sample=False, eos_token_id=sorted(self.ends), pad_token_id=min(self.ends)
        )
        found = self.model.generate(ids, attention_mask=attended, generation_config=settings)[:, ids.shape[1] :]
        return [_up_to_end(row, self.ends) for row in found.tolist()]

    def _padded(self, rows: Sequence[list[int]]) -> tuple[Tensor, Tensor]:
        width = max(map(len, rows))
        ids = torch.tensor([[0] * (width - len(row)) + row for row in rows], device=self.model.device)
        attended = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in rows], device=self.model.device)
        return ids, attended

    def _alternatives(self, logs: Float[Tensor, " vocabulary"], number: int) -> tuple[Alternative, ...] | None:
        if not number:
            return None
        best = logs.topk(min(number, len(logs)))
        return tuple(
            Alternative(token=self.tokenizer.decode([token]), logprob=logprob)
            for logprob, token in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        )


def _up_to_end(row: list[int], ends: set[int]) -> list[int]:
    for place, token in enumerate(row):
        if token in ends:
            return row[: place + 1]
    return row


def _end_ids(model: Any, tokenizer: Any) -> set[int]:
    """What ends a reply: the model's own end marks, or the tokenizer's. Raises ModelError where there is none."""
    own = model.generation_config.eos_token_id
    given = [tokenizer.eos_token_id, *(own if isinstance(own, list) else [own])]
    ends: set[int] = {one for one in given if one is not None}
    if not ends:
        raise ModelError("has no end mark: its replies would never end", where=tokenizer.name_or_path)
    return ends


def _template(config: Config, tokenizer: Any) -> str:
    if config.chat_template is not None:
        check_text(Path(config.chat_template))
        return check_utf8(Path(config.chat_template).read_bytes(), Place(config.chat_template))
    if not isinstance(tokenizer.chat_template, str):
        do = "name a Jinja file: --set chat.chat_template=FILE"
        raise ModelError("the model has no chat template: it was not made to be asked", where=config.path, do=do)
    return tokenizer.chat_template


def _loaded(config: Config) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    if not Path(config.path).is_dir():
        raise ModelError("there is no such model folder", where=config.path, do="download the model first")
    said, shown = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        tokenizer = load_pretrained(AutoTokenizer, config.path)
        loaded: Any = load_pretrained(
            AutoModelForCausalLM, config.path, dtype=getattr(torch, config.dtype), output_loading_info=True
        )
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        found = f"cannot be loaded as a causal language model ({str(error).splitlines()[0]})"
        raise ModelError(found, where=config.path) from error
    finally:
        logging.set_verbosity(said)
        if shown:
            logging.enable_progress_bar()
    model, loading = loaded
    if missing := sorted(loading["missing_keys"]):
        found = f"lacks weights: {', '.join(missing[:3])}"
        raise ModelError(found, where=config.path, allowed="a whole causal language model with its output layer")
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
