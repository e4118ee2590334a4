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
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import typer

from steelyard.core.config import describe_type
from steelyard.core.plugins import kinds
from steelyard.core.settings_help import REQUIRED, Setting, default_text, table_keys, toml_tables
from steelyard.core.text import money_text, number_of, verb_for
from steelyard.core.types import JsonObject, Run
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

    from steelyard.judging.judge_card import JudgeCards
    from steelyard.judging.token_use import TokenUse
    from steelyard.judging.verdicts import VerdictSummary
    from steelyard.statistics.intervals import Estimate
    from steelyard.statistics.prediction_powered import PoweredEstimate

MIN_WIDTH = 20
_STYLES = {"plain": "", "title": "bold", "quiet": "dim", "bad": "bold red", "good": "green", "special": "cyan"}
_GAP = 2
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
            typer.echo("\n".join(_folded(line, width) if width else [visible(line)]))


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
    """Return ``n in, n used; dropped: …; noted: …``, without plain sizes."""
    counts = run.counts
    parts = [f"{counts.num_in:,} in, {counts.num_used:,} used"]
    for title, rules in (("dropped", counts.dropped), ("noted", counts.noted)):
        numbers = rule_counts({rule: number for rule, number in rules.items() if number and rule not in _SIZES})
        if numbers:
            parts.append(f"{title}: {numbers}")
    return "; ".join(parts)


def next_line(*words: object, effect: str = "") -> str:
    """Return ``next: steelyard report out --out report.html  # shows the conflicts``, to be pasted."""
    return f"next: {shlex.join(['steelyard', *map(str, words)])}" + (f"  # {effect}" if effect else "")


def interval_text(estimate: "Estimate", sign: str = "") -> str:
    """Return ``0.650 [0.607, 0.687]``, without an interval ``0.650 [why]``, without a value ``none``."""
    if estimate.value is None:
        return "none"
    value = f"{estimate.value:{sign}.3f}"
    if estimate.low is None or estimate.high is None:
        return f"{value} [{estimate.why}]" if estimate.why else value
    return f"{value} [{estimate.low:{sign}.3f}, {estimate.high:{sign}.3f}]"


def judge_lines(judges: "Mapping[str, VerdictSummary]") -> Iterator[str]:
    """Yield for every judge its outcomes, how often it contradicted itself, and its position bias."""
    for name, judge in judges.items():
        outcomes = ", ".join(f"{outcome} {number:,}" for outcome, number in judge.outcomes.items())
        yield f"{name}: {outcomes or 'no verdicts'}"
        if judge.ratings is not None:
            yield "  ratings: " + ", ".join(f"{value}: {number:,}" for value, number in judge.ratings.items())
        for title, share in (
            ("inconsistent between orders", judge.inconsistent),
            ("first one preferred", judge.first_preferred),
            ("verdicts that differ between two repeats", judge.flip_rate),
        ):
            if share is not None and share.value is not None:
                yield f"  {title}: {percent_text(share)} of {share.n:,}"


def cost_lines(tokens: "Mapping[str, TokenUse]") -> Iterator[str]:
    """Yield what the replies of models cost together, where a price is known, and what may be billed beside it."""
    costs = [use.cost for use in tokens.values() if use.cost is not None]
    if costs:
        yield f"cost: {money_text(sum(costs))} for {number_of(len(costs), 'model')} with a price"
    if number := sum(use.unanswered_tries for use in tokens.values()):
        them = verb_for(number, "it is", "they are")
        yield f"{number_of(number, 'try', 'tries')} brought no answer and may be billed too: {them} in no count"


def card_lines(cards: "JudgeCards", *, is_whole: bool) -> Iterator[str]:
    """Yield for every judge what it is worth next to people; if ``is_whole`` also its biases and each group."""
    if not cards.cards:
        yield "no judge labelled a pair that people labelled"
    for card in cards.cards:
        people = card.people
        yield f"{card.judge} agrees with people on {percent_text(people.agreement)} of {people.num_pairs:,} pairs"
        yield (
            f"  correlation with people {interval_text(people.correlation)}: with very many of its labels, a human "
            f"label counts as {interval_text(people.worth)}"
        )
        if not is_whole:
            continue
        strict = percent_text(people.agreement_of_strict)
        yield f"  kappa {interval_text(people.kappa)}; without ties it agrees on {strict}"
        shares = {
            "prefers the response shown first": card.first_preferred,
            "prefers the longer response": card.longer_preferred,
            "other verdict in the other order": card.order_flips,
            "other verdict when asked again": card.repeat_flips,
        }
        for title, share in shares.items():
            yield f"  {title}: {percent_text(share)} of {share.n:,}" if share.n else f"  {title}: not known"
        if card.longer_than_people.value is not None:
            yield f"  minus people's preference for the longer response: {points_text(card.longer_than_people)}"
        for name, part in (*card.by_category.items(), *card.by_language.items()):
            yield f"    {name}: {percent_text(part.agreement)}, correlation {interval_text(part.correlation)}"


def powered_difference_lines(powered: "PoweredEstimate | None") -> Iterator[str]:
    """Yield a difference in accuracy from human and judge labels together; nothing without one."""
    if powered is None:
        return
    if powered.estimate.value is None or powered.p is None:
        yield f"  with the judge's labels: no value, {powered.estimate.why}"
        return
    value = f"{interval_text(powered.estimate, '+')}, corrected p {powered.p:.4f}"
    yield f"  with the judge's labels accuracy {value}; a human label counts as {powered.worth:.2f}"


def missing_parts(parts: Mapping[str, str]) -> str:
    """Return ``missing NAME (why), …``."""
    return "missing " + ", ".join(f"{name} ({why})" for name, why in parts.items())


def percent_text(share: "Estimate") -> str:
    """Return ``25.0% [15.0%, 35.0%]``."""
    if share.value is None:
        return "none"
    return f"{share.value:.1%}" + ("" if share.low is None else f" [{share.low:.1%}, {share.high:.1%}]")


def points_text(difference: "Estimate") -> str:
    """Return ``+11.7 points [6.8, 16.4]`` of a difference of shares."""
    if difference.value is None:
        return "none"
    ends = difference.low, difference.high
    shown = "" if None in ends else f" [{', '.join(f'{100 * (end or 0):.1f}' for end in ends)}]"
    return f"{100 * difference.value:+.1f} points{shown}"


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
    needed = sum(max(map(width_of, column)) + _GAP for column in columns) + _MIN_NAME_WIDTH + _GAP
    if needed <= console.width:
        console.print(_columns(title, table.heads, rows))
    else:
        typer.echo("\n".join([title, *_row_lines(list(map(" ".join, heads)), rows, console.width)]))


def _columns(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), title=title, title_justify="left")
    table.add_column("", overflow="fold", min_width=_MIN_NAME_WIDTH)
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


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
