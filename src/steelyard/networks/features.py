"""Features of texts under a frozen decoder: pooled hidden states of chosen layers, computed once and kept on disk.

The layers above the deepest chosen one are cut away. Features are kept in memory for a run and on disk for all others.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor, nn

from steelyard.core.errors import ConfigError, ModelError, OutputError
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.types import Case, JsonObject, Message, Response
from steelyard.io.atomic import atomic_write
from steelyard.io.hashing import file_hash
from steelyard.io.progress import track
from steelyard.networks.answer_tokens import num_shared
from steelyard.networks.conversation import Rendering, choose_rendering, encode
from steelyard.networks.devices import best_device, has_slow_bfloat16, widen_products
from steelyard.networks.loading import load_tokenizer, quiet
from steelyard.networks.pretrained import load_pretrained
from steelyard.networks.settings import FeatureSettings, Pooling

_VERSION = 1
"""Part of the names of stored files: raise it when the same settings give other features."""
Key = tuple[tuple[Message, ...], tuple[Message, ...] | str]
_NUM_DEFAULT = 5


class StateReader:
    """Reads one text at a time and unpadded: its features depend on no other text."""

    def __init__(self, decoder: Any, layers: Sequence[int], poolings: Sequence[Pooling]) -> None:
        self.decoder = decoder
        self.layers = tuple(layers)
        self.poolings = tuple(poolings)
        self.layer_states: dict[int, Tensor] = {}
        self.depth = decoder.config.get_text_config().num_hidden_layers
        lists = (module for module in decoder.modules() if isinstance(module, nn.ModuleList))
        stack = next((layers for layers in lists if len(layers) == self.depth), None)
        if stack is None:
            name = type(decoder).__name__
            raise ModelError("has no list of layers", where=name, allowed="decoders such as Qwen, Llama")
        # In place: the layers above the last chosen one would be computed for nothing.
        del stack[max(self.layers) :]
        for layer in self.layers:
            stack[layer - 1].register_forward_hook(self._hook(layer))

    def states(self, ids: Sequence[int], start: int, end: int) -> NDArray[np.float32]:
        """Return features of shape (layer x pooling, coordinate); the answer is ``ids[start:end]``, not empty."""
        device = next(self.decoder.parameters()).device
        with torch.inference_mode():
            final = self.decoder(input_ids=torch.tensor([list(ids)], device=device), use_cache=False).last_hidden_state
        rows = []
        for layer in self.layers:
            # The last layer is taken after the final norm, as heads take it; the others before any norm.
            state = (final if layer == self.depth else self.layer_states[layer])[0].float()
            rows += [pool(state, pooling, start, end) for pooling in self.poolings]
        return torch.stack(rows).cpu().numpy()

    def _hook(self, layer: int) -> Callable[[nn.Module, Any, Any], None]:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            self.layer_states[layer] = output[0] if isinstance(output, tuple) else output

        return keep


def pool(state: Float[Tensor, "token hidden"], pooling: Pooling, start: int, end: int) -> Float[Tensor, " hidden"]:
    """Return one vector for a text."""
    if pooling == "last":
        return state[-1]
    if pooling == "all":
        return state.mean(0)
    answer = state[start:end]
    return answer.mean(0) if pooling == "response" else answer.amax(0)


def default_layers(depth: int) -> tuple[int, ...]:
    """Return five layers, evenly from a third of the depth to the last; fewer for shallower decoders."""
    steps = _NUM_DEFAULT + 1
    return tuple(sorted({max(1, round(depth * step / steps)) for step in range(2, steps + 1)}))


def open_backbone(reading: FeatureSettings) -> StateReader:
    """Return a reader of the truncated backbone.

    Raises ModelError for a folder without a decoder, ConfigError for layers that it lacks.
    """
    from transformers.models.auto import AutoModel

    try:
        with quiet():
            decoder = load_pretrained(AutoModel, reading.path, dtype=getattr(torch, reading.dtype))
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(
            f"cannot be loaded as a decoder ({str(error).splitlines()[0]})",
            where=reading.path,
            do="name a folder in Hugging Face format",
        ) from error
    depth = decoder.config.get_text_config().num_hidden_layers
    layers = reading.layers or default_layers(depth)
    if min(layers) < 1 or max(layers) > depth or len(set(layers)) < len(layers):
        raise ConfigError(f"layers={list(layers)}", where="model.layers", allowed=f"1 to {depth}, each once")
    if has_slow_bfloat16(best_device()):
        widen_products(decoder)
    return StateReader(decoder.eval().to(best_device()), layers, reading.poolings)


class TextTokens(NamedTuple):
    """A conversation as tokens, and the range of the answer among them (at least one token)."""

    ids: tuple[int, ...]
    start: int
    end: int


class FeatureStore:
    """Features of shape (layer x pooling, coordinate) for each text, poolings changing fastest."""

    def __init__(self, reading: FeatureSettings) -> None:
        self.reading = reading
        self.by_key: dict[Key, NDArray[np.float32]] = {}
        self.cut: set[Key] = set()
        self.folder = Path(reading.cache) if reading.cache else Path.home() / ".cache" / "steelyard" / "features"

    @cached_property
    def tokenizer(self) -> Any:
        """The backbone's tokenizer."""
        return load_tokenizer(self.reading.path)

    @cached_property
    def rendering(self) -> Rendering:
        """From a text to tokens; ``plain`` where the tokenizer has no template, since none was trained with."""
        return choose_rendering(
            self.tokenizer,
            self.reading.chat_template or (None if self.tokenizer.chat_template else "plain"),
            model=self.reading.path,
            strip=True,
            max_length=self.reading.max_length,
            over_length="right",
        )

    @cached_property
    def reader(self) -> StateReader:
        """The backbone without the layers above the deepest chosen one; loaded only for texts without features."""
        return open_backbone(self.reading)

    @cached_property
    def backbone_hash(self) -> str:
        """A hash of the content of the backbone's folder."""
        return file_hash(Path(self.reading.path))

    def protocol(self) -> JsonObject:
        """Return all that the features depend on besides the text."""
        reading = self.reading
        return {
            "backbone": self.backbone_hash,
            "layers": list(reading.layers) or "default",
            "poolings": list(reading.poolings),
            "dtype": reading.dtype,
            "max_length": reading.max_length,
            "template_hash": self.rendering.template_hash,
        }

    def features(self, cases: Sequence[Case]) -> NDArray[np.float32]:
        """Return shape (response, layer x pooling, coordinate) for the responses of all cases in order, at least one.

        Raises ModelError for a backbone that does not load or a text that the template refuses, OutputError where the
        cache cannot be written.
        """
        missing = [
            (case, response)
            for case in cases
            for response in case.responses
            if _key(case, response) not in self.by_key
        ]  # fmt: skip
        if missing:
            self._read(missing)
        return np.stack([self.by_key[_key(case, response)] for case in cases for response in case.responses])

    def is_cut(self, case: Case, response: Response) -> bool:
        """Return whether a response with computed features is longer than the limit, and was cut there."""
        return _key(case, response) in self.cut

    def _read(self, missing: Sequence[tuple[Case, Response]]) -> None:
        empty: dict[tuple[Message, ...], tuple[int, ...]] = {}
        unread: list[tuple[Key, TextTokens, Path]] = []
        for case, response in missing:
            key, prompt = _key(case, response), case.prompt.messages
            if prompt not in empty:
                empty[prompt] = encode(self.tokenizer, self.rendering, case, Response(id="", text="")).ids
            encoded = encode(self.tokenizer, self.rendering, case, response)
            if encoded.is_over_length:
                self.cut.add(key)
            tokens = locate_answer(encoded.ids, empty[prompt])
            place = self._path(tokens)
            if place.is_file():
                self.by_key[key] = np.load(place, allow_pickle=False)
            else:
                unread.append((key, tokens, place))
        for key, tokens, place in track(unread, "reading texts", len(unread)) if unread else ():
            # Two cases may hold one text, or two texts equal tokens: the second then finds the file of the first.
            self.by_key[key] = np.load(place, allow_pickle=False) if place.is_file() else self._compute(tokens, place)

    def _compute(self, tokens: TextTokens, place: Path) -> NDArray[np.float32]:
        made = self.reader.states(tokens.ids, tokens.start, tokens.end)
        try:
            with atomic_write(place) as file:
                np.save(file, made, allow_pickle=False)
        except OSError as error:
            raise OutputError(
                f"features cannot be kept here ({error.strerror})",
                where=str(self.folder),
                do=Advice("name a folder: ", Remedy("model.cache", FOLDER)),
            ) from error
        return made

    def _path(self, tokens: TextTokens) -> Path:
        """Return the file of a text's features, whose name is a hash of all that they depend on."""
        reading = self.reading
        parts = (_VERSION, self.backbone_hash, reading.layers, reading.poolings, reading.dtype, *tokens)
        name = hashlib.sha256(repr(parts).encode()).hexdigest()
        return self.folder / name[:2] / f"{name}.npy"


def locate_answer(ids: tuple[int, ...], empty: tuple[int, ...]) -> TextTokens:
    """Return the range of the answer: the tokens between those shared with the row of an empty answer.

    The range of an empty answer is the last token, which heads read.
    """
    start = num_shared(ids, empty)
    end = len(ids) - num_shared(ids[start:][::-1], empty[start:][::-1])
    return TextTokens(ids, start, end) if start < end else TextTokens(ids, len(ids) - 1, len(ids))


def _key(case: Case, response: Response) -> Key:
    answer = response.messages if response.text is None else response.text
    return case.prompt.messages, answer or ()
