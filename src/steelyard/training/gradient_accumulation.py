"""One step's gradients: chunks of whole prompts within the token budget, exact however the step is cut.

The loss is a sum over prompts divided by weights that are known before any score. Each chunk's backward pass therefore
follows its forward pass, and no graph outlives its chunk. Only a prompt that exceeds the budget alone takes two passes:
its scores first, then the gradients of its parts through the derivative of the loss by the scores.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from steelyard.core.iteration import batched
from steelyard.core.numerics import derived_seed
from steelyard.networks.devices import LOCAL, World
from steelyard.networks.packing import process_shares
from steelyard.networks.reward_network import RewardNetwork
from steelyard.networks.scorer import Scorer
from steelyard.training.batching import Slot, Step, loss_inputs, rows_of, slots_by_prompt
from steelyard.training.config import Config
from steelyard.training.examples import Example
from steelyard.training.losses import Objective, StepWeights, step_loss, sums_of, weights_of


class StepLosses(NamedTuple):
    """The unweighted parts of a step's loss, the number of its pairs and ties, and the number of computed tokens."""

    pair_loss: float
    regulariser: float
    num_pairs: int
    centring: float = 0.0
    num_tokens: int = 0


class UnreadLosses(NamedTuple):
    """The losses of a step on the device, which may still compute them; in many processes the share of this one.

    ``sums`` has the pair loss, the centring and the squares, in float64.
    """

    sums: Float[Tensor, " 3"]
    num_pairs: int
    num_tokens: int


def read_losses(steps: Sequence[UnreadLosses], *, world: World = LOCAL) -> list[StepLosses]:
    """Return the losses of steps, over all processes. It waits for the device, once for all steps."""
    values = world.all_sum(torch.cat([losses.sums for losses in steps]).tolist())
    return [
        StepLosses(pair_loss, squares, losses.num_pairs, centring, losses.num_tokens)
        for losses, (pair_loss, centring, squares) in zip(steps, batched(values, 3), strict=True)
    ]


def dropout_seed(seed: int, step: int, *, rank: int) -> int:
    """Return the seed of a step's dropout in one process."""
    return derived_seed(seed, "dropout", step, rank)


