"""Compute frozen layers once: keep their outputs for each row, and begin every epoch at the first trained layer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from steelyard.io.progress import log, track
from steelyard.networks.layer_states import LayerStates, Row, RowStates, end_at, split_states
from steelyard.networks.packing import num_packed_tokens, pack
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork
from steelyard.networks.scorer import Rows, Scorer
from steelyard.training.config import Config
from steelyard.training.examples import Example
from steelyard.training.memory import fits, main_memory

_DRAWS = ("dropout", "pdrop", "dropout_prob", "dropout_rate", "jitter_noise")
"""Endings of decoder settings that draw at random while training."""
_PART_OF_MEMORY = 4
"""The cache may take one of so many parts of main memory."""


@contextmanager
def feature_cache(scorer: Scorer, examples: Sequence[Example], config: Config) -> Iterator[bool]:
    """Within it the frozen layers are not computed for the rows of the examples; yields whether that is so.

    Where the decoder is frozen whole, the head's input of each row is kept; else the token states behind the layers
    below the first trained one. This happens where it is exact, fits in memory, and there is more than one epoch. The
    frozen weights must not change within it.
    """
    network: RewardNetwork = scorer.network
    number = num_constant_layers(scorer, config) if config.epochs > 1 else 0
    is_whole = number > 0 and is_constant(scorer, config)
    if not is_whole and not (number and scorer.is_packed):
        yield False
        return
    rows = [row for example in examples for row in example.rows]
    num_states = len(rows) if is_whole else sum(num_packed_tokens(example.rows) for example in examples)
    size = num_states * network.head.weight.shape[1] * (4 if is_whole else _bytes_of_state(scorer))
    if not fits(_PART_OF_MEMORY * size, main_memory()):
        yield False
        return
    prompts = [example.rows for example in examples]
    if is_whole:
        inputs = scorer.head_inputs(prompts, title="what the head reads").float().cpu()
        network.features = dict(zip(rows, inputs, strict=True))
        log(f"the decoder is frozen: what the head reads of {len(rows):,} answers is kept ({size / 2**20:,.1f} MiB)")
    else:
        network.states = LayerStates(number, states_behind(scorer, prompts, number))
        log(f"the first {number} layers are frozen: their states of {num_states:,} tokens are kept "
            f"({size / 2**20:,.1f} MiB)")  # fmt: skip
    try:
        yield True
    finally:
        network.features = network.states = None


def _bytes_of_state(scorer: Scorer) -> int:
    return next(scorer.network.backbone.parameters()).element_size() if scorer.is_autocast else 4


def is_constant(scorer: Scorer, config: Config) -> bool:
    """Return whether the head's input of a row is the same in every step: nothing below is trained or random."""
    is_trained = any(weight.requires_grad for weight in scorer.network.backbone.parameters())
    return not is_trained and num_constant_layers(scorer, config) > 0


def num_constant_layers(scorer: Scorer, config: Config) -> int:
    """Return how many first layers give the same of a row in every step: they are not trained and draw nothing."""
    network: RewardNetwork = scorer.network
    if config.adapter is not None or isinstance(network, PolicyNetwork) or not scorer.world.is_alone:
        return 0
    settings = network.classifier.config.get_text_config().to_dict()
    is_drawn = any(value for name, value in settings.items() if name.endswith(_DRAWS))
    if is_drawn or any(isinstance(module, nn.Dropout) and module.p > 0 for module in network.modules()):
        return 0
    if not any(weight.requires_grad for weight in network.backbone.parameters()):
        return network.classifier.config.get_text_config().num_hidden_layers
    if any(weight.requires_grad for weight in network.classifier.get_input_embeddings().parameters()):
        return 0
    trained = (
        place
        for place, layer in enumerate(network.layers)
        if any(weight.requires_grad for weight in layer.parameters())
    )
    return next(trained, 0)


@torch.no_grad()
def states_behind(scorer: Scorer, prompts: Sequence[Rows], number: int) -> dict[Row, RowStates]:
    """Return the token states of every row behind the first ``number`` layers, which alone are computed."""
    network: RewardNetwork = scorer.network
    states: dict[Row, RowStates] = {}
    passes = scorer.passes(prompts)
    with scorer.evaluating():
        for rows in track(passes, "states behind the frozen layers", len(passes)):
            seen: list[Tensor] = []
            autocast = torch.autocast(scorer.device.type, torch.bfloat16, enabled=scorer.is_autocast)
            with autocast, end_at(network.layers, number, seen):
                network.packed_rewards(rows, is_pruned=False)
            states |= split_states(seen[0].cpu(), pack(rows), rows)
    return states
