"""Results on the terminal: records as JSON, lines, tables, settings and pages, in colour where the terminal has it.

Names and texts from files cannot control the terminal: control characters are shown. Characters that stdout cannot
encode are written as code points.
"""

import io
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import typer

from steelyard.core.config import describe_type
from steelyard.core.plugins import kinds
from steelyard.core.settings_help import REQUIRED, Setting, default_text, table_keys, toml_tables
from steelyard.core.text import number_of
from steelyard.core.types import JsonObject, Run
from steelyard.io.progress import in_words
from steelyard.io.terminal_text import (
    Line,
    Span,
    folded,
    hanging,
    padded,
    plain,
    rule_counts,
    visible,
    visible_line,
    width_of,
)

if TYPE_CHECKING:
    from rich.table import Table

    from steelyard.statistics.intervals import Estimate
    from steelyard.views.view import NextStep

MIN_WIDTH = 20
_STYLES = {"plain": "", "title": "bold", "quiet": "dim", "bad": "bold red", "good": "green", "special": "cyan"}
_GAP = 2
_MOST_LINES, _MOST_SENTENCES = 12, 6
_FEWEST_COLUMNS = 2
_TABLE_LINES = 2
"""The title and the headings of a table."""
_MOST_FILES = 4
_LEDGER = ".sqlite"
_MIN_NAME_WIDTH = 12
_LABEL = re.compile(r"[A-Za-z0-9-]+ {3,}| {8,}")
_LABEL_WIDTH = 16
_COMMAND = re.compile(r"\bsteelyard [a-z]")
# Sizes of what was read or made: the answers have those that matter, and run.json has all.
_SIZES = frozenset({"cases", "items", "items with their texts", "pairs", "prompts", "responses", "texts"})


