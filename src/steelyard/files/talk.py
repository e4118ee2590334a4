"""Talk to the person: progress bars and remarks on stderr, so that stdout stays clean for results."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")

_SECONDS_BETWEEN_LINES = 30.0
_SECONDS_WORTH_A_LINE = 2.0


class Bar(Protocol):
    """A progress bar that is open."""

    def advance(self, steps: float = 1, *, note: str = "") -> None:
        """Move on by so many steps; ``note`` stands behind the bar (a loss, an accuracy)."""
        ...


def say(text: str) -> None:
    """One remark to the person."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)


@contextmanager
def bar(title: str, total: int | None = None) -> Iterator[Bar]:
    """A progress bar with the time left; where stderr is no terminal, a line now and then, and none for quick work."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        lines = _Lines(title, total)
        yield lines
        lines.end()
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        yield _Drawn(progress, title, total)


def track(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """The items, with a progress bar that moves as they are taken."""
    with bar(title, total) as open_bar:
        for item in items:
            yield item
            open_bar.advance()


class _Drawn:
    """A bar on a terminal."""

    def __init__(self, progress: Progress, title: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total, note="")

    def advance(self, steps: float = 1, *, note: str = "") -> None:
        self._progress.update(self._task, advance=steps, note=note)


class _Lines:
    """Progress as lines, for logs: after half a minute, and every half minute from then on."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total = title, total
        self._done, self._note = 0.0, ""
        self._started = self._said = time.monotonic()

    def advance(self, steps: float = 1, *, note: str = "") -> None:
        self._done += steps
        self._note = note
        if time.monotonic() - self._said >= _SECONDS_BETWEEN_LINES:
            self._say()

    def end(self) -> None:
        if time.monotonic() - self._started >= _SECONDS_WORTH_A_LINE:
            self._say()

    def _say(self) -> None:
        self._said = time.monotonic()
        whole = "" if self._total is None else f" of {self._total:,}"
        note = f", {self._note}" if self._note else ""
        say(f"{self._title}: {self._done:,.0f}{whole}{note} ({self._said - self._started:.0f} s)")
