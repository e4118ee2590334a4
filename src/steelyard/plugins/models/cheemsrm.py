"""The official CheemsRM layout: a causal language model with a ``v_head``, read at the last attended token."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder as the official training code saves it.

    ``strip`` is on, as there. ``as_published`` also puts the beginning mark in front twice where the official code
    does so: when both the template and the tokenizer write it.
    """

    strip: bool = True
    as_published: bool = False


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout."""
    from steelyard.plugins.models._cheemsrm import build_cheemsrm

    return build_cheemsrm(config)
