"""How a verb shows what it did: lines for a person, or the whole record as JSON, on stdout."""

from collections.abc import Iterable

import msgspec
import typer

from steelyard.core.types import Run
from steelyard.io.terminal_text import rule_counts, visible


def show(run: Run, lines: Iterable[str], *, as_json: bool) -> None:
    """Print the run as JSON, or the lines and then what went in, was used and was left out."""
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(run), indent=2).decode())
        return
    for line in lines:
        echo(line)
    echo(counted(run))


def echo(text: str) -> None:
    """Print text to stdout. Names and texts from files cannot act on the terminal: control characters are shown."""
    typer.echo(visible(text))


def counted(run: Run) -> str:
    """``n in, n used; dropped: …; noted: …`` in one line."""
    counts = run.counts
    parts = [f"{counts.num_in:,} in, {counts.num_used:,} used"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        numbers = rule_counts({rule: number for rule, number in rules.items() if number})
        if numbers:
            parts.append(f"{title}: {numbers}")
    return "; ".join(parts)
