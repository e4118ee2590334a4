"""Check of numbers: each number of a text in its translation, and each number of the translation in the text.

Numbers are compared as values: digits of every script, decimal comma or point, separators of thousands. A number with
a scale ("10 million", "1000万", "1億2400万", "12.4 crore") is read as one value. A number may be a word on either side,
be in metric units, a year without its century, a time of day in twelve hours, or a month. Compound number words are
compared with each other, too. Small numbers of a language without a table of words count only where another number is
in their place. Texts with equally many numerals are compared by how often each value occurs, others by its presence.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.language_words import SIGNS, fold
from steelyard.translation.damage_kinds import DamageFinding, MarkedSentence, finding
from steelyard.translation.language_tables import (
    currencies,
    multiplier_pattern,
    numbers_in_words,
    scales,
)
from steelyard.translation.numerals import numerals
from steelyard.translation.passages import Passage, PassagePair
from steelyard.translation.scaled_numerals import LONGEST_NUMERAL, Calendar, calendar, scaled_numerals

_WORD = re.compile(rf"(?:(?![\d_])[{SIGNS}])+(?:['’][^\W\d_]+)*|ika-\d+")
_HAN_NUMERALS = re.compile(r"[〇零一二两兩三四五六七八九十百千]++[万萬亿億〇零一二两兩三四五六七八九十百千]*")
_HAN_DIGIT_FORMS = ("〇零", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九")
_HAN_DIGITS = {sign: value for value, signs in enumerate(_HAN_DIGIT_FORMS) for sign in signs}
_HAN_RANGE = re.compile(r"([一二两兩三四五六七八九])([一二两兩三四五六七八九])(?=[十百千万萬亿億]|$)")
"""Two digits side by side in a numeral with units: six or seven thousand."""
_HAN_COMPOUND = re.compile(r"[二两兩三四五六七八九][十百千万萬亿億]|[十百千][一二三四五六七八九]")
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000}
_HAN_GROUPS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_ROMAN = re.compile(r"\b([IVXLC]{1,7})(?:er?|ème|º|ª)?\b")
_FRACTIONS = "¼½¾⅓⅔⅕⅖⅗⅘⅛"
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}
# A single line may begin with a date: "12. Mai".
_ITEM = re.compile(r"^[ \t]*\(?\d{1,3}[.)、](?!\d)", re.MULTILINE)
_NAMED = re.compile(r"[^\W\d_]-")
_UNITS = {
    r"pounds?|lbs?": (0.4536,),
    r"ounces?|oz": (28.35,),
    r"miles?|mph": (1.609,),
    r"feet|foot|ft": (0.3048, 30.48),
    r"inch(?:es)?": (2.54,),
    r"yards?": (0.9144,),
    r"acres?": (0.4047, 4047.0),
    r"gallons?": (3.785,),
}
"""Units of English texts, with the factors by which translators turn their numbers into metric ones."""
_UNIT = re.compile("|".join(rf"(\b(?:{words})\b)" for words in _UNITS))
_FREEZING, _DEGREES = 32, 1.8
_ROUNDED = 0.03
_CONVERTED = 3.0
"""Factor by which the worth of a sum may differ after conversion: rates change over the years, and sums are rounded."""
_BESIDE = 12
"""Characters before a number in which the name of its currency ends."""
_SMALL = 12.0
_BUDDHIST_ERA = 543
"""Years between the calendar of Thailand and the common one."""
_SWAHILI_SHIFT = 6
_LONGEST_SENTENCE, _BEFORE_MARK = 240, 90
_MOST_PAIRED = 400
"""Values of both texts up to which each is compared with each: lists of more numbers are data."""


class _Numbers(NamedTuple):
    """The values of a text, with a multiplier beside them, in words, and in names; ``places`` in its prose by value."""

    values: Counter[str]
    places: dict[str, list[tuple[int, int]]]
    scaled: dict[str, str]
    """Values that have a scale beside them, with the number before it."""
    multiplied: set[str]
    """Values with a scale, or with what may be one: ``k``, ``m``."""
    calendar: Calendar
    words: Counter[str]
    compounds: set[str]
    """Numbers above ten that are words, where the language's compounds are read."""
    in_names: set[str]
    """Numbers that are parts of names: COVID-19."""
    sums: dict[str, tuple[str, float]]
    """Sums of money, by the value of the number: the currency, and what it is worth in dollars, about."""
    factors: tuple[float, ...]
    """Those of the units in the text."""
    has_fahrenheit: bool
    has_words: bool
    has_scales: bool
    """True where the language has a table of scales."""


