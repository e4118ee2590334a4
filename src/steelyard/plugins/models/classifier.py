"""A trained reward model: a decoder with a scalar head, scored by the protocol it was trained with."""

from typing import Any, Literal

from steelyard.core.config import Config as BaseConfig


class Config(BaseConfig, frozen=True):
    """``path`` is a model folder or hub name. What is null comes from the model's own manifest.

    A setting that differs from the manifest is refused, since scores of two protocols must not be mixed, unless
    ``allow_differing`` names it. ``chat_template``, ``strip`` (of white space at the very end; without a manifest it
    stays), ``max_length`` and ``over_length`` are for models that were trained elsewhere. ``kernel``: ``packed``
    works out a prompt once for all its answers, ``padded`` one row an answer; null packs where it is exact.
    ``tokens_per_forward`` and ``batch_size`` (in answers) bound a forward pass and change no score but by rounding; so
    does the side of the ``padding``.
    """

    path: str
    chat_template: str | None = None
    strip: bool | None = None
    max_length: int | None = None
    over_length: Literal["refuse", "left", "right"] | None = None
    dtype: Literal["float32", "bfloat16"] | None = None
    allow_differing: tuple[Literal["chat_template", "strip", "max_length", "over_length", "dtype"], ...] = ()
    tokens_per_forward: int = 8192
    kernel: Literal["packed", "padded"] | None = None
    batch_size: int | None = None
    padding: Literal["left", "right"] = "right"


def build(config: Config) -> Any:
    """The model, loaded. Raises ModelError for an untrained head, a missing template, or another protocol."""
    from steelyard.plugins.models._classifier import Classifier

    return Classifier(config)
