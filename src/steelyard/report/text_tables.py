"""Tables as text, for papers and pages of repositories: Markdown, and LaTeX with the packages booktabs and graphicx.

Cells come from data: names of categories, models and people. Whatever signs they have, the Markdown stays a table and
the LaTeX compiles. Texts that are not Latin need XeLaTeX or LuaLaTeX with a font that has them (`ctex` for Chinese).
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
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

    The first column names the row and is set to the left, the others to the right.
    """

    label: str
    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def markdown_table(table: TextTable) -> str:
    """Return the table below its caption."""
    lines = [f"**{escape_markdown(table.caption)}**", "", *markdown_rows(table.heads, table.rows)]
    return "\n".join([*lines, ""])


def markdown_rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown: headings, their rule, and the rows."""
    yield markdown_row(list(map(escape_markdown, heads)))
    yield markdown_row(["---", *["---:"] * (len(heads) - 1)])
    for row in rows:
        yield markdown_row(list(map(escape_markdown, row)))


def latex_table(table: TextTable) -> str:
    """Return a ``table*`` environment, for booktabs and graphicx: as wide as the text at most, over both columns."""
    lines = [r"\begin{table*}", r"\centering", rf"\caption{{{escape_latex(table.caption)}}}"]
    lines += [rf"\label{{tab:{table.label}}}", _NO_WIDER]
    lines += [rf"\begin{{tabular}}{{l{'r' * (len(table.heads) - 1)}}}", r"\toprule"]
    lines += [latex_row(list(map(escape_latex, table.heads))), r"\midrule"]
    lines += [latex_row(list(map(escape_latex, row))) for row in table.rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table*}", ""])


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of cells that are escaped already."""
    return f"| {' | '.join(cells)} |"


def latex_row(cells: Sequence[str]) -> str:
    """Return a row of cells that are escaped already. A bracket at its start is kept from the row before."""
    first = f"{{}}{cells[0]}" if cells[0].startswith("[") else cells[0]
    return " & ".join([first, *cells[1:]]) + r" \\"


def escape_markdown(text: str) -> str:
    """Return a text as plain Markdown on one line."""
    return _MARKDOWN_SIGNS.sub(r"\\\1", one_line(text))


def escape_latex(text: str) -> str:
    """Return a text as plain LaTeX on one line: signs with a meaning are escaped, our own symbols are commands."""
    escaped = _LATEX_SIGNS.sub(lambda sign: _LATEX[sign[0]], one_line(text))
    return "".join(_SYMBOLS.get(sign, sign) for sign in escaped)


def safe_cell(text: str) -> str:
    """Return a cell of CSV that no spreadsheet runs: one that looks like a formula begins with an apostrophe."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def one_line(text: str) -> str:
    """Return a text on one line, without control characters: LaTeX stops at them."""
    line = _WHITE_SPACE.sub(" ", text)
    return "".join(sign for sign in line if unicodedata.category(sign) not in ("Cc", "Cs", "Co", "Cn"))