class _Digits(dict[int, int]):
    """The ASCII digit of each decimal digit, cached."""

    def __missing__(self, code: int) -> int:
        value = unicodedata.decimal(chr(code), None)
        form = self[code] = code if value is None else ord("0") + value
        return form


_DIGITS = _Digits()


def plain_digits(text: str) -> str:
    """Return a text of equal length with the digits of all scripts as ASCII ones."""
    return text if text.isascii() else text.translate(_DIGITS)


def check_numbers(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find a number that the translation lost, added or changed."""
    source, target = pair.source.once(_numbers), pair.target.once(_numbers)
    is_matched = source.values.total() == target.values.total()
    missing = _without_counterpart(source, target, is_matched=is_matched)
    added = _without_counterpart(target, source, is_matched=is_matched)
    missing -= source.calendar.named_in(target.calendar) | _as_decimals(source, target)
    added -= target.calendar.named_in(source.calendar) | _as_decimals(target, source)
    if len(source.values) + len(target.values) <= _MOST_PAIRED:
        # A value that a word of the other text may stand for is free for another one.
        unequal = (target.values - source.values, source.values - target.values)
        others = unequal if is_matched else (target.values, source.values)
        missing, added = (
            {value for value in missing if not any(_is_same(value, other, source, target) for other in others[0])},
            {value for value in added if not any(_is_same(other, value, source, target) for other in others[1])},
        )
        missing = {value for value in missing if not _is_converted(value, source, target)}
        added = {value for value in added if not _is_converted(value, target, source)}
    changed = source.compounds - target.words.keys() - target.values.keys()
    others = target.compounds - source.words.keys() - source.values.keys()
    if changed and others:
        missing, added = missing | changed, added | others
    certain_missing = {value for value in missing if added or _is_certain(value, source, target)}
    certain_added = {value for value in added if missing or _is_certain(value, target, source)}
    if certain_missing or certain_added:
        before, after = (", ".join(sorted(values, key=float)) for values in (certain_missing, certain_added))
        yield replace(
            finding("number", pair, before, after),
            sentences=_sentences(pair, (source, target), (certain_missing, certain_added)),
        )


def _sentences(
    pair: PassagePair, numbers: tuple[_Numbers, _Numbers], values: tuple[set[str], set[str]]
) -> tuple[MarkedSentence, MarkedSentence]:
    """Return the sentence of each text that has the first of its values; without any, the one as far into the text."""
    spans = [
        sorted({span for value in of_side for span in each.places.get(value, ())})
        for each, of_side in zip(numbers, values, strict=True)
    ]
    lengths = [max(1, len(each.prose)) for each in pair]
    # Numbers in words have no places.
    share = next((places[0][0] / length for places, length in zip(spans, lengths, strict=True) if places), 0.0)
    source, target = (
        _marked(passage, places, places[0][0] if places else int(share * length))
        for passage, places, length in zip(pair, spans, lengths, strict=True)
    )
    return source, target


def _marked(passage: Passage, spans: Sequence[tuple[int, int]], place: int) -> MarkedSentence:
    """Return the sentence at a place of the prose with the spans in it; a long one is cut around the place."""
    prose = passage.prose
    start, stop = 0, 0
    for sentence in passage.sentences or (prose,):
        start = prose.find(sentence, stop)
        stop = start + len(sentence)
        if stop > place:
            break
    cut = max(start, min(place - _BEFORE_MARK, stop - _LONGEST_SENTENCE)) if stop - start > _LONGEST_SENTENCE else start
    end = min(stop, cut + _LONGEST_SENTENCE)
    before = "\u2026" if cut > start else ""
    shift = len(before) - cut
    return MarkedSentence(
        text=before + prose[cut:end].replace("\n", " ") + ("\u2026" if end < stop else ""),
        marks=tuple((first + shift, last + shift) for first, last in spans if cut <= first and last <= end),
    )


def _without_counterpart(ours: _Numbers, theirs: _Numbers, *, is_matched: bool) -> set[str]:
    """Return the values of a text that neither the digits nor the words of the other one have.

    With equally many numerals in both texts each occurrence counts, and a word stands for one only where the other text
    has more such words than this one.
    """
    if is_matched:
        rest = {value for value in ours.values - theirs.values if theirs.words[value] <= ours.words[value]}
    else:
        rest = {value for value in ours.values if value not in theirs.values and value not in theirs.words}
    rest = {value for value in rest if theirs.words[ours.scaled.get(value, "")] == 0}
    return {value for value in rest if not (len(value) == 4 and value[-2:] in theirs.words)}


def _as_decimals(ours: _Numbers, theirs: _Numbers) -> set[str]:
    """Return the values of a text that belong to times of day which one of both texts writes as decimals: 22.56."""
    return ours.calendar.written_as_decimals(theirs.values, is_other=False) | theirs.calendar.written_as_decimals(
        ours.values, is_other=True
    )


def _is_certain(value: str, ours: _Numbers, other: _Numbers) -> bool:
    """Return whether a value without any in its place is lost: small ones are often words, or left to grammar."""
    if value in ours.in_names:
        return False
    return float(value) > _SMALL or (other.has_words and float(value) > 2)


def _is_same(value: str, other: str, source: _Numbers, target: _Numbers) -> bool:
    """Return whether two values differ in multipliers or units, in the century or era of a year, or in half a day."""
    before, after = float(value), float(other)
    converted = [before * factor for factor in source.factors] + [before / factor for factor in target.factors]
    rounding = _ROUNDED * abs(after)
    if source.has_fahrenheit:
        converted.append((before - _FREEZING) / _DEGREES)
        rounding = max(rounding, 1.0)
    if any(abs(each - after) <= rounding for each in converted):
        return True
    if (is_same := _is_same_scale(value, other, source, target)) is not None:
        return is_same
    sizes = {len(value), len(other)}
    if sizes == {2, 4}:
        return value[-2:] == other[-2:]
    if not (value.isdigit() and other.isdigit()):
        return False
    apart = abs(int(value) - int(other))
    if sizes == {4}:
        return apart == _BUDDHIST_ERA
    is_swahili = value in source.calendar.swahili_hours or other in target.calendar.swahili_hours
    is_shifted = is_swahili and apart > 0 and apart % _SWAHILI_SHIFT == 0
    return is_shifted or (min(sizes) <= 2 and apart == 12 and max(int(value), int(other)) <= 24)


def _is_same_scale(value: str, other: str, source: _Numbers, target: _Numbers) -> bool | None:
    """Return whether two values of equal digits may differ in their scales; null for others."""
    digits = {each.replace(".", "").strip("0") for each in (value, other)}
    if len(digits) > 1 or not (value in source.multiplied or other in target.multiplied):
        return None
    if not (source.has_scales and target.has_scales):
        return True
    # What only one text writes with a scale may be the beginning of a range in the other one: 3 to 4 million.
    if source.multiplied and target.multiplied:
        return not (value in source.scaled and other in target.scaled)
    # 10k may be ten thousand.
    return value in source.multiplied - source.scaled.keys() or other in target.multiplied - target.scaled.keys()


def _is_converted(value: str, ours: _Numbers, theirs: _Numbers) -> bool:
    """Return whether a sum of money is worth about as much as one of the other text in another currency."""
    if value not in ours.sums:
        return False
    currency, worth = ours.sums[value]
    return any(
        other != currency and worth <= _CONVERTED * other_worth and other_worth <= _CONVERTED * worth
        for other, other_worth in theirs.sums.values()
    )


def _numbers(passage: Passage) -> _Numbers:
    # As long as before: the places of numbers are those in the prose.
    text = plain_digits(passage.prose)
    if len(_ITEM.findall(text)) > 1:
        text = _ITEM.sub(lambda match: " " * len(match[0]), text)
    language, folded = passage.code, fold(text)
    values, scaled, multiplied, in_names = Counter[str](), dict[str, str](), set[str](), set[str]()
    places: dict[str, list[tuple[int, int]]] = {}
    sums: dict[str, tuple[str, float]] = {}
    for numeral in scaled_numerals(text, language):
        numbers, (start, end) = numeral.values, numeral.span
        if start >= 2 and _NAMED.match(text, start - 2):
            in_names.update(numbers)
        values.update(numbers)
        for number in numbers:
            places.setdefault(number, []).append(numeral.span)
        if len(numbers) == 1 and (money := _currency(text, *numeral.span)) is not None:
            sums[numbers[0]] = (money[0], float(numbers[0]) * money[1])
        if numeral.plain is not None:
            scaled[numbers[0]] = numeral.plain
        if numeral.plain is not None or multiplier_pattern().match(text, end):
            multiplied.update(numbers)
    words = numbers_in_words(_WORD.findall(folded), folded, language)
    has_words = words is not None
    words = words or Counter()
    compounds = {str(value) for value in numerals(folded, language)}
    if language in ("zh", "ja"):
        han = _HAN_NUMERALS.findall(text)
        words.update(reading for numeral in han for reading in _han_numbers(numeral))
        compounds |= _han_compounds(han)
    words.update(compounds)
    words.update(str(_roman(numeral)) for numeral in _ROMAN.findall(text))
    words.update(digit for sign in _FRACTIONS if sign in text for digit in unicodedata.normalize("NFKC", sign))
    units = {match.lastindex or 0 for match in _UNIT.finditer(folded)} if language == "en" else ()
    factors = tuple(factor for unit in units for factor in list(_UNITS.values())[unit - 1])
    return _Numbers(
        values=values,
        places=places,
        scaled=scaled,
        multiplied=multiplied,
        calendar=calendar(text, folded, language),
        words=words,
        compounds=compounds,
        in_names=in_names,
        sums=sums,
        factors=factors,
        has_fahrenheit="fahrenheit" in folded or "°f" in folded,
        has_words=has_words,
        has_scales=scales(language) is not None,
    )


def _currency(text: str, start: int, end: int) -> tuple[str, float] | None:
    """Return the currency of a number at a place, and what one of its units is worth; null for no sum of money."""
    table = currencies()
    after = table.after.match(fold(text[end : end + 2 * _BESIDE]))
    if after is not None and after.lastgroup is not None:
        return after.lastgroup, 1 / table.rates[after.lastgroup]
    before = table.before.search(fold(text[max(0, start - _BESIDE) : start]))
    return (before.lastgroup, 1 / table.rates[before.lastgroup]) if before is not None and before.lastgroup else None


def _han_compounds(han: Sequence[str]) -> set[str]:
    """Return the values of compound numerals in Chinese characters that have one reading."""
    readings = (_han_numbers(numeral) for numeral in han if _HAN_COMPOUND.search(numeral))
    # Of the value and its digits as they stand, the value is the greater one.
    return {max(each, key=int) for each in readings if len(each) <= 2}


def _han_numbers(numeral: str) -> set[str]:
    """Return the values of a numeral in Chinese characters; both ends of a range such as "six or seven thousand"."""
    if any(unit in numeral for unit in _HAN_UNITS | _HAN_GROUPS) and _HAN_RANGE.search(numeral):
        return _han_values(_HAN_RANGE.sub(r"\1", numeral)) | _han_values(_HAN_RANGE.sub(r"\2", numeral))
    return _han_values(numeral)


def _han_values(numeral: str) -> set[str]:
    """Return the value of a numeral in Chinese characters, and the value of its digits as they stand."""
    total = group = current = 0
    for sign in numeral[:LONGEST_NUMERAL]:
        if sign in _HAN_GROUPS:
            total += (group + current) * _HAN_GROUPS[sign]
            group = current = 0
        elif sign in _HAN_UNITS:
            group += (current or 1) * _HAN_UNITS[sign]
            current = 0
        else:
            current = _HAN_DIGITS[sign]
    digits = "".join(str(_HAN_DIGITS[sign]) for sign in numeral[:LONGEST_NUMERAL] if sign in _HAN_DIGITS)
    return {str(total + group + current), digits.lstrip("0") or "0"}


def _roman(numeral: str) -> int:
    values = [_ROMAN_VALUES[sign] for sign in numeral]
    return sum(
        -value if value < following else value for value, following in zip(values, [*values[1:], 0], strict=True)
    )
