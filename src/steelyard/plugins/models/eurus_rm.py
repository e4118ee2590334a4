"""Eurus-RM (and UltraRM): one weight vector, read at the last token of a text between instruction marks."""

from typing import Any, Literal

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder in the layout of openbmb/Eurus-RM-7b or openbmb/UltraRM-13b.

    ``marks`` are the instruction marks of the text: ``card`` is what the model card prints, ``mistral`` what
    RewardBench runs it with. A ``chat_template`` goes before both; UltraRM needs one.
    """

    marks: Literal["card", "mistral"] = "card"


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout."""
    from steelyard.plugins.models._eurus_rm import build_eurus_rm

    return build_eurus_rm(config)
