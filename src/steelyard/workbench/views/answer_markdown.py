"""Markdown of prompts, responses and guidelines as harmless HTML, with emphasis as Chinese and Japanese write it.

HTML in the text is off, and what is rendered is cleaned afterwards. LaTeX stays as text between its marks. A program
without a fence is a block of code: as Markdown its comments would be headings, and its indentation lost.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import nh3
from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markupsafe import Markup

from steelyard.core.text import HIDDEN_CHARACTERS, codes_of
from steelyard.translation.program_lines import is_program

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "small", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href"}, "li": {"class", "value"}}
_WIDEST_MARGIN = 3
"""Digits of a number of a list that have room beside its text."""
_FORMULA = re.compile(r"\$\$|\\\[|\\\(|(?<![\\$\w])\$(?! )[^$\n]+?(?<! )\$(?![\w$])")
"""The opening of a formula whose closing is searched, or a formula within a line as a whole."""
_CLOSINGS = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
# Han, kana, Hangul, and the punctuation and wide forms that are set among them.
_WIDE = re.compile(
    "[\u1100-\u11ff\u3000-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_NUM_RENDERED = 1000
"""Texts whose HTML is kept. Two people see the same response, and each in several tasks, at about the same time."""
LONGEST_RENDERED = 50_000
"""Characters of the longest text that is rendered: about a second of processor time for the worst of that length."""
_TOKENS_OF_CHARACTER = 4
"""Tokens for each character, beyond which a short text makes a large page: a table of many columns with empty rows."""
_FEWEST_TOKENS = 1000
_MOST_MARKS = 1000


class _TooManyTokens(Exception):  # noqa: N818 - decides how a text is shown
    """A text would become far larger on the page than it is."""


def safe_markdown(text: str, note: str) -> Markup:
    """Return the text as HTML of harmless tags. LaTeX is kept as it was written, as the text of ``span.math``.

    Characters that hide or reorder others carry their codes. A text that is too long to be rendered is shown as it was
    written, below ``note``, which says so.
    """
    if (rendered := _rendered(text)) is not None:
        return rendered
    written = _with_codes(str(Markup.escape(text)))
    return Markup('<p class="muted">{}</p><div class="as-written">{}</div>').format(note, written)


@lru_cache(maxsize=_NUM_RENDERED)
def _rendered(text: str) -> Markup | None:
    """Return the HTML of a text; null for one that is too long, or whose page would be."""
    if len(text) > LONGEST_RENDERED:
        return None
    if is_program(text):
        return _with_codes(Markup('<pre class="program"><code>{}</code></pre>\n').format(text.strip("\n")))
    formulas: list[str] = []
    plain = re.sub("[\ue000\ue001]", "", text)
    parts = re.split(r"(```.*?```|`[^`\n]+`)", plain, flags=re.DOTALL)
    marked = "".join(part if place % 2 else _without_formulas(part, formulas) for place, part in enumerate(parts))
    try:
        tokens = _markdown.parse(marked)
    except _TooManyTokens:
        return None
    for block in tokens:
        # A list continues behind a paragraph, counts down, or is the whole answer: "4." is not "1.".
        if block.type == "list_item_open" and block.info:
            block.attrSet("value", block.info)
            if len(block.info) > _WIDEST_MARGIN:
                block.attrSet("class", "long-number")
    # An address that is written once may be linked thousands of times.
    inside = (token for block in tokens for token in block.children or ())
    if sum(len(str(value)) for token in inside for value in token.attrs.values()) > _FEWEST_TOKENS + 2 * len(text):
        return None
    rendered = _markdown.renderer.render(tokens, _markdown.options, {})
    html = nh3.clean(rendered, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https"})
    shown = [_formula(text) for text in formulas]
    return _with_codes(re.sub("\ue000(\\d+)\ue001", lambda match: shown[int(match[1])], html))


def _formula(text: str) -> Markup:
    """Return a formula for the page to typeset; one with a hidden character stays as written, or its sign is lost."""
    hidden = any(match["hidden"] for match in HIDDEN_CHARACTERS.finditer(text))
    return Markup("<code>{}</code>" if hidden else '<span class="math">{}</span>').format(text)


def _with_codes(html: str) -> Markup:
    """Put the codes of characters that hide or reorder others on them; the text itself stays.

    Attributes of the HTML have no such character: addresses are encoded.
    """
    marked = 0

    def mark(match: re.Match[str]) -> str:
        nonlocal marked
        characters = match["hidden"]
        if characters is None:
            return match[0]
        marked += 1
        if marked > _MOST_MARKS:
            return "\N{REPLACEMENT CHARACTER}"
        codes = codes_of(characters)
        attributes = f'class="hidden-character" role="img" aria-label="{codes}" data-codes="{codes}"'
        return f"<span {attributes}>{characters}</span>"

    return Markup(HIDDEN_CHARACTERS.sub(mark, html))


def _without_formulas(text: str, formulas: list[str]) -> str:
    """Move the formulas of a text to the end of a list, and return the text with a mark in place of each."""
    parts, position, start = [], 0, 0
    unclosed: set[str] = set()
    while match := _FORMULA.search(text, position):
        opening, end = match.group(), match.end()
        if closing := _CLOSINGS.get(opening):
            # Searched once: where no closing follows an opening, none follows a later one.
            place = -1 if opening in unclosed else text.find(closing, end + 1)
            if place < 0:
                unclosed.add(opening)
                position = match.start() + 1
                continue
            end = place + len(closing)
        formulas.append(text[match.start() : end])
        # Letters of the private use area: neither Markdown nor the text itself gives them a meaning.
        parts += text[start : match.start()], f"\ue000{len(formulas) - 1}\ue001"
        position = start = end
    return "".join((*parts, text[start:]))


class _BlockState(StateBlock):
    """Paragraphs, lists and tables. A table fills up short rows: this bounds what comes of it."""

    def push(self, ttype: str, tag: str, nesting: Literal[-1, 0, 1]) -> Token:
        if len(self.tokens) > _FEWEST_TOKENS + _TOKENS_OF_CHARACTER * len(self.src):
            raise _TooManyTokens
        return super().push(ttype, tag, nesting)


class _Block(ParserBlock):
    """The rules of paragraphs, with the bound of `_BlockState`."""

    def parse(self, src: str, md: MarkdownIt, env: Any, outTokens: list[Token]) -> list[Token] | None:  # noqa: N803
        state = _BlockState(src, md, env, outTokens)
        self.tokenize(state, state.line, state.lineMax)
        return state.tokens


class _DelimiterState(StateInline):
    """CommonMark asks for a space or punctuation beside emphasis that touches punctuation; Chinese writes none."""

    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:  # noqa: N802, N803, FBT001
        end = start
        while end < self.posMax and self.src[end] == self.src[start]:
            end += 1
        before = self.src[start - 1] if start else " "
        after = self.src[end] if end < self.posMax else " "
        opens = not after.isspace() and (not _is_mark(after) or _gives_way(before))
        closes = not before.isspace() and (not _is_mark(before) or _gives_way(after))
        return Scanned(
            opens and (canSplitWord or not closes or _is_mark(before)),
            closes and (canSplitWord or not opens or _is_mark(after)),
            end - start,
        )


class _Inline(ParserInline):
    """The rules inside a line, with the emphasis of `_DelimiterState`."""

    def parse(self, src: str, md: MarkdownIt, env: Any, tokens: list[Token]) -> list[Token]:
        state = _DelimiterState(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _gives_way(neighbour: str) -> bool:
    return neighbour.isspace() or _is_mark(neighbour) or _WIDE.match(neighbour) is not None


def _fence(_renderer: Any, tokens: Sequence[Token], place: int, _options: Any, _env: Any) -> str:
    """Return a block of code with the rest of its first line, the language or text that a reader would miss."""
    token = tokens[place]
    info = Markup("<small>{}</small>").format(token.info.strip()) if token.info.strip() else ""
    return Markup("<pre>{}<code>{}</code></pre>\n").format(info, token.content)


def _image(_renderer: Any, tokens: Sequence[Token], place: int, _options: Any, _env: Any) -> str:
    """Return an image as it was written: nothing is loaded from elsewhere, and nothing that was answered is hidden."""
    token = tokens[place]
    title = f' "{token.attrs["title"]}"' if "title" in token.attrs else ""
    return str(Markup.escape(f"![{token.content}]({_markdown.normalizeLinkText(str(token.attrs['src']))}{title})"))


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.block, parser.inline = _Block(), _Inline()
    # The preset chooses rules by name; the new rules inside a line need the same choice.
    parser.configure("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    # Definitions of links would not be shown: sources and footnotes are part of an answer.
    parser.disable("reference")
    parser.add_render_rule("fence", _fence)
    parser.add_render_rule("image", _image)
    return parser


_markdown = _parser()
