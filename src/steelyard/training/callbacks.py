"""Callbacks after each step of a training: progress, divergence, evaluations, checkpoints, interruptions."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple, Protocol

from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build
from steelyard.core.remedies import Advice, Command, Remedy
from steelyard.core.text import number_of
from steelyard.io.progress import InterruptedRun, bar, deferred, log
from steelyard.training.checkpoints import Checkpoint, translate_disk_full
from steelyard.training.config import Config
from steelyard.training.diagnostics import STEPS_JUDGED, has_diverged, has_learned_nothing, median_loss
from steelyard.training.losses import LOSSES
from steelyard.training.throughput import Pace, decoder_shape, peak_of, reached_part
from steelyard.training.trainer import Callback, StepRecord, Trainer

_SECONDS_BETWEEN_CHECKPOINTS = 600
_NOT_TRACKED = ("trackers", "chat_template")


class Tracker(Protocol):
    """Records the figures of one training."""

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the figures of a step, by name."""
        ...

    def close(self) -> None:
        """Close the tracker: no figures follow."""
        ...


class Trackers(NamedTuple):
    """All trackers of a training; each method raises OutputError where the disk of ``folder`` is full."""

    folder: Path = Path()
    members: tuple[Tracker, ...] = ()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Record the figures of a step, by name, in every tracker."""
        with translate_disk_full(self.folder):
            for tracker in self.members:
                tracker.log(step, values)

    def close(self) -> None:
        """Close every tracker."""
        with translate_disk_full(self.folder):
            for tracker in self.members:
                tracker.close()


class ShowProgress(Callback):
    """Advances the progress bar and records the figures and the speed of each step."""

    def __init__(self, trackers: Trackers, pace: Pace, advance: Callable[..., None]) -> None:
        self.trackers = trackers
        self.pace = pace
        self._advance = advance

    def is_due(self, trainer: Trainer, step: int) -> bool:
        """Return False: the weights do not matter."""
        del trainer, step
        return False

    def after_step(self, trainer: Trainer, record: StepRecord) -> bool:
        """Log the step."""
        slots = trainer.plan[record.step - 1].slots
        self.pace.add(slots, num_pairs=record.num_pairs, num_tokens=record.num_tokens, seconds=trainer.step_seconds)
        speed = self.pace.figures()
        figures = {f"train/{name}": float(value) for name, value in record._asdict().items() if name != "step"}
        self.trackers.log(record.step, figures | {f"speed/{name}": value for name, value in speed.items()})
        self._advance(1, note=f"loss {record.loss:.3f}, {self.pace.note()}", seconds_left=speed["seconds_left"])
        return True


class DetectDivergence(Callback):
    """Stops a training whose loss has diverged, and logs at the end where nothing has been learned."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._losses: list[float] = []
        self._pair_losses: list[float] = []
        self._equal: float | None = None

    def is_due(self, trainer: Trainer, step: int) -> bool:
        """Return False: the weights do not matter."""
        del trainer, step
        return False

    def after_step(self, trainer: Trainer, record: StepRecord) -> bool:
        """Compare the last losses with the earlier median. Raises ModelError for a training that has diverged."""
        if not self._losses:  # the steps of an earlier run count too
            steps = [line for line in trainer.curve if "loss" in line]
            self._losses = [line["loss"] for line in steps]
            self._pair_losses = [line["pair_loss"] for line in steps]
            self._equal = equal_loss(trainer)
        else:
            self._losses.append(record.loss)
            self._pair_losses.append(record.pair_loss)
        self._check_course(trainer, record)
        self._check_end(trainer)
        return True

    def _check_course(self, trainer: Trainer, record: StepRecord) -> None:
        config = trainer.config
        factor, steps = config.divergence_factor, config.divergence_steps
        if has_diverged(self._losses, factor=factor, num_steps=steps):
            saved = f"that of step {trainer.saved_step} is kept" if trainer.saved_step else "none was written yet"
            raise ModelError(
                f"the training has diverged: {steps} losses in a row over {factor:g} times the earlier median "
                f"{median_loss(self._losses, steps):.3f}, the last {record.loss:.3f} at step {record.step} "
                f"(of checkpoints, {saved})",
                where=str(self._folder),
                do=Advice(
                    *("lower ", Remedy("learning_rate"), f" (now {config.learning_rate}) or raise "),
                    *(Remedy("warmup_ratio"), ", in a new ", Remedy("out"), "; if such losses are to be expected: "),
                    Remedy("divergence_steps", 0),
                ),
            )

    def _check_end(self, trainer: Trainer) -> None:
        equal, losses = self._equal, self._pair_losses
        if equal is None or not has_learned_nothing(losses, len(trainer.plan), equal=equal):
            return
        term = "rating" if trainer.config.reads_ratings else "pair"
        log(
            Advice(
                f"after all {number_of(len(losses), 'step')} the loss of a {term} is "
                f"{median(losses[-STEPS_JUDGED:]):.3f}; equal scores have {equal:.3f}: little has been learned. "
                "do: raise ",
                Remedy("learning_rate"),
                f" (now {trainer.config.learning_rate}) three to ten times, or take more steps (lower ",
                *(
                    Remedy("batch_size"),
                    ", more ",
                    Remedy("epochs"),
                    "); where that changes nothing, look for wrong labels: ",
                ),
                Command("audit"),
            )
        )


