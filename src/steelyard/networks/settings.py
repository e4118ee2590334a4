"""The settings that every decoder scored by us shares: where it lies, how text becomes tokens, how forwards are cut."""

from typing import Any, Literal

from steelyard.core.config import Config
from steelyard.core.types import OverLength
from steelyard.networks.conversation import Rendering, choose_special_tokens, choose_template
from steelyard.networks.pretrained import Precision


class DecoderConfig(Config, frozen=True):
    """``path`` is a model folder or hub name. ``max_length`` is in tokens; what is longer is ``unscored`` or cut on the
    ``left`` or ``right``, both counted, or stops the run (``over_length``). ``dtype`` is the decoder's; heads are
    always float32.

    ``strip`` removes the white space that a template leaves at the very end. ``tokens_per_forward``, ``batch_size`` and
    the side of the ``padding`` change no score.
    """

    path: str
    """The model's folder or hub name."""
    chat_template: str | None = None
    """How a conversation becomes text: a built-in name or a Jinja file; none takes the model's own."""
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
    """The number of answers in a forward pass; none takes what tokens_per_forward allows."""
    padding: Literal["left", "right"] = "right"
    """The side on which rows are padded; it changes no score."""


def rendering_of(config: DecoderConfig, tokenizer: Any, *, template: str | None = None) -> Rendering:
    """How this model's text becomes tokens; ``template`` stands in where the settings name none.

    Raises ModelError for a model without a template when none is named.
    """
    named = config.chat_template
    text = template if named is None and template is not None else choose_template(tokenizer, named, model=config.path)
    return Rendering(
        template=text,
        special_tokens=choose_special_tokens(tokenizer, text),
        strip=config.strip,
        max_length=config.max_length,
        over_length=config.over_length,
    )
