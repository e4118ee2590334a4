"""Text for a terminal: control characters made visible, lines broken to a width in cells, and styled lines.

No text can act on the terminal, and a line is as wide as it looks. A line of a page is a tuple of spans, each with its
style; the printer chooses the colours.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len

TAB = "\u2409   "
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_PICTURES = 0x2400
_DELETE = 0x7F
# Format characters that scripts and emoji need, and those that are drawn. The others are invisible and can make one
# text look like another: direction overrides, zero-width spaces, hidden tags.
_NEEDED = frozenset("\u200c\u200d\u200e\u200f\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd") | frozenset(
    map(chr, range(0x0600, 0x0606))
)
# White space, a word of a script with spaces, or a run of characters that may be broken anywhere (Chinese, emoji).
_WORDS = re.compile("\\s+|[!-\u10ff][!-\u10ff\u200c\u200d\ufe0f\u20e3]*|[^\\s!-\u10ff]+")
_STARTS_NO_LINE = frozenset("，。、！？；：）」』】》〉”’…")

Style = Literal["plain", "title", "quiet", "bad", "good", "special"]
INDENT = "  "


class Span(NamedTuple):
    """A piece of one line. Its text is visible: no control characters and no new line."""

    text: str
    style: Style = "plain"


Line = tuple[Span, ...]
EMPTY: Line = ()
_ISOLATED = re.compile("\u200e\u2068([^\u2066-\u2069]*)\u2069")


def visible(text: str) -> str:
    """Return the text with control characters made visible: ESC as its picture, others as ``<U+0085>``.

    New lines stay; a tab becomes its picture and three spaces. Joiners and direction marks stay, since emoji, Persian
    and Hindi need them; direction embeddings and overrides and zero-width spaces are shown. Isolates around a name, as
    sentences of pages have them, are left out: many terminals show their codes.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, _ISOLATED.sub(r"\1", text)))


def visible_line(text: str) -> str:
    """Return the visible text in one line: a new line becomes its picture."""
    return visible(text).replace("\n", "\u240a")


def width_of(text: str) -> int:
    """Return the number of terminal cells of a visible text."""
    return len(text) if text.isascii() else sum(map(_cluster_width, _clusters(text)))


def folded(text: str, width: int) -> list[str]:
    """Break a visible text into lines of at most ``width`` cells, at spaces where possible.

    Text without spaces (Chinese, a long word) is broken between characters, never within one. Only white space at a
    break is dropped. A text that ends in a new line ends in an empty line. ``width`` is at least 2.
    """
    assert width > 1, "a Chinese character takes two cells"
    return [part for line in text.split("\n") for part in _folded_line(line, width)]


def clipped(text: str, width: int) -> str:
    """Truncate a visible line to ``width`` cells, with an ellipsis where something is cut."""
    if width_of(text) <= width:
        return text
    clusters, used = [], 0
    for cluster in _clusters(text):
        used += _cluster_width(cluster)
        if used > width - 1:
            break
        clusters.append(cluster)
    return "".join(clusters).rstrip() + "\u2026"


def padded(text: str, width: int) -> str:
    """Pad a visible line with spaces to ``width`` cells."""
    return text + " " * (width - width_of(text))


def plain(line: Line) -> str:
    """Return the line without styles, for a file, a pipe or a terminal without colours."""
    return "".join(span.text for span in line).rstrip()


def rule_counts(rules: Mapping[str, int], comma: str = ", ") -> str:
    """Format counts by rule in one line, with parts after their total: ``cut responses 69 (de 11, en 58), pairs 9``.

    A rule ``TOTAL, PART`` counts a part of the rule ``TOTAL``. A total whose only part is unknown stands alone.
    ``comma`` is between rules and between parts.
    """
    parts: dict[str, dict[str, int]] = {}
    for rule, number in sorted(rules.items()):
        total, _, part = rule.rpartition(", ")
        if total in parts:
            parts[total][part] = number
        else:
            parts[rule] = {}
    return comma.join(
        f"{total} {rules[total]:,}"
        + (
            f" ({comma.join(f'{name} {number:,}' for name, number in numbers.items())})"
            if numbers.keys() - {"unknown"}
            else ""
        )
        for total, numbers in parts.items()
    )


