"""Adapters (LoRA, DoRA; through peft): added to a backbone, saved with the head, merged into the weights.

By default peft does not save the head with an adapter, and a folder without it scores at random: here it is always
trained, and always saved and loaded with the adapter.
"""

import hashlib
import importlib
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from steelyard.core.errors import ConfigError, MissingPartError, ModelError
from steelyard.core.numerics import derived_seed
from steelyard.networks.pretrained import load_pretrained
from steelyard.networks.reward_network import RewardNetwork

ADAPTER_FILE = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"
_INSIDE = "base_model.model."
"""The prefix that peft gives to the name of every weight of the model that it wraps."""
_HEAD = f"{_INSIDE}score."
_BASE = "base_fingerprint"
_NUM_SAMPLED = 64
"""Numbers of each weight that the fingerprint of a backbone depends on."""


class Adapter(NamedTuple):
    """Settings of an adapter, whose product of low-rank factors is scaled by ``alpha / rank``.

    ``layers``: names of linear layers, or ``all-linear``.
    """

    kind: Literal["lora", "dora"]
    rank: int
    alpha: float
    dropout: float
    layers: str | tuple[str, ...]


def put_adapter(network: RewardNetwork, adapter: Adapter, *, seed: int) -> None:
    """Freeze all weights but the head's, and add the adapter to the backbone; at first it changes no reward.

    Raises ConfigError for layers that the backbone lacks, MissingPartError without peft.
    """
    peft = _peft()
    settings = peft.LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,
        lora_dropout=adapter.dropout,
        use_dora=adapter.kind == "dora",
        target_modules=adapter.layers if adapter.layers == "all-linear" else list(_names(adapter.layers)),
    )
    _inject(network, settings, seed=seed)
    adapted = [f".{place}" for place, _ in _adapted(network)]
    unmatched = [name for name in _names(adapter.layers) if not any(place.endswith(f".{name}") for place in adapted)]
    if unmatched and adapter.layers != "all-linear":
        raise ConfigError(f"adapter_layers names {', '.join(unmatched)}", where="train", allowed=_linear(network))


def _names(layers: str | tuple[str, ...]) -> tuple[str, ...]:
    return (layers,) if isinstance(layers, str) else layers


def _linear(network: RewardNetwork) -> str:
    modules = network.backbone.named_modules()
    names = {name.rpartition(".")[2] for name, module in modules if type(module) is torch.nn.Linear}
    return ", ".join(("all-linear", *sorted(names)))


def _inject(network: RewardNetwork, settings: Any, *, seed: int) -> None:
    # peft draws the factors from the global generator: forked, so that training's draws do not depend on them.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, "adapter"))
        try:
            _peft().inject_adapter_in_model(settings, network.backbone)
        except ValueError as error:
            raise ConfigError(
                f"the adapter does not fit the model ({str(error).splitlines()[0]})",
                where="adapter_layers",
                allowed=_linear(network),
            ) from error
    adapted = {id(weight) for name, weight in network.backbone.named_parameters() if ".lora_" in name}
    for weight in network.parameters():
        weight.requires_grad_(id(weight) in adapted)
    # The head is outside the backbone: peft neither adapts it nor marks it as trained.
    for weight in network.head.parameters():
        weight.requires_grad = True


def _adapted(network: RewardNetwork) -> list[tuple[str, Any]]:
    """Return the layers of the backbone that have an adapter, with their names."""
    tuner = importlib.import_module("peft.tuners.tuners_utils").BaseTunerLayer
    return [(name, module) for name, module in network.backbone.named_modules() if isinstance(module, tuner)]


class SavedAdapter(NamedTuple):
    """An adapter without its head: peft's settings, the weights by peft's names, and the fingerprint of the base."""

    settings: Any
    weights: dict[str, Tensor]
    fingerprint: str


def saved_adapter(network: RewardNetwork, *, base: str, fingerprint: str) -> SavedAdapter:
    """Return the adapter in main memory; ``base`` is the folder or hub name of its base model."""
    peft = _peft()
    backbone: Any = network.backbone
    inside = f"{_INSIDE}{network.classifier.base_model_prefix}."
    state = peft.get_peft_model_state_dict(backbone)
    weights = {f"{inside}{name}": weight.detach().cpu().contiguous() for name, weight in state.items()}
    settings = peft.LoraConfig(**backbone.peft_config["default"].to_dict())
    # By these two peft's own loaders restore the head, which `write_adapter` puts into the same file.
    settings.task_type, settings.modules_to_save, settings.inference_mode = "SEQ_CLS", ["score"], True
    settings.base_model_name_or_path = str(Path(base).resolve()) if Path(base).is_dir() else base
    return SavedAdapter(settings, weights, fingerprint)


