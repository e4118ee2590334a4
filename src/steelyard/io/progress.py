"""The terminal of a running command: progress bars and messages on stderr, and stop signals.

Stdout carries results only. The first Ctrl-C or other stop signal stops a run in order; the second ends it at once.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from steelyard.core.errors import UserError
from steelyard.core.remedies import Wording, worded
from steelyard.io.terminal_text import visible, visible_line

Item = TypeVar("Item")

_SECONDS_BETWEEN_LINES = 30.0
_MIN_SECONDS_FOR_LAST_LINE = 2.0
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_SECONDS_OF_ONE_STOP = 3.0
"""Signals that follow the first within this time are the same request, in a process started by torchrun."""
_SECONDS_OF_ONE_SIGNAL = 0.3
"""An equal signal within this time of the first is the same: `timeout` signals a process and then its group."""


class BarStep(NamedTuple):
    """An advance of a progress bar, as `Bar.advance` takes it."""

    steps: float
    note: str
    seconds_left: float | None
    figures: Mapping[str, float] | None


Show = Callable[[BarStep], None]
"""Shows an advance: on the terminal, in a log, or in a file."""


class Bar:
    """An open progress bar."""

    def __init__(self, views: Sequence[Show]) -> None:
        self._views = views

    def advance(
        self,
        steps: float = 1,
        *,
        note: str = "",
        seconds_left: float | None = None,
        figures: Mapping[str, float] | None = None,
    ) -> None:
        """Advance by ``steps``; ``note`` is shown after the bar (a loss, an accuracy).

        ``seconds_left``: the remaining time, where the caller can estimate it better than from the steps so far.
        ``figures``: totals so far by name, for those who observe the bar; without them the last ones stay.
        """
        for show in self._views:
            show(BarStep(steps, note, seconds_left, figures))


Observer = Callable[[str, float | None], AbstractContextManager[Show]]
"""Observes a progress bar, given its title and total, from its opening to its end."""
_observers: list[Observer] = []
_live: list[Console] = []
"""The consoles of the bars that are shown now; a message is printed above the last."""


@contextmanager
def observed(observer: Observer) -> Iterator[None]:
    """Let ``observer`` alone follow every progress bar that is opened in the block."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


_wordings: list[Wording] = []
"""Wording of remedies by the interface in use."""


@contextmanager
def worded_by(wording: Wording) -> Iterator[None]:
    """Let `log` write remedies in the words of an interface."""
    _wordings.append(wording)
    try:
        yield
    finally:
        _wordings.remove(wording)


def in_words(text: str) -> str:
    """Return a text with its remedies in the words of the interface that runs."""
    return worded(text, _wordings[-1]) if _wordings else text


def log(text: str) -> None:
    """Write one message to stderr, above an open progress bar; of an `Advice` with remedies as the interface words."""
    console = _live[-1] if _live else Console(stderr=True, highlight=False)
    text = in_words(text)
    console.print(visible(text), markup=False, soft_wrap=True)


def log_error(word: str, error: UserError) -> None:
    """Write an error that does not end the run, after a word for it, with its remedies as the interface words them."""
    log(f"{word}: {error.worded(_wordings[-1]) if _wordings else error}")


_shows_details: ContextVar[bool] = ContextVar("_shows_details", default=False)


@contextmanager
def log_details(*, is_shown: bool) -> Iterator[None]:
    """Let `log_detail` write in the block, or not."""
    token = _shows_details.set(is_shown)
    try:
        yield
    finally:
        _shows_details.reset(token)


def log_detail(text: str) -> None:
    """Write one message to stderr, where details are shown (``--verbose``)."""
    if _shows_details.get():
        log(text)


@contextmanager
def bar(title: str, total: int | None = None) -> Iterator[Bar]:
    """Show a progress bar with the time left; where stderr is not a terminal, a line every half minute."""
    with ExitStack() as stack:
        openers = (_shown_bar, *_observers[-1:])
        yield Bar([stack.enter_context(opened(title, total)) for opened in openers])


