"""Dates and times of day of a text, which languages write as figures, as names, or by another clock.

A month is a name in one text and a numeral in the other one. A time of day has a colon, or looks like a decimal. The
Swahili day begins at six in the morning.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

from steelyard.translation.language_tables import months
from steelyard.translation.scaled_numerals import canonical

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?!\d)")
_SWAHILI_HOUR = re.compile(r"saa (\d{1,2})(?::\d\d)? (?:[zy]a )?(?:asubuhi|mchana|alasiri|jioni|usiku|alfajiri)")
_MONTH_SIGNS = re.compile(r"(?<!\d)(\d{1,2})\s?(?:月|월)|tháng\s?(\d{1,2})(?!\d)")
_WORDS = re.compile(r"[^\W\d_]+")
_DATE = re.compile(r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}")
"""A date in figures, whose month may be a name in the other text."""
_FIGURES = re.compile(r"\d+")
_LAST_MONTH = 12
_MONTH_NUMERALS = {"zh", "yue", "ja", "ko", "vi"}
_NAMED_MONTHS = {"en", "de"}
"""Languages of the table of months."""


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
        named = {
            month for month in self.months - other.months if other.month_names is None or month in other.month_names
        }
        return named | (self.dates if not other.dates else set())

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
    days = (canonical(part) for each in _DATE.findall(text) for part in _FIGURES.findall(each))
    return Calendar(
        times=set(_CLOCK.findall(text)),
        months={canonical("".join(each)) for each in _MONTH_SIGNS.findall(text)}
        if language in _MONTH_NUMERALS
        else set(),
        month_names=None if names is None else {names[word] for word in _WORDS.findall(folded) if word in names},
        dates={day for day in days if int(day) <= _LAST_MONTH},
        swahili_hours=set(_SWAHILI_HOUR.findall(folded)) if language == "sw" else set(),
    )