def write_adapter(folder: Path, saved: SavedAdapter, head: torch.nn.Linear) -> None:
    """Write the adapter and the head as peft does; `load_adapter` refuses a base with another ``fingerprint``."""
    from safetensors.torch import save_file

    of_head = {f"{_HEAD}{name}": weight.detach().cpu() for name, weight in head.named_parameters()}
    saved.settings.save_pretrained(str(folder))
    save_file(saved.weights | of_head, folder / _WEIGHTS, metadata={"format": "pt", _BASE: saved.fingerprint})


def fingerprint_of(network: RewardNetwork) -> str:
    """Return a hash of the backbone's shapes and of a sample of each weight, as loaded in float32."""
    digest = hashlib.sha256()
    for name, weight in network.backbone.named_parameters():
        # A strided sample: hashing every number would read gigabytes.
        sample = weight.detach().flatten()[:: max(1, weight.numel() // _NUM_SAMPLED)][:_NUM_SAMPLED].float().cpu()
        digest.update(f"{name} {tuple(weight.shape)}".encode() + sample.numpy().tobytes())
    return digest.hexdigest()


def base_of(folder: Path) -> str:
    """Return the base model of an adapter folder. Raises ModelError where it is not recorded or does not exist."""
    base = load_pretrained(_peft().PeftConfig, folder).base_model_name_or_path
    if not base:
        raise ModelError("an adapter that does not name its base model", where=str(folder), do="merge it with its base")
    if base.startswith(("/", ".", "~")) and not Path(base).expanduser().is_dir():
        raise ModelError(
            f"an adapter whose base model is not there: {base}",
            where=str(folder),
            do=f"put the base back, or write its new place into {ADAPTER_FILE}",
        )
    return base


def load_adapter(network: RewardNetwork, folder: Path, *, dtype: str) -> bool:
    """Merge a saved adapter into its base, loaded in float32; return whether it includes a head.

    The base is rounded to ``dtype`` first, as in training. Raises ModelError for another base than the adapter's.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(folder / _WEIGHTS, framework="pt") as file:
            fingerprint = (file.metadata() or {}).get(_BASE)
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dictionary
    except FileNotFoundError as error:
        problem, do = f"an adapter without its weights: there is no {_WEIGHTS}", "copy or download the whole folder"
        raise ModelError(problem, where=str(folder), do=do) from error
    except SafetensorError as error:
        problem = f"the adapter's weights are broken ({error})"
        raise ModelError(problem, where=str(folder / _WEIGHTS), do="copy or download the file again") from error
    if fingerprint not in (None, fingerprint_of(network)):
        raise ModelError("an adapter of another base model", where=str(folder), do=f"check the base in {ADAPTER_FILE}")
    settings = load_pretrained(_peft().PeftConfig, folder)
    # The head is loaded below: peft would wrap it in a module of its own.
    settings.modules_to_save = settings.task_type = None
    _inject(network, settings, seed=0)
    inside = f"{_INSIDE}{network.classifier.base_model_prefix}."
    state = {name.removeprefix(inside): weight for name, weight in weights.items() if name.startswith(inside)}
    keys = _peft().set_peft_model_state_dict(network.backbone, state)
    missing = [name for name in keys.missing_keys if ".lora_" in name]
    if missing or keys.unexpected_keys:
        first = (*missing, *keys.unexpected_keys)[0]
        raise ModelError(f"an adapter that does not fit its base: {first}", where=str(folder))
    head = {name.removeprefix(_HEAD): weight for name, weight in weights.items() if name.startswith(_HEAD)}
    if head:
        network.head.load_state_dict(head)
    # Training fitted the adapter to the rounded base: the merge must begin at the same numbers.
    if dtype == "bfloat16":
        store_frozen(network)
    merge_adapter(network)
    return bool(head)


def store_frozen(network: RewardNetwork) -> None:
    """Round frozen weights to bfloat16: they need no float32 master copy, and take half the memory and bandwidth."""
    for weight in network.parameters():
        if not weight.requires_grad:
            weight.data = weight.data.to(torch.bfloat16)


def merge_adapter(network: RewardNetwork) -> None:
    """Merge the adapter into the weights, at least in float32, and remove it from the backbone."""
    for weight in network.backbone.parameters():
        # An adapter's product is small beside its weight: added in bfloat16, most of it would be rounded away.
        if weight.dtype == torch.bfloat16:
            weight.data = weight.data.float()
    for name, layer in _adapted(network):
        layer.merge()
        network.backbone.set_submodule(name, layer.get_base_layer())
    backbone: Any = network.backbone
    del backbone.peft_config


def _peft() -> Any:
    try:
        return importlib.import_module("peft")
    except ImportError as error:
        raise MissingPartError.of_import(error, "peft", "'steelyard[train]'") from error