def equal_loss(trainer: Trainer) -> float | None:
    """Return the loss of equal scores; null where margins, pairs beside ratings or the loss make it differ by term."""
    has_margins = any(pair.margin for example in trainer.examples for pair in example.pairs)
    return None if has_margins or trainer.config.pair_weight else LOSSES[trainer.config.loss].equal


class Evaluate(Callback):
    """Evaluates on the held-out examples when due, and stops after ``patience`` evaluations without a better one."""

    def __init__(self, trackers: Trackers | None = None) -> None:
        self._trackers = trackers or Trackers()

    def is_due(self, trainer: Trainer, step: int) -> bool:
        """Return whether to evaluate after this step: every ``evaluate_every``, or else after each epoch."""
        if not trainer.held_out:
            return False
        is_last = step == len(trainer.plan)
        is_last_of_epoch = is_last or trainer.plan[step].epoch != trainer.plan[step - 1].epoch
        every = trainer.config.evaluate_every
        return is_last or (step % every == 0 if every else is_last_of_epoch)

    def after_step(self, trainer: Trainer, record: StepRecord) -> bool:
        """Evaluate; return False where the patience is exhausted."""
        patience = trainer.config.patience
        if self.is_due(trainer, record.step):
            held_out = trainer.evaluate(record.step)
            self._trackers.log(record.step, held_out.figures())
            log(f"step {record.step}: {held_out.sentence()}")
        if not patience or trainer.num_worse_evaluations() < patience:
            return True
        log(f"stopped after step {record.step}: {number_of(patience, 'evaluation')} without a better one")
        return False


