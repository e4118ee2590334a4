"""Marks in place of what must not be translated, and the translated text with each piece in the place of its mark.

A text is restored in one pass and as a whole, or not at all: every mark occurs exactly once in the translation, in any
order in which tags still close what they closed, and blocks of code keep a line of their own. Signs of code that the
text does not have are faults as well. A piece may contain what looks like a mark; it is not searched.

A mark is read where it is certain. Brackets may enclose digits of another script and white space (``⟦ ١ ⟧``), because
the source text has no number in that pair. Words may have letters of another case (``xq1z``), because the source text
has no such word in any case. Everything else is a fault: other brackets, a word with blanks inside, a sign of direction
inside a mark. The translator is then asked again.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, product
from typing import Literal, NamedTuple

from steelyard.translation.blocks import outline

_STEM_LETTERS = "BCDFGHJLMNPRTVW"
"""Letters of stems: consonants that have one capital and one small form in every language."""
_LONGEST_STEM = 8
_MOST_DIGITS = 9
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20}
"""Full-width forms of ASCII."""
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3130-\u318f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
"""Scripts without spaces between words: Han, kana, Thai, Lao, Burmese, Khmer, and wide forms."""
_DIGITS = re.compile(r"\d+")
_TAG = re.compile(r"<(/?)([A-Za-z_][\w\-]*+)(?:[^<>]*+[^<>/])?+>")
"""A tag that opens or closes an element; not ``<br/>``, which is an element of its own."""


_LINED_KINDS = ("code block", "HTML", "link")
"""Kinds of pieces that end with the line, where they have one of their own: text beside them would belong to them."""
_ADDED = re.compile(
    r"`|^[ \t>]*~~~|!\[|</?[A-Za-z][\w\-]*+\s*+/?+>|[$\\](?=\0)|(?<=\0)\$"
    r"|&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos|nbsp);",
    re.MULTILINE,
)
"""Signs of code and images, tags, entities, and signs that make the piece of a mark, here a zero, another one."""


class MarkStyle(NamedTuple):
    """The form of marks: a number between an opening and a closing, as a sign of its own or as a word."""

    opening: str
    closing: str
    is_word: bool = False

    def mark(self, number: int) -> str:
        """Return the mark of a number."""
        return f"{self.opening}{number}{self.closing}"

    @property
    def reading(self) -> re.Pattern[str]:
        """A mark as it is read in a translation: a number, in any digits, between opening and closing."""
        blank = r"\s*+" if not self.is_word else ""
        opening = blank.join(filter(None, (re.escape(self.opening[:1]), re.escape(self.opening[1:])))) + blank
        return re.compile(rf"{opening}(\d{{1,{_MOST_DIGITS}}}+){blank}{re.escape(self.closing)}", re.IGNORECASE)

    @property
    def trace(self) -> re.Pattern[str]:
        """The remains of an altered mark: one of the brackets, or the opening of the word near a number."""
        if self.is_word:
            return re.compile(r"[\W_]{0,2}".join(map(re.escape, self.opening)) + r"[\W_]{0,2}\d", re.IGNORECASE)
        return re.compile(f"[{re.escape(self.opening[0])}{re.escape(self.closing)}]")


BRACKETS = MarkStyle("⟦", "⟧")
"""For language models, which copy signs that the prompt names: ⟦1⟧."""
WORDS = MarkStyle("XQ", "Z", is_word=True)
"""For engines that translate words alone, to which a mark is a name that they do not know: XQ1Z."""


class ProtectedPiece(NamedTuple):
    """A piece of a text, its mark, and what it is: code block, inline code, formula, URL, path, identifier, …

    ``before`` and ``after``: the letter beside the piece, from which a blank separates a mark in the form of a word.
    The source has no such blank. Empty without one.
    """

    mark: str
    text: str
    kind: str
    before: str = ""
    after: str = ""


class ProtectedText(NamedTuple):
    """A text with marks in place of its pieces, the pieces in the order of the text, and the style of their marks."""

    text: str
    pieces: tuple[ProtectedPiece, ...]
    style: MarkStyle

    @property
    def by_number(self) -> dict[int, ProtectedPiece]:
        """The pieces by the numbers of their marks."""
        opening, closing = len(self.style.opening), len(self.style.closing)
        return {int(piece.mark[opening:-closing]): piece for piece in self.pieces}


class MarkFault(NamedTuple):
    """A mark that a translation has not, has several times, or in another form; ``unknown``: no mark of the text.

    ``crossed``: the end of an element stands before its beginning, or between those of another one. ``moved``: a block
    of code that had a line of its own, or the beginning of its line, has another. ``added``: a sign of code that the
    text has not.
    """

    kind: Literal["missing", "repeated", "altered", "unknown", "crossed", "moved", "added"]
    mark: str


def unused_style(style: MarkStyle, text: str) -> MarkStyle:
    """Return the style with a stem by which none of its marks, however altered, occurs in a text.

    Full-width forms count as the plain ones, as a translator may write them so.
    """
    plain = text if text.isascii() else text.translate(_NARROW)
    gap = r"[\W_]{0,2}" if style.is_word else r"\s{0,9}+"
    opening = gap.join(map(re.escape, style.opening))
    before = re.compile(rf"{opening}{gap}([A-Z]{{0,{_LONGEST_STEM}}}){gap}\d", re.IGNORECASE)
    taken = {match[1].upper() for match in before.finditer(plain)}
    letters = chain.from_iterable(product(_STEM_LETTERS, repeat=length) for length in range(_LONGEST_STEM + 1))
    stem = next(stem for stem in map("".join, letters) if stem not in taken)
    return style._replace(opening=style.opening + stem)


def restore(protected: ProtectedText, translated: str) -> str | tuple[MarkFault, ...]:
    """Return a translation with its pieces in the places of their marks, or the faults of its marks and no text."""
    numbers = protected.by_number
    counts: Counter[int] = Counter()
    unknown: list[MarkFault] = []
    prose: list[str] = []
    order: list[ProtectedPiece] = []
    position = 0
    for match in protected.style.reading.finditer(translated):
        number = int(match[1])
        if number not in numbers or len(match[1]) != len(str(number)):
            unknown.append(MarkFault("unknown", match[0]))
            continue
        counts[number] += 1
        prose.append(translated[position : match.start()])
        order.append(numbers[number])
        position = match.end()
    prose.append(translated[position:])
    faults = [
        MarkFault("missing" if not counts[number] else "repeated", piece.mark)
        for number, piece in numbers.items()
        if counts[number] != 1
    ]
    faults += [*unknown, *_altered(protected, "\0".join(prose))]
    if not faults:
        crossed = _crossed(order)
        faults = crossed if len(crossed) > len(_crossed(protected.pieces)) else []
        faults += _moved(protected, translated)
        faults += _added(protected, "\0".join(prose))
    restored = _joined(prose, order)
    if not faults and translated != protected.text:
        source = restore(protected, protected.text)
        if _code_blocks(restored) != _code_blocks(str(source)):
            lined = [piece.mark for piece in protected.pieces if piece.kind in _LINED_KINDS]
            faults = [MarkFault("moved", mark) for mark in lined] or [MarkFault("added", "code")]
    return tuple(faults) or restored


@lru_cache(256)
def _code_blocks(text: str) -> tuple[str, ...]:
    """Return the blocks of code between fences or tags, as Markdown sees them."""
    if not any(sign in text for sign in ("```", "~~~", "<")):
        return ()
    return tuple(text[start:end] for start, end, kind in outline(text).spans if kind == "code" and text[start] in "`~<")


def _crossed(pieces: Sequence[ProtectedPiece]) -> list[MarkFault]:
    """Return the closing tags that do not close the last open element; elements that nothing closes do not count."""
    tags = [(piece.mark, *tag) for piece in pieces if piece.kind == "HTML" for tag in _TAG.findall(piece.text)]
    closed = {name for _, is_end, name in tags if is_end}
    opened: list[str] = []
    faults: list[MarkFault] = []
    for mark, is_end, name in tags:
        if not is_end:
            opened += [name] if name in closed else []
        elif opened and opened[-1] == name:
            opened.pop()
        else:
            faults.append(MarkFault("crossed", mark))
    return faults


def own_lines(protected: ProtectedText, text: str) -> dict[int, tuple[str, int, int]]:
    """Return the marks that have a line of their own: the beginning of the line, and its place, by the mark's number.

    Markers of lists and quotations, and blanks, do not count as text of the line.
    """
    lined = {number for number, piece in protected.by_number.items() if piece.kind in _LINED_KINDS}
    mark = protected.style.reading.pattern
    line = re.compile(rf"^([ \t>*+\-\d.)]*+)(?:{mark})[ \t]*+\r?$", re.MULTILINE | re.IGNORECASE)
    return {int(match[2]): (match[1], *match.span()) for match in line.finditer(text) if int(match[2]) in lined}


def _links(protected: ProtectedText, text: str) -> dict[int, str]:
    """Return the brackets beside the marks of targets and labels of links, by the mark's number."""
    links = {number for number, piece in protected.by_number.items() if piece.kind == "link"}
    marks = re.finditer(rf"(\](\(?))?(?:{protected.style.reading.pattern})(?(2)(\)?))", text, re.IGNORECASE)
    return {int(match[3]): f"{match[1]}{match[4]}" for match in marks if int(match[3]) in links}


