"""Any text as terminal cells: nothing in it can act on the terminal, and a line is as wide as it looks."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from rich.cells import cell_len

TAB = "\u2409   "
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_PICTURES = 0x2400
_DELETE = 0x7F
# Of the characters that format others, those that scripts and emoji need, and those that are drawn. The rest stays
# unseen and makes one text look like another: what turns or overrides a direction, spaces of no width, hidden tags.
_NEEDED = frozenset("\u200c\u200d\u200e\u200f\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd") | frozenset(
    map(chr, range(0x0600, 0x0606))
)
# White space, a word of a script with words, or a run of characters that may be broken anywhere (Chinese, emoji).
_WORDS = re.compile("\\s+|[!-\u10ff][!-\u10ff\u200c\u200d\ufe0f\u20e3]*|[^\\s!-\u10ff]+")
_STARTS_NO_LINE = frozenset("，。、！？；：）」』】》〉”’…")


def visible(text: str) -> str:
    """The text with every character that acts instead of being seen shown: ESC as its picture, others as ``<U+0085>``.

    New lines stay new lines; a tab is its picture and three spaces. Joiners and direction marks stay, since emoji,
    Persian and Hindi need them; what embeds or overrides a direction is shown, and so is a space without width.
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_visible, text))


def visible_line(text: str) -> str:
    """The same in one line: a new line is its picture."""
    return visible(text).replace("\n", "\u240a")


def width_of(text: str) -> int:
    """The cells that a visible text takes in a terminal."""
    return len(text) if text.isascii() else sum(map(_cluster_width, _clusters(text)))


def folded(text: str, width: int) -> list[str]:
    """The lines of a visible text, none wider than ``width`` cells, broken at spaces where that can be.

    Text without spaces (Chinese, a long word) is broken between characters, never within one. Nothing is left out but
    the white space at a break. A text that ends in a new line ends in an empty line. ``width`` is at least 2.
    """
    assert width > 1, "a Chinese character takes two cells"
    return [part for line in text.split("\n") for part in _folded_line(line, width)]


def clipped(text: str, width: int) -> str:
    """The beginning of a visible line that fits into ``width`` cells, with an ellipsis where something is left out."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for cluster in _clusters(text):
        used += _cluster_width(cluster)
        if used > width - 1:
            break
        kept.append(cluster)
    return "".join(kept).rstrip() + "\u2026"


def padded(text: str, width: int) -> str:
    """The visible line with spaces behind it up to ``width`` cells."""
    return text + " " * (width - width_of(text))


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
        if word.isspace():  # a break stands for it
            lines.append(current)
            current, used = "", 0
            continue
        if current and _breaks_before(word, size, width):
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
    """A full line and what goes into the next one with what follows: no line begins with a closing mark."""
    *before, last = _clusters(line)
    is_needed = following in _STARTS_NO_LINE and last not in _STARTS_NO_LINE
    if before and is_needed and _cluster_width(last) + _cluster_width(following) <= width:
        return "".join(before), last
    return line, ""


def _breaks_before(word: str, size: int, width: int) -> bool:
    """A word that fits into a line of its own starts one; Chinese runs on, since it may be broken anywhere."""
    return size <= width and cell_len(word[0]) == 1


def _clusters(text: str) -> Iterator[str]:
    """What must stay together: a character with its marks, an emoji with what is joined to it, a flag's two letters."""
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
