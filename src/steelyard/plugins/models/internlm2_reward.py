"""InternLM2-reward: a ``v_head`` read at a reward token that is put behind the conversation."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder of internlm/internlm2-1_8b-reward, -7b-reward or -20b-reward.

    Its tokenizer class is code that comes with the model, and such code is never run: the folder needs the same
    tokenizer as ``tokenizer.json``.
    """


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout, and without a ``tokenizer.json``."""
    from steelyard.plugins.models._internlm2_reward import build_internlm2_reward

    return build_internlm2_reward(config)
