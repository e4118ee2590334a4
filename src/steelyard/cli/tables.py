"""How a verb prints a table: in columns where they fit, as lines with their headings on a narrow terminal."""

import textwrap
from collections.abc import Iterator, Sequence

import typer

from steelyard.io.terminal_text import visible_line

_GAP = 2
_LEAST_NAME = 12


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the title and the rows to stdout.

    The first cell of a row is its name, with spaces before it for its depth; ``headings`` are those of the others and
    may hold line breaks. A row of one cell is a heading of its own. No cell is ever cut: where the columns do not fit
    into the terminal, the cells of a row stand under its name.
    """
    from rich.console import Console

    width = Console().width
    title, rows = visible_line(title), [[visible_line(cell) for cell in row] for row in rows]
    parts = [heading.split("\n") for heading in headings]
    columns = [[*part, *(row[place] for row in rows if len(row) > 1)] for place, part in enumerate(parts, start=1)]
    needed = sum(max(map(len, column)) + _GAP for column in columns) + _LEAST_NAME + _GAP
    if needed <= width:
        _print_columns(title, headings, rows)
    else:
        typer.echo("\n".join([title, *_lines([" ".join(part) for part in parts], rows, width)]))


def _print_columns(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), title=title, title_justify="left")
    table.add_column("", overflow="fold", min_width=_LEAST_NAME)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def _lines(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    for name, *cells in rows:
        yield name
        indent = " " * (len(name) - len(name.lstrip()) + 2)
        said = ", ".join(f"{heading} {cell}" for heading, cell in zip(headings, cells, strict=False))
        yield from textwrap.wrap(said, width, initial_indent=indent, subsequent_indent=indent)
