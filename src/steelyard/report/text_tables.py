"""Tables as text, for papers and pages of repositories: Markdown, and LaTeX with the packages booktabs and graphicx.

Cells come from data: names of categories, models and people. With any signs, the Markdown stays a table and
the LaTeX compiles. Texts that are not Latin need XeLaTeX or LuaLaTeX with a font that has them (`ctex` for Chinese).
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_SYMBOLS = {
    "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$",
    "\N{GREEK SMALL LETTER KAPPA}": r"$\kappa$",
    "\N{GREEK SMALL LETTER TAU}": r"$\tau$",
    "\N{EN DASH}": "--",
    "\N{MINUS SIGN}": "$-$",
}
"""Signs of our own texts that older engines lack."""
_NO_WIDER = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
"""Makes a table smaller where it is wider than the page or column, and leaves others as they are."""
_LATEX_SIGNS = re.compile(r"[\\~^<>|&%$#_{}]")
_MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]|~<>#])")
_WHITE_SPACE = re.compile(r"\s+")


class TextTable(NamedTuple):
    """A table of a paper: its label in LaTeX, its caption, the headings of its columns, and rows of cells.

    The first column names the row and is set to the left, the others to the right. The note below may be empty.
    """

    label: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def markdown_table(table: TextTable) -> str:
    """Return the table below its caption, with its note."""
    lines = [f"**{escape_markdown(table.caption)}**", ""]
    lines += [
        _markdown_row(table.heads),
        f"| --- |{' ---: |' * (len(table.heads) - 1)}",
        *map(_markdown_row, table.rows),
    ]
    lines += ["", escape_markdown(table.note)] if table.note else []
    return "\n".join([*lines, ""])


def latex_table(table: TextTable) -> str:
    """Return a ``table*`` environment, for booktabs and graphicx: as wide as the text at most, over both columns."""
    lines = [r"\begin{table*}", r"\centering", rf"\caption{{{escape_latex(table.caption)}}}"]
    lines += [rf"\label{{tab:{table.label}}}", _NO_WIDER]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(table.heads) - 1)}}}", r"\toprule"]
    lines += [_latex_row(table.heads), r"\midrule", *map(_latex_row, table.rows)]
    lines += [r"\bottomrule", r"\end{tabular}}"]
    lines += [rf"\par\smallskip {escape_latex(table.note)}"] if table.note else []
    return "\n".join([*lines, r"\end{table*}", ""])


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escape_markdown, cells))} |"


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(escape_latex, cells)) + r" \\"
    # An optional argument of the row before would begin with a bracket.
    return f"{{}}{row}" if row.startswith("[") else row


def escape_markdown(text: str) -> str:
    """Return a text as plain Markdown on one line."""
    return _MARKDOWN_SIGNS.sub(r"\\\1", _one_line(text))


def escape_latex(text: str) -> str:
    """Return a text as plain LaTeX on one line: signs with a meaning are escaped, our own symbols are commands."""
    escaped = _LATEX_SIGNS.sub(lambda sign: _LATEX[sign[0]], _one_line(text))
    return "".join(_SYMBOLS.get(sign, sign) for sign in escaped)


def safe_cell(text: str) -> str:
    """Return a cell of CSV that no spreadsheet runs: one that looks like a formula begins with an apostrophe."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def _one_line(text: str) -> str:
    """Return a text on one line, without control characters: LaTeX stops at them."""
    line = _WHITE_SPACE.sub(" ", text)
    return "".join(sign for sign in line if unicodedata.category(sign) not in ("Cc", "Cs", "Co", "Cn"))
