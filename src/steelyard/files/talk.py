"""Talk to the person: progress bars and remarks on stderr, so that stdout stays clean for results."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

Item = TypeVar("Item")


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
    """A progress bar with the time left; where stderr is no terminal, one line at the end."""
    console = Console(stderr=True, highlight=False)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(title, total=total, note="")

        class _Open:
            def advance(self, steps: float = 1, *, note: str = "") -> None:
                progress.update(task, advance=steps, note=note)

        yield _Open()


def track(items: Iterable[Item], title: str, total: int | None = None) -> Iterator[Item]:
    """The items, with a progress bar that moves as they are taken."""
    with bar(title, total) as open_bar:
        for item in items:
            yield item
            open_bar.advance()