class TerminalTable(NamedTuple):
    """A table with its title and the headings of its columns.

    ``heads`` are the headings of all columns but the first, which holds the name of a row, with spaces before it for
    its depth; they may hold line breaks. A row of one cell is a heading of its own.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def print_lines(lines: Iterable[str | TerminalTable]) -> None:
    """Print lines and tables to stdout. On a terminal, lines are folded between words, but not those with a command.

    A command is whole when it is pasted.
    """
    width = page_width() if sys.stdout.isatty() else None
    for line in lines:
        if isinstance(line, TerminalTable):
            print_table(line)
        else:
            text = in_words(line)
            typer.echo("\n".join(_folded(text, width) if width else [visible(text)]))


def _folded(line: str, width: int) -> list[str]:
    """Return a line folded between words; its further lines are indented by two more than the first.

    Those of a label in a column of its own (``people     80 prompts; …``) begin where its text does.
    """
    shown = visible(line)
    label = _LABEL.match(shown)
    indent = len(shown) - len(shown.lstrip())
    if width_of(shown) <= width or "\n" in shown or _COMMAND.search(shown):
        return [shown]
    if label is not None and label.end() <= _LABEL_WIDTH:
        start = label[0]
        first, *rest = folded(shown[len(start) :], max(width - len(start), MIN_WIDTH))
        return [start + first, *(" " * len(start) + part for part in rest)]
    first, *rest = folded(shown.lstrip(), max(width - indent - 2, MIN_WIDTH))
    return [" " * indent + first, *(" " * (indent + 2) + part for part in rest)]


def echo_record(record: Any) -> None:
    """Print a record, or a list of records, as JSON to stdout."""
    escape_unencodable()
    typer.echo(msgspec.json.format(msgspec.json.encode(record), indent=2).decode())


def counts_line(run: Run) -> str:
    """Return ``n in, n used; dropped: …; noted: …``, without plain sizes, in the words of the page."""
    from steelyard.report.page import LANGUAGES, page_strings
    from steelyard.report.run_records import rule_word

    counts, strings = run.counts, page_strings()
    parts = [f"{counts.num_in:,} in, {counts.num_used:,} used"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        shown = {rule_word(rule): number for rule, number in rules.items() if number and rule not in _SIZES}
        if shown:
            parts.append(f"{title}: {strings.translate(rule_counts(shown), LANGUAGES[0])}")
    return "; ".join(parts)


def run_answer(run: Run, out: Path, *, is_verbose: bool, num_more: int = 0) -> Iterator[str | TerminalTable]:
    """Yield the result of a run in words, the files that it wrote, and tables: all, or the first ones where they fit.

    An answer has twelve lines on a terminal; the last ``num_more`` are not yielded here.
    """
    from steelyard.views.text import result_sentences, result_tables
    from steelyard.views.view import view_of

    sentences = list(result_sentences(run, out))
    shown = sentences if is_verbose else sentences[:_MOST_SENTENCES]
    yield from shown
    if len(shown) < len(sentences):
        yield f"… {len(sentences) - len(shown)} more: --verbose"
    written = [str(out / name) for name in run.outputs if not name.endswith(_LEDGER)]
    written = [str(out)] if out.is_file() else written
    room = _MOST_LINES - num_more - len(shown) - (len(shown) < len(sentences)) - bool(written)
    lead = 0 if (view := view_of(run.stage)) is None else view.lead
    tables = result_tables(run, out, has_counts=False) if lead or is_verbose else ()
    for table in islice(tables, None if is_verbose else lead):
        part = TerminalTable(table.caption, table.heads[1:], table.rows)
        if not is_verbose:
            room, part = _fitted(part, room)
        if part.rows:
            yield part
        more = len(table.rows) - len(part.rows), len(table.heads) - 1 - len(part.heads)
        hidden = [
            number_of(number, what) for number, what in zip(more, ("more row", "more column"), strict=True) if number
        ]
        if part.rows and hidden:
            yield f"… {', '.join(hidden)}: --verbose"
        elif hidden and table.caption:
            yield f"… {table.caption}, {number_of(len(table.rows), 'row')}: --verbose"
    if written and out != Path():
        few = len(written) <= _MOST_FILES
        yield f"written: {', '.join(written) if few else f'{out}, {len(written)} files'}"


def _fitted(table: TerminalTable, room: int) -> tuple[int, TerminalTable]:
    """Return the rows that fit into ``room`` lines, and the lines that are left; no row of a table without columns.

    Where the terminal is too narrow, columns are left out from the end, but not the first two.
    """
    name_width = _name_width(table.rows)
    heads = [head.split("\n") for head in table.heads]
    widths = [
        max(map(width_of, [*head, *(row[place] for row in table.rows if len(row) > 1)])) + _GAP
        for place, head in enumerate(heads, start=1)
    ]
    number = len(widths)
    while number > _FEWEST_COLUMNS and name_width + _GAP + sum(widths[:number]) > page_width():
        number -= 1
    width = name_width + _GAP + sum(widths[:number])
    if width > page_width():
        return room, table._replace(rows=())
    table = table._replace(heads=table.heads[:number], rows=[row[: number + 1] for row in table.rows])
    names = page_width() - width + name_width
    # The line about columns that are left out.
    room -= number < len(widths)
    left, rows = room - _TABLE_LINES, []
    for row in table.rows:
        left -= -(-width_of(row[0]) // names) or 1
        if left < (len(rows) + 1 < len(table.rows)):
            break
        rows.append(row)
    return (room, table._replace(rows=())) if len(rows) < min(2, len(table.rows)) else (left, table._replace(rows=rows))


def next_line(*words: object, effect: str = "") -> str:
    """Return ``next: steelyard report out --out report.html  # shows the conflicts``, to be pasted."""
    return f"next: {shlex.join(['steelyard', *map(str, words)])}" + (f"  # {effect}" if effect else "")


def step_line(step: "NextStep") -> str:
    """Return the line of the verb that comes next."""
    verb, arguments, changes = step.command
    options = [word for change in changes for word in (f"--{change.setting.replace('_', '-')}", change.value)]
    return next_line(verb, *arguments, *options, effect=step.effect)


def percent_text(share: "Estimate") -> str:
    """Return ``25.0% [15.0%, 35.0%]``."""
    if share.value is None:
        return "\N{EN DASH}"
    return f"{share.value:.1%}" + ("" if share.low is None else f" [{share.low:.1%}, {share.high:.1%}]")


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows with aligned cells, wider than the terminal if needed: for lists that people search."""
    shown = [[visible_line(cell) for cell in row] for row in rows]
    widths = [max(map(width_of, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        yield (" " * _GAP).join(map(padded, row, widths)).rstrip()


def page_width() -> int:
    """Return the width of the terminal in cells: COLUMNS if set, 80 without a terminal."""
    from rich.console import Console

    return max(Console().width, MIN_WIDTH)


def has_colour() -> bool:
    """Return whether stdout is a terminal with colours, and they are wanted (``NO_COLOR``)."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and console.color_system is not None and not console.no_color


