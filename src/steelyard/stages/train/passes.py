"""One step's gradients: chunks of whole prompts within a memory bound, exact however the step is cut.

The loss is a sum over prompts divided by what is known before any score: so each chunk's backward pass follows its
forward pass, and no graph outlives its chunk. Only a prompt that exceeds the bound alone takes two passes: its scores
first, then the gradients of its parts through the derivative of the loss by the scores.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from steelyard.methods.training.batching import Slot, Step, forward_groups
from steelyard.methods.training.losses import PairBatch, bradley_terry_sum, loss_weight
from steelyard.methods.training.sharing import num_packed_tokens, pack, pack_groups
from steelyard.plugins.models._network import RewardNetwork, padded
from steelyard.stages.train.examples import Example
from steelyard.stages.train.settings import Config

Rows = tuple[tuple[int, ...], ...]


class Losses(NamedTuple):
    """The two parts of a step's loss, and how many pairs they are over."""

    pair_loss: float
    regulariser: float
    num_pairs: int


def pairs_in(slots: Step, examples: Sequence[Example]) -> PairBatch | None:
    """The pairs with both ends among the slots, or null if there is none that weighs anything."""
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


def score_prompts(network: RewardNetwork, prompts: Sequence[Rows], config: Config, *, is_packed: bool) -> Tensor:
    """The rewards of all rows, prompt by prompt, with gradients: as one pack, or in padded passes sorted by length."""
    device = network.head.weight.device
    with torch.autocast(device.type, torch.bfloat16, enabled=config.dtype == "bfloat16"):
        if is_packed:
            from steelyard.plugins.models._packed import packed_rewards

            return packed_rewards(network, pack(prompts))
        rows = [row for rows in prompts for row in rows]
        groups = forward_groups([len(row) for row in rows], max_tokens=config.tokens_per_forward)
        parts: list[Tensor] = []
        for group in groups:
            ids, attended = padded([rows[index] for index in group], filler=0)
            parts.append(network(ids.to(device), attended.to(device)))
    order = torch.tensor([index for group in groups for index in group], device=device)
    scores = torch.cat(parts)
    return torch.empty_like(scores).index_copy(0, order, scores)


def score_within(network: RewardNetwork, prompts: Sequence[Rows], config: Config, *, is_packed: bool) -> Tensor:
    """As `score_prompts`, within the memory bound and without gradients."""
    if not is_packed:
        with torch.no_grad():
            return score_prompts(network, prompts, config, is_packed=False)
    most = _num_wanted(network, config, is_packed=True)
    found: list[Tensor] = []
    for group in pack_groups(prompts, max_tokens=config.tokens_per_forward, wanted_tokens=most):
        rows = [tuple(prompts[part.prompt][answer] for answer in part.answers) for part in group]
        with torch.no_grad():
            found.append(score_prompts(network, rows, config, is_packed=True))
    return torch.cat(found)


def backward(
    network: RewardNetwork, slots: Step, examples: Sequence[Example], config: Config, *, is_packed: bool
) -> Losses:
    """Add the gradients of the step's loss to those of the network. Asserts that the step has a pair.

    loss = pair loss + ``config.regulariser`` times the mean of r^2, both over the whole step.
    """
    everything = pairs_in(slots, examples)
    assert everything is not None, "steps without a pair are left out of the plan"
    weight = float(loss_weight(everything, config.reduction))
    pair_loss = prior = 0.0
    most = _num_wanted(network, config, is_packed=is_packed)
    for chunk in _chunks(slots, examples, most, is_packed=is_packed):
        pairs = pairs_in(chunk, examples)
        scores, leaf = _scored(network, chunk, examples, config, is_packed=is_packed)
        own_loss = _pair_sum(leaf, pairs, config) / weight
        own_prior = leaf.square().sum() / len(slots)
        loss = own_loss + config.regulariser * own_prior
        loss.backward()
        if scores is None:
            assert leaf.grad is not None, "the loss is a function of the scores"
            _second_pass(network, chunk, examples, config, leaf.grad, is_packed=is_packed)
        pair_loss += own_loss.item()
        prior += own_prior.item()
    return Losses(pair_loss, prior, len(everything.better))


