r"""Numbers in tables of others: one reader of cells for published tables and for tables of models.

A cell may have marks of emphasis (``**71.3**``, ``\textbf{71.3}``), a sign %, a comma before its decimals, and digits
and signs of other scripts, as spreadsheets write them. What follows a number in brackets, after ± or as an index is its
interval or a note, and is not read. Cells that are read together have one notation.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.types import JsonObject

ABSENT = frozenset((
    "", "-", "--", "---", "\N{EN DASH}", "\N{EM DASH}", "/", "n/a", "#n/a", "n.a.", "na", "nan", "none", "null",
    "#nv", "n/d", "n.d.", "k.a.", "k. a.", "无", "缺失",
))  # fmt: skip
"""Entries of tables in place of an absent number, in lower case."""
_MARKS = (
    ("**", "**"), ("__", "__"), ("*", "*"), ("_", "_"), ("$", "$"), ("<b>", "</b>"), ("<strong>", "</strong>"),
    ("<u>", "</u>"), ("\\textbf{", "}"), ("\\textit{", "}"), ("\\emph{", "}"), ("\\underline{", "}"),
    ("\\mathbf{", "}"),
)  # fmt: skip
"""The marks around a cell that Markdown, LaTeX and HTML have for the best values of a column."""
_LINK = re.compile(r"\[([^][]+)\]\(\S+\)|<a\b[^>]*>(.+?)</a>(?:\s*<.*)?|\\href\{[^{}]*\}\{(.+)\}", re.IGNORECASE)
"""A cell that is a link in Markdown, HTML or LaTeX, as leaderboards write the names of models."""
_MOST_MARKS = 4
_SIGNS = str.maketrans({
    "\N{MINUS SIGN}": "-", "\N{FULLWIDTH HYPHEN-MINUS}": "-", "\N{FULLWIDTH PLUS SIGN}": "+",
    "\N{FULLWIDTH PERCENT SIGN}": "%", "\N{SMALL PERCENT SIGN}": "%", "\N{ARABIC PERCENT SIGN}": "%",
    "\N{ARABIC DECIMAL SEPARATOR}": ",", "\N{FULLWIDTH COMMA}": ",", "\N{FULLWIDTH FULL STOP}": ".",
    "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ", "\N{THIN SPACE}": " ",
    # Spreadsheets of languages from right to left save marks of direction.
    "\N{LEFT-TO-RIGHT MARK}": None, "\N{RIGHT-TO-LEFT MARK}": None, "\N{ARABIC LETTER MARK}": None,
})  # fmt: skip
_NUMBER = re.compile(
    r"(?P<before>% ?)?(?P<number>[-+]?(?:\d+(?P<mark>[.,])?(?P<decimals>\d*)|[.,]\d+)(?:[eE][-+]?\d{1,3})?)"
    r"(?P<after> ?%)?(?:\s*(?:(?:±|\\pm|\+/?-)[^%]*(?P<last>%)?|\[.*\]|\(.*\)|\$?[_^]\{.*\}\$?|<su[bp]>.*|[*†‡§]+))?"
)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


class TableRow(NamedTuple):
    """One row of a table; ``lines`` has the places of cells from other lines of the file."""

    place: Place
    value: JsonObject
    lines: Mapping[str, Place] = {}


class NumberCell(NamedTuple):
    """One cell of a table: its place, its column, and its text without marks of emphasis.

    ``is_squared``: a variance, which has no sign % where others have it.
    """

    place: Place
    column: str
    text: str
    is_squared: bool = False

    @classmethod
    def of(cls, row: TableRow, column: str, *, is_squared: bool = False) -> "NumberCell":
        """Return a cell of a row."""
        return cls(row.lines.get(column, row.place), column, plain_cell(row.value.get(column)), is_squared)

    @property
    def is_absent(self) -> bool:
        """Return whether the number is missing."""
        return self.text.casefold() in ABSENT


class PrintedNumber(NamedTuple):
    """A number as printed: its value, its digits behind the decimal mark, its decimal mark, and its sign %.

    ``may_be_thousands``: its comma may divide thousands.
    """

    value: float
    digits: int
    mark: str
    is_percent: bool
    may_be_thousands: bool


def plain_cell(value: object) -> str:
    """Return the text of a cell without marks of emphasis and links, with the signs of a keyboard; empty for none."""
    text = "" if value is None else str(value).translate(_SIGNS).strip()
    text = text.removesuffix("\\\\").rstrip().replace("\\%", "%")
    for _ in range(_MOST_MARKS):
        for start, end in _MARKS:
            inner = text[len(start) : -len(end)]
            # A mark within closes the first one: `**A** or **B**`.
            if inner and text.startswith(start) and text.endswith(end) and end not in inner.partition("{")[0]:
                text = inner.strip()
        if link := _LINK.fullmatch(text):
            text = str(link[link.lastindex or 0]).strip()
    return text


def printed_number(text: str) -> PrintedNumber | None:
    """Return the number of a plain cell; null for another text."""
    # Digits of one place: a superscript is a note.
    ascii_text = "".join(sign if sign.isascii() else str(unicodedata.decimal(sign, sign)) for sign in text)
    cell = _NUMBER.fullmatch(ascii_text)
    if cell is None:
        return None
    number = cell["number"]
    mark = next((sign for sign in ",." if sign in number), "")
    value = float(number.replace(",", "."))
    digits = len(re.split("[eE]", number)[0].partition(mark)[2]) if mark else 0
    is_percent = any(cell[name] for name in ("before", "after", "last"))
    thousands = _THOUSANDS.fullmatch(number) is not None
    return PrintedNumber(value, digits, mark, is_percent, thousands) if math.isfinite(value) else None


def read_numbers(cells: Sequence[NumberCell], *, has_thousands: bool = False) -> list[PrintedNumber | None]:
    """Return the numbers of cells of one notation, null for a missing one.

    ``has_thousands``: numbers may be large, so that a comma before three digits may divide thousands.
    Raises RecordError for another text, for two decimal marks, and for the sign % in some cells only.
    """
    numbers: list[PrintedNumber | None] = []
    for cell in cells:
        numbers.append(None if cell.is_absent else printed_number(cell.text))
        if numbers[-1] is None and not cell.is_absent:
            allowed = "a number, or an empty cell for a missing one"
            raise RecordError(f"{cell.column} is {cell.text[:40]!r}", where=cell.place, allowed=allowed)
    known = [(cell, number) for cell, number in zip(cells, numbers, strict=True) if number is not None]
    with_comma = [(cell, number) for cell, number in known if number.mark == ","]
    allowed = None
    if with_comma and any(number.mark == "." for _, number in known):
        allowed = "the same decimal mark in all cells"
    elif has_thousands and with_comma and all(number.may_be_thousands for _, number in with_comma):
        allowed = "a decimal point, and nothing between thousands"
    if allowed is not None:
        cell = with_comma[0][0]
        raise RecordError(f"{cell.column} is {cell.text[:40]!r}", where=cell.place, allowed=allowed)
    without_sign = [cell for cell, number in known if not number.is_percent and not cell.is_squared]
    if without_sign and any(number.is_percent for _, number in known):
        cell = without_sign[0]
        problem_text = f"{cell.column} is {cell.text[:40]!r} without the sign %, and others have it"
        raise RecordError(problem_text, where=cell.place, do="write the sign % in all cells, or in none")
    return numbers
