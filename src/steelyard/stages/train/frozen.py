"""A frozen decoder is asked once: what the head reads of each row is kept, and every epoch trains the head on that."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from steelyard.files.talk import say
from steelyard.methods.training.memory import fits
from steelyard.plugins.models._policy import PolicyNetwork
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.loop import is_packed
from steelyard.stages.train.memory import main_memory
from steelyard.stages.train.processes import current
from steelyard.stages.train.scoring import order_of, score_within
from steelyard.stages.train.settings import Config

_DRAWS = ("dropout", "pdrop", "dropout_prob", "dropout_rate", "jitter_noise")
"""How the settings of a decoder end that draw at random while training."""
_SHARE_KEPT = 4
"""What is kept may take one part of main memory in so many."""


@contextmanager
def kept_features(network: RewardNetwork, examples: Sequence[Example], config: Config) -> Iterator[bool]:
    """Within it the rows of the examples are scored by what is kept of them, where that is exact; whether they are.

    One epoch alone is not worth it. The weights of the decoder must not change within it.
    """
    is_kept = config.epochs > 1 and is_constant(network, config)
    rows = [row for example in examples for row in example.rows]
    size = len(rows) * network.head.weight.shape[1] * 4
    if not is_kept or not fits(_SHARE_KEPT * size, main_memory()):
        yield False
        return
    states = head_inputs(network, [example.rows for example in examples], config).float().cpu()
    network.features = dict(zip(rows, states, strict=True))
    say(f"the decoder is frozen: what the head reads of {len(rows):,} answers is kept ({size / 2**20:,.1f} MiB)")
    try:
        yield True
    finally:
        network.features = None


def is_constant(network: RewardNetwork, config: Config) -> bool:
    """Whether the head reads the same of a row in every step: nothing below it is trained, or drawn at random."""
    if config.adapter is not None or isinstance(network, PolicyNetwork) or not current().is_alone:
        return False
    told = network.classifier.config.get_text_config().to_dict()
    is_drawn = any(value for name, value in told.items() if name.endswith(_DRAWS))
    has_dropout = any(isinstance(module, nn.Dropout) and module.p > 0 for module in network.modules())
    return not is_drawn and not has_dropout and not any(one.requires_grad for one in network.backbone.parameters())


def head_inputs(network: RewardNetwork, prompts: Sequence[tuple[tuple[int, ...], ...]], config: Config) -> Tensor:
    """What the head reads of every row, prompt by prompt: shape (row, hidden), without a graph."""
    seen: list[Tensor] = []

    def see(_: nn.Module, given: tuple[Any, ...]) -> None:
        seen.append(given[0].detach())

    packed, was_training = is_packed(network, config), network.training
    hook = network.head.register_forward_pre_hook(see)
    network.eval()
    try:
        score_within(network, prompts, config, is_packed=packed, title="what the head reads")
    finally:
        hook.remove()
        network.train(was_training)
    found = torch.cat(seen)
    if packed:
        return found
    return torch.empty_like(found).index_copy(0, order_of(prompts, config).to(found.device), found)
