"""A training run as an object: plan, check, step, evaluate, resume. `steelyard.stages.train` composes it with files."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import torch
from torch import Tensor

from steelyard.networks.devices import LOCAL, Heap, World
from steelyard.networks.feature_cache import feature_cache
from steelyard.networks.reward_network import RewardNetwork
from steelyard.networks.scorer import Limits, Scorer
from steelyard.networks.settings import TargetScale
from steelyard.training.batching import PlannedStep, first_step, plan_steps
from steelyard.training.checkpoints import (
    BestWeights,
    Checkpoint,
    Line,
    best_in_memory,
    put_weights,
    restore,
    save_checkpoint,
    state_of,
    trained_weights,
)
from steelyard.training.config import Config, HeldOutAccuracy
from steelyard.training.diagnostics import check_finite, check_first_step, loss_error, unscorable_prompts
from steelyard.training.distributed import clip_gradient, outline_of, shard, unshard
from steelyard.training.examples import Example
from steelyard.training.gradient_accumulation import (
    Accumulation,
    StepLosses,
    UnreadLosses,
    dropout_seed,
    objective_of,
    read_losses,
)
from steelyard.training.held_out import HeldOutMeasures, measure_held_out
from steelyard.training.memory import choose_modes
from steelyard.training.optimiser import learning_rate_factor, make_optimiser, set_rates, update

_STEPS_PER_READ = 16
_SECONDS_PER_READ = 0.5
"""The time after which losses are read, so that a progress bar over long steps moves with each of them."""


class StepRecord(NamedTuple):
    """A step of the curve. ``loss`` is ``pair_loss`` plus the weighted ``regulariser`` and ``centring``.

    ``pair_loss`` is that of all terms of the loss, ratings included. ``num_pairs`` counts ordered pairs and ties,
    ``num_tokens`` what was computed, a shared prompt once.
    """

    step: int
    epoch: int
    loss: float
    pair_loss: float
    regulariser: float
    learning_rate: float
    num_pairs: int
    centring: float = 0.0
    num_tokens: int = 0


class Callback(Protocol):
    """An action after each step of a training: it logs, evaluates, saves or stops."""

    def is_due(self, trainer: "Trainer", step: int) -> bool:
        """Return whether the weights after this step matter to `after_step`; steps are counted from 1.

        Losses of a GPU are read for several steps at once. Where no callback is due, the weights may be those of a
        later step.
        """
        del trainer, step
        return True

    def after_step(self, trainer: "Trainer", record: StepRecord) -> bool:
        """Act on a completed step. Return False to stop the training."""
        ...


class UnreadStep(NamedTuple):
    """A step whose losses and gradient norm are still on the device."""

    number: int
    learning_rate: float
    losses: UnreadLosses
    norm: Tensor


class Trainer:
    """Train a reward model in place. ``plan`` holds every step, ``curve`` the lines of steps and evaluations so far.

    ``scale`` is that of the ratings, for losses that read them. ``best`` is the best evaluation so far, with its
    weights where these are kept. ``step_seconds`` is the duration of the last step, ``saved_step`` the step of the last
    checkpoint. Losses are read after ``steps_per_read`` steps, or earlier where a callback is due.
    """

    def __init__(
        self,
        network: RewardNetwork,
        examples: Sequence[Example],
        config: Config,
        *,
        held_out: Sequence[Example] = (),
        scale: TargetScale | None = None,
        world: World = LOCAL,
    ) -> None:
        self.network = network
        self.examples = examples
        self.config = config
        self.held_out = held_out
        self.scale = scale
        self.world = world
        self.scorer = scorer_of(network, config, world=world)
        self.plan: tuple[PlannedStep, ...] = plan_steps(examples, config)
        self.curve: list[Line] = []
        self.best: BestWeights | None = None
        self.step_seconds = 0.0
        self.saved_step = 0
        self._optimiser: torch.optim.Optimizer | None = None
        self._trained: list[torch.nn.Parameter] = []
        self._has_failed = torch.zeros((), dtype=torch.bool)
        self._accumulation = Accumulation(self.scorer, examples, objective_of(config))
        self._outline: RewardNetwork | None = None
        self._last_evaluation: tuple[int, HeldOutMeasures] | None = None
        self._heap = Heap()
        self.steps_per_read = 1

    def distribute(self) -> None:
        """Choose the memory modes and move the network to its device, divided over the processes of the world.

        Raises EvidenceError for a plan without a pair, ModelError for a training that cannot fit in memory.
        """
        first_step(self.plan, self.examples, self.config)
        self._outline = outline_of(self.network, world=self.world)
        choose_modes(self.scorer, self.examples, self.plan, self.config)
        shard(self.network, dtype=self.config.number_type, world=self.world)
        # A CPU has computed a loss when it returns it, and many processes exchange numbers at every step anyway.
        self.steps_per_read = _STEPS_PER_READ if self.scorer.device.type != "cpu" and self.world.is_alone else 1

    def gather(self) -> RewardNetwork:
        """Return the network with whole weights in the main memory of the first process."""
        return unshard(self.network, self._outline, world=self.world)

    @property
    def undivided(self) -> RewardNetwork:
        """The network with the shapes that its weights had before they were divided over processes."""
        return self._outline or self.network

    def check(self) -> str:
        """Check the first step before training, and return its loss in words. Raises ModelError as diagnostics do."""
        return check_first_step(
            self.scorer, first_step(self.plan, self.examples, self.config), self.examples, self.config
        )

    def cached_features(self) -> AbstractContextManager[bool]:
        """Return a context within which frozen layers are computed once for each row; yields whether that is so."""
        if self.config.epochs == 1 or self.config.adapter is not None:
            return nullcontext(enter_result=False)
        return feature_cache(self.scorer, [example.rows for example in (*self.examples, *self.held_out)])

    def run(self, callbacks: Sequence[Callback] = (), *, start: Checkpoint | None = None) -> list[Line]:
        """Train to the end of the plan, or until a callback stops, and return the curve.

        Raises ModelError where a loss, a gradient or the trained model's rewards are not finite, and what the callbacks
        raise.
        """
        self._optimiser = make_optimiser(self.network, self.config, world=self.world)
        self._trained = [weight for weight in self.network.parameters() if weight.requires_grad]
        self._has_failed = torch.zeros((), dtype=torch.bool, device=self.scorer.device)
        # Steps seed the global generator for dropout: the caller's draws stay as they were.
        with torch.random.fork_rng():
            if start is not None:
                self.restore(start)
            self.network.train()
            self._run_steps(callbacks, start=start.state.step if start else 0)
            # The effect of the last step is not seen in any loss.
            last = self.scorer.rewards([self.examples[0].rows])
            check_finite(last.sum().item(), "sum of rewards", len(self.plan))
        return self.curve

    def _run_steps(self, callbacks: Sequence[Callback], *, start: int) -> None:
        unread: list[UnreadStep] = []
        started = time.monotonic()
        for number in range(start, len(self.plan)):
            unread.append(self.step(number))
            # Each is asked: in some, processes exchange numbers.
            due = [callback.is_due(self, number + 1) for callback in callbacks]
            is_time = len(unread) >= self.steps_per_read or time.monotonic() - started > _SECONDS_PER_READ
            if not is_time and not any(due) and number + 1 < len(self.plan):
                continue
            for record in self.read(unread, started=started):
                self.curve.append(record._asdict())
                if not all(callback.after_step(self, record) for callback in callbacks):
                    return
            unread, started = [], time.monotonic()

    def step(self, number: int) -> UnreadStep:
        """Do one step of the plan: the gradients, chunk by chunk within the token budget, then the update.

        A step of a loss or a gradient that is not finite changes no weight, nor does any later one.
        """
        config, planned = self.config, self.plan[number]
        assert config.learning_rate is not None, "set by with_defaults"
        factor = learning_rate_factor(
            number, len(self.plan), warmup_ratio=config.warmup_ratio, schedule=config.schedule
        )
        set_rates(self.optimiser, factor)
        seed = dropout_seed(config.seed, number, rank=self.world.rank)
        losses = self._accumulation.step(planned.slots, seed=seed)
        norm = clip_gradient(self._trained, config.max_grad_norm, world=self.world).to(losses.sums)
        is_finite = torch.isfinite(losses.sums).all() & torch.isfinite(norm)
        self._has_failed = self._has_failed | ~is_finite
        update(self.optimiser, is_skipped=self._has_failed)
        self._heap.trim()
        return UnreadStep(number, config.learning_rate * factor, losses, norm)

    def read(self, steps: Sequence[UnreadStep], *, started: float) -> Iterator[StepRecord]:
        """Yield the records of steps that have ``started`` at this time. It waits for the device, once for all steps.

        Raises ModelError for the first loss or gradient that is not finite.
        """
        norms = torch.stack([step.norm for step in steps]).tolist()
        all_losses = read_losses([step.losses for step in steps], world=self.world)
        self.step_seconds = (time.monotonic() - started) / len(steps)
        for step, losses, norm in zip(steps, all_losses, norms, strict=True):
            record = self._record(step, losses)
            if not math.isfinite(record.loss):
                slots = self.plan[record.step - 1].slots
                names = unscorable_prompts(self.scorer, slots, self.examples)
                raise loss_error(record.loss, record.step, names, len({slot.prompt for slot in slots}))
            check_finite(norm, "gradient's norm", record.step)
            yield record

    def _record(self, step: UnreadStep, losses: StepLosses) -> StepRecord:
        config = self.config
        return StepRecord(
            step=step.number + 1,
            epoch=self.plan[step.number].epoch,
            loss=losses.pair_loss + config.weight_of_squares * losses.regulariser + config.centring * losses.centring,
            learning_rate=step.learning_rate,
            **losses._asdict(),
        )

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """The optimiser of a training that runs."""
        assert self._optimiser is not None, "made by run"
        return self._optimiser

    def evaluate(self, step: int) -> HeldOutAccuracy:
        """Measure the held-out examples after a step, add the line to the curve, and keep the best."""
        measured = measure_held_out(self.scorer, self.held_out, scale=self.scale)
        self._last_evaluation = (step, measured)
        self.curve.append({"step": step, "held_out": msgspec.to_builtins(measured.accuracy)})
        value = measured.accuracy.metric(self.config.metric)
        # Strictly: of equal evaluations the earliest is the best, so that patience ends a plateau.
        if self.best is None or value > self.best.value or math.isnan(self.best.value):
            weights = trained_weights(self.network) if self.config.keep == "best" else {}
            self.best = BestWeights(step, value, {name: weight.clone() for name, weight in weights.items()})
        return measured.accuracy

    def num_worse_evaluations(self) -> int:
        """Return the number of evaluations since the best one."""
        steps = [line["step"] for line in self.curve if "held_out" in line]
        return sum(self.best is not None and step > self.best.step for step in steps)

    def save(self, folder: Path, step: int) -> None:
        """Write a checkpoint after a step into the folder of the run."""
        save_checkpoint(
            folder, Checkpoint(state_of(self.network, self.optimiser, step), self.curve, self.best), world=self.world
        )
        self.saved_step = step

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was written. Raises FileError for a checkpoint of another model."""
        restore(checkpoint.state, self.network, self.optimiser, world=self.world)
        self.curve = list(checkpoint.lines)
        self.saved_step = checkpoint.state.step
        self.best = checkpoint.best and best_in_memory(checkpoint.best, self.network, world=self.world)

    def keep_best(self) -> BestWeights | None:
        """Put the best weights back and return them, where the settings keep them."""
        if self.best is None or self.config.keep != "best":
            return None
        put_weights(self.best.weights, self.network, world=self.world)
        return self.best

    def final_evaluation(self) -> HeldOutMeasures | None:
        """Return the measures of the final weights, null where the last evaluation was of others."""
        if self._last_evaluation is None:
            return None
        final = [line["step"] for line in self.curve if "loss" in line][-1]
        if self.best is not None and self.config.keep == "best":
            final = self.best.step
        step, measured = self._last_evaluation
        return measured if step == final else None


def scorer_of(network: RewardNetwork, config: Config, *, world: World = LOCAL) -> Scorer:
    """Return the scorer of a training. Raises ModelError where packing is required and not exact."""
    is_autocast = config.number_type == "bfloat16"
    limits = Limits(config.tokens_per_forward)
    return Scorer(
        network,
        limits=limits,
        kernel=config.kernel,
        is_autocast=is_autocast,
        invariant=False,
        deterministic=config.deterministic,
        world=world,
    )
