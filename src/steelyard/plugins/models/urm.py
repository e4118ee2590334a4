"""URM: five attributes, each a mean and a spread, summed with weights that are fixed or read from the answer."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder of LxzGordon/URM-LLaMa-3.1-8B (weights from the answer) or URM-LLaMa-3-8B (fixed ones)."""


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout than is known."""
    from steelyard.plugins.models._urm import build_urm

    return build_urm(config)
