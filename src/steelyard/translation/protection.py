"""A text with marks in place of what must not be translated: code, formulas, links, tags, addresses, identifiers.

The marks of blocks (lists, headings, quotations, tables) and emphasis stay in the text. A language model knows a list
by them, and translates it as one; checks after the translation compare them. For engines that translate sentences,
`blocks` takes them away.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from itertools import pairwise

from steelyard.translation.blocks import Closings, blocks, outline
from steelyard.translation.inline_pieces import PieceSpan, inline_pieces
from steelyard.translation.marks import (
    BRACKETS,
    MarkStyle,
    ProtectedPiece,
    ProtectedText,
    own_lines,
    restore,
    unused_style,
    without_marks,
)


def protect(text: str, *, style: MarkStyle = BRACKETS, first: int = 1, avoid: str = "") -> ProtectedText:
    """Put marks in place of what must not be translated.

    ``first``: the number of the first mark, so that all texts of one request have different marks. ``avoid``: the other
    texts of the request, in which no mark may occur. Pieces that touch each other are one.
    """
    used = unused_style(style, f"{text}\0{avoid}")
    parts: list[str] = []
    pieces: list[ProtectedPiece] = []
    position = 0
    for start, end, kind in _pieces(text):
        mark = used.mark(first + len(pieces))
        before, after = (_letter(text[start - 1 : start]), _letter(text[end : end + 1])) if used.is_word else ("", "")
        pieces.append(ProtectedPiece(mark, text[start:end], kind, before, after))
        parts += text[position:start], " " * bool(before), mark, " " * bool(after)
        position = end
    return ProtectedText("".join((*parts, text[position:])), tuple(pieces), used)


def has_prose(protected: ProtectedText) -> bool:
    """Return whether anything is left to translate: a letter outside the marks."""
    return any(character.isalpha() for character in without_marks(protected))


def protected_blocks(protected: ProtectedText) -> list[ProtectedText]:
    """Return the blocks of a protected text in order, each with its own pieces; joined they are the text."""
    by_mark = {piece.mark: piece for piece in protected.pieces}

    def part(text: str) -> ProtectedText:
        marks = (match[0] for match in protected.style.reading.finditer(text))
        return ProtectedText(text, tuple(by_mark[mark] for mark in marks if mark in by_mark), protected.style)

    # A block of code within a paragraph ends it: an engine would join their lines.
    cuts = sorted({place for _, *span in own_lines(protected, protected.text).values() for place in span})
    parts: list[ProtectedText] = []
    start = 0
    for block in blocks(protected.text):
        end = start + len(block.text)
        inner = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        parts += (part(protected.text[left:right]) for left, right in pairwise((start, *inner, end)))
        start = end
    return parts


def source_of(protected: ProtectedText) -> str:
    """Return the text that was protected."""
    restored = restore(protected, protected.text)
    assert isinstance(restored, str), "a text has its own marks"
    return restored


def _letter(character: str) -> str:
    """Return a character that would be read as a part of a word beside it; empty for any other."""
    return character if character and unicodedata.category(character)[0] in "LMN" else ""


def _pieces(text: str) -> list[PieceSpan]:
    """Return the pieces of a text in order; those that touch are joined."""
    parsed = outline(text)
    closings = Closings(text)
    pieces: list[PieceSpan] = []
    for start, end, kind in parsed.spans:
        if kind == "code":
            inner = [PieceSpan(start, end, "HTML" if text[start] == "<" else "code block")]
        elif kind == "link":
            inner = [PieceSpan(start, end, "link")]
        else:
            inner = inline_pieces(text, start, end, closings=closings, labels=parsed.labels)
        for piece in inner:
            if pieces and pieces[-1].end == piece.start:
                pieces[-1] = pieces[-1]._replace(end=piece.end)
            else:
                pieces.append(piece)
    return pieces
