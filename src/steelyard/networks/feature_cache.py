"""Outputs of frozen layers, computed once for each row: every epoch then begins at the first trained layer."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from steelyard.io.progress import log_detail, track
from steelyard.networks.devices import fits, main_memory
from steelyard.networks.packing import Pack, num_packed_tokens, num_shared_tokens, pack
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork, Row
from steelyard.networks.scorer import Rows, Scorer

States = Float[Tensor, "token size"]
_RANDOM_SETTINGS = ("dropout", "pdrop", "dropout_prob", "dropout_rate", "jitter_noise")
"""Endings of decoder settings that draw at random while training."""
_PART_OF_MEMORY = 4
"""The cache may take a quarter of main memory."""


class HeadInputs(NamedTuple):
    """The head's input for each row; the decoder is frozen whole."""

    rows: Mapping[Row, Float[Tensor, " hidden"]]

    def rewards(self, network: RewardNetwork, prompts: Sequence[Rows]) -> Float[Tensor, " answer"] | None:
        """Return the rewards of all rows, prompt by prompt; null where a row is not cached."""
        if not all(row in self.rows for rows in prompts for row in rows):
            return None
        head = network.head
        inputs = torch.stack([self.rows[row] for rows in prompts for row in rows])
        with torch.autocast(head.weight.device.type, enabled=False):
            return head(inputs.to(head.weight.device, head.weight.dtype))[:, 0]


class RowStates(NamedTuple):
    """The states of a row: those of the tokens that its prompt's rows share (one tensor for all), and the rest."""

    shared: States
    rest: States

    def after(self, num_tokens: int) -> States:
        """Return the states after the first ``num_tokens`` tokens."""
        cut = num_tokens - len(self.shared)
        return self.rest[cut:] if cut >= 0 else torch.cat([self.shared[num_tokens:], self.rest])


class LayerStates(NamedTuple):
    """The token states of each row after the first ``num_layers`` decoder layers, which are frozen."""

    num_layers: int
    rows: Mapping[Row, RowStates]

    def rewards(self, network: RewardNetwork, prompts: Sequence[Rows]) -> Float[Tensor, " answer"] | None:
        """Return the rewards of a pack, computed from the first trained layer on; null where a row is not cached."""
        states = self.of_pack(prompts)
        if states is None:
            return None
        with begin_at(network.layers, self.num_layers, states.to(network.head.weight.device)):
            return network.packed_rewards(prompts)

    def of_pack(self, prompts: Sequence[Rows]) -> States | None:
        """Return the states of these prompts in the order of their pack; null where a row is not cached."""
        parts: list[States] = []
        for rows in prompts:
            shared = num_shared_tokens(rows)
            for place, row in enumerate(rows):
                if row not in self.rows:
                    return None
                parts.append(self.rows[row].after(0 if place == 0 else shared))
        return torch.cat(parts)


@contextmanager
def feature_cache(scorer: Scorer, prompts: Sequence[Rows]) -> Iterator[bool]:
    """Within it the scorer does not compute the frozen layers for these prompts; yields whether that is so.

    Where the decoder is frozen whole, the head's input of each row is kept; else, for packed prompts, the token states
    after the layers below the first trained one. This happens where it is exact and fits in memory. The frozen weights
    must not change within it.
    """
    network: RewardNetwork = scorer.network
    num_layers = num_constant_layers(scorer)
    is_whole = num_layers > 0 and not any(weight.requires_grad for weight in network.backbone.parameters())
    if not is_whole and not (num_layers and scorer.is_packed):
        yield False
        return
    rows = [row for prompt in prompts for row in prompt]
    num_states = len(rows) if is_whole else sum(map(num_packed_tokens, prompts))
    # The head computes in float32: its inputs are not rounded.
    is_half = scorer.is_autocast and not is_whole
    bytes_of_number = next(network.backbone.parameters()).element_size() if is_half else 4
    size = num_states * network.head.weight.shape[1] * bytes_of_number
    if not fits(_PART_OF_MEMORY * size, main_memory()):
        yield False
        return
    if is_whole:
        inputs = scorer.head_inputs(prompts, title="inputs of the head").float().cpu()
        scorer.cache = HeadInputs(dict(zip(rows, inputs, strict=True)))
        log_detail(
            f"the decoder is frozen: the head's inputs of {len(rows):,} answers are cached ({size / 2**20:,.1f} MiB)"
        )
    else:
        scorer.cache = LayerStates(num_layers, states_after(scorer, prompts, num_layers))
        log_detail(f"the first {num_layers} layers are frozen: their states of {num_states:,} tokens are cached "
            f"({size / 2**20:,.1f} MiB)")  # fmt: skip
    try:
        yield True
    finally:
        scorer.cache = None


