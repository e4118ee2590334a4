"""The network that a training starts from, and what of it is trained: last layers, adapter, parameter of the loss."""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple

import torch

from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.remedies import Advice, Remedy
from steelyard.io.progress import log_detail
from steelyard.networks.adapters import Adapter, fingerprint_of, put_adapter, store_frozen
from steelyard.networks.devices import Heap, World
from steelyard.networks.loading import initialise_head, load_causal, load_network
from steelyard.networks.reward_network import PolicyNetwork, RewardNetwork
from steelyard.training.config import Config, num_last_layers
from steelyard.training.distributed import load_on_first
from steelyard.training.losses import LOSSES, LossParameter


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
    # What follows the layers is the final norm, under any name.
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


class StartingNetwork(NamedTuple):
    """The network that a training starts from, and the fingerprint of its backbone, which the first process has."""

    network: RewardNetwork
    fingerprint: str


def load_start(model: str, config: Config) -> tuple[RewardNetwork, bool]:
    """Return the network of the model, and whether its head is trained; a policy needs none."""
    if config.kind == "implicit":
        policy = load_causal(model, dtype="float32")
        return PolicyNetwork(policy, beta=config.beta, is_mean=config.answer_reduction == "avg"), True
    return load_network(model, dtype="float32")


def receive_start(loading: Future[tuple[RewardNetwork, bool]], config: Config, *, world: World) -> StartingNetwork:
    """Wait for the network of `load_start`, and give it a head where it has none. Raises the errors of loading."""

    def with_head() -> RewardNetwork:
        network, is_trained = loading.result()
        if not is_trained:
            log_detail("the model has no reward head: a fresh one is drawn from the seed")
            initialise_head(network, seed=config.seed)
        return network

    network = load_on_first(with_head, world=world)
    return StartingNetwork(network, fingerprint_of(network) if world.is_first else "")
