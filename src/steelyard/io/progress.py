"""Talk to the person: progress bars and remarks on stderr, so that stdout stays clean for results."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from steelyard.io.terminal_text import visible, visible_line

Item = TypeVar("Item")

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_WORTH_A_LINE = 2.0


class Bar(Protocol):
    """A progress bar that is open."""

    def advance(self, steps: float = 1, *, note: str = "", seconds_left: float | None = None) -> None:
        """Move on by so many steps; ``note`` stands behind the bar (a loss, an accuracy).

        ``seconds_left``: what is left by whoever knows better than the steps done so far.
        """
        ...


def log(text: str) -> None:
    """One remark to the person."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(visible(text), markup=False)


@contextmanager
def bar(title: str, total: int | None = None) -> Iterator[Bar]:
    """A progress bar with the time left; where stderr is no terminal, a line now and then, and none for quick work."""
    console, title = Console(stderr=True, highlight=False), visible_line(title)
    if not console.is_terminal:
        lines = _Lines(title, total)
        yield lines
        lines.end()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        _Note(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Drawn(progress, title, total)


def format_duration(seconds: float) -> str:
    """A length of time in the unit that fits."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def track(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """The items, with a progress bar that moves as they are taken."""
    with bar(title, total) as open_bar:
        for item in items:
            yield item
            open_bar.advance()


class _Note(ProgressColumn):
    """The note, which alone is cut where the terminal is narrow: what stands before it is worth more."""

    def __init__(self) -> None:
        super().__init__(table_column=Column(no_wrap=False))

    def render(self, task: Task) -> Text:
        return Text(visible_line(task.fields["note"]), no_wrap=True, overflow="ellipsis")


class _Drawn:
    """A bar on a terminal."""

    def __init__(self, progress: Progress, title: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total, note="", left="")

    def advance(self, steps: float = 1, *, note: str = "", seconds_left: float | None = None) -> None:
        self._progress.update(self._task, advance=steps, note=note)
        left = self._progress.tasks[self._task].time_remaining if seconds_left is None else seconds_left
        self._progress.update(self._task, left="" if left is None else f"{format_duration(left)} left")


class _Lines:
    """Progress as lines, for logs: after half a minute, and every half minute from then on."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total = title, total
        self._done, self._note, self._left = 0.0, "", None
        self._started = self._said = time.monotonic()

    def advance(self, steps: float = 1, *, note: str = "", seconds_left: float | None = None) -> None:
        self._done += steps
        self._note = note
        self._left = seconds_left
        if time.monotonic() - self._said >= _SECONDS_BETWEEN_LINES:
            self._say(is_last=False)

    def end(self) -> None:
        if time.monotonic() - self._started >= _SECONDS_WORTH_A_LINE:
            self._say(is_last=True)

    def _say(self, *, is_last: bool) -> None:
        self._said = time.monotonic()
        elapsed = self._said - self._started
        left = self._left
        if left is None and self._total and self._done:
            left = elapsed * (self._total - self._done) / self._done
        still = "" if is_last or left is None else f", {format_duration(max(left, 0.0))} left"
        whole = "" if self._total is None else f" of {self._total:,}"
        note = f", {self._note}" if self._note else ""
        log(f"{self._title}: {self._done:,.0f}{whole}{note} ({elapsed:.0f} s{still})")
