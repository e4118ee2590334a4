"""One step's gradients: chunks of whole prompts within a memory bound, exact however the step is cut.

The loss is a sum over prompts divided by what is known before any score: so each chunk's backward pass follows its
forward pass, and no graph outlives its chunk. Only a prompt that exceeds the bound alone takes two passes: its scores
first, then the gradients of its parts through the derivative of the loss by the scores.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from steelyard.methods.training.batching import Slot, Step
from steelyard.methods.training.objectives import Weights, step_loss, sums_of, weights_of
from steelyard.methods.training.sharding import shares
from steelyard.plugins.models._reward_network import RewardNetwork
from steelyard.stages.train.examples import Example
from steelyard.stages.train.processes import Processes, current
from steelyard.stages.train.scoring import Rows, num_tokens, num_wanted, score_idly, score_prompts
from steelyard.stages.train.settings import Config, objective_of
from steelyard.stages.train.terms import terms_in


class Losses(NamedTuple):
    """The parts of a step's loss, unweighted, and how many pairs, ties among them, and tokens they are over."""

    pair_loss: float
    regulariser: float
    num_pairs: int
    centring: float = 0.0
    num_tokens: int = 0


def backward(
    network: RewardNetwork, slots: Step, examples: Sequence[Example], config: Config, *, is_packed: bool, draw: int = 0
) -> Losses:
    """Add the gradients of the step's loss to those of the network. Asserts that the step has a pair.

    The loss is that of `step_loss`, over the whole step. Many processes divide its
    prompts: each adds the gradients of its own, which the network sums up; the losses are those of the whole step.
    ``draw`` is the seed of what is drawn at random (dropout), which the two passes of a prompt draw alike.
    """
    everything = terms_in(slots, examples)
    weights = weights_of(everything, objective_of(config))
    assert weights.loss > 0, "steps without a pair are left out of the plan"
    processes = current()
    step = _Step(network, examples, config, is_packed, processes, weights)
    cut = [_parts(chunk, step) for chunk in _chunks(_own(slots, step), step)]
    own_passes = [sum(len(parts) for parts in cut if len(parts) > 1), sum(map(len, cut))]
    idle = [most - own for most, own in zip(processes.most(own_passes), own_passes, strict=True)]
    sums = [0.0, 0.0, 0.0]
    derivatives: list[Tensor | None] = []
    for place, parts in enumerate(cut):
        derivatives.append(_first_pass(parts, step, sums, seed=draw + place) if len(parts) > 1 else None)
    _idle(idle[0], slots, step, has_gradient=False)
    for place, (parts, derivative) in enumerate(zip(cut, derivatives, strict=True)):
        torch.manual_seed(draw + place)
        if derivative is not None:
            _second_pass(parts, step, derivative)
            continue
        scores = _scores(parts[0], step)
        _loss(scores, parts[0], step, sums).backward()
    _idle(idle[1], slots, step, has_gradient=True)
    _sum_tie_gradient(network, processes)
    pair_loss, centring, prior = processes.total(sums)
    sizes = [num_tokens(_rows(own, examples), is_packed=is_packed) for own in _prompts(slots)]
    return Losses(pair_loss, prior, len(everything.tied), centring, sum(sizes))


class _Step(NamedTuple):
    """What all passes of a step have in common; ``weights`` are what its sums are divided by."""

    network: RewardNetwork
    examples: Sequence[Example]
    config: Config
    is_packed: bool
    processes: Processes
    weights: Weights

    def size(self, slots: Sequence[Slot]) -> int:
        """What answers of one prompt take of a pass.

        Of many processes each pass is one run of the network, for all to count: padded rows then count as they lie.
        """
        rows = _rows(slots, self.examples)
        if self.is_packed or self.processes.is_alone:
            return num_tokens(rows, is_packed=self.is_packed)
        return len(rows) * max(map(len, rows))


def _own(slots: Step, step: _Step) -> Step:
    """The slots of this process's prompts, in the order of the step."""
    if step.processes.is_alone:
        return slots
    prompts = _prompts(slots)
    sizes = [num_tokens(_rows(own, step.examples), is_packed=step.is_packed) for own in prompts]
    mine = shares(sizes, step.processes.number)[step.processes.rank]
    return tuple(slot for place in mine for slot in prompts[place])


