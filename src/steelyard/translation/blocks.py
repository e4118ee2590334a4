"""The blocks of a Markdown text with their places: prose that is translated, and code that is not.

markdown-it parses containers, code, HTML and headings. Tables are read here, because markdown-it fills short rows up:
a small hostile table would become a large one. Formulas of several lines and lines of programs are hidden from the
parser, since they look like lists, headings and quotations. All other syntax of blocks (list markers, heading marks,
pipes, quotation marks of lines) stays in the text that a language model translates, which knows it as context; `blocks`
takes it away from engines that translate sentences.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from steelyard.translation.program_lines import indented_code, program_lines

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

BlockKind = Literal["paragraph", "heading", "list item", "quotation", "table cell", "HTML", "code", "link", "syntax"]
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t]*+(?=\r|\n)")
FORMULA_ENVIRONMENTS = (
    r"(?:(?:equation|align|alignat|aligned|flalign|gather|gathered|multline|eqnarray|split|math|displaymath|d?cases|array"
    r"|[pbBvV]?matrix|smallmatrix|subarray|tikzpicture|[vV]erbatim|lstlisting|minted)\*?)"
)
"""Environments of LaTeX without prose: formulas, drawings and code. Others, such as ``itemize``, hold prose."""
_FORMULA_OR_CODE = re.compile(
    rf"\\[\\$`]|(?P<open>\$\$|\\\[|\\\(|\\begin\{{(?P<name>{FORMULA_ENVIRONMENTS})\}})|(?P<code>`+)"
)
_CLOSING = re.compile(
    r"\\[\\$]|(?P<dollars>\$\$)|(?P<end>\\\]|\\\)|\\end\{[A-Za-z]+\*?\}|-->|\?>|</[a-z]{1,10}+>)|(?P<ticks>`+)"
)
_CLOSING_OF = {"\\(": "\\)", "\\[": "\\]", "<!--": "-->", "<?": "?>"}
_BEFORE_FORMULA = re.compile(r"(?:\A|[\r\n])[ \t>*+\-\d.)]*\Z")
"""Containers that may precede a formula on a line of its own."""
_LONGEST_CONTAINER = 80
_TICKS = re.compile(r"(?<!\\)`+")
_UNDERLINE = re.compile("=+")
_HEADING = re.compile(r"[^#]*+#{1,6}[ \t]*+")
_DELIMITERS = re.compile(r"[ \t]*+\|?+[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?+[ \t]*+")
_CELL = re.compile(r"(?:[^|\\]|\\.|\\\Z)++", re.DOTALL)
_CODE_IN_HTML = re.compile(r"<(?:(?:script|style|pre|textarea)\b|!--|\?|![A-Z]|!\[CDATA\[)", re.IGNORECASE)


class Block(NamedTuple):
    """A part of a text with one kind; ``syntax`` is everything between the other kinds, line ends included."""

    kind: BlockKind
    text: str

    @property
    def is_translated(self) -> bool:
        """True for a block of prose: neither code, nor definitions of links, nor syntax."""
        return self.kind not in ("code", "link", "syntax")


class BlockSpan(NamedTuple):
    """The place of a block in its text."""

    start: int
    end: int
    kind: BlockKind


class Outline(NamedTuple):
    """Places of blocks in order, without syntax, and the labels that the text defines as links (in normal form)."""

    spans: tuple[BlockSpan, ...]
    labels: frozenset[str]


class Closings:
    """Places of what closes code and formulas, and of blank lines; each search takes logarithmic time."""

    def __init__(self, text: str) -> None:
        self._places: dict[str, list[int]] = {}
        for match in _CLOSING.finditer(text):
            if match.lastgroup:
                self._places.setdefault(match[0], []).append(match.start())
        self._blank_lines = [match.start() for match in _BLANK_LINE.finditer(text)]

    def end_of(self, opening: str, after: int, limit: int, *, in_paragraph: bool = True) -> int | None:
        """Return the end of what an opening before ``after`` opens; null if nothing closes it before ``limit``."""
        if opening.startswith("\\begin"):
            closing = opening.replace("begin", "end", 1)
        elif opening[0] == "<" and opening[1].isalpha():
            closing = f"</{opening[1:]}"
        else:
            closing = _CLOSING_OF.get(opening, opening)
        places = self._places.get(closing, [])
        nearest = bisect_left(places, after)
        if nearest == len(places) or places[nearest] + len(closing) > limit:
            return None
        if in_paragraph:
            blank = bisect_left(self._blank_lines, after)
            if blank < len(self._blank_lines) and self._blank_lines[blank] < places[nearest]:
                return None
        return places[nearest] + len(closing)


def code_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of code within paragraphs: between runs of as many backticks."""
    if "`" not in text:
        return
    closings = Closings(text)
    position = 0
    for ticks in _TICKS.finditer(text):
        if ticks.start() >= position and (end := closings.end_of(ticks[0], ticks.end(), len(text))):
            yield ticks.start(), end
            position = end


