"""What is done after each step: the curve, evaluations, the best weights, checkpoints, and when to stop."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from steelyard.files.talk import say
from steelyard.plugins.models._network import RewardNetwork
from steelyard.stages.train.checkpoints import (
    Best,
    Checkpoint,
    Line,
    State,
    put_weights,
    save_checkpoint,
    trained_weights,
)
from steelyard.stages.train.examples import Example
from steelyard.stages.train.held_out import measure
from steelyard.stages.train.loop import Planned, Point
from steelyard.stages.train.settings import Config

_SECONDS_BETWEEN_CHECKPOINTS = 600


class Follower:
    """Follows one training. ``lines`` become the curve; ``best`` is the best evaluation so far, where it is kept."""

    def __init__(
        self,
        network: RewardNetwork,
        held_out: Sequence[Example],
        steps: Sequence[Planned],
        config: Config,
        *,
        folder: Path,
        advance: Callable[..., None],
    ) -> None:
        self.lines: list[Line] = []
        self.best: Best | None = None
        self._network = network
        self._held_out = held_out
        self._steps = steps
        self._config = config
        self._folder = folder
        self._advance = advance
        self._num_since_best = 0
        self._began = self._saved = time.monotonic()
        self._num_pairs = 0

    def resume(self, checkpoint: Checkpoint) -> None:
        """Take up what a killed run had done."""
        self.lines = list(checkpoint.lines)
        self.best = checkpoint.best
        evaluated = [line["step"] for line in self.lines if "held_out" in line]
        self._num_since_best = sum(self.best is not None and step > self.best.step for step in evaluated)
        self._advance(checkpoint.state.step)
        say(f"going on after step {checkpoint.state.step:,} of {len(self._steps):,}")

    def after_step(self, point: Point, state: Callable[[], State]) -> bool:
        """Note the step, measure and save when it is time; whether training should go on."""
        self.lines.append(point._asdict())
        if self._held_out and self._is_evaluated(point):
            self._evaluate(point)
        goes_on = not self._config.patience or self._num_since_best < self._config.patience
        if goes_on and self._is_saved(point):
            save_checkpoint(self._folder, Checkpoint(state(), self.lines, self.best))
            self._saved = time.monotonic()
        self._num_pairs += point.num_pairs
        rate = self._num_pairs / max(time.monotonic() - self._began, 1e-9)
        self._advance(1, note=f"loss {point.loss:.3f}, {rate:,.0f} pairs/s")
        if not goes_on:
            say(f"stopped after step {point.step}: {self._config.patience} evaluations without a better one")
        return goes_on

    def keep_best(self) -> None:
        """Put the best weights back, where they are asked for."""
        if self.best is not None and self._config.keep == "best":
            put_weights(self.best.weights, self._network)
            say(f"the weights of step {self.best.step} are kept: held-out {self._config.metric} {self.best.value:.3f}")

    def _is_evaluated(self, point: Point) -> bool:
        is_last = point.step == len(self._steps)
        is_last_of_epoch = is_last or self._steps[point.step].epoch != point.epoch
        every = self._config.evaluate_every
        return is_last or (point.step % every == 0 if every else is_last_of_epoch)

    def _evaluate(self, point: Point) -> None:
        measured: dict[str, Any] = measure(self._network, self._held_out, self._config)
        self.lines.append({"step": point.step, "held_out": measured})
        say(f"step {point.step}: held-out accuracy {measured['accuracy']:.3f}")
        value = measured[self._config.metric]
        if self.best is not None and value <= self.best.value:
            self._num_since_best += 1
            return
        is_kept = self._config.keep == "best"
        weights = {name: weight.clone() for name, weight in trained_weights(self._network).items()} if is_kept else {}
        self.best, self._num_since_best = Best(point.step, value, weights), 0

    def _is_saved(self, point: Point) -> bool:
        if point.step == len(self._steps):
            return False
        every = self._config.checkpoint_every
        if every:
            return point.step % every == 0
        return time.monotonic() - self._saved > _SECONDS_BETWEEN_CHECKPOINTS
