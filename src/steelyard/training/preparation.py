"""The network before training: adapter, frozen weights, the parameter of the loss, a policy's reference."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch

from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.types import Case
from steelyard.io.progress import log
from steelyard.networks.adapters import Adapter, put_adapter, store_frozen
from steelyard.networks.answer_tokens import AnswerTokens
from steelyard.networks.conversation import Rendering
from steelyard.networks.devices import Heap
from steelyard.networks.reward_network import AnswerReference, PolicyNetwork, RewardNetwork, Row
from steelyard.networks.scorer import Scorer
from steelyard.training.config import Config, num_last_layers
from steelyard.training.examples import Example
from steelyard.training.gradient_accumulation import put_loss_parameter


def prepare_network(network: RewardNetwork, config: Config) -> list[str]:
    """Add adapter and loss parameter, freeze what is not trained, and return the names of the trained weights."""
    adapter = adapter_of(config)
    if adapter is not None:
        put_adapter(network, adapter, seed=config.seed)
    names = list(choose_trainable(network, num_last_layers(config.trainable)))
    if config.dtype == "bfloat16":
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


def choose_trainable(network: RewardNetwork, num_last_layers: int | None) -> Iterator[str]:
    """Freeze all but the last layers, the final norm and the head; yields the names of the trained weights.

    Null trains all weights. Raises ModelError where the decoder's layers cannot be identified.
    """
    if num_last_layers is not None:
        trained = {*network.head.parameters(), *_last_parameters(network, num_last_layers)}
        for weight in network.parameters():
            weight.requires_grad_(weight in trained)
    for name, weight in network.classifier.named_parameters():
        if weight.requires_grad:
            yield name


def _last_parameters(network: RewardNetwork, number: int) -> Iterator[torch.nn.Parameter]:
    if number == 0:
        return
    children = dict(network.backbone.named_children())
    layers = [child for child in children.values() if isinstance(child, torch.nn.ModuleList)]
    if len(layers) != 1:
        raise ModelError("cannot identify the decoder's layers", do="train all, or the head: --set trainable=head")
    for layer in list(layers[0])[-number:]:
        yield from layer.parameters()
    after = list(children.values()).index(layers[0]) + 1
    for child in list(children.values())[after:]:  # the final norm, whatever the family calls it
        yield from child.parameters()


def answer_starts(cases: Iterable[Case], tokenizer: Any, rendering: Rendering) -> dict[Row, int]:
    """Return where the answer of each row begins, in tokens; rows whose answers are several turns have no entry."""
    answers = AnswerTokens(tokenizer, rendering, with_header=False)
    rows = chain.from_iterable(answers.rows(case) for case in cases)
    # No token can be likely or unlikely before the first one.
    return {row.ids: max(row.start, 1) for row in rows if row is not None and row.start < len(row.ids)}


def remember_reference(
    scorer: Scorer, examples: Sequence[Example], starts: dict[Row, int], *, reference_free: bool
) -> None:
    """Store in a policy where answers begin, and their log-probabilities under its untrained weights.

    The reference is the policy before training, so that no second model is kept in memory. Raises ConfigError for an
    answer whose beginning is unknown.
    """
    network: PolicyNetwork = scorer.network
    rows = [row for example in examples for row in example.rows]
    unknown = sum(row not in starts for row in rows)
    if unknown:
        raise ConfigError(
            f"{unknown} answers are empty or of several turns: a policy's answer is one turn",
            where="train",
            do="leave them out, or train a classifier",
        )
    network.references.update({row: AnswerReference(starts[row], 0.0) for row in rows})
    if reference_free:
        return
    with scorer.evaluating():
        rewards = scorer.rewards([example.rows for example in examples])
    logs = (rewards.double() / network.beta).tolist()
    network.references.update({row: AnswerReference(starts[row], value) for row, value in zip(rows, logs, strict=True)})
    log(f"the reference has scored {len(rows):,} answers")