def _moved(protected: ProtectedText, translated: str) -> list[MarkFault]:
    """Return the marks that had a line of their own and have none, or another beginning of it, or another order.

    So are targets of links without the brackets beside them, which translators write in full width. Code that nothing
    closes stays at the end. White space at both ends is not compared.
    """
    texts = protected.text.strip(), translated.strip()
    before, after = (_links(protected, text) for text in texts)
    faults = [MarkFault("moved", protected.style.mark(number)) for number in before if before[number] != after[number]]
    before, after = (own_lines(protected, text) for text in texts)
    order = dict(zip(before, (number for number in after if number in before), strict=False))
    return faults + [
        MarkFault("moved", protected.style.mark(number))
        for number, (start, _, end) in before.items()
        if order.get(number) != number
        or _DIGITS.sub("0", after[number][0]) != _DIGITS.sub("0", start)
        or (end == len(texts[0])) > (after[number][2] == len(texts[1]))
    ]


def _added(protected: ProtectedText, prose: str) -> list[MarkFault]:
    """Return the signs of code that are more frequent in the prose of the translation than in that of the text."""
    texts = without_marks(protected), prose
    before, after = (Counter(_ADDED.findall(text)) for text in texts)
    lost = ["!["] * (texts[0].count("![") > texts[1].count("!["))
    return [MarkFault("added", sign) for sign in (*(after - before), *lost)]


