"""A run in progress as values for a page: its tasks with the time left, the figures so far, and a growing curve."""

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.evaluation.tables import count, decimal, percent, word
from steelyard.evaluation.vega import CHANCE
from steelyard.io.run_state import RunState, TaskProgress
from steelyard.plugins.trackers.curves import FILE as CURVE_FILE
from steelyard.report.training_curves import CurvePoint, LossPoint, losses, thinned

_TASKS = (
    ("training arms", "task_training_arms"), ("training", "task_training"), ("asking", "task_asking"),
    ("scoring with", "task_scoring_with"), ("testing", "task_testing"), ("evaluating", "task_evaluating"),
    ("comparing", "task_comparing"), ("reading texts", "task_reading_texts"), ("reading", "task_reading"),
    ("looking in", "task_looking_in"), ("converting", "task_converting"), ("counting tokens", "task_counting_tokens"),
    ("states after the frozen layers", "task_states_after_the_frozen_layers"), ("debias: measuring", "task_debias"),
    ("supervise (batches of cases)", "task_supervise"), ("merge (cases written)", "task_merge"),
    ("resolve (MB read)", "task_resolve"),
)  # fmt: skip
"""The beginnings of the titles of progress bars, and their words; what follows is a name."""
_FIGURES_OF_STEP = ("train/loss", "train/learning_rate", "speed/pairs_per_second", "speed/tokens_per_second")
_DRAWN = ("step", "train/loss", "held_out/accuracy")
_MAX_POINTS = 300
_MAX_CURVES = 64
_LARGEST = 1e100
"""Steps and values beyond this cannot be drawn: no training writes them."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 60.0, 630.0, 14.0, 210.0
_NUM_TICKS = 4


class ShownTask(NamedTuple):
    """A task on the page: its title, the share that is done (null without a total), and words for the rest."""

    title: str
    share: float | None
    done: str
    left: str
    figures: tuple[tuple[str, str], ...] = ()


class Tick(NamedTuple):
    """A mark of an axis: its coordinate and its text."""

    at: float
    text: str


class LiveChart(NamedTuple):
    """A drawing of 640 by 240: grid lines with labels, polylines, the main one first, and marked points."""

    title: str
    rows: tuple[Tick, ...]
    columns: tuple[Tick, ...]
    lines: tuple[str, ...]
    marks: tuple[tuple[float, float], ...] = ()


class LiveCurve(NamedTuple):
    """The losses and held-out accuracies of a training so far, by step, and the figures of the last step."""

    losses: tuple[LossPoint, ...]
    held_out: tuple[tuple[int, float], ...]
    figures: dict[str, float]


def duration(seconds: float) -> str:
    """Format a duration in the unit that fits, in both languages."""
    if seconds < 90:
        return f"{seconds:.{0 if seconds >= 10 else 1}f} {word('unit_seconds')}"
    if seconds < 5400:
        return f"{seconds / 60:.0f} {word('unit_minutes')}"
    return f"{seconds / 3600:.1f} {word('unit_hours')}"


def shown_task(task: TaskProgress, *, is_current: bool, is_running: bool) -> ShownTask:
    """Return a task for the page; the time left only of the current task of a running run."""
    if task.total:
        done = f"{count(round(task.done))} {word('live_of')} {count(round(task.total))}"
        share = min(max(task.done / task.total, 0.0), 1.0)
    else:
        done, share = count(round(task.done)), None if is_current and is_running else 1.0
    is_open = is_current and is_running and task.seconds_left is not None and share != 1.0
    remaining = f"{word('live_left_before')} {duration(task.seconds_left or 0.0)} {word('live_left_after')}"
    left = remaining if is_open else duration(task.seconds)
    figures = tuple((word(f"figure_{name}", name), _figure(name, value)) for name, value in task.figures.items())
    return ShownTask(_title(task.title), share, done, left, figures)


def shown_tasks(state: RunState | None) -> tuple[ShownTask, ...]:
    """Return the tasks of a run, the current one first."""
    if state is None:
        return ()
    is_running = state.state == "running"
    last = len(state.tasks) - 1
    return tuple(
        shown_task(task, is_current=index == last, is_running=is_running)
        for index, task in reversed(list(enumerate(state.tasks)))
    )


def figures_of_step(curve: LiveCurve) -> tuple[tuple[str, str], ...]:
    """Return loss, learning rate and speed of the last step."""
    return tuple(
        (word(f"figure_{name.replace('/', '_')}", name), _figure(name, curve.figures[name]))
        for name in _FIGURES_OF_STEP
        if name in curve.figures
    )


def _title(title: str) -> str:
    for start, key in _TASKS:
        if title == start or title.startswith(f"{start} "):
            return f"{word(key, start)} {title[len(start) + 1 :]}".rstrip()
    return title


def _figure(name: str, value: float) -> str:
    if name == "train/learning_rate":
        return f"{value:.1e}"
    if name == "cost":
        return decimal(value, 4)
    if abs(value) >= 100 or value == int(value):
        return count(round(value))
    return decimal(value, 3 if name == "train/loss" else 1)


class CurveReader:
    """Reads the tracker's lines of running trainings; of a file read before only the new lines."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[Path, _StepLines] = OrderedDict()

    def curve(self, folder: Path) -> LiveCurve | None:
        """Return the curve so far; null where the training wrote none, or wrote it under another name."""
        path = folder / CURVE_FILE
        if path.is_symlink() or not path.is_file():
            return None
        with self._lock:
            lines = self._known.pop(path, None) or _StepLines()
            try:
                lines.read_on(path)
            except OSError:
                return None
            self._known[path] = lines
            while len(self._known) > _MAX_CURVES:
                self._known.popitem(last=False)
            points = thinned(losses(lines.losses), _MAX_POINTS)
            return LiveCurve(points, tuple(lines.held_out), lines.figures) if points or lines.held_out else None


