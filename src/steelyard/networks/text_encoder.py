"""Vectors of texts by an encoder of transformers, such as multilingual E5: texts of one meaning are near each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from steelyard.core.errors import ModelError
from steelyard.core.numerics import Floats
from steelyard.networks.devices import best_device
from steelyard.networks.loading import check_token_ids, load_encoder, load_tokenizer
from steelyard.networks.settings import EncoderSettings

_TOKENS_PER_BATCH = 8192


class TextEncoder:
    """An encoder with its tokenizer, loaded when it is built. Raises ModelError for a folder without one."""

    def __init__(self, settings: EncoderSettings) -> None:
        assert settings.path is not None, "without a path there is no encoder"
        self._settings = settings
        self._tokenizer: Any = load_tokenizer(settings.path)
        self._model: Any = load_encoder(settings.path, dtype="float32").to(best_device()).eval()

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return a vector of length 1 for each text, shape (text, coordinate); zeros for a text without tokens."""
        positions = getattr(self._model.config, "max_position_embeddings", self._settings.max_length)
        longest = min(self._settings.max_length, self._tokenizer.model_max_length, positions)
        special = self._tokenizer.num_special_tokens_to_add()
        if longest <= special:
            problem = f"max_length={longest} leaves no room beside {special} special tokens"
            raise ModelError(problem, where="encoder.max_length", do=f"give {special + 1} or more")
        encoded = self._tokenizer(
            [self._settings.prefix + text for text in texts],
            truncation=True,
            max_length=longest,
            return_overflowing_tokens=True,
        )
        parts = [
            (number, ids)
            for number, ids in zip(encoded["overflow_to_sample_mapping"], encoded["input_ids"], strict=True)
            if ids
        ]
        sums = np.zeros((len(texts), self._model.config.hidden_size))
        for batch in self._batches(sorted(parts, key=lambda part: len(part[1]))):
            for (number, ids), vector in zip(batch, self._states([ids for _, ids in batch]), strict=True):
                sums[number] += len(ids) * vector
        return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)

    @staticmethod
    def _batches(parts: Sequence[tuple[int, list[int]]]) -> list[list[tuple[int, list[int]]]]:
        """Return batches of parts of about one length, as they are padded to the longest."""
        batches: list[list[tuple[int, list[int]]]] = []
        for part in parts:
            if not batches or (len(batches[-1]) + 1) * len(part[1]) > _TOKENS_PER_BATCH:
                batches.append([])
            batches[-1].append(part)
        return batches

    def _states(self, rows: Sequence[Sequence[int]]) -> Floats:
        """Return the pooled states of texts as tokens, shape (text, coordinate)."""
        check_token_ids(rows, self._model, where=str(self._settings.path))
        padded = self._tokenizer.pad({"input_ids": [list(row) for row in rows]}, return_tensors="pt")
        ids, mask = (padded[key].to(self._model.device) for key in ("input_ids", "attention_mask"))
        with torch.inference_mode():
            states = self._model(input_ids=ids, attention_mask=mask).last_hidden_state.double()
        weight = mask[..., None].double()
        pooled = states[:, 0] if self._settings.pooling == "first" else (states * weight).sum(1) / weight.sum(1)
        return pooled.cpu().numpy()
