"""The optimiser that the settings name, and its rates from step to step."""

import importlib

import torch
from torch import Tensor

from steelyard.core.errors import ConfigError, MissingPartError
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.processes import current
from steelyard.stages.train.settings import Config
from steelyard.stages.train.tie_parameter import parameter_groups


def make_optimiser(network: RewardNetwork, config: Config) -> torch.optim.Optimizer:
    """AdamW over what is trained, with moments in float32, or in 8 bits by torchao.

    Raises MissingPartError where 8 bits are asked for without torchao, ConfigError where many processes would divide
    them: their blocks cannot be gathered into a checkpoint.
    """
    groups = parameter_groups(network, config)
    if config.optimiser == "adamw":
        return torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    if not current().is_alone:
        found = f"optimiser={config.optimiser} in {current().number} processes"
        raise ConfigError(found, where="train", allowed="optimiser=adamw", do="its moments are divided among them")
    try:
        made = importlib.import_module("torchao.optim").AdamW8bit
    except ImportError as error:
        found = "optimiser=adamw-8bit needs the package torchao"
        raise MissingPartError(found, do="pip install 'steelyard[eight-bit]'") from error
    return made(groups, weight_decay=config.weight_decay)


def set_rates(optimiser: torch.optim.Optimizer, factor: float) -> None:
    """Each group's rate is its peak times the factor; one that is a tensor, as compiled optimisers want, stays one."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(group["peak"] * factor)
        else:
            group["lr"] = group["peak"] * factor
