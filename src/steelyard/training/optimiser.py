"""Parts that a training changes, and how: trained weights, adapter, the parameter of the loss, AdamW and its rates."""

import importlib
import math
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from steelyard.core.errors import ConfigError, MissingPartError
from steelyard.networks.devices import LOCAL, World
from steelyard.networks.reward_network import RewardNetwork
from steelyard.training.config import Config

Group = dict[str, Any]
"""A parameter group as PyTorch's optimisers take it, with the highest rate under ``peak``."""


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
        raise MissingPartError.of_import(error, "torchao", "'steelyard[eight-bit]'") from error
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
