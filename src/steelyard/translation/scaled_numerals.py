"""Numerals with their scales as values: "12.5 million", "1億2400万", "12.4 crore", "milioni 12".

Digits are those of every script, turned into ASCII before. A numeral has a decimal comma or point, and separators of
thousands or of lakhs. A time of day or a date is several values, whose `Calendar` says in which forms another text may
have them: a month as a name or a numeral, a time of day with a colon or like a decimal, and hours of the Swahili day,
which begins at six in the morning.
"""

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import NamedTuple

from steelyard.translation.language_tables import Scales, months, scales

_NUMBER = re.compile(r"\d+(?:[.,٫٬'’·:/\u00a0\u202f]\d+)*(?:[ \u00a0\u202f]\d{3}(?!\d|[.,]\d))*")
_THOUSANDS = re.compile(r"\d{1,3}(?:([.,٬'’\u00a0\u202f ])\d{3})(?:\1\d{3})*(?:[.,٫·](?P<part>\d+))?")
_INDIAN = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}")
_DECIMAL = re.compile(r"(\d+)[.,٫·](\d{1,12})")
_PIECE = re.compile(r"\d+")
_TIME = re.compile(r"\s?(?:[ap]\.?m\b|uhr\b)", re.IGNORECASE)
_SCALE = 24
"""Characters after a number in which its scale ends."""
LONGEST_NUMERAL = 24
"""Digits of a number that count."""
_SUMMED = {"zh", "ja", "ko"}
"""Languages that write a great number as several numerals with scales."""
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?!\d)")
_SWAHILI_HOUR = re.compile(r"saa (\d{1,2})(?::\d\d)? (?:[zy]a )?(?:asubuhi|mchana|alasiri|jioni|usiku|alfajiri)")
_MONTH_SIGNS = re.compile(r"(?<!\d)(\d{1,2})\s?(?:月|월)|tháng\s?(\d{1,2})(?!\d)")
_WORDS = re.compile(r"[^\W\d_]+")
_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}")
"""A date in figures, whose month may be a name in the other text."""
_LAST_MONTH = 12
_MONTH_NUMERALS = {"zh", "yue", "ja", "ko", "vi"}
_NAMED_MONTHS = {"en", "de"}
"""Languages of the table of months."""


class Numeral(NamedTuple):
    """Digits of a text with their place: their values, and with a scale the number before it."""

    values: list[str]
    span: tuple[int, int]
    plain: str | None


def scaled_numerals(text: str, language: str) -> Iterator[Numeral]:
    """Yield the numerals of a text in order. Those of Chinese, Japanese and Korean that follow each other are one."""
    table = scales(language)
    is_summed = language in _SUMMED
    total, smallest, pending = Decimal(0), 0, None
    for match in _NUMBER.finditer(text):
        is_time = _TIME.match(text, match.end()) is not None
        numbers = [canonical(each) for each in (_PIECE.findall(match[0]) if is_time else _values(match[0]))]
        scale = _power(text, match, table) if table is not None and len(numbers) == 1 else None
        power, end = scale or (0, match.end())
        value = Decimal(numbers[0]).scaleb(power) if len(numbers) == 1 else None
        if pending is not None:
            is_next = text[pending.span[1] : match.start()] in ("", " ")
            if is_next and value is not None and value < Decimal(10) ** smallest:
                total += value
                smallest = power
                pending = pending._replace(values=[canonical(f"{total:f}")], span=(pending.span[0], end))
                continue
            yield pending
            pending = None
        if scale is None or value is None:
            yield Numeral(numbers, match.span(), None)
            continue
        total, smallest = value, power
        pending = Numeral([canonical(f"{value:f}")], (match.start(), end), numbers[0])
        if not is_summed:
            yield pending
            pending = None
    if pending is not None:
        yield pending


def _power(text: str, match: re.Match[str], table: Scales) -> tuple[int, int] | None:
    """Return the power of ten of the scale beside a number and the end of both; null without a scale."""
    start, end = match.span()
    if (after := table.after.match(text[end : end + _SCALE].casefold())) is not None:
        return table.power(after), end + after.end()
    before = table.before.search(text[max(0, start - _SCALE) : start].casefold()) if table.before else None
    return (table.power(before), end) if before is not None else None


def _values(number: str) -> list[str]:
    """Return the numbers of a run of digits and separators: one with its separators read, or its parts."""
    if number.isdecimal():
        return [number]
    match = _THOUSANDS.fullmatch(number)
    if match is not None:
        part = match["part"]
        whole = number if part is None else number[: match.start("part")]
        digits = "".join(_PIECE.findall(whole))
        return [digits if part is None else f"{digits}.{part}"]
    if _INDIAN.fullmatch(number):
        return [number.replace(",", "")]
    match = _DECIMAL.fullmatch(number)
    return [f"{match[1]}.{match[2]}"] if match is not None else _PIECE.findall(number)


def canonical(number: str) -> str:
    """Return a number without zeros that say nothing; of a very long one the beginning."""
    whole, _, part = number.partition(".")
    whole, part = whole.lstrip("0")[:LONGEST_NUMERAL] or "0", part.rstrip("0")
    return f"{whole}.{part}" if part else whole


class Calendar(NamedTuple):
    """The dates and times of a text."""

    times: set[tuple[str, str]]
    """Hours and minutes with a colon between them."""
    months: set[str]
    """Months that are numerals with a sign: 3月."""
    month_names: set[str] | None
    """The numbers of months that are names; null for a language without a table."""
    dates: set[str]
    """Days and months of dates in figures."""
    swahili_hours: set[str]

    def named_in(self, other: "Calendar") -> set[str]:
        """Return the months of a text, written as numerals, that the other text has as names or may have."""
        months_elsewhere = {
            month for month in self.months - other.months if other.month_names is None or month in other.month_names
        }
        return months_elsewhere | (self.dates if not other.dates else set())

    def written_as_decimals(self, values: Collection[str], *, is_other: bool) -> set[str]:
        """Return the hours and minutes that are decimals among the values of the other text, or those decimals."""
        return {
            value
            for hour, minute in self.times
            for other in (int(hour), int(hour) + 12, int(hour) - 12)
            if (dotted := canonical(f"{max(other, 0)}.{minute}")) in values
            for value in ((dotted,) if is_other else (canonical(hour), canonical(minute)))
        }


def calendar(text: str, folded: str, language: str) -> Calendar:
    """Return the dates and times of a text with ASCII digits, which is also given folded."""
    names = months() if language in _NAMED_MONTHS else None
    days = (canonical(part) for each in _DATE.findall(text) for part in _PIECE.findall(each))
    return Calendar(
        times=set(_CLOCK.findall(text)),
        months={canonical("".join(each)) for each in _MONTH_SIGNS.findall(text)}
        if language in _MONTH_NUMERALS
        else set(),
        month_names=None if names is None else {names[word] for word in _WORDS.findall(folded) if word in names},
        dates={day for day in days if int(day) <= _LAST_MONTH},
        swahili_hours=set(_SWAHILI_HOUR.findall(folded)) if language == "sw" else set(),
    )