def without_marks(protected: ProtectedText) -> str:
    """Return the text between the marks, with a zero character for each mark."""
    return protected.style.reading.sub("\0", protected.text)


def _altered(protected: ProtectedText, prose: str) -> list[MarkFault]:
    """Return the remains of altered marks: they differ between the prose of the translation and that of the text.

    A text with brackets of its own needs all of them again: one that is lost may close what is left of a mark.
    """
    trace = protected.style.trace
    after, before = Counter(trace.findall(prose)), Counter(trace.findall(without_marks(protected)))
    return [MarkFault("altered", sign) for sign in dict.fromkeys((*after, *before)) if after[sign] != before[sign]]


def _joined(prose: list[str], pieces: list[ProtectedPiece]) -> str:
    """Join prose and pieces, without the blanks that kept marks apart from letters."""
    parts = [prose[0]]
    for piece, following in zip(pieces, prose[1:], strict=True):
        if parts[-1].endswith(" ") and _is_attached(piece, piece.before, parts[-1][-2:-1]):
            parts[-1] = parts[-1][:-1]
        is_after = following.startswith(" ") and _is_attached(piece, piece.after, following[1:2])
        parts += piece.text, following[1:] if is_after else following
    return "".join(parts)


def _is_attached(piece: ProtectedPiece, source: str, neighbor: str) -> bool:
    """Return whether a blank beside a mark was added with it, and leaves with it.

    Chinese writes no blank around code, other languages do: the blank stays between a piece and their letters.
    """
    return bool(source) and (piece.kind == "HTML" or not _WIDE.match(source) or bool(_WIDE.match(neighbor)))
