"""What a training changes and how: trained weights, adapter, the parameter of the loss, AdamW and its rates."""

import importlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from steelyard.core.errors import ConfigError, MissingPartError, ModelError
from steelyard.core.remedies import Advice, Remedy
from steelyard.networks.adapters import Adapter, put_adapter, store_frozen
from steelyard.networks.devices import LOCAL, Heap, World
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.config import Config, num_last_layers
from steelyard.training.losses import LOSSES, LossParameter

Group = dict[str, Any]
"""A parameter group as PyTorch's optimisers take it, with the highest rate under ``peak``."""


def prepare_network(network: RewardNetwork, config: Config) -> list[str]:
    """Add adapter and loss parameter, freeze the other weights, and return the names of the trained weights."""
    adapter = adapter_of(config)
    if adapter is not None:
        put_adapter(network, adapter, seed=config.seed)
    names = choose_trainable(network, num_last_layers(config.trainable))
    if config.number_type == "bfloat16":
        store_frozen(network)
    Heap().trim()  # memory that loading needed for a moment
    put_loss_parameter(network, config)
    return names


def adapter_of(config: Config) -> Adapter | None:
    """Return the adapter of the settings."""
    if config.adapter is None:
        return None
    return Adapter(
        config.adapter, config.adapter_rank, config.adapter_alpha, config.adapter_dropout, config.adapter_layers
    )


def choose_trainable(network: RewardNetwork, num_last_layers: int | None) -> list[str]:
    """Freeze all but the last layers, the final norm and the head, and return the names of the trained weights.

    Null trains all weights. Raises ModelError where the decoder's layers cannot be identified, ConfigError for more
    layers than the decoder has.
    """
    if num_last_layers is not None:
        trained = {*network.head.parameters(), *_last_parameters(network, num_last_layers)}
        for weight in network.parameters():
            weight.requires_grad_(weight in trained)
    return [name for name, weight in network.classifier.named_parameters() if weight.requires_grad]


def _last_parameters(network: RewardNetwork, number: int) -> Iterator[torch.nn.Parameter]:
    if number == 0:
        return
    parts = list(network.backbone.children())
    layers = [part for part in parts if isinstance(part, torch.nn.ModuleList)]
    if len(layers) != 1:
        raise ModelError(
            "cannot identify the decoder's layers", do=Advice("train all, or the head: ", Remedy("trainable", "head"))
        )
    if number > len(layers[0]):
        raise ConfigError(
            f"trainable is 'last:{number}', and the model has {len(layers[0])} layers",
            where="train",
            allowed=f"all, head, or last:1 to last:{len(layers[0])}",
        )
    # What follows the layers is the final norm, whatever the family calls it.
    for part in (*list(layers[0])[-number:], *parts[parts.index(layers[0]) + 1 :]):
        yield from part.parameters()


def put_loss_parameter(network: RewardNetwork, config: Config) -> None:
    """Give the network the learned parameter of its loss, or none where the loss has none.

    It is on the network, so that optimiser and checkpoints have it, and in no saved weight file: it belongs to the loss
    and not to the reward. The manifest keeps its last value.
    """
    parameter = _parameter_of(config)
    network.tie = None
    if parameter is not None:
        network.tie = torch.nn.Parameter(torch.full((1,), parameter.start, dtype=torch.float32))


def _parameter_of(config: Config) -> LossParameter | None:
    """Return the learned parameter of the loss; none for ratings without pairs, whose scale nothing depends on."""
    loss = LOSSES[config.loss]
    return None if loss.rating_link is not None and not config.pair_weight else loss.parameter


def loss_parameter(network: RewardNetwork, config: Config) -> dict[str, float]:
    """Return the learned parameter by its name, or nothing where the loss has none."""
    parameter = _parameter_of(config)
    return {} if network.tie is None or parameter is None else {parameter.name: network.tie.item()}


def parameter_groups(network: RewardNetwork, config: Config) -> list[Group]:
    """Return the optimiser's groups, each with its ``peak`` rate: the weights, and the parameter of the loss.

    The parameter has its own rate: at a rate for weights it would hardly change during a whole training.
    """
    tie, rate = network.tie, config.learning_rate
    weights = [weight for weight in network.parameters() if weight.requires_grad and weight is not tie]
    groups: list[Group] = [{"params": weights, "peak": rate, "lr": rate}]
    if tie is not None:
        rate = config.tie_learning_rate
        groups.append({"params": [tie], "peak": rate, "weight_decay": 0.0, "lr": rate})
    return groups


def make_optimiser(network: RewardNetwork, config: Config, *, world: World = LOCAL) -> torch.optim.Optimizer:
    """Return AdamW over the trained weights, with moments in float32, or in 8 bits by torchao.

    Raises MissingPartError where 8 bits are set without torchao, ConfigError where many processes would divide them:
    their blocks cannot be gathered into a checkpoint.
    """
    groups = parameter_groups(network, config)
    if config.optimiser == "adamw":
        # One pass over the weights instead of a dozen: 11 M of them took 0.12 CPU seconds a step.
        return torch.optim.AdamW(groups, weight_decay=config.weight_decay, fused=True)
    if not world.is_alone:
        raise ConfigError(
            f"optimiser={config.optimiser} in {world.size} processes",
            where="train",
            allowed="optimiser=adamw",
            do="its moments are divided among them",
        )
    try:
        optimiser = importlib.import_module("torchao.optim").AdamW8bit
    except ImportError as error:
        raise MissingPartError(
            "optimiser=adamw-8bit needs the package torchao", do="pip install 'steelyard[eight-bit]'"
        ) from error
    return optimiser(groups, weight_decay=config.weight_decay)


def update(optimiser: torch.optim.Optimizer, *, is_skipped: Bool[Tensor, ""]) -> None:
    """Let the optimiser step, and forget the gradients. A step that is skipped leaves weights and moments unchanged.

    A fused optimiser decides that on its device, without waiting for it; the host decides for others.
    """
    is_fused = bool(optimiser.defaults.get("fused"))
    if is_fused:
        vars(optimiser)["found_inf"] = is_skipped.float()  # as a gradient scaler sets it
    if is_fused or not is_skipped:
        optimiser.step()
    optimiser.zero_grad(set_to_none=True)


def set_rates(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Set each group's rate to its peak times the factor; a rate that is a tensor, as when compiled, stays one."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["peak"] * factor)
        else:
            group["lr"] = group["peak"] * factor


def learning_rate_factor(step: int, num_steps: int, *, warmup_ratio: float, schedule: str) -> float:
    """Return the factor of the peak learning rate at ``step``, from 0 to ``num_steps`` - 1; in (0, 1].

    ``warmup_ratio`` is the share of the steps over which the factor rises in equal parts to 1. Then it stays there
    (``constant``), or falls to 0 along half a cosine or in a straight line (``linear``), reaching it at ``num_steps``.
    """
    num_warmup = math.ceil(warmup_ratio * num_steps)
    if step < num_warmup:
        return (step + 1) / num_warmup
    if schedule == "constant":
        return 1.0
    passed = (step - num_warmup) / max(1, num_steps - num_warmup)
    if schedule == "linear":
        return 1 - passed
    return 0.5 * (1 + math.cos(math.pi * passed))
