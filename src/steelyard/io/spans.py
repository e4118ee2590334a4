"""Lines of a terminal page as values: spans of visible text, each with what it is, for whoever gives it a colour."""

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from steelyard.io.cells import folded, visible, visible_line

Style = Literal["plain", "title", "quiet", "bad", "good", "special"]
INDENT = "  "


class Span(NamedTuple):
    """A piece of one line. Its text is visible: nothing in it acts on the terminal, and it holds no new line."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]
EMPTY: Line = ()


def plain(line: Line) -> str:
    """The line without its styles: what a terminal without colours, a file or a pipe gets."""
    return "".join(span.text for span in line).rstrip()


def number_of(number: int, noun: str) -> str:
    """``1 judgment``, ``2 judgments``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def heading(text: str, width: int, *, beside: str = "") -> list[Line]:
    """An empty line, and a heading with a remark beside it, or below it where both do not fit into one line."""
    if not beside:
        return [EMPTY, (Span(text, "title"),)]
    together = folded(f"{text}  {visible_line(beside)}", width)
    if len(together) == 1:
        return [EMPTY, (Span(text, "title"), Span(together[0][len(text) :], "quiet"))]
    return [EMPTY, (Span(text, "title"),), *said(beside, width, style="quiet")]


def said(text: str, width: int, *, style: Style = "plain", indent: str = "") -> list[Line]:
    """Any text in lines of at most ``width`` cells, all of them indented."""
    return [(Span(indent + part, style),) for part in folded(visible(text), width - len(indent))]


def listed(parts: Sequence[str], width: int, *, style: Style = "plain", indent: str = "") -> list[Line]:
    """Short remarks in a row, divided by dots, in as few lines as they take; none is broken that fits into a line."""
    lines, current = [], ""
    for part in map(visible_line, filter(None, parts)):
        joined = f"{current} · {part}" if current else part
        if current and len(folded(joined, width - len(indent))) > 1:
            lines.append(current)
            joined = part
        current = joined
    return [line for one in [*lines, current] if one for line in said(one, width, style=style, indent=indent)]


def hanging(first: Iterable[Span], text: str, width: int, *, style: Style = "plain") -> list[Line]:
    """A text behind what stands first in its line; its further lines begin below its beginning."""
    start = tuple(first)
    taken = sum(len(span.text) for span in start)
    parts = folded(visible_line(text), max(width - taken, 2))
    return [(*start, Span(parts[0], style)), *((Span(" " * taken), Span(part, style)) for part in parts[1:])]
