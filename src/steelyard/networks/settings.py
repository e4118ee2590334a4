"""Settings of models: those that a user gives of a decoder, and the manifest that a trained reward model stores.

Needs no torch: plug-ins import it to list their settings.
"""

from pathlib import Path
from typing import Any, Literal

import msgspec

from steelyard.core.config import Config, Positive
from steelyard.core.errors import ConfigError, FileError, ModelError
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.types import JsonObject, OverLength
from steelyard.io.atomic import atomic_write
from steelyard.networks.conversation import Rendering, choose_rendering
from steelyard.networks.pretrained import Precision

MANIFEST_FILE = "steelyard.json"
Pooling = Literal["last", "response", "all", "max"]


class DecoderConfig(Config, frozen=True):
    """A decoder that scores conversations."""

    path: str
    """The model's folder or hub name."""
    chat_template: str | None = None
    """The chat template: a built-in name or a Jinja file. Default: the model's own."""
    strip: bool = False
    """Remove white space at the end of the text."""
    max_length: Positive = 2048
    """The limit of a text in tokens."""
    over_length: OverLength = "unscored"
    """Answers over the limit: unscored, cut on the left or right, or refuse to run."""
    dtype: Precision = "float32"
    """The number type of the decoder; heads are always float32."""
    tokens_per_forward: int | None = None
    """With invariant=false, the number of tokens in a forward pass. Default: 8,192, on a GPU up to 32,768."""
    batch_size: int | None = None
    """With invariant=false, the number of answers in a forward pass. Default: what tokens_per_forward allows."""
    padding: Literal["left", "right"] = "right"
    """With invariant=false, the side on which rows are padded."""
    invariant: bool = True
    """Let no bit of a score depend on the other answers of a pass: each answer is then a pass by itself."""


def decoder_rendering(config: DecoderConfig, tokenizer: Any, *, template: str | None = None) -> Rendering:
    """Return how this model's text becomes tokens; ``template`` is used where the settings name none.

    Raises ModelError for a model without a template when none is named.
    """
    return choose_rendering(
        tokenizer,
        config.chat_template,
        model=config.path,
        default=template,
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
    """The way in which the states of a text become one vector."""
    chat_template: str | None = None
    """The chat template: a built-in name or a Jinja file. Default: the tokenizer's own."""
    max_length: Positive = 1024
    """The number of tokens that are read of a text."""
    dtype: Precision = "float32"
    """The number type of the backbone."""
    cache: str | None = None
    """The folder for computed features. Default: one in the user's home."""

    def __post_init__(self) -> None:
        if not self.path:
            raise ConfigError(
                "the features model needs a backbone",
                where="model.path",
                do=Advice("give ", Remedy("model.path", FOLDER)),
            )
        if not self.poolings or len(set(self.poolings)) < len(self.poolings):
            raise ConfigError(
                f"poolings={list(self.poolings)}", where="model.poolings", allowed="one or more, each once"
            )
        if self.max_length < 1:
            raise ConfigError(f"max_length={self.max_length}", where="model.max_length", allowed="1 or more")


class EncoderSettings(Config, frozen=True):
    """The encoder that compares the meaning of a translation with that of its source."""

    path: str | None = None
    """The folder or hub name of a multilingual encoder. Default: no encoder, meanings are not compared."""
    prefix: str = ""
    """Words that the encoder expects before a text; E5: "query: "."""
    pooling: Literal["mean", "first"] = "mean"
    """The vector of a text: the mean of the states of all tokens, or the state of the first one."""
    max_length: Positive = 512
    """The most tokens in one pass; a longer text is the mean of its parts, by their tokens."""


RatingLink = Literal["identity", "logistic"]
"""The map from a reward to a rating: a shift, or the logistic function onto a range."""
RatingCenter = Literal["data", "prompt"]
"""The mean that targets are taken from: that of all training data, or that of each prompt."""


class RewardReference(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of a model's rewards on a named set of answers, for replacing one model by another.

    ``spread`` is their standard deviation (over n), ``spread_within`` that around each prompt's own mean.
    """

    name: str
    data_hash: str
    num_prompts: int
    num_rewards: int
    mean: float
    spread: float
    spread_within: float


class RewardScale(msgspec.Struct, frozen=True, kw_only=True):
    """The rescaling of rewards after training. The saved head includes the ``scale``.

    ``shift``, added to a reward, puts the mean of the reference set at 0. Heads of decoders have no bias that could
    hold it, and no difference between answers depends on it.
    """

    scale: float
    shift: float


class TargetScale(msgspec.Struct, frozen=True, kw_only=True):
    """The ratings that a model was trained on, and the way from its reward to them.

    A rating is the sum over ``dimensions`` of weight times the mean over raters, each on its range of ``ranges`` (null:
    unknown). ``lowest`` and ``highest`` bound that sum; ``mean`` and ``spread`` are those of the training data. With
    the ``identity`` link a rating is reward + mean, since the saved head includes the spread. With the ``logistic``
    link it is lowest + (highest - lowest) sigmoid(reward). With the center ``prompt`` a reward is a rating minus the
    mean of its prompt: the mean is 0 and the spread that within prompts.
    """

    dimensions: dict[str, float]
    ranges: dict[str, tuple[float, float] | None]
    lowest: float | None
    highest: float | None
    mean: float
    spread: float
    num_ratings: int
    link: RatingLink
    center: RatingCenter = "data"


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Rule by which a policy's reward follows from its probabilities, in training and scoring alike."""

    beta: float
    is_reference_free: bool
    reduction: Literal["sum", "avg"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``steelyard.json``: the protocol of a reward model, which a scorer follows or refuses."""

    format: int = 1
    rendering: Rendering
    template_hash: str
    dtype: Precision
    pooling: str = "last attended token"
    head_dtype: str = "float32"
    base_model: str
    data_hash: str
    versions: dict[str, str]
    loss: str = "bradley-terry"
    tie: dict[str, float] = {}
    reference: RewardReference | None = None
    calibration: RewardScale | None = None
    kind: Literal["classifier", "implicit"] = "classifier"
    policy: PolicySettings | None = None
    ratings: TargetScale | None = None


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest of a model folder, null for other models. Raises FileError where it is broken."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        return None
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise FileError(f"not a manifest ({error})", where=str(path)) from error
    if manifest.rendering.template_hash != manifest.template_hash:
        raise ModelError("the template is not the one the model was trained with", where=str(path))
    return manifest


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into a model folder."""
    with atomic_write(folder / MANIFEST_FILE) as file:
        file.write(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")


def protocol_of(rendering: Rendering, *, dtype: str, model: str) -> JsonObject:
    """Return all that must be equal for two scores to be comparable."""
    return {
        "model": model,
        "template_hash": rendering.template_hash,
        "special_tokens": rendering.special_tokens,
        "strip": rendering.strip,
        "max_length": rendering.max_length,
        "over_length": rendering.over_length,
        "dtype": dtype,
    }