def blocks(text: str) -> list[Block]:
    """Split a text into blocks; their texts joined are the text. Cells of tables are blocks of their own.

    A translator of sentences takes the blocks of a protected text: protect, split, translate the blocks with prose,
    join, restore. A paragraph in a quotation has a block for each line, because its lines begin with syntax.
    """
    parts: list[Block] = []
    position = 0
    for start, end, kind in outline(text).spans:
        if start > position:
            parts.append(Block("syntax", text[position:start]))
        parts.append(Block(kind, text[start:end]))
        position = end
    return [*parts, Block("syntax", text[position:])] if position < len(text) else parts


def outline(text: str) -> Outline:
    """Parse the blocks of a text; places are those of the text itself, with any line ends."""
    lines = _Lines(text)
    tokens, references = _parsed(lines.parsed)
    code = [span for span in lines.spans_of(tokens) if span.kind == "code"]
    has_formulas = lines.hide(_long_formulas(text, code))
    if lines.hide_programs(code) or has_formulas:
        tokens, references = _parsed(lines.parsed)
    definitions = (BlockSpan(*lines.range_of(*reference["map"]), "link") for reference in references.values())
    return Outline(tuple(sorted((*lines.spans_of(tokens), *definitions))), frozenset(references))


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # A line below a paragraph that makes it a heading is read here: the rule tries every line of a paragraph again.
    return MarkdownIt("commonmark").disable("lheading")


def _parsed(lines: list[str]) -> "tuple[list[Token], dict[str, dict[str, tuple[int, int]]]]":
    """Return the tokens of blocks, and the definitions of links; text inside blocks is not parsed, which is slow."""
    tokens: list[Token] = []
    environment: dict[str, dict[str, dict[str, tuple[int, int]]]] = {}
    _parser().block.parse("\n".join(lines), _parser(), environment, tokens)
    return tokens, environment.get("references", {})


def _long_formulas(text: str, code: list[BlockSpan]) -> Iterator[tuple[int, int]]:
    """Yield the places of formulas of several lines outside code; one on lines of its own may have blank lines."""
    closings = Closings(text)
    starts = [span.start for span in code]
    # Indented code begins no earlier than a formula around it, whose lines may be indented after a blank one.
    limits = [*(span.start for span in code if text[span.start] in "`~<"), len(text)]
    position = 0
    while match := _FORMULA_OR_CODE.search(text, position):
        position = match.end()
        following = bisect_left(starts, match.start() + 1)
        if following and match.start() < code[following - 1].end:
            position = max(position, code[following - 1].end)
        elif match["open"] or match["code"]:
            before = text[max(0, match.start() - _LONGEST_CONTAINER) : match.start()]
            is_apart = bool(match["name"] or (match[0] in ("$$", "\\[") and _BEFORE_FORMULA.search(before)))
            limit = limits[bisect_left(limits, match.start())]
            position = closings.end_of(match[0], match.end(), limit, in_paragraph=not is_apart) or position
            if match["open"] and _LINE_END.search(text, match.start(), position):
                yield match.start(), position


