"""QRM: the quantiles of nineteen objectives, their means weighted for each prompt by a gate."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder in the layout of nicolinho/QRM-Llama3.1-8B or nicolinho/QRM-Llama3-8B."""


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout."""
    from steelyard.plugins.models._qrm import build_qrm

    return build_qrm(config)
