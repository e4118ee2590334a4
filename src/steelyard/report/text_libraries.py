"""The libraries that a page needs: Markdown, coloured code, formulas and figures, each only where the page has it.

They are files of other projects, kept unchanged in ``templates/vendored`` with their licences. A page carries them.
"""

import base64
import functools
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import NamedTuple

_FOLDER = files("steelyard.report") / "templates" / "vendored"
_MARKDOWN = re.compile(
    r"[*_`~]|\]\(|\\[\[\]()]|<https?:"
    r"|^ {0,3}(?:[#>+-]|\d{1,9}[.)])[ \t]|^[ \t]*\|?[ \t]*:?-{3,}|^ {0,3}(?:=+|-+)[ \t]*$|^(?: {4}|\t)",
    re.MULTILINE,
)
_CODE = re.compile(r"^(?:[ \t>*+-]|\d+[.)])*(?:```|~~~)[ \t]*\w", re.MULTILINE)
_FORMULA = re.compile(r"(?<![A-Za-z0-9])\$(?=[^\s$])(?:[^$\n]|\n(?!\s*\n))+(?<!\s)\$(?!\d)|\$\$|\\\(|\\\[|\\begin\{")
_FONT_FACE = re.compile(r"@font-face\{[^}]*?src:url\(fonts/(KaTeX_(\w+)-\w+\.woff2)\)[^}]*\}")
_RARE_FONTS = {
    "Fraktur": re.compile(r"\\(?:math)?frak\b"),
    "SansSerif": re.compile(r"\\(?:math|text)?sf(?:family)?\b"),
    "Script": re.compile(r"\\mathscr\b"),
    "Typewriter": re.compile(r"\\(?:math|text)?tt(?:family)?\b"),
    "Caligraphic": re.compile(r"\\(?:math)?cal\b"),
}
"""Fonts that only formulas with these commands need; every formula may need the others."""


class TextNeeds(NamedTuple):
    """The marks found in the texts of a page; ``rare_fonts`` names fonts of formulas that few texts need."""

    markdown: bool = False
    code: bool = False
    formulas: bool = False
    rare_fonts: frozenset[str] = frozenset()

    def of(self, texts: Iterable[str]) -> "TextNeeds":
        """Return these needs with those of more texts."""
        markdown, code, formulas, fonts = self
        for text in texts:
            formulas = formulas or _FORMULA.search(text) is not None
            markdown = markdown or formulas or _MARKDOWN.search(text) is not None
            code = code or _CODE.search(text) is not None
            if formulas and "\\" in text:
                fonts |= {name for name, command in _RARE_FONTS.items() if command.search(text)}
        return TextNeeds(markdown, code, formulas, fonts)


def library_scripts(needs: TextNeeds, *, has_figures: bool = False) -> list[str]:
    """Return the scripts of the libraries, each after those that it needs."""
    chosen = {
        "vega.min.js": has_figures,
        "vega-lite.min.js": has_figures,
        "vega-embed.min.js": has_figures,
        "markdown-it.min.js": needs.markdown,
        "highlight.min.js": needs.code,
        "katex.min.js": needs.formulas,
    }
    return [_read(name).decode() for name, is_needed in chosen.items() if is_needed]


def library_styles(needs: TextNeeds) -> str:
    """Return the style of formulas with its fonts inside; empty where no text has a formula."""
    if not needs.formulas:
        return ""

    def inside(match: re.Match[str]) -> str:
        if match[2] in _RARE_FONTS and match[2] not in needs.rare_fonts:
            return ""
        font = base64.b64encode(_read(f"fonts/{match[1]}")).decode()
        source = f'src:url(data:font/woff2;base64,{font}) format("woff2")'
        return re.sub(r"src:[^}]*", source, match[0])

    return _FONT_FACE.sub(inside, _read("katex.min.css").decode())


@functools.cache
def _read(name: str) -> bytes:
    return (_FOLDER / name).read_bytes()