class Accumulation:
    """Gradient accumulation within the scorer's limits: each step adds its gradients to those of the network."""

    def __init__(self, scorer: Scorer, examples: Sequence[Example], objective: Objective) -> None:
        self.scorer = scorer
        self.network: RewardNetwork = scorer.network
        self.examples = examples
        self.objective = objective
        self.world = scorer.world

    def step(self, slots: Step, *, seed: int = 0) -> UnreadLosses:
        """Add the gradients of the step's loss and return its parts. Asserts that the step has a pair.

        Many processes divide the prompts of the step. Each adds the gradients of its share, which the network sums.
        The ``seed`` is that of dropout, equal in the two passes of a prompt.
        """
        inputs = loss_inputs(slots, self.examples)
        weights = weights_of(inputs, self.objective)
        assert weights.loss > 0, "steps without a pair are left out of the plan"
        chunks = [self._parts(chunk) for chunk in self._chunks(self._share(slots))]
        num_passes = [sum(len(parts) for parts in chunks if len(parts) > 1), sum(map(len, chunks))]
        num_idle = [most - number for most, number in zip(self.world.all_max(num_passes), num_passes, strict=True)]
        sums = torch.zeros(3, dtype=torch.float64, device=self.scorer.device)
        derivatives: list[Tensor | None] = []
        for place, parts in enumerate(chunks):
            derivatives.append(self._first_pass(parts, weights, sums, seed=seed + place) if len(parts) > 1 else None)
        self._idle(num_idle[0], slots, has_gradient=False)
        for place, (parts, derivative) in enumerate(zip(chunks, derivatives, strict=True)):
            # The second pass of a prompt over the budget draws the dropout of its first, from the same seed.
            torch.manual_seed(seed + place)
            if derivative is not None:
                self._second_pass(parts, derivative)
            else:
                self._loss(self._scores(parts[0]), parts[0], weights, sums).backward()
        self._idle(num_idle[1], slots, has_gradient=True)
        self._sum_parameter_gradient()
        sizes = [self.scorer.size(self._rows(group)) for group in slots_by_prompt(slots)]
        return UnreadLosses(sums, len(inputs.tied), sum(sizes))

    def _rows(self, slots: Sequence[Slot]) -> tuple[tuple[int, ...], ...]:
        return rows_of(slots, self.examples)

    def _size(self, slots: Sequence[Slot]) -> int:
        """Return the number of tokens that the answers of a prompt take of a pass.

        Many processes count passes together, so that each pass must be one run of the network: padded rows then count
        with their padding.
        """
        rows = self._rows(slots)
        if self.scorer.is_packed or self.world.is_alone:
            return self.scorer.size(rows)
        return len(rows) * max(map(len, rows))

    def _share(self, slots: Step) -> Step:
        """Return the slots of this process's prompts, in the order of the step."""
        if self.world.is_alone:
            return slots
        prompts = slots_by_prompt(slots)
        sizes = [self.scorer.size(self._rows(group)) for group in prompts]
        places = process_shares(sizes, self.world.size)[self.world.rank]
        return tuple(slot for place in places for slot in prompts[place])

    def _chunks(self, slots: Step) -> list[Step]:
        """Divide the slots into runs of whole prompts within the tokens of a pass, where a prompt alone fits."""
        most = self.scorer.tokens_per_pass
        is_single_run = not self.scorer.is_packed and not self.world.is_alone
        chunks: list[list[Slot]] = []
        room = 0
        for group in slots_by_prompt(slots):
            size = self._size(group)
            if not chunks or size > room or (is_single_run and self._size((*chunks[-1], *group)) > most):
                chunks.append([])
                room = most
            chunks[-1] += group
            room -= size
        return [tuple(chunk) for chunk in chunks]

    def _parts(self, chunk: Step) -> list[Step]:
        """Return a chunk within the budget whole, and a prompt over it in runs of one answer or more."""
        bound = self.scorer.most_tokens
        if len(slots_by_prompt(chunk)) > 1 or self._size(chunk) <= bound:
            return [chunk]
        parts: list[list[Slot]] = []
        for slot in chunk:
            if parts and self._size([*parts[-1], slot]) <= bound:
                parts[-1].append(slot)
            else:
                parts.append([slot])
        return [tuple(part) for part in parts]

    def _scores(self, part: Step) -> Tensor:
        return self.scorer.forward([self._rows(group) for group in slots_by_prompt(part)])

    def _loss(self, scores: Tensor, chunk: Step, weights: StepWeights, sums: Tensor) -> Tensor:
        """Return the chunk's part of the step's loss, and add its unweighted summands to ``sums``."""
        inputs = loss_inputs(chunk, self.examples)
        chunk_sums = sums_of(scores, inputs, self.objective, self.network.tie)
        values = [value.detach().double() for value in chunk_sums]
        means = [
            value / weight if weight else value.new_zeros(()) for value, weight in zip(values, weights, strict=True)
        ]
        sums += torch.stack(means)
        return step_loss(chunk_sums, weights, self.objective)

    def _first_pass(self, parts: Sequence[Step], weights: StepWeights, sums: Tensor, *, seed: int) -> Tensor:
        """Return the derivative of the loss by the scores of one prompt, which are computed without their graph."""
        torch.manual_seed(seed)
        with torch.no_grad():
            scores = torch.cat([self._scores(part) for part in parts])
        scores.requires_grad_()
        chunk = tuple(slot for part in parts for slot in part)
        self._loss(scores, chunk, weights, sums).backward()
        assert scores.grad is not None, "the loss is a function of the scores"
        return scores.grad

    def _second_pass(self, parts: Sequence[Step], derivative: Tensor) -> None:
        """Compute each part again, with its graph, and go back through the loss's derivative by its scores."""
        for part, gradient in zip(parts, derivative.split([len(part) for part in parts]), strict=True):
            self._scores(part).backward(gradient)

    def _idle(self, num_passes: int, slots: Step, *, has_gradient: bool) -> None:
        """Run as many passes as the busiest process has more: gathering weights and gradients takes all processes."""
        row = self.examples[slots[0].prompt].rows[0]
        for _ in range(num_passes):
            with torch.set_grad_enabled(has_gradient):
                # Times 0: the pass adds no gradient, and still takes part in exchanging them.
                nothing = self.scorer.idle(row).sum() * 0
            if has_gradient:
                nothing.backward()

    def _sum_parameter_gradient(self) -> None:
        """Sum the gradient of the loss's parameter, which is whole on every process and not summed by the network."""
        tie = self.network.tie
        if tie is not None and not self.world.is_alone:
            gradient = [0.0] if tie.grad is None else tie.grad.tolist()
            tie.grad = torch.tensor(self.world.all_sum(gradient), dtype=tie.dtype, device=tie.device)


def objective_of(config: Config) -> Objective:
    """Return the objective of the settings."""
    return Objective(config.loss, config.reduction, config.label_smoothing, config.centring, config.weight_of_squares)
