"""A translation model with encoder and decoder in a folder: NLLB, M2M-100, mBART, opus-mt.

transformers runs it; a folder that CTranslate2 has converted (``model.bin``) runs with that, in the number type of its
file.

Which languages it has is read from its vocabulary: codes of FLORES (``deu_Latn``), of M2M-100 (``__de__``), of mBART
(``de_DE``), and the targets of opus-mt (``>>deu<<``). A model of a single pair names it in its tokenizer. A text over
the model's length fails instead of being cut.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal, NamedTuple

from steelyard.core.comparison import MODEL_LIMIT, TOO_LONG, Reply, Request
from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import ConfigError, ModelError, choices
from steelyard.core.iteration import batched
from steelyard.core.languages import language_key
from steelyard.core.protocols import Chat
from steelyard.core.types import JsonObject

_FORCED = re.compile(r"(?:__(?P<m2m>[a-z]{2,3})__|(?P<flores>[a-z]{3}_[A-Z][a-z]{3})|(?P<mbart>[a-z]{2}_[A-Z]{2}))")
_PREFIX = re.compile(r">>(?P<code>[A-Za-z_-]+)<<")
_NO_LIMIT = 1_000_000
"""From here on a tokenizer's length limit means that it has none."""


class Config(BaseConfig, frozen=True):
    """``path`` is the model's folder. Padding moves the last digits: with ``batch_size=1`` a reply depends on nothing
    but its text.
    """

    path: str
    """The model's folder."""
    name: str | None = None
    """The name in the translations. Default: the folder's name."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """The number type of the model; CTranslate2 uses that of its file."""
    num_beams: Positive = 4
    """The number of beams of the search; 1 is greedy."""
    batch_size: Positive = 1
    """The number of texts in a batch; with more than 1, padding can change a translation."""


def build(config: Config) -> Chat:
    """Return the engine, loaded.

    Raises ModelError for a folder without such a model, and MissingPartError for a package that it needs.
    """
    return Seq2seq(config)


class _Languages(NamedTuple):
    """The languages of a model by identity: tokens that its decoder begins with, or prefixes of the text, or a pair."""

    forced: dict[str, str]
    prefixes: dict[str, str]
    pair: tuple[str, str] | None

    @classmethod
    def of(cls, tokenizer: Any) -> "_Languages":
        vocabulary = sorted(tokenizer.get_vocab())
        forced = {
            language_key(match["m2m"] or match["flores"] or match["mbart"]): token
            for token in vocabulary
            if (match := _FORCED.fullmatch(token)) is not None
        }
        prefixes = {
            language_key(match["code"]): token
            for token in vocabulary
            if (match := _PREFIX.fullmatch(token)) is not None
        }
        settings = tokenizer.init_kwargs
        names = settings.get("source_lang"), settings.get("target_lang")
        pair = (language_key(names[0]), language_key(names[1])) if names[0] and names[1] else None
        return cls(forced if len(forced) > 1 else {}, prefixes, pair)

    def has(self, source: str, target: str) -> bool:
        """Return whether the model translates between two languages, by their identities."""
        if self.forced:
            return source in self.forced and target in self.forced
        if self.prefixes:
            return target in self.prefixes
        return self.pair in (None, (source, target))


Search = Callable[[Sequence[list[int]], int | None, int], list[list[int]]]
"""From the tokens of texts, the token that the decoder begins with, and the most tokens: those of the translations."""
_Engine = tuple[Search, JsonObject, int | None]
"""The search of an engine with its part of a protocol, and the positions of the model; null where not known."""


class Seq2seq:
    """A TranslationEngine. The detail of a failed request begins with its reason: ``too_long`` or ``languages``."""

    def __init__(self, config: Config) -> None:
        # A word is hundreds of small products: threads that spin until the others are done hold the cores that these
        # need, when other programs run. The libraries read the variable when they are loaded.
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
        from steelyard.networks.loading import load_tokenizer

        self.config = config
        self.name = config.name or Path(config.path).name
        if not Path(config.path).is_dir():
            raise ModelError("there is no such model folder", where=config.path, do="download the model first")
        self._tokenizer = load_tokenizer(config.path)
        load = _with_ctranslate2 if (Path(config.path) / "model.bin").is_file() else _with_transformers
        self._search, self._engine, num_positions = load(config, self._tokenizer)
        self._languages = _Languages.of(self._tokenizer)
        limits = (self._tokenizer.model_max_length, num_positions)
        self._limit = min((limit for limit in limits if limit and limit < _NO_LIMIT), default=_NO_LIMIT)

    def check_languages(self, source: str, target: str) -> None:
        """Raise ConfigError for a language that the model's vocabulary does not have."""
        keys = language_key(source), language_key(target)
        if self._languages.has(*keys):
            return
        # The pair of a model with prefixes names no target of it ("mul").
        known = {*self._languages.forced, *self._languages.prefixes} or {*(self._languages.pair or ())}
        missing = next((key for key in reversed(keys) if key not in known), keys[1])
        allowed = choices(missing, sorted(known))
        raise ConfigError(f"it does not translate from {source} to {target}", where=self.name, allowed=allowed)

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Yield a reply for each request, in order of the batches."""
        for window in batched(requests, self.config.batch_size):
            pairs = list(dict.fromkeys(request.question.languages for request in window))
            for pair in pairs:
                yield from self._translated([request for request in window if request.question.languages == pair], pair)

    def protocol(self) -> JsonObject:
        """Return the model, its number type, and the search."""
        return {
            "chat": "seq2seq",
            "model": Path(self.config.path).name,
            **self._engine,
            "num_beams": self.config.num_beams,
            "batch_size": self.config.batch_size,
        }

    def _translated(self, requests: Sequence[Request], pair: tuple[str, str] | None) -> Iterator[Reply]:
        keys = None if pair is None else (language_key(pair[0]), language_key(pair[1]))
        if keys is None or not self._languages.has(*keys):
            yield from (
                Reply(request=request.id, failure="failed", detail="languages: not those of the model")
                for request in requests
            )
            return
        prefix = f"{self._languages.prefixes[keys[1]]} " if self._languages.prefixes else ""
        if self._languages.forced:
            self._tokenizer.src_lang = self._languages.forced[keys[0]].strip("_")
        readable: list[tuple[Request, list[int]]] = []
        for request in requests:
            ids = self._tokenizer(prefix + request.question.messages[-1].content, verbose=False).input_ids
            if len(ids) > self._limit:
                detail = f"{TOO_LONG}: {len(ids)} tokens{MODEL_LIMIT}{self._limit}"
                yield Reply(request=request.id, failure="failed", detail=detail)
            else:
                readable.append((request, ids))
        if readable:
            yield from self._generated(readable, self._languages.forced.get(keys[1]))

    def _generated(self, encoded: Sequence[tuple[Request, list[int]]], forced: str | None) -> Iterator[Reply]:
        longest = min(max(request.question.max_tokens for request, _ in encoded), self._limit - 1)
        first = None if forced is None else self._tokenizer.convert_tokens_to_ids(forced)
        try:
            rows = self._search([ids for _, ids in encoded], first, longest)
        except ModelError as error:
            if len(encoded) == 1:
                yield Reply(request=encoded[0][0].id, failure="failed", detail=f"engine: {error.problem}")
            else:  # the others of a batch are translated without the text that the engine fails at
                for each in encoded:
                    yield from self._generated([each], forced)
            return
        end = self._tokenizer.eos_token_id
        for (request, ids), row in zip(encoded, rows, strict=True):
            is_whole = end in row
            yield Reply(
                request=request.id,
                text=self._tokenizer.decode(row, skip_special_tokens=True),
                failure=None if is_whole else "cut off",
                detail=None if is_whole else f"at {longest} tokens",
                prompt_tokens=len(ids),
                reply_tokens=row.index(end) + 1 if is_whole else len(row),
                model=self.name,
            )


def _with_transformers(config: Config, tokenizer: Any) -> _Engine:
    import torch

    from steelyard.networks.devices import best_device
    from steelyard.networks.loading import load_seq2seq

    model = load_seq2seq(config.path, dtype=config.dtype).to(best_device()).eval()
    # opus-mt and mBART force the end at the limit: a translation that is cut there would look whole.
    model.generation_config.forced_eos_token_id = None

    def search(encoded: Sequence[list[int]], first: int | None, longest: int) -> list[list[int]]:
        settings = deepcopy(model.generation_config)
        settings.update(max_length=None, max_new_tokens=longest, num_beams=config.num_beams, do_sample=False)
        if first is not None:
            settings.forced_bos_token_id = first
        padded = tokenizer.pad({"input_ids": encoded}, return_tensors="pt")
        with torch.inference_mode():
            rows = model.generate(**padded.to(model.device), generation_config=settings).tolist()
        return [row[1:] for row in rows]

    return search, {"dtype": config.dtype}, getattr(model.config, "max_position_embeddings", None)


def _with_ctranslate2(config: Config, tokenizer: Any) -> _Engine:
    import ctranslate2

    if config.dtype != "float32":
        problem = f"CTranslate2 computes in the number type of its file, not in {config.dtype}"
        raise ConfigError(problem, where="dtype", do="convert the model with another quantization")
    try:
        model = ctranslate2.Translator(config.path, device="auto")
    except (RuntimeError, ValueError) as error:
        problem = f"CTranslate2 cannot read the model: {error}"
        raise ModelError(problem, where=config.path, do="convert the model again") from error

    def search(encoded: Sequence[list[int]], first: int | None, longest: int) -> list[list[int]]:
        try:
            results = model.translate_batch(
                [tokenizer.convert_ids_to_tokens(ids) for ids in encoded],
                target_prefix=None if first is None else [[tokenizer.convert_ids_to_tokens(first)]] * len(encoded),
                beam_size=config.num_beams,
                max_input_length=0,
                max_decoding_length=longest,
                return_end_token=True,
            )
        except (RuntimeError, ValueError) as error:
            # The converted file does not tell its number of positions: of a longer text this is the first word.
            raise ModelError(str(error), where=config.path) from error
        return [tokenizer.convert_tokens_to_ids(each.hypotheses[0]) for each in results]

    return search, {"engine": "CTranslate2", "dtype": model.compute_type}, None
