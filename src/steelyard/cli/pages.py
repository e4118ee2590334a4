"""How lines of styled spans and records are printed: in colour on a terminal that has it, as plain text elsewhere."""

import io
import sys
from collections.abc import Iterable
from typing import Any

import msgspec
import typer

from steelyard.io.terminal_text import Line, plain

LEAST_WIDTH = 20
_STYLES = {"plain": "", "title": "bold", "quiet": "dim", "bad": "bold red", "good": "green", "special": "cyan"}


def page_width() -> int:
    """The width of the terminal in cells; 80 where there is none, or what COLUMNS says."""
    from rich.console import Console

    return max(Console().width, LEAST_WIDTH)


def echo_lines(lines: Iterable[Line]) -> None:
    """Print the lines to stdout. Their texts are printed as they are: no markup is read in them."""
    from rich.console import Console
    from rich.text import Text

    _print_everything()
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal or console.color_system is None:
        typer.echo("\n".join(map(plain, lines)))
        return
    for line in lines:
        text = Text.assemble(*((span.text, _STYLES[span.style]) for span in line))
        console.print(text, soft_wrap=True)


def echo_record(record: dict[str, Any]) -> None:
    """Print one JSON object to stdout."""
    _print_everything()
    typer.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())


def _print_everything() -> None:
    """Let stdout write what it cannot encode by its number, where it would refuse: a terminal that has only ASCII."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