def _pair_sum(scores: Tensor, pairs: PairBatch | None, config: Config) -> Tensor:
    if pairs is None:
        return scores.sum() * 0
    there = PairBatch(*(column.to(scores.device) for column in pairs))
    return bradley_terry_sum(scores, there, config.reduction, smoothing=config.label_smoothing)


def _chunks(slots: Step, examples: Sequence[Example], most: int, *, is_packed: bool) -> list[Step]:
    """The step's slots in runs of whole prompts, of at most so many tokens where a prompt alone does not exceed it."""
    chunks: list[list[Slot]] = []
    room = 0
    for prompt in dict.fromkeys(slot.prompt for slot in slots):
        own = [slot for slot in slots if slot.prompt == prompt]
        size = _num_tokens(_rows(own, examples), is_packed=is_packed)
        if not chunks or size > room:
            chunks.append([])
            room = most
        chunks[-1] += own
        room -= size
    return [tuple(chunk) for chunk in chunks]


def _num_wanted(network: RewardNetwork, config: Config, *, is_packed: bool) -> int:
    """How many tokens a chunk has: the memory bound, or what the device is fastest with if that is less."""
    if not is_packed:
        return config.tokens_per_forward
    from steelyard.plugins.models._packed import wanted_tokens

    return min(config.tokens_per_forward, wanted_tokens(network) or config.tokens_per_forward)


def _rows(slots: Sequence[Slot], examples: Sequence[Example]) -> Rows:
    return tuple(examples[slot.prompt].rows[slot.response] for slot in slots)


def _num_tokens(rows: Rows, *, is_packed: bool) -> int:
    return num_packed_tokens(rows) if is_packed else sum(map(len, rows))


def _by_prompt(slots: Sequence[Slot], examples: Sequence[Example]) -> list[Rows]:
    prompts = dict.fromkeys(slot.prompt for slot in slots)
    return [_rows([slot for slot in slots if slot.prompt == prompt], examples) for prompt in prompts]


def _scored(
    network: RewardNetwork, chunk: Step, examples: Sequence[Example], config: Config, *, is_packed: bool
) -> tuple[Tensor | None, Tensor]:
    """The chunk's scores with their graph; or null and scores without one, for a chunk over the bound."""
    parts = _parts(chunk, examples, config, is_packed=is_packed)
    if len(parts) == 1:
        scores = score_prompts(network, _by_prompt(chunk, examples), config, is_packed=is_packed)
        return scores, scores
    with torch.no_grad(), torch.random.fork_rng():
        found = [score_prompts(network, [_rows(part, examples)], config, is_packed=is_packed) for part in parts]
    return None, torch.cat(found).requires_grad_()


def _parts(chunk: Step, examples: Sequence[Example], config: Config, *, is_packed: bool) -> list[Step]:
    """A chunk within the bound as it is; a prompt over it in runs of its answers, at least one an answer."""
    is_one_prompt = len({slot.prompt for slot in chunk}) == 1
    if not is_one_prompt or _num_tokens(_rows(chunk, examples), is_packed=is_packed) <= config.tokens_per_forward:
        return [chunk]
    parts: list[list[Slot]] = []
    for slot in chunk:
        grown = [*(parts[-1] if parts else []), slot]
        if parts and _num_tokens(_rows(grown, examples), is_packed=is_packed) <= config.tokens_per_forward:
            parts[-1] = grown
        else:
            parts.append([slot])
    return [tuple(part) for part in parts]


def _second_pass(
    network: RewardNetwork,
    chunk: Step,
    examples: Sequence[Example],
    config: Config,
    derivative: Tensor,
    *,
    is_packed: bool,
) -> None:
    """Each part again, with its graph, and back through the loss's derivative by its scores.

    The first pass gave its random draws back, so that dropout falls on the same places.
    """
    start = 0
    for part in _parts(chunk, examples, config, is_packed=is_packed):
        scores = score_prompts(network, [_rows(part, examples)], config, is_packed=is_packed)
        scores.backward(derivative[start : start + len(part)])
        start += len(part)
