"""The help of a verb as text: what it does, examples that can be pasted, then its options by group.

Every option has one line where the terminal has room for it, and the page has no frames.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

_EXAMPLE = re.compile(r"^ *Example: `([^`]+)`$", re.MULTILINE)
_WORD = re.compile(r"(?:'[^']*'|[^\s'])+")
_LIST = re.compile(r"<list\[(\w+)\]>")
_REQUIRED = re.compile(r" {2}\[required\]$")
_GENERAL = ("--set", "--config", "--settings", "--force", "--verbose", "--json", "--help")
"""Options that nearly every verb has: one paragraph at the end."""
_EVERY_VERB = "General"
_STACKED = 64
"""Below this many columns, a meaning stands under its option and not beside it."""
_WIDEST_NAME = 24


class Entry(NamedTuple):
    """An argument or an option with its meaning, in a group of the help."""

    group: str
    name: str
    meaning: str


def help_page(about: str, usage: str, entries: Sequence[Entry], width: int, mark: Callable[[str], str] = str) -> str:
    """Return the help in lines of at most ``width`` columns; only words are longer.

    ``about`` is the text of the verb, with lines "Example: `COMMAND`"; the first paragraph says what it does.
    ``mark`` colours headings and names.
    """
    first, *rest = [part for part in re.split(r"\n{2,}", _EXAMPLE.sub("", about).strip()) if part.strip()]
    commands = _EXAMPLE.findall(about)
    lines = [*_wrapped(f"Usage: {usage}", width, indent="  "), "", *_wrapped(first, width), ""]
    if commands:
        heading = "Examples:" if len(commands) > 1 else "Example:"
        lines += [mark(heading), *(pasteable(command, width) for command in commands), ""]
    for paragraph in rest:
        lines += [*_wrapped(paragraph, width), ""]
    column = min(max(map(len, (entry.name for entry in entries)), default=0), _WIDEST_NAME) + 4
    for group, members in groupby(sorted(entries, key=_order(entries)), key=lambda entry: entry.group):
        lines += map(mark, _wrapped(f"{group}:", width))
        if group == _EVERY_VERB:
            lines += _one_paragraph(members, width)
        else:
            lines += [line for entry in members for line in _entry_lines(entry, column, width, mark)]
    return "\n".join(lines) + "\n"


def entries_of(parameters: Iterable[Any], context: Any) -> list[Entry]:
    """Return the arguments and options of a command that are not hidden, in their order."""
    entries: list[Entry] = []
    for parameter in parameters:
        record = parameter.get_help_record(context)
        if record is None or getattr(parameter, "hidden", False):
            continue
        name, meaning = record
        if parameter.param_type_name == "argument":
            group = "Arguments"
        else:
            is_general = parameter.opts[0] in _GENERAL
            group = _EVERY_VERB if is_general else (parameter.rich_help_panel or "Options")
        is_required = parameter.required and parameter.param_type_name == "option"
        meaning = _REQUIRED.sub("", meaning)
        name = _LIST.sub(lambda match: f"<{match[1].lower()}>", name)
        entries.append(Entry(group, name, f"Required. {meaning}" if is_required else meaning))
    return entries


def pasteable(command: str, width: int) -> str:
    """Return a command in lines of at most ``width`` columns that a shell reads as one; a word is never divided."""
    first, *words = _WORD.findall(command)
    lines = [first]
    for word in words:
        if len(lines[-1]) + len(word) + len(" \\") < width:
            lines[-1] += f" {word}"
        else:
            lines.append(f"  {word}")
    return " \\\n".join(lines)


def _order(entries: Sequence[Entry]) -> Any:
    """Return the key that sorts entries by group: arguments, options, groups of their own, what every verb has."""
    titles = list(dict.fromkeys(entry.group for entry in entries))
    ranks = {"Arguments": -2, "Options": -1, _EVERY_VERB: len(titles)}
    return lambda entry: ranks.get(entry.group, titles.index(entry.group))


def _entry_lines(entry: Entry, column: int, width: int, mark: Callable[[str], str]) -> Iterator[str]:
    name = f"  {entry.name}"
    if width < _STACKED:
        yield mark(name)
        yield from _wrapped(entry.meaning, width, indent="      ", is_hanging=False)
        return
    meaning = _wrapped(entry.meaning, width - column)
    if len(name) + 2 > column:
        yield mark(name)
    else:
        yield mark(f"{name:{column}}") + (meaning.pop(0) if meaning else "")
    yield from (f"{'':{column}}{line}" for line in meaning)


def _one_paragraph(entries: Iterable[Entry], width: int) -> list[str]:
    """Return what each option does, one after another: users know them from other verbs."""
    text = " ".join(f"{entry.name.split()[0]}: {entry.meaning}" for entry in entries)
    return _wrapped(text, width, indent="  ", is_hanging=False)


def _wrapped(text: str, width: int, indent: str = "", *, is_hanging: bool = True) -> list[str]:
    """Return a paragraph in lines; no word is divided. A hanging indent spares the first line."""
    return textwrap.wrap(
        " ".join(text.split()),
        width,
        initial_indent="" if is_hanging else indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
