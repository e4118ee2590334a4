"""Llama-3.1-Nemotron-70B-Reward: a causal language model whose logit for its first id is the reward."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder of nvidia/Llama-3.1-Nemotron-70B-Reward-HF."""


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout."""
    from steelyard.plugins.models._nemotron_reward import build_nemotron_reward

    return build_nemotron_reward(config)