class _Lines:
    """The lines of a text, and the places in it of the tokens of markdown-it, which know numbers of lines alone."""

    def __init__(self, text: str) -> None:
        self._text = text
        ends = [match.span() for match in _LINE_END.finditer(text)]
        self._starts = [0, *(after for _, after in ends)]
        self._ends = [*(end for end, _ in ends), len(text)]
        self.parsed = [text[start:end] for start, end in zip(self._starts, self._ends, strict=True)]
        """The lines as markdown-it sees them."""
        self._programs: frozenset[int] = frozenset()

    def hide(self, formulas: Iterator[tuple[int, int]]) -> bool:
        """Put letters in place of formulas in the lines that are parsed; return whether there was a formula."""
        has_formula = False
        for start, end in formulas:
            has_formula = True
            for number in self._numbers_of(start, end):
                line = self._text[self._starts[number] : self._ends[number]]
                before = line[: max(0, start - self._starts[number])]
                after = line[max(0, end - self._starts[number]) :]
                self.parsed[number] = before + "x" * max(1, len(line) - len(before) - len(after)) + after
        return has_formula

    def hide_programs(self, code: list[BlockSpan]) -> bool:
        """Put letters in place of lines of programs outside blocks of code; return whether there was one.

        Markdown reads a prompt of Python as a quotation, and what is indented after a blank line as code.
        """
        lines = list(self.parsed)
        for start, end, _ in code:
            for number in self._numbers_of(start, end):
                lines[number] = ""
        self._programs = frozenset(number for number, is_code in enumerate(program_lines(lines)) if is_code)
        for number in self._programs:
            body = lines[number].lstrip()
            self.parsed[number] = lines[number][: -len(body)] + "x" * len(body)
        return bool(self._programs)

    def _numbers_of(self, start: int, end: int) -> range:
        """Return the numbers of the lines that a place in the text touches."""
        return range(bisect_right(self._starts, start) - 1, bisect_right(self._starts, end - 1))

    def range_of(self, first: int, after: int) -> tuple[int, int]:
        """Return start and end of lines, without the last line end and without blank lines after them."""
        last = min(after, len(self._starts)) - 1
        while last > first and not self.parsed[last].strip():
            last -= 1
        return self._starts[first], self._ends[last]

    def spans_of(self, tokens: "list[Token]") -> Iterator[BlockSpan]:
        """Yield the places of the blocks that tokens begin."""
        containers: list[BlockKind] = []
        kind: BlockKind = "paragraph"
        for token in tokens:
            if token.type in ("list_item_open", "blockquote_open"):
                containers.append("list item" if token.type == "list_item_open" else "quotation")
            elif token.type in ("list_item_close", "blockquote_close"):
                containers.pop()
            elif token.type in ("heading_open", "paragraph_open"):
                kind = "heading" if token.type == "heading_open" else containers[-1] if containers else "paragraph"
            elif token.map and (token.content or token.type == "fence"):
                first, after = token.map
                lines = token.content.rstrip("\n").split("\n")
                if token.type == "inline":
                    runs = [int(number not in self._programs) for number in range(first, first + len(lines))]
                    yield from self._runs(lines, runs, first, kind)
                elif token.type == "code_block":
                    runs = [0 if is_code else number for number, is_code in enumerate(indented_code(lines), 1)]
                    yield from self._runs(lines, runs, first, "paragraph")
                elif token.type == "fence":
                    start, end = self.range_of(first, after)
                    yield BlockSpan(start + self.parsed[first].find(token.markup), end, "code")
                else:
                    yield from self._html(token, first, after)

    def _html(self, token: "Token", first: int, after: int) -> Iterator[BlockSpan]:
        """Yield HTML from its tag; elements of code, and lines of programs within it, are code."""
        start, end = self.range_of(first, after)
        begin = start + self.parsed[first].find("<")
        if _CODE_IN_HTML.match(token.content.lstrip()):
            yield BlockSpan(begin, end, "code")
            return
        for is_code, run in groupby(range(first, after), key=self._programs.__contains__):
            numbers = list(run)
            start, end = self.range_of(numbers[0], numbers[-1] + 1)
            if start < end:
                yield BlockSpan(max(start, begin), end, "code" if is_code else "HTML")

    def _runs(self, content: list[str], runs: list[int], first: int, kind: BlockKind) -> Iterator[BlockSpan]:
        """Yield the runs of lines with the same number: code where it is 0, otherwise prose."""
        number = first
        for run, group in groupby(zip(runs, content, strict=True), key=itemgetter(0)):
            lines = [line for _, line in group]
            after = number + len(lines)
            if run:
                yield from self._prose(lines, number, kind)
            elif "".join(lines).strip():
                start, end = self.range_of(number, after)
                before = self.parsed[number].rfind(lines[0].strip())
                yield BlockSpan(start + len(self.parsed[number][:before].rstrip()), end, "code")
            number = after

    def _prose(self, content: list[str], first: int, kind: BlockKind) -> Iterator[BlockSpan]:
        """Yield prose as one place, or line by line where lines begin with syntax; a table in it by cells."""
        lines: list[BlockSpan] = []
        has_syntax = False
        for number, text in enumerate(map(str.strip, content), first):
            line = self.parsed[number].rstrip()
            marks = _HEADING.match(line) if kind == "heading" else None
            column = line.find(text, marks.end()) if marks else line.rfind(text)
            has_syntax |= number > first and bool(line[:column].strip())
            start = self._starts[number] + column
            lines.append(BlockSpan(start, min(start + len(text), self._ends[number]), kind))
        if len(lines) > 1 and _UNDERLINE.fullmatch(content[-1].strip()):
            del lines[-1], content[-1]
            lines = [line._replace(kind="heading") for line in lines]
        # A table begins with the line above a row of delimiters.
        heads = (
            number
            for number, (head, delimiters) in enumerate(pairwise(content))
            if "|" in head and "|" in delimiters and _DELIMITERS.fullmatch(delimiters)
        )
        table = next(heads, len(content))
        if has_syntax:
            yield from (line for line in lines[:table] if line.end > line.start)
        elif table:
            yield BlockSpan(lines[0].start, lines[table - 1].end, lines[0].kind)
        rows = zip(lines[table:], content[table:], strict=True)
        for number, (line, text) in enumerate(rows):
            for cell in _CELL.finditer(text.strip()) if number != 1 else ():
                if stripped := cell[0].strip():
                    start = line.start + cell.start() + cell[0].index(stripped)
                    yield BlockSpan(start, start + len(stripped), "table cell")
