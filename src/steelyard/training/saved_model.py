"""The folder of a trained model: weights or adapter, configuration, tokenizer with its template, and manifest."""

import json
import shutil
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch

from steelyard.core.types import JsonObject
from steelyard.io.atomic import move_into_place
from steelyard.io.run_folder import Result, installed_versions
from steelyard.networks.adapters import SavedAdapter, write_adapter
from steelyard.networks.conversation import add_no_marks, set_limit
from steelyard.networks.loading import quiet
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork
from steelyard.networks.settings import (
    Manifest,
    PolicySettings,
    write_manifest,
)
from steelyard.training.checkpoints import translate_disk_full
from steelyard.training.config import Config
from steelyard.training.inputs import TrainingInputs
from steelyard.training.reward_reference import MeasuredReference
from steelyard.training.trained_network import loss_parameter

_SAVING = ".saving-"
_CONFIG = "config.json"


def manifest_of(
    network: RewardNetwork, inputs: TrainingInputs, config: Config, reference: MeasuredReference
) -> Manifest:
    """Return the manifest: what scoring needs to know of the training, and where the model comes from."""
    policy = PolicySettings(
        beta=config.beta, is_reference_free=config.reference_free, reduction=config.answer_reduction
    )
    return Manifest(
        rendering=inputs.rendering,
        template_hash=inputs.rendering.template_hash,
        dtype=config.number_type,
        base_model=Path(inputs.model).name,
        data_hash=inputs.data_hash,
        versions=installed_versions(),
        loss=config.loss,
        tie=loss_parameter(network, config),
        reference=reference.rewards,
        calibration=reference.calibration,
        kind=config.kind,
        policy=policy if config.kind == "implicit" else None,
        ratings=inputs.evidence.ratings,
    )


def save_model(
    network: RewardNetwork,
    tokenizer: Any,
    manifest: Manifest,
    result: Result,
    *,
    adapter: SavedAdapter | None = None,
) -> None:
    """Write weights, configuration, tokenizer with its template, and manifest into the result folder.

    With a separate adapter only its weights and those of the head are written.
    """
    classifier = network.classifier
    if manifest.kind == "classifier":
        classifier.config.num_labels = 1
        # Serving engines squash the one logit of a classifier by a sigmoid unless its problem is named a regression.
        classifier.config.problem_type = "regression"
        classifier.config.pad_token_id = pad_id(tokenizer)
    tokenizer.chat_template = manifest.rendering.template
    if manifest.kind == "classifier":
        add_no_marks(tokenizer)
    set_limit(tokenizer, manifest.rendering)
    for remains in result.folder.glob(f"{_SAVING}*"):  # of a run that was killed while it was saving
        shutil.rmtree(remains)
    saving = tempfile.TemporaryDirectory(dir=result.folder, prefix=_SAVING)
    with translate_disk_full(result.folder), saving as name:
        folder = Path(name)
        if adapter is not None:
            write_adapter(folder, adapter, network.head)
        else:
            with quiet():
                classifier.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if (folder / _CONFIG).exists():
            _rewrite(folder / _CONFIG, lambda content: with_former_names(content, type(classifier.config)))
        _rewrite(folder / "tokenizer_config.json", _tokenizer_with_former_names)
        write_manifest(folder, manifest)
        for path in sorted(folder.iterdir()):
            move_into_place(path, result.path(path.name))


def _rewrite(path: Path, change: Callable[[JsonObject], JsonObject]) -> None:
    text = json.dumps(change(json.loads(path.read_text(encoding="utf-8"))), ensure_ascii=False, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")


def with_former_names(content: JsonObject, kind: Any) -> JsonObject:
    """Return a configuration with the names that transformers 4 reads beside those of transformers 5.

    Transformers 4, on which many serving engines and trainers are built, takes a missing ``rope_theta`` for 10,000:
    the rewards would be others, without a word. Where transformers 5 would read the two differently, only its own stay.
    """
    former = content | {
        name: with_former_names(part, None)
        for name, part in content.items()
        if name.endswith("_config") and isinstance(part, dict)
    }
    positions = content.get("rope_parameters") or {}
    whole, local = positions.get("full_attention", positions), positions.get("sliding_attention")
    apart = {name: whole[name] for name in ("rope_theta", "partial_rotary_factor") if name in whole}
    former |= apart
    if whole.get("rope_type", "default") != "default":
        former["rope_scaling"] = {name: value for name, value in whole.items() if name not in apart}
    if local:
        former["rope_local_base_freq"] = local["rope_theta"]
    if content.get("dtype"):
        former["torch_dtype"] = content["dtype"]
    # What is read is changed in reading.
    if kind is not None and kind.from_dict(deepcopy(former)).to_dict() != kind.from_dict(deepcopy(content)).to_dict():
        return content
    return former


def _tokenizer_with_former_names(content: JsonObject) -> JsonObject:
    """Return a tokenizer's configuration that both versions read: 4 fails at the names that 5 writes."""
    special = content.get("extra_special_tokens")
    others = {key: value for key, value in content.items() if key != "extra_special_tokens"}
    former = others | {"additional_special_tokens": special} if isinstance(special, list) else content
    is_general = content.get("tokenizer_class") == "TokenizersBackend"
    return former | {"tokenizer_class": "PreTrainedTokenizerFast"} if is_general else former


def pad_id(tokenizer: Any) -> int | None:
    """Return the padding token for loaders that find the last token by it; null where it also ends texts.

    With such a token transformers would read the reward one token too early.
    """
    if tokenizer.pad_token_id is not None and tokenizer.pad_token_id != tokenizer.eos_token_id:
        return tokenizer.pad_token_id
    return None


def to_storage_type(network: RewardNetwork, dtype: str) -> None:
    """Convert the backbone to its storage type; a head stays in float32, a policy has none."""
    module = network.classifier if isinstance(network, PolicyNetwork) else network.backbone
    module.to(getattr(torch, dtype))
