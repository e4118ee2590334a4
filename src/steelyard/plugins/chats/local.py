"""A causal language model in a folder, with its own chat template: greedy, on this machine, without a server."""

from typing import Literal

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import MissingPartError
from steelyard.core.protocols import Chat


class Config(BaseConfig, frozen=True):
    """``path`` is the model's folder; ``name`` signs the verdicts, the folder's name where it is null.

    ``chat_template`` is a Jinja file for models without one of their own. A row of a batch is padded, which moves the
    last digits and can turn a token that is nearly as likely as another: with ``batch_size=1`` a reply depends on
    nothing but its question.
    """

    path: str
    """The model's folder."""
    name: str | None = None
    """The name in the judgments; none takes the folder's name."""
    chat_template: str | None = None
    """A Jinja file, for models without a template of their own."""
    dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """The number type of the model."""
    batch_size: int = 1
    """The number of questions in a batch; with more than 1, padding can change a reply."""


def build(config: Config) -> Chat:
    """The model, loaded. Raises ModelError for a folder that is no causal language model, or has no chat template."""
    try:
        from steelyard.plugins.chats._local import Local
    except ModuleNotFoundError as error:
        found = f"local models need a package that is not installed ({error.name})"
        raise MissingPartError(found, do="pip install 'steelyard[train]'") from error
    return Local(config)