def _prompts(slots: Step) -> list[Step]:
    """The slots prompt by prompt."""
    by_prompt: dict[int, list[Slot]] = {}
    for slot in slots:
        by_prompt.setdefault(slot.prompt, []).append(slot)
    return [tuple(own) for own in by_prompt.values()]


def _chunks(slots: Step, step: _Step) -> list[Step]:
    """The slots in runs of whole prompts, of at most so many tokens where a prompt alone does not exceed it."""
    most = num_wanted(step.network, step.config, is_packed=step.is_packed)
    is_one_run = not step.is_packed and not step.processes.is_alone
    chunks: list[list[Slot]] = []
    room = 0
    for own in _prompts(slots):
        size = step.size(own)
        if not chunks or size > room or (is_one_run and step.size((*chunks[-1], *own)) > most):
            chunks.append([])
            room = most
        chunks[-1] += own
        room -= size
    return [tuple(chunk) for chunk in chunks]


def _parts(chunk: Step, step: _Step) -> list[Step]:
    """A chunk within the bound as it is; a prompt over it in runs of its answers, at least one an answer."""
    bound = step.config.tokens_per_forward
    if len(_prompts(chunk)) > 1 or step.size(chunk) <= bound:
        return [chunk]
    parts: list[list[Slot]] = []
    for slot in chunk:
        if parts and step.size([*parts[-1], slot]) <= bound:
            parts[-1].append(slot)
        else:
            parts.append([slot])
    return [tuple(part) for part in parts]


def _rows(slots: Sequence[Slot], examples: Sequence[Example]) -> Rows:
    return tuple(examples[slot.prompt].rows[slot.response] for slot in slots)


def _scores(part: Step, step: _Step) -> Tensor:
    prompts = [_rows(own, step.examples) for own in _prompts(part)]
    return score_prompts(step.network, prompts, step.config, is_packed=step.is_packed)


def _loss(scores: Tensor, chunk: Step, step: _Step, sums: list[float]) -> Tensor:
    """The chunk's part of the step's loss, the unweighted summands of which are added to ``sums``."""
    objective, weights = objective_of(step.config), step.weights
    found = sums_of(scores, terms_in(chunk, step.examples).to(scores.device), objective, step.network.tie)
    for place, (own, weight) in enumerate(zip(found, weights, strict=True)):
        sums[place] += own.item() / weight if weight else 0.0
    return step_loss(found, weights, objective)


def _first_pass(parts: Sequence[Step], step: _Step, sums: list[float], *, seed: int) -> Tensor:
    """The derivative of the loss by the scores of one prompt, which are found without their graph."""
    torch.manual_seed(seed)
    with torch.no_grad():
        leaf = torch.cat([_scores(part, step) for part in parts])
    leaf.requires_grad_()
    chunk = tuple(slot for part in parts for slot in part)
    _loss(leaf, chunk, step, sums).backward()
    assert leaf.grad is not None, "the loss is a function of the scores"
    return leaf.grad


def _second_pass(parts: Sequence[Step], step: _Step, derivative: Tensor) -> None:
    """Each part again, with its graph, and back through the loss's derivative by its scores."""
    for part, own in zip(parts, derivative.split([len(part) for part in parts]), strict=True):
        _scores(part, step).backward(own)


def _idle(num_passes: int, slots: Step, step: _Step, *, has_gradient: bool) -> None:
    """As many more passes as the busiest process has: none can gather weights or sum gradients without the others."""
    row = step.examples[slots[0].prompt].rows[0]
    for _ in range(num_passes):
        with torch.set_grad_enabled(has_gradient):
            nothing = score_idly(step.network, row, step.config, is_packed=step.is_packed).sum() * 0
        if has_gradient:
            nothing.backward()


def _sum_tie_gradient(network: RewardNetwork, processes: Processes) -> None:
    """The parameter of ties lies whole on every process, and is no part of what the network sums up."""
    tie = network.tie
    if tie is not None and not processes.is_alone:
        own = [0.0] if tie.grad is None else tie.grad.tolist()
        tie.grad = torch.tensor(processes.total(own), dtype=tie.dtype, device=tie.device)
