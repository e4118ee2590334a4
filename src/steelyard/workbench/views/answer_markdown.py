"""Markdown of prompts, responses and guidelines as harmless HTML, with emphasis as Chinese and Japanese write it.

HTML in the text is off, and what is rendered is cleaned afterwards. LaTeX stays as text between its marks.
"""

import re
import unicodedata
from functools import lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.parser_inline import ParserInline
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markupsafe import Markup

_TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s",
    "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_MATH = re.compile(r"\$\$.+?\$\$|\\\[.+?\\\]|\\\(.+?\\\)|(?<![\\$\w])\$(?! )[^$\n]+?(?<! )\$(?![\w$])", re.DOTALL)
# Han, kana, Hangul, and the punctuation and wide forms that are set among them.
_WIDE = re.compile(
    "[\u1100-\u11ff\u3000-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_NUM_RENDERED = 1000
"""Texts whose HTML is kept. Two people see the same response, and each in several tasks, at about the same time."""


@lru_cache(maxsize=_NUM_RENDERED)
def safe_markdown(text: str) -> Markup:
    """Return the text as HTML of harmless tags. LaTeX is kept as it was written, as the text of ``span.math``."""
    formulas: list[str] = []

    def keep(match: re.Match[str]) -> str:
        formulas.append(match.group())
        # Letters of the private use area: neither Markdown nor the text itself gives them a meaning.
        return f"\ue000{len(formulas) - 1}\ue001"

    plain = re.sub("[\ue000\ue001]", "", text)
    parts = re.split(r"(```.*?```|`[^`\n]+`)", plain, flags=re.DOTALL)
    marked = "".join(part if place % 2 else _MATH.sub(keep, part) for place, part in enumerate(parts))
    html = nh3.clean(_markdown.render(marked), tags=_TAGS, attributes={"a": {"href"}}, url_schemes={"http", "https"})
    escaped = [str(Markup.escape(formula)) for formula in formulas]
    return Markup(
        re.sub("\ue000(\\d+)\ue001", lambda match: f'<span class="math">{escaped[int(match[1])]}</span>', html)
    )


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


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True})
    parser.inline = _Inline()
    # The preset chooses rules by name; the new rules inside a line need the same choice.
    return parser.configure("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


_markdown = _parser()