def heading(text: str, width: int, *, remark: str = "") -> list[Line]:
    """Return an empty line and a heading; a remark follows on the same line, or below where it does not fit."""
    if not remark:
        return [EMPTY, (Span(text, "title"),)]
    together = folded(f"{text}  {visible_line(remark)}", width)
    if len(together) == 1:
        return [EMPTY, (Span(text, "title"), Span(together[0][len(text) :], "quiet"))]
    return [EMPTY, (Span(text, "title"),), *text_lines(remark, width, style="quiet")]


def text_lines(text: str, width: int, *, style: Style = "plain", indent: str = "") -> list[Line]:
    """Break any text into indented lines of at most ``width`` cells."""
    return [(Span(indent + part, style),) for part in folded(visible(text), width - len(indent))]


def joined_lines(parts: Sequence[str], width: int, *, style: Style = "plain", indent: str = "") -> list[Line]:
    """Join short remarks by dots in as few lines as possible; a remark that fits into a line is not broken."""
    lines: list[str] = []
    current = ""
    for part in map(visible_line, filter(None, parts)):
        longer = f"{current} · {part}" if current else part
        if current and len(folded(longer, width - len(indent))) > 1:
            lines.append(current)
            longer = part
        current = longer
    if current:
        lines.append(current)
    return [line for text in lines for line in text_lines(text, width, style=style, indent=indent)]


def hanging(first: Iterable[Span], text: str, width: int, *, style: Style = "plain") -> list[Line]:
    """Return a text after the spans ``first``; its further lines are indented to where it begins."""
    start = tuple(first)
    indent = sum(len(span.text) for span in start)
    parts = folded(visible_line(text), max(width - indent, 2))
    return [(*start, Span(parts[0], style)), *((Span(" " * indent), Span(part, style)) for part in parts[1:])]


def _visible(character: str) -> str:
    code = ord(character)
    if character == "\n" or character.isprintable() or character in _NEEDED:
        return character
    if character == "\t":
        return TAB
    if code < ord(" "):
        return chr(_PICTURES + code)
    if code == _DELETE:
        return "\u2421"
    return character if unicodedata.category(character) == "Zs" else f"<U+{code:04X}>"


def _folded_line(line: str, width: int) -> list[str]:
    if width_of(line) <= width:
        return [line]
    lines, current, used = [], "", 0
    for word in _WORDS.findall(line):
        size = width_of(word)
        if used + size <= width:
            current, used = current + word, used + size
            continue
        if word.isspace():  # the break replaces it
            lines.append(current)
            current, used = "", 0
            continue
        # A word moves to the next line as a whole; Chinese continues here, since it can be broken anywhere.
        if current and size <= width and cell_len(word[0]) == 1:
            lines.append(current.rstrip())
            current, used = "", 0
        for cluster in _clusters(word):
            step = _cluster_width(cluster)
            if used + step > width:
                full, current = _divided(current, cluster, width)
                lines.append(full)
                used = width_of(current)
            current, used = current + cluster, used + step
    return [*lines, current] if current or not lines else lines


def _divided(line: str, following: str, width: int) -> tuple[str, str]:
    """Split a full line so that the next one does not begin with a closing mark; return it and the carried text."""
    *before, last = _clusters(line)
    is_needed = following in _STARTS_NO_LINE and last not in _STARTS_NO_LINE
    if before and is_needed and _cluster_width(last) + _cluster_width(following) <= width:
        return "".join(before), last
    return line, ""


def _clusters(text: str) -> Iterator[str]:
    """Yield what must stay together: a character with its marks, a joined emoji, the two letters of a flag."""
    cluster = ""
    for character in text:
        if cluster and not _continues(cluster, character):
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster


def _continues(cluster: str, character: str) -> bool:
    last = cluster[-1]
    return (
        _JOINER in (last, character)
        or ord(character) in _SKIN_TONES
        or (_is_flag_letter(character) and len(cluster) == 1 and _is_flag_letter(last))
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


@lru_cache(maxsize=4096)
def _cluster_width(cluster: str) -> int:
    return cell_len(cluster)
