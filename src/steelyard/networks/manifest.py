"""The manifest of a trained reward model: its rendering, its training data, its loss, and statistics of its rewards."""

from pathlib import Path
from typing import Literal

import msgspec

from steelyard.core.errors import FileError, ModelError
from steelyard.core.types import JsonObject
from steelyard.io.atomic import atomic_write
from steelyard.networks.conversation import Rendering

MANIFEST_FILE = "steelyard.json"


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


class PolicySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a policy's reward follows from its probabilities, in training and scoring alike."""

    beta: float
    is_reference_free: bool
    reduction: Literal["sum", "avg"]


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """``steelyard.json``: the protocol of a reward model, which a scorer follows or refuses."""

    format: int = 1
    rendering: Rendering
    template_hash: str
    dtype: str
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
