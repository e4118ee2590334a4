"""Settings of the decoders that models share: where they lie, how text becomes tokens, and how it is computed.

Needs no torch: plug-ins import it to list their settings.
"""

from typing import Any, Literal

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError
from steelyard.core.types import OverLength
from steelyard.networks.conversation import Rendering, choose_special_tokens, choose_template
from steelyard.networks.pretrained import Precision

Pooling = Literal["last", "response", "all", "max"]


class DecoderConfig(Config, frozen=True):
    """A decoder that scores conversations."""

    path: str
    """The model's folder or hub name."""
    chat_template: str | None = None
    """The chat template: a built-in name or a Jinja file. Default: the model's own."""
    strip: bool = False
    """Whether white space at the end of the text is removed."""
    max_length: int = 2048
    """The limit of a text in tokens."""
    over_length: OverLength = "unscored"
    """Answers over the limit: unscored, cut on the left or right, or refuse to run."""
    dtype: Precision = "float32"
    """The number type of the decoder; heads are always float32."""
    tokens_per_forward: int = 8192
    """The number of tokens in a forward pass; it changes no score."""
    batch_size: int | None = None
    """The number of answers in a forward pass. Default: what tokens_per_forward allows."""
    padding: Literal["left", "right"] = "right"
    """The side on which rows are padded; it changes no score."""


def rendering_of(config: DecoderConfig, tokenizer: Any, *, template: str | None = None) -> Rendering:
    """Return how this model's text becomes tokens; ``template`` is used where the settings name none.

    Raises ModelError for a model without a template when none is named.
    """
    if config.chat_template is not None or template is None:
        template = choose_template(tokenizer, config.chat_template, model=config.path)
    return Rendering(
        template=template,
        special_tokens=choose_special_tokens(tokenizer, template),
        strip=config.strip,
        max_length=config.max_length,
        over_length=config.over_length,
    )


class FeatureSettings(Config, frozen=True):
    """The frozen backbone that turns texts into features, and the folder in which these are cached.

    Raises ConfigError for settings that no backbone can follow.
    """

    path: str = ""
    """The folder or hub name of the backbone, a decoder in Hugging Face format."""
    layers: tuple[int, ...] = ()
    """The layers whose states are features, from 1. Default: five, from a third of the depth on."""
    poolings: tuple[Pooling, ...] = ("last", "response", "all", "max")
    """How the states of a text become one vector."""
    chat_template: str | None = None
    """The chat template: a built-in name or a Jinja file. Default: the tokenizer's own."""
    max_length: int = 1024
    """The number of tokens that are read of a text."""
    dtype: Precision = "float32"
    """The number type of the backbone."""
    cache: str | None = None
    """The folder for computed features. Default: one in the user's home."""

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError(
                "the features model needs a backbone", where="model.path", do="give --set model.path=FOLDER"
            )
        if not self.poolings or len(set(self.poolings)) < len(self.poolings):
            raise ConfigError(
                f"poolings={list(self.poolings)}", where="model.poolings", allowed="one or more, each once"
            )
        if self.max_length < 1:
            raise ConfigError(f"max_length={self.max_length}", where="model.max_length", allowed="1 or more")