@contextmanager
def _shown_bar(title: str, total: float | None) -> Iterator[Show]:
    console, title = Console(stderr=True, highlight=False), visible_line(title)
    if not console.is_terminal:
        lines = _LogLines(title, total)
        yield lines.show
        lines.end()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=min(40, max(console.width // 8, 4))),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        _NoteColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        _live.append(console)
        try:
            yield _TerminalBar(progress, title, total).show
        finally:
            _live.remove(console)


def format_duration(seconds: float) -> str:
    """Format a duration in the unit that fits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def track(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items and advance a progress bar as they are consumed."""
    with bar(title, total) as open_bar:
        for item in items:
            yield item
            open_bar.advance()


_received: ContextVar[Sequence[int]] = ContextVar("_received", default=())
"""The signals that the innermost block of `interruptible` has received."""


class InterruptedRun(KeyboardInterrupt):
    """A run was stopped by the signal of this number."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        self.number = number
        super().__init__(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise InterruptedRun in the block at the first signal of each kind; the second ends the process at once.

    A library may turn an interrupt into an error of its own, as compiled modules do while they are imported: an error
    after a signal is that interrupt.
    """
    received: list[int] = []

    def stop(number: int) -> None:
        received.append(number)
        raise InterruptedRun(number)

    token = _received.set(received)
    try:
        with _answered(stop):
            yield
    except Exception as error:
        interruption = as_interruption(error)
        if interruption is error:
            raise
        raise interruption from error
    finally:
        _received.reset(token)


def as_interruption(error: BaseException) -> BaseException:
    """Return the interruption of the block of `interruptible` that the error follows, or the error itself."""
    received = _received.get()
    return InterruptedRun(received[0]) if received and not isinstance(error, InterruptedRun) else error


@contextmanager
def deferred() -> Iterator[Callable[[], int]]:
    """Record the first signal of each kind instead of raising; the function returns its number, or 0."""
    received = [0]

    def record(number: int) -> None:
        received[0] = number
        log("stopping after this step; once more ends at once, without a checkpoint")

    with _answered(record):
        yield lambda: received[0]


@contextmanager
def postponed(stop: Callable[[int], None]) -> Iterator[None]:
    """Call ``stop`` with the number of the first signal; further ones go to the handlers from before the block."""
    received: tuple[int, float] | None = None

    def answer(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if received is None:
            received = number, time.monotonic()
            stop(number)
        elif number != received[0] or time.monotonic() - received[1] > _SECONDS_OF_ONE_SIGNAL:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    with _handled(answer) as before:
        yield


class _NoteColumn(ProgressColumn):
    """The note, the only column that is truncated in a narrow terminal."""

    def __init__(self) -> None:
        super().__init__(table_column=Column(no_wrap=False))

    def render(self, task: Task) -> Text:
        return Text(visible_line(task.fields["note"]), no_wrap=True, overflow="ellipsis")


class _TerminalBar:
    """A bar on a terminal."""

    def __init__(self, progress: Progress, title: str, total: float | None) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total, note="", left="")

    def show(self, step: BarStep) -> None:
        self._progress.update(self._task, advance=step.steps, note=step.note)
        left = self._progress.tasks[self._task].time_remaining if step.seconds_left is None else step.seconds_left
        self._progress.update(self._task, left="" if left is None else f"{format_duration(left)} left")


class _LogLines:
    """Progress as lines, for logs: one every half minute."""

    def __init__(self, title: str, total: float | None) -> None:
        self._title, self._total = title, total
        self._done, self._note = 0.0, ""
        self._left: float | None = None
        self._started = self._last_line = time.monotonic()

    def show(self, step: BarStep) -> None:
        self._done += step.steps
        self._note, self._left = step.note, step.seconds_left
        if time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._write(is_last=False)

    def end(self) -> None:
        if time.monotonic() - self._started >= _MIN_SECONDS_FOR_LAST_LINE:
            self._write(is_last=True)

    def _write(self, *, is_last: bool) -> None:
        self._last_line = time.monotonic()
        elapsed = self._last_line - self._started
        left = self._left
        if left is None and self._total and self._done:
            left = elapsed * (self._total - self._done) / self._done
        still = "" if is_last or left is None else f", {format_duration(max(left, 0.0))} left"
        whole = "" if self._total is None else f" of {self._total:,}"
        note = f", {self._note}" if self._note else ""
        log(f"{self._title}: {self._done:,.0f}{whole}{note} ({elapsed:.0f} s{still})")


@contextmanager
def _answered(act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act`` at the first signal of each kind; the second ends the process."""
    first: dict[int, float] = {}

    def answer(number: int, frame: FrameType | None) -> None:
        del frame
        if number not in first:
            first[number] = time.monotonic()
            # torchrun forwards signals that the terminal also sent here.
            if "TORCHELASTIC_RUN_ID" not in os.environ:
                signal.signal(number, signal.SIG_DFL)
            act(number)
        elif time.monotonic() - first[number] > _SECONDS_OF_ONE_STOP:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    with _handled(answer):
        yield


@contextmanager
def _handled(answer: Callable[[int, FrameType | None], None]) -> Iterator[dict[int, Any]]:
    """Handle stop signals in the block, given the handlers before. Ignored ones (``nohup``) stay ignored.

    Only the main thread receives signals: in any other the block does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield {}
        return
    numbers = [number for name in _SIGNALS if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(number, answer)
    try:
        yield before
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
