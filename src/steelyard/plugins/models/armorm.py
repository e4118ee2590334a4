"""ArmoRM: nineteen objectives, weighted for each prompt by a gate that reads where the answer begins."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder in the layout of RLHFlow/ArmoRM-Llama3-8B-v0.1."""


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout."""
    from steelyard.plugins.models._armorm import build_armorm

    return build_armorm(config)