class SaveCheckpoint(Callback):
    """Writes checkpoints into the folder of the run: every ``checkpoint_every`` steps, or every ten minutes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._saved = time.monotonic()
        self._due_step = 0

    def is_due(self, trainer: Trainer, step: int) -> bool:
        """Return whether a checkpoint is to be saved after this step."""
        every, is_last = trainer.config.checkpoint_every, step == len(trainer.plan)
        if every or is_last:
            is_due = not is_last and step % every == 0
        else:
            # Clocks differ, and saving gathers weights from all processes: all follow the first.
            is_due = trainer.world.broadcast(time.monotonic() - self._saved > _SECONDS_BETWEEN_CHECKPOINTS)
        self._due_step = step if is_due else self._due_step
        return is_due

    def after_step(self, trainer: Trainer, record: StepRecord) -> bool:
        """Save a checkpoint when one is due."""
        if record.step == self._due_step:
            trainer.save(self._folder, record.step)
            self._saved = time.monotonic()
        return True


class Interrupt(Callback):
    """Ends a run after a signal, with a checkpoint."""

    def __init__(self, folder: Path, signal_number: Callable[[], int]) -> None:
        self._folder = folder
        self._signal_number = signal_number
        self._due_step = self._number = 0

    def is_due(self, trainer: Trainer, step: int) -> bool:
        """Return whether a signal has come."""
        # Any process may have received it; all stop at the same step.
        (self._number,) = trainer.world.all_max([self._signal_number()])
        self._due_step = step if self._number else 0
        return self._number > 0

    def after_step(self, trainer: Trainer, record: StepRecord) -> bool:
        """Raise InterruptedRun after a signal."""
        if record.step == self._due_step:
            trainer.save(self._folder, record.step)
            log(f"stopped after step {record.step:,} of {len(trainer.plan):,}; a checkpoint is saved")
            raise InterruptedRun(self._number)
        return True


@contextmanager
def run_callbacks(
    trainer: Trainer, folder: Path, *, start: Checkpoint | None, settings: Mapping[str, object], is_cached: bool
) -> Iterator[tuple[Callback, ...]]:
    """Yield the callbacks of a run in its folder, and log the speed at the end.

    The trackers record the ``settings``. ``is_cached``: the frozen layers are not computed.
    """
    config, world = trainer.config, trainer.world
    num_done = start.state.step if start else 0
    with ExitStack() as stack:
        # Entered first, so that no signal interrupts the closing of the trackers half-way.
        signal_number = stack.enter_context(deferred())
        trackers = Trackers(folder)
        if world.is_first:
            trackers = open_trackers(config, folder=folder, settings=settings, start=num_done)
        stack.callback(trackers.close)
        peak = peak_of(trainer.scorer.device, config.number_type)
        shape = decoder_shape(trainer.undivided)
        shape = reached_part(shape) if is_cached else shape
        group_peak = peak._replace(flops=peak.flops * world.size)
        pace = Pace(trainer.examples, shape, group_peak, num_steps=len(trainer.plan))
        shown = stack.enter_context(bar("training", len(trainer.plan)))
        if start is not None:
            pace.skip(num_done)
            shown.advance(num_done)
            log(f"continuing after step {num_done:,} of {len(trainer.plan):,}")
            if trainer.scorer.device.type != "cpu" and not config.deterministic:
                log("the end agrees with that of an uninterrupted run to rounding; to the bit with deterministic=true")
        yield (
            ShowProgress(trackers, pace, shown.advance),
            DetectDivergence(folder),
            Evaluate(trackers),
            SaveCheckpoint(folder),
            Interrupt(folder, signal_number),
        )
    (number,) = world.all_max([signal_number()])
    if number:  # the signal came after the last step
        raise InterruptedRun(number)
    log(f"trained at {pace.note()}")


def open_trackers(config: Config, *, folder: Path, settings: Mapping[str, object], start: int) -> Trackers:
    """Return the trackers of the settings, for a training that begins after step ``start``.

    Raises ConfigError for a table without ``kind``, KindError for a kind that does not exist, MissingPartError where
    its package is not installed, OutputError where the disk is full.
    """
    default = ("jsonl", *(["tensorboard"] if find_spec("tensorboardX") else []))
    shown = {key: value for key, value in settings.items() if key not in _NOT_TRACKED}
    members: list[Tracker] = []
    with translate_disk_full(folder):
        for entry in default if config.trackers is None else config.trackers:
            own_settings = {"kind": entry} if isinstance(entry, str) else dict(entry)
            kind = own_settings.pop("kind", None)
            if not isinstance(kind, str):
                problem = f"a tracker without a kind: {entry}"
                raise ConfigError(problem, where="train.trackers", allowed='{kind = "wandb", ...}')
            parts = {"folder": folder, "name": folder.name, "run_settings": shown, "start": start}
            members.append(build("trackers", kind, own_settings, **parts))
    return Trackers(folder, tuple(members))
