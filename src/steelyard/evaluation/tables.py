"""Tables, figures and panels as values: translated words, formatted numbers, columns and rows."""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from steelyard.core.languages import english_name, is_simplified_chinese, language_key
from steelyard.evaluation.coverage import UNKNOWN_LANGUAGE
from steelyard.ranking.judgment_table import NO_LANGUAGE
from steelyard.statistics.groups import UNCATEGORISED
from steelyard.statistics.intervals import Estimate

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"
_SIMPLIFIED = "zh-Hans"
_WITHOUT_DECIMALS = 1e15
WORD = "@@"


class Table(NamedTuple):
    """A table: words for its columns, and rows of formatted cells. The first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Mark(NamedTuple):
    """The drawing of one series: its name, a CSS colour and a symbol (``circle``, ``square``, …)."""

    name: str
    colour: str
    symbol: str


class Figure(NamedTuple):
    """A Vega-Lite specification with the series of its legend; ``about`` is the word for its description."""

    about: str
    spec: dict[str, Any]
    legend: tuple[Mark, ...] = ()


class Grouped(NamedTuple):
    """A table of one grouping of the data: ``by`` is its word (``judge``, ``language``), empty for all data."""

    by: str
    table: Table


class Sentence(NamedTuple):
    """A sentence of the interface: its key, and the values of its placeholders."""

    key: str
    values: Mapping[str, str] = MappingProxyType({})


class ShownItem(NamedTuple):
    """An item shown next to a result: a sentence on it, the prompt's last turn, and answers with their titles.

    ``item`` and ``language`` are the key of the prompt, by which the page opens it. ``marks`` are the starts and ends
    of what is marked in each answer; such answers are shown as they are written. ``directions`` are those of the
    answers (``ltr``, ``rtl``); by default that of the first letter.
    """

    item: str
    language: str | None
    about: Sentence
    prompt: str
    answers: tuple[tuple[str, str], ...] = ()
    marks: tuple[tuple[tuple[int, int], ...], ...] = ()
    directions: tuple[str, ...] = ()

    def direction(self, number: int) -> str:
        """Return the direction in which an answer is laid out."""
        return self.directions[number] if self.directions else "auto"

    def pieces(self, number: int) -> list[tuple[str, bool]]:
        """Return the pieces of an answer, each with whether it is marked."""
        text, pieces, last = self.answers[number][1], list[tuple[str, bool]](), 0
        for start, stop in self.marks[number]:
            pieces += [(text[last:start], False), (text[start:stop], True)]
            last = stop
        return [*pieces, (text[last:], False)]


class Panel(NamedTuple):
    """A figure with its tables, which have the same columns, and examples. ``note`` is a word."""

    title: str
    figure: Figure | None
    tables: tuple[Grouped, ...] = ()
    note: str = ""
    examples: tuple[ShownItem, ...] = ()


def word(key: str, otherwise: str = "") -> str:
    """Return a placeholder that the page replaces by the translation of the key, or by ``otherwise`` without one."""
    return f"{WORD}{key}|{otherwise or key}{WORD}"


def category_word(name: str) -> str:
    """Return the name of a category for the page: its own, or the translated word for prompts without one.

    A category of the data that is itself called ``uncategorised`` is one group with these prompts in every number.
    """
    return word(UNCATEGORISED) if name == UNCATEGORISED else name


def language_word(name: str) -> str:
    """Return the name of a language for the page, or the translated word for prompts without one.

    A code that is not the plain one of its language follows the name, since a file may have both: ``ru`` and
    ``rus_Cyrl``. An unknown code stays as it is.
    """
    if name in (NO_LANGUAGE, UNKNOWN_LANGUAGE):
        return word("no_language", name)
    title = language_title(name)
    return title if name in (title, language_key(name), _SIMPLIFIED) else f"{title} ({name})"


def group_word(group: str, name: str) -> str:
    """Return the name of a part of a bench for the page, by the kind of group: language, category or another one."""
    return language_word(name) if group == "language" or name == NO_LANGUAGE else category_word(name)


def language_title(code: str) -> str:
    """Return the name of a language for the page; an unknown code stays as it is."""
    name = english_name(code)
    if name is None:
        return code
    identity = "zh_hans" if is_simplified_chinese(code) else language_key(code).replace("-", "_").lower()
    return word(f"name_of_{identity}", name)


def isolate(name: str) -> str:
    """Return the name between Unicode isolates if it has right-to-left letters, so that it keeps its order in a title.

    A name of left-to-right letters alone is unchanged. The mark before the isolate keeps the title left to right where
    a browser takes the direction of a text from its first letter: isolates do not count there.
    """
    is_mixed = any(unicodedata.bidirectional(letter) in {"R", "AL"} for letter in name)
    return f"\N{LEFT-TO-RIGHT MARK}\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}" if is_mixed else name


def pair_name(first: str, second: str, *, separator: str = " ") -> str:
    """Return the name of a difference, ``first – second``; a ``separator`` of a line feed makes two lines of it."""
    return f"{isolate(first)}{separator}{DASH} {isolate(second)}"


def percent(value: float | None) -> str:
    """Format a share: ``0.7123`` as ``71.2%``; a dash for null."""
    return DASH if value is None else f"{value * 100:z.1f}%".replace("-", MINUS)


def reason(estimate: Estimate) -> str:
    """Return the reason for a missing interval; a dash without one."""
    if estimate.why is None:
        return DASH
    if too_few := re.fullmatch(r"an interval needs (\d+) prompts", estimate.why):
        return f"{word('why_an_interval_needs', 'an interval needs')} {too_few[1]} {word('why_prompts', 'prompts')}"
    if without := re.fullmatch(r"no human label in (.+)", estimate.why):
        return f"{word('why_no_human_label_in', 'no human label in ')}{without[1]}"
    return word(f"why_{estimate.why.replace(' ', '_')}", estimate.why)


def spread(estimate: Estimate) -> str:
    """Format the interval of a share as ``68.4–73.9%``; the reason if there is none."""
    if estimate.low is None or estimate.high is None:
        return reason(estimate)
    return f"{estimate.low * 100:z.1f}{DASH}{estimate.high * 100:z.1f}%"


def with_level(estimate: Estimate, interval: Callable[[Estimate], str] = spread) -> str:
    """Format an interval with its level: ``95% interval 68.4–73.9%``; the reason alone if there is none."""
    shown = interval(estimate)
    return shown if estimate.low is None or estimate.high is None else f"{word('interval_95')} {shown}"


def points(value: float | None) -> str:
    """Format a difference of shares in percentage points: ``0.131`` as ``+13.1``."""
    if value is None:
        return DASH
    shown = f"{abs(value) * 100:.1f}"
    # A difference that rounds to 0 has no sign.
    return shown if float(shown) == 0 else f"{'+' if value > 0 else MINUS}{shown}"


def points_spread(estimate: Estimate) -> str:
    """Format the interval of a difference in percentage points: ``+9.0 … +17.2``."""
    if estimate.low is None or estimate.high is None:
        return reason(estimate)
    return f"{points(estimate.low)} \N{HORIZONTAL ELLIPSIS} {points(estimate.high)}"


def count(number: int | None) -> str:
    """Format a count: ``12345`` as ``12,345``; a dash for null."""
    return DASH if number is None else f"{number:,}"


def decimal(value: float | None, places: int = 3) -> str:
    """Format a number with ``places`` decimals and commas, without the sign of a zero; a dash for null.

    Numbers from 1e15 on, where a float has no decimals, have four digits and an exponent.
    """
    if value is None:
        return DASH
    return (f"{value:.3e}" if abs(value) >= _WITHOUT_DECIMALS else f"{value:z,.{places}f}").replace("-", MINUS)


def p_value(p: float | None) -> str:
    """Format a p-value for a table, such as ``0.012`` or ``< 0.001``; a dash for null."""
    return "< 0.001" if p is not None and p < 0.001 else decimal(p)


def p_relation(p: float) -> str:
    """Format a p-value for a sentence: ``p = 0.012``, ``p < 0.001``."""
    return f"p {p_value(p)}" if p < 0.001 else f"p = {p_value(p)}"


def decimal_interval(estimate: Estimate) -> str:
    """Format the interval as ``0.412 … 0.633``; the reason if there is none."""
    if estimate.low is None or estimate.high is None:
        return reason(estimate)
    return f"{decimal(estimate.low)} \N{HORIZONTAL ELLIPSIS} {decimal(estimate.high)}"


class Form(NamedTuple):
    """The formats of the values of a measure and of their intervals in a table."""

    value: Callable[[float | None], str]
    interval: Callable[[Estimate], str]

    def cells(self, estimate: Estimate | None) -> tuple[str, str]:
        """Return value and interval; dashes for null."""
        return (DASH, DASH) if estimate is None else (self.value(estimate.value), self.interval(estimate))


PERCENT = Form(percent, spread)
DECIMAL = Form(decimal, decimal_interval)
POINTS = Form(points, points_spread)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Build a table from sequences. Every row must have one cell per column; columns are keys of words, or words."""
    assert all(len(row) == len(columns) for row in rows), "every row has one cell per column"
    return Table(
        tuple(name if name.startswith(WORD) else word(name) for name in columns), tuple(tuple(row) for row in rows)
    )
