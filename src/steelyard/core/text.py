"""The text of a prompt or a response, its length and its markup: one definition each for every stage, measure and page.

The length is the number of Unicode code points of all turns. The markup is the number of Markdown marks of all turns,
outside code; a block of code is one mark. Joining turns into one text adds line breaks, which count for neither.
"""

import re
import unicodedata
from collections.abc import Iterable
from math import floor, log10

from steelyard.core.types import Case, Response

_MOST_DIGITS = 1000
# Fences are taken out first, so that nothing inside code counts. Every repetition stops at the mark that could begin
# the next match, so that the time is linear in the length of any text.
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_LINE_MARK = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]+\S"  # heading
    r"|[-*+•][ \t]+\S|\d{1,3}[.)][ \t]+\S|\d{1,3}、[ \t]*\S"  # list item
    r"|>[ \t]*\S"  # quotation
    r"|\|.*\|[ \t]*$"  # table row
    r"|(?:-{3,}|\*{3,}|_{3,})[ \t]*$)",  # rule
    re.MULTILINE,
)
_INLINE_MARK = re.compile(
    r"`[^`\n]+`"  # code
    r"|\*\*(?=\S)(?:(?!\*\*).)+(?<=\S)\*\*|__(?=\S)(?:(?!__).)+(?<=\S)__"  # bold
    r"|\[[^\[\]\n]+\]\([^)\[\n]+\)"  # link or image
)


def number_of(number: int, noun: str, plural: str = "") -> str:
    """Format a count with its noun: ``1 judgment``, ``1,200 judgments``; ``plural`` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def is_one_line(text: str) -> bool:
    """Tell whether a text stands on one line: without control characters, line ends and halves of characters.

    Joiners, which many scripts need within words, count as letters do.
    """
    return not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in text)


def money_text(amount: float) -> str:
    """Format an amount of money with two decimals, and a small one with two digits: ``1,200.00``, ``0.0013``."""
    decimals = 2 if not amount or abs(amount) >= 0.1 else 1 - floor(log10(abs(amount)))
    return f"{amount:,.{decimals}f}"


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a sort key by which the numbers in names count as numbers: batch 9 comes before batch 10."""
    # Longer runs of digits are taken in parts, as they are no numbers: Python refuses to convert thousands of digits.
    parts = re.split(rf"(\d{{1,{_MOST_DIGITS}}})", name)
    order = [(int(part), "") if part.isdecimal() else (-1, part.casefold()) for part in parts]
    # Names that differ in case or in leading zeros alone have an order, too.
    return [*order, (-1, name)]


def verb_for(number: int, singular: str, plural: str) -> str:
    """Return the form of a verb that agrees with a count: ``1 case has``, ``2 cases have``."""
    return singular if number == 1 else plural


def response_text(response: Response) -> str:
    """Return the text of a response; several turns are joined by line breaks."""
    return "\n".join(_turn_texts(response))


def prompt_text(case: Case) -> str:
    """Return the whole conversation that the responses answer."""
    return "\n".join(message.content for message in case.prompt.messages)


def num_characters(response: Response) -> int:
    """Count the Unicode code points of all turns of a response."""
    # A single text, the usual case, is counted at once: baselines call this for every response.
    return len(response.text) if response.text is not None else sum(map(len, _turn_texts(response)))


def num_markdown_marks(response: Response) -> int:
    """Count the Markdown marks of all turns of a response, outside code; a block of code is one mark.

    Marks are headings, list items, quotations, table rows, rules, bold, inline code, links and images.
    """
    return sum(map(_num_marks, _turn_texts(response)))


def _num_marks(text: str) -> int:
    rest, num_fences = _FENCE.subn("", text)
    return num_fences + sum(1 for mark in (_LINE_MARK, _INLINE_MARK) for _ in mark.finditer(rest))


def _turn_texts(response: Response) -> Iterable[str]:
    if response.text is not None:
        return (response.text,)
    return (message.content for message in response.messages or ())