def num_constant_layers(scorer: Scorer) -> int:
    """Return how many first layers give equal outputs for a row in every step: frozen, and without random draws."""
    network: RewardNetwork = scorer.network
    # A policy scores every token with its output layer. Divided layers gather weights in all processes at once: none
    # may be left out.
    if isinstance(network, PolicyNetwork) or not scorer.world.is_alone:
        return 0
    settings = network.classifier.config.get_text_config()
    is_random = any(value for name, value in settings.to_dict().items() if name.endswith(_RANDOM_SETTINGS))
    # An adapter's dropout is a module, and in no setting of the decoder.
    if is_random or any(isinstance(module, nn.Dropout) and module.p > 0 for module in network.modules()):
        return 0
    if not any(weight.requires_grad for weight in network.backbone.parameters()):
        return settings.num_hidden_layers
    if any(weight.requires_grad for weight in network.classifier.get_input_embeddings().parameters()):
        return 0
    is_trained = [any(weight.requires_grad for weight in layer.parameters()) for layer in network.layers]
    return is_trained.index(True) if True in is_trained else 0


@torch.no_grad()
def states_after(scorer: Scorer, prompts: Sequence[Rows], num_layers: int) -> dict[Row, RowStates]:
    """Return the token states of every row after the first ``num_layers`` layers; later layers are not computed."""
    network: RewardNetwork = scorer.network
    states: dict[Row, RowStates] = {}
    passes = scorer.passes(prompts)
    with scorer.evaluating():
        for rows in track(passes, "states after the frozen layers", len(passes)):
            outputs: list[States] = []
            autocast = torch.autocast(scorer.device.type, torch.bfloat16, enabled=scorer.is_autocast)
            with autocast, end_at(network.layers, num_layers, outputs):
                network.packed_rewards(rows, is_pruned=False)
            states |= _split_states(outputs[0].cpu(), pack(rows), rows)
    return states


def _split_states(states: States, packed: Pack, prompts: Sequence[Rows]) -> Iterator[tuple[Row, RowStates]]:
    """Yield the states of a pack, row by row."""
    for branch, rows in zip(packed.branches, prompts, strict=True):
        # Cloned: a slice would keep the states of the whole pack in memory.
        shared = states[branch.start : branch.start + branch.num_shared].clone()
        ends = [branch.start + branch.num_shared]
        for tail in branch.tails:
            ends.append(ends[-1] + tail)
        for row, (start, end) in zip(rows, pairwise(ends), strict=True):
            yield row, RowStates(shared, states[start:end].clone())


@contextmanager
def begin_at(layers: Sequence[Any], num_layers: int, states: States) -> Iterator[None]:
    """Within it the first ``num_layers`` layers compute nothing, and the next one gets ``states`` as its input."""

    def cached(hidden: Tensor, *_: Any, **__: Any) -> Tensor:
        # The pack may end in filler (`fill_up`), whose states are not cached and not read.
        return torch.nn.functional.pad(states, (0, 0, 0, hidden.shape[1] - len(states)))[None]

    with _replaced(layers[: num_layers - 1], _identity), _replaced(layers[num_layers - 1 : num_layers], cached):
        yield


@contextmanager
def end_at(layers: Sequence[Any], num_layers: int, outputs: list[States]) -> Iterator[None]:
    """Within it layers after the first ``num_layers`` compute nothing; the states before them go into ``outputs``."""
    # `append` returns None, so that the hook leaves the output as it is.
    hook = layers[num_layers - 1].register_forward_hook(lambda _, __, output: outputs.append(output[0].detach()))
    try:
        with _replaced(layers[num_layers:], _identity):
            yield
    finally:
        hook.remove()


def _identity(hidden: Tensor, *_: Any, **__: Any) -> Tensor:
    return hidden


@contextmanager
def _replaced(layers: Sequence[Any], forward: Any) -> Iterator[None]:
    # A compiled or recomputing layer has its forward in its own dictionary: that one is put back.
    before = [vars(layer).get("forward") for layer in layers]
    for layer in layers:
        layer.forward = forward
    try:
        yield
    finally:
        for layer, former in zip(layers, before, strict=True):
            vars(layer).pop("forward")
            if former is not None:
                layer.forward = former
