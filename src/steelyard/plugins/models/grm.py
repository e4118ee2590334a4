"""GRM with its value head: a small network read at the last token (the ``sftreg`` checkpoints)."""

from typing import Any

from steelyard.plugins.models._settings import DecoderConfig


class Config(DecoderConfig, frozen=True):
    """``path`` is a folder in the layout of Ray2333/GRM-llama3-8B-sftreg.

    The ``rewardmodel-ft`` and ``distill`` checkpoints have a plain head: those are of the kind ``classifier``.
    """


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for a checkpoint of another layout."""
    from steelyard.plugins.models._grm import build_grm

    return build_grm(config)
