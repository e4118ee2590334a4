"""The training loop: one loss over all pairs of a step, each response forwarded once."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from steelyard.core.errors import ModelError
from steelyard.core.seeds import derived_seed, generator
from steelyard.methods.training.batching import Slot, Step, forward_groups, greedy_steps, whole_steps
from steelyard.methods.training.losses import PairBatch, bradley_terry_loss, gaussian_regulariser
from steelyard.methods.training.schedules import learning_rate_factor
from steelyard.plugins.models._network import RewardNetwork, padded
from steelyard.stages.train.examples import Example
from steelyard.stages.train.settings import Config


class Point(NamedTuple):
    """One step of the training curve. ``loss`` is ``pair_loss`` plus the weighted ``regulariser``."""

    step: int
    epoch: int
    loss: float
    pair_loss: float
    regulariser: float
    learning_rate: float
    num_pairs: int


class Planned(NamedTuple):
    """A step and the epoch it belongs to, counted from 0."""

    epoch: int
    slots: Step


def plan(examples: Sequence[Example], config: Config) -> tuple[Planned, ...]:
    """Every step of every epoch, in order; steps in which no pair has both its ends are left out."""
    sizes = [len(example.rows) for example in examples]
    steps: list[Planned] = []
    for epoch in range(config.epochs):
        rng = generator(config.seed, "order", epoch)
        if config.batching == "whole":
            chosen = whole_steps(sizes, config.prompts_per_step, rng)
        else:
            chosen = greedy_steps(sizes, config.slots, rng)
        steps += [Planned(epoch, slots) for slots in chosen if pairs_in(slots, examples) is not None]
    return tuple(steps)


def pairs_in(slots: Step, examples: Sequence[Example]) -> PairBatch | None:
    """The pairs with both ends in the step, or null if there is none."""
    place = {slot: index for index, slot in enumerate(slots)}
    prompts = list(dict.fromkeys(slot.prompt for slot in slots))
    columns: list[tuple[int, int, float, float, int]] = []
    for number, prompt in enumerate(prompts):
        for pair in examples[prompt].pairs:
            better, worse = place.get(Slot(prompt, pair.better)), place.get(Slot(prompt, pair.worse))
            if better is not None and worse is not None:
                columns.append((better, worse, pair.weight, pair.margin, number))
    if not any(column[2] > 0 for column in columns):
        return None
    better, worse, weight, margin, prompt = zip(*columns, strict=True)
    return PairBatch(
        torch.tensor(better), torch.tensor(worse), torch.tensor(weight), torch.tensor(margin), torch.tensor(prompt)
    )


def score_step(network: RewardNetwork, rows: Sequence[Sequence[int]], config: Config) -> Tensor:
    """The rewards of all rows of a step, with gradients, in order: length-sorted padded passes, each row in one."""
    groups = forward_groups([len(row) for row in rows], max_tokens=config.tokens_per_forward)
    device = network.head.weight.device
    parts: list[Tensor] = []
    with torch.autocast(device.type, torch.bfloat16, enabled=config.dtype == "bfloat16"):
        for group in groups:
            ids, attended = padded([rows[index] for index in group], filler=0)
            parts.append(network(ids.to(device), attended.to(device)))
    order = torch.tensor([index for group in groups for index in group], device=device)
    scores = torch.cat(parts)
    return torch.empty_like(scores).index_copy(0, order, scores)


def fit(
    network: RewardNetwork,
    examples: Sequence[Example],
    steps: Sequence[Planned],
    config: Config,
    *,
    after_step: Callable[[Point], None],
) -> None:
    """Train in place. Raises ModelError when loss, gradient or the trained model's rewards are not finite."""
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=config.learning_rate, weight_decay=config.weight_decay)
    with torch.random.fork_rng():
        torch.manual_seed(derived_seed(config.seed, "dropout"))
        network.train()
        for number, planned in enumerate(steps):
            factor = learning_rate_factor(number, len(steps), warm_up=config.warm_up, schedule=config.schedule)
            for group in optimiser.param_groups:
                group["lr"] = config.learning_rate * factor
            point = _one_step(network, examples, planned, config, number=number, rate=config.learning_rate * factor)
            norm = torch.nn.utils.clip_grad_norm_(trained, config.max_gradient_norm)
            _check_finite(norm, "gradient's norm", point.step)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            after_step(point)
        with torch.no_grad():
            # The last step has no next loss that would show what it did.
            _check_finite(score_step(network, examples[0].rows, config).sum(), "sum of rewards", len(steps))


def _one_step(
    network: RewardNetwork, examples: Sequence[Example], planned: Planned, config: Config, *, number: int, rate: float
) -> Point:
    pairs = pairs_in(planned.slots, examples)
    assert pairs is not None, "steps without a pair are left out of the plan"
    scores = score_step(network, [examples[slot.prompt].rows[slot.response] for slot in planned.slots], config)
    pairs = PairBatch(*(column.to(scores.device) for column in pairs))
    pair_loss = bradley_terry_loss(scores, pairs, config.reduction)
    prior = gaussian_regulariser(scores)
    loss = pair_loss + config.regulariser * prior
    _check_finite(loss, "loss", number + 1)
    loss.backward()
    return Point(number + 1, planned.epoch, loss.item(), pair_loss.item(), prior.item(), rate, len(pairs.better))


def _check_finite(value: Tensor, name: str, step: int) -> None:
    if not torch.isfinite(value):
        raise ModelError(f"the {name} is {value.item()} at step {step}", do="lower --learning-rate")


def choose_trainable(network: RewardNetwork, num_last_layers: int | None) -> Iterator[str]:
    """Freeze all but the last layers, the final norm and the head; yields the names of what is trained.

    Raises ModelError when the decoder's layers cannot be told.
    """
    if num_last_layers is not None:
        kept = {*network.head.parameters(), *_last(network, num_last_layers)}
        for weight in network.parameters():
            weight.requires_grad_(weight in kept)
    for name, weight in network.classifier.named_parameters():
        if weight.requires_grad:
            yield name


def _last(network: RewardNetwork, number: int) -> Iterator[torch.nn.Parameter]:
    if number == 0:
        return
    children = dict(network.backbone.named_children())
    layers = [child for child in children.values() if isinstance(child, torch.nn.ModuleList)]
    if len(layers) != 1:
        raise ModelError("cannot tell the decoder's layers", do="train all, or the head: --trainable head")
    for child in list(layers[0])[-number:]:
        yield from child.parameters()
    after = list(children.values()).index(layers[0]) + 1
    for child in list(children.values())[after:]:  # the final norm, whatever the family calls it
        yield from child.parameters()