def echo_lines(lines: Iterable[Line]) -> None:
    """Print styled lines to stdout. Their texts are printed as they are: no markup is interpreted."""
    from rich.console import Console
    from rich.text import Text

    escape_unencodable()
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal or console.color_system is None:
        typer.echo("\n".join(map(plain, lines)))
        return
    for line in lines:
        text = Text.assemble(*((span.text, _STYLES[span.style]) for span in line))
        console.print(text, soft_wrap=True)


def print_settings(settings: Sequence[Setting], *, as_json: bool) -> None:
    """Print every setting with type, default and meaning."""
    if as_json:
        echo_record([_setting_record(setting) for setting in settings])
        return
    width = page_width()
    lines: list[Line] = []
    for setting in settings:
        default = default_of(setting)
        title = Span(f"{setting.name} = {default}" if default else setting.name, "title")
        lines += hanging([title], f"  {type_text(setting)}", width)
        lines += hanging([Span("  ")], setting.meaning, width)
    echo_lines(lines)


def type_text(setting: Setting) -> str:
    """Describe the values of a setting: ``a whole number``, ``tiers, judged``; names of a table are those in it."""
    return _values_text(msgspec.inspect.type_info(setting.type))


def _values_text(described: msgspec.inspect.Type) -> str:
    """Describe the values of a type; a text that is one of many names says in its metadata where they stand."""
    match described:
        case msgspec.inspect.Metadata(extra=dict(extra)):
            return _names_text(extra)
        case msgspec.inspect.UnionType():
            members = [member for member in described.types if not isinstance(member, msgspec.inspect.NoneType)]
            return " or ".join(map(_values_text, members))
        case msgspec.inspect.VarTupleType():
            return f"a list; each item: {_values_text(described.item_type)}"
        case _:
            return describe_type(described)


def _names_text(extra: Mapping[str, str]) -> str:
    """Return the names: keys of a table in the source or in a TOML file, kinds of a package, or the text itself."""
    if "names_in" in extra:
        return ", ".join(table_keys(extra["names_in"]))
    if "tables_in" in extra:
        return ", ".join(toml_tables(extra["tables_in"]))
    return ", ".join(kinds(extra["kinds_of"])) if "kinds_of" in extra else extra["values"]


def default_of(setting: Setting) -> str:
    """Return the default as text, ``required`` where there is none; empty where the meaning says it."""
    if setting.default is REQUIRED:
        return "required"
    if setting.default is None and "Default: " in setting.meaning:
        return ""
    return default_text(setting.default) or '""'


def _setting_record(setting: Setting) -> JsonObject:
    default = {} if setting.default is REQUIRED else {"default": setting.default}
    return {"name": setting.name, "type": type_text(setting), **default, "meaning": setting.meaning}


def print_table(table: TerminalTable) -> None:
    """Print a table to stdout, in columns where they fit, else as lines of headings and cells. No cell is ever cut."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    title, rows = visible_line(table.title), [[visible_line(cell) for cell in row] for row in table.rows]
    heads = [head.split("\n") for head in table.heads]
    columns = [[*head, *(row[place] for row in rows if len(row) > 1)] for place, head in enumerate(heads, start=1)]
    needed = sum(max(map(width_of, column)) + _GAP for column in columns) + _name_width(rows) + _GAP
    if needed <= console.width:
        console.print(_columns(title, table.heads, rows))
    else:
        typer.echo("\n".join([title, *_row_lines(list(map(" ".join, heads)), rows, console.width)]))


def _columns(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), title=title, title_justify="left")
    table.add_column("", overflow="fold", min_width=_name_width(rows))
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _name_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the least width of the names of rows: no word is broken."""
    words = (word for row in rows for word in row[0].split())
    return max([_MIN_NAME_WIDTH, *map(width_of, words)])


def _row_lines(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    for name, *cells in rows:
        yield name
        indent = " " * (len(name) - len(name.lstrip()) + 2)
        text = ", ".join(f"{head} {cell}" for head, cell in zip(heads, cells, strict=False))
        yield from textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent)


def escape_unencodable() -> None:
    """Make stdout and stderr write code points for characters that they cannot encode: a terminal may be ASCII."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