class _StepLines:
    """The lines of one file up to a position."""

    def __init__(self) -> None:
        self.losses: list[CurvePoint] = []
        self.held_out: list[tuple[int, float]] = []
        self.figures: dict[str, float] = {}
        self._file: tuple[int, int] = (0, 0)
        self._position = 0

    def read_on(self, path: Path) -> None:
        """Read the complete lines that follow; of a file that was replaced, all lines."""
        with path.open("rb") as file:
            status = path.stat()
            if (status.st_dev, status.st_ino) != self._file or status.st_size < self._position:
                self.__init__()
                self._file = (status.st_dev, status.st_ino)
            file.seek(self._position)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._position += len(line)
                self._add(line)

    def _add(self, line: bytes) -> None:
        try:
            values = msgspec.json.decode(line, type=dict[str, float])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return  # of another writer
        if not all(abs(value) <= _LARGEST for name, value in values.items() if name in _DRAWN):
            return
        step = int(values.get("step", 0.0))
        if "train/loss" in values:
            self.losses.append(CurvePoint(step=step, loss=values["train/loss"]))
            self.figures = values
        if "held_out/accuracy" in values:
            self.held_out.append((step, values["held_out/accuracy"]))


def charts(curve: LiveCurve | None) -> tuple[LiveChart, ...]:
    """Return the drawings of a curve: the loss from two steps on, and held-out accuracy where it was measured."""
    if curve is None:
        return ()
    drawn = []
    if len(curve.losses) > 1:
        steps = [point.step for point in curve.losses]
        smoothed, raw = [point.smoothed for point in curve.losses], [point.loss for point in curve.losses]
        drawn.append(_chart(word("live_loss"), steps, (smoothed, raw), percentages=False))
    if curve.held_out:
        steps, values = [step for step, _ in curve.held_out], [value for _, value in curve.held_out]
        drawn.append(_chart(word("live_held_out"), steps, (values,), percentages=True))
    return tuple(drawn)


def _chart(title: str, steps: Sequence[int], series: Sequence[Sequence[float]], *, percentages: bool) -> LiveChart:
    finite = [value for values in series for value in values if math.isfinite(value)] or [0.0]
    if percentages:
        finite += [CHANCE, CHANCE + 0.1]
    rows = _ticks(min(finite), max(finite))
    low, high = min(rows[0], *finite), max(rows[-1], *finite)
    first, last = steps[0], max(steps[-1], steps[0] + 1)

    def x(step: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * (step - first) / (last - first), 1)

    def y(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low), 1)

    lines = tuple(
        " ".join(f"{x(step)},{y(value)}" for step, value in zip(steps, values, strict=True) if math.isfinite(value))
        for values in series
    )
    places = max(0, -math.floor(math.log10(rows[1] - rows[0])))
    return LiveChart(
        title=title,
        rows=tuple(Tick(y(value), percent(value) if percentages else decimal(value, places)) for value in rows),
        columns=tuple(Tick(x(step), count(step)) for step in sorted({first, (first + steps[-1]) // 2, steps[-1]})),
        lines=lines,
        marks=tuple((x(step), y(value)) for step, value in zip(steps, series[0], strict=True)) if percentages else (),
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round values that include the range."""
    rough = max(high - low, abs(high) * 1e-3, 1e-6) / _NUM_TICKS
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    first = math.floor(low / step)
    return [round(first * step + index * step, 10) for index in range(max(math.ceil(high / step - first), 1) + 1)]


def sentence_values(state: RunState) -> dict[str, str]:
    """Return the values of the sentence about a running process."""
    seconds = max(state.updated - state.started, 0.0)
    return {"process": str(state.process), "host": state.host, "duration": duration(seconds)}
