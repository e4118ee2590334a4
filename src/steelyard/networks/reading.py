"""How a frozen backbone reads texts: layers, how the tokens of a text become one row, template, number type."""

from typing import Literal

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError

Pooling = Literal["last", "response", "all", "max"]


class FeatureSettings(Config, frozen=True):
    """What the features of a text depend on, and the folder in which they are kept."""

    path: str = ""
    """The folder or hub name of the backbone, a decoder in Hugging Face format."""
    layers: tuple[int, ...] = ()
    """The layers whose states are features, from 1; none of them takes five from a third of the depth on."""
    poolings: tuple[Pooling, ...] = ("last", "response", "all", "max")
    """How the states of a text become one vector."""
    chat_template: str | None = None
    """How a conversation becomes text: a built-in name or a Jinja file; none takes the tokenizer's own."""
    max_length: int = 1024
    """The number of tokens that are read of a text."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """The number type of the backbone."""
    cache: str | None = None
    """The folder for features that were computed; none takes one in the user's home."""

    def __post_init__(self) -> None:
        check_reading(self)


def check_reading(reading: FeatureSettings) -> None:
    """Raises ConfigError for settings that no backbone can follow."""
    if not reading.path:
        raise ConfigError("the features model needs a backbone", where="model.path", do="give --set model.path=FOLDER")
    if not reading.poolings or len(set(reading.poolings)) < len(reading.poolings):
        raise ConfigError(
            f"poolings={list(reading.poolings)}", where="model.poolings", allowed="one or more, each once"
        )
    if reading.max_length < 1:
        raise ConfigError(f"max_length={reading.max_length}", where="model.max_length", allowed="1 or more")
