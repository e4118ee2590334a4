"""Tables of languages for the checks of translations: ``data/translation_damage.toml`` as tables and patterns."""

import re
from collections import Counter
from functools import cache, lru_cache
from typing import NamedTuple

import msgspec

from steelyard.core.language_words import SIGNS, any_of, fold
from steelyard.prompts.taxonomy import read_data
from steelyard.responses.phrases import AnswerPhrases, CleaningTable

WITHOUT_SPACES = {"zh", "ja", "ko", "th"}
"""Languages whose words are looked for within the text: without spaces, or with endings."""
_MEASURES = "克米瓦卡帕赫"
"""Signs after which 千 is a part of a unit: kilogram, kilometre."""
_ABOUT = "多余餘几幾数來来여"
"""Signs for "more than" and "some" between a number and its scale."""
_BEFORE_NUMBERS = {"sw"}
_PREFIX = 2
_MOST_WORDS = 100_000


class _Multipliers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    words: str
    inside: str
    months: str


class _Translator(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    openings: tuple[str, ...]
    translation: str
    refusals: tuple[str, ...]


class DamageTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of ``translation_damage.toml``, whose comments explain them."""

    number_words: dict[str, str]
    multipliers: _Multipliers
    scales: dict[str, str]
    translator: _Translator
    negative: dict[str, str]
    negation: dict[str, str]
    concord: dict[str, str]
    neutral: dict[str, str]
    idioms: dict[str, str]
    prefixed: dict[str, str]
    otherwise: dict[str, str]
    only: dict[str, str]
    currencies: dict[str, str]


@cache
def damage_table() -> DamageTable:
    """Return the tables, read once in a process."""
    return msgspec.convert(read_data("translation_damage.toml"), DamageTable)


class NumberWords(NamedTuple):
    """The words of numbers in a language: whole words, beginnings of words by first letters, parts of the text."""

    whole: dict[str, str]
    beginnings: dict[str, tuple[tuple[str, str], ...]]
    inside: tuple[tuple[str, str], ...]


@cache
def number_words(language: str) -> NumberWords | None:
    """Return the words of numbers in a language, with each number as digits; null where the table has none."""
    entry = damage_table().number_words.get(language)
    if entry is None:
        return None
    parts = (part.partition(":") for part in entry.split())
    words = [(fold(word), number) for number, _, names in parts for word in names.split(",")]
    if language in WITHOUT_SPACES:
        return NumberWords({}, {}, tuple(words))
    beginnings: dict[str, list[tuple[str, str]]] = {}
    for word, number in words:
        if word.endswith("*"):
            beginnings.setdefault(word[:_PREFIX], []).append((word[:-1], number))
    whole = {word: number for word, number in words if not word.endswith("*")}
    return NumberWords(whole, {key: tuple(each) for key, each in beginnings.items()}, ())


def numbers_in_words(words: list[str], text: str, language: str) -> Counter[str] | None:
    """Count the numbers that words of a folded text may stand for; null for a language without a table."""
    table = number_words(language)
    if table is None:
        return None
    numbers = Counter[str]()
    for word, number in table.inside:
        numbers[number] += text.count(word)
    for word in words:
        for number in _numbers_of(word, language):
            numbers[number] += 1
    # Counts of zero would be values that are present.
    return +numbers


@lru_cache(_MOST_WORDS)
def _numbers_of(word: str, language: str) -> tuple[str, ...]:
    """Return the numbers that a word may stand for."""
    table = number_words(language)
    if table is None:
        return ()
    # A word counts once for a number, also where two of its beginnings are in the table.
    beginnings = {
        number for beginning, number in table.beginnings.get(word[:_PREFIX], ()) if word.startswith(beginning)
    }
    return (*beginnings, *([table.whole[word]] if word in table.whole else ()))


class TranslatorPhrases(NamedTuple):
    """The openings and refusals that translators add to a text, as patterns that are matched at its beginning.

    ``label`` is a first line about a translation that ends in a colon, ``topic`` any word for a translation.
    """

    openings: re.Pattern[str]
    label: re.Pattern[str]
    refusals: re.Pattern[str]
    topic: re.Pattern[str]


@cache
def translator_phrases() -> TranslatorPhrases:
    """Return the patterns of a translator's openings and of its refusals."""
    table = damage_table().translator
    lead = r"[\s*_#>\"'“«(\[]{0,8}"
    label = rf"[^\n:：]{{0,60}}(?:{table.translation})[^\n:：]{{0,40}}[:：]"
    openings, labels, refusals = (
        re.compile(f"{lead}(?:{'|'.join(each)})", re.IGNORECASE) for each in (table.openings, (label,), table.refusals)
    )
    return TranslatorPhrases(openings, labels, refusals, re.compile(table.translation, re.IGNORECASE))


@cache
def answer_phrases() -> AnswerPhrases:
    """Return the phrases by which answers decline in many languages."""
    return AnswerPhrases(msgspec.convert(read_data("cleaning.toml"), CleaningTable))


@cache
def multiplier_pattern() -> re.Pattern[str]:
    """Return the pattern of a word or sign that multiplies the number before it."""
    table = damage_table().multipliers
    return re.compile(rf"\s{{0,2}}(?:[{table.inside}]|{any_of(map(fold, table.words.split()))}(?!\w))", re.IGNORECASE)


class Scales(NamedTuple):
    """The words of a language that multiply the number beside them: powers of ten by folded word, and the patterns."""

    powers: tuple[int, ...]
    after: re.Pattern[str]
    """A word after a number. Its last group is that of the power, from 1."""
    before: re.Pattern[str] | None
    """A word before a number; null for languages that write none there."""

    def power(self, match: re.Match[str]) -> int:
        """Return the power of ten of a word that was found."""
        return self.powers[(match.lastindex or 1) - 1]


@cache
def scales(language: str) -> Scales | None:
    """Return the scales of a language, over folded text; null where the table has none."""
    entry = damage_table().scales.get(language)
    if entry is None:
        return None
    parts = [part.partition(":") for part in entry.split()]
    by_power = [(int(power), [fold(word.replace("_", " ")) for word in words.split(",")]) for power, _, words in parts]
    # "mil millones" is tried before "mil", and 千万 before 千.
    by_power.sort(key=lambda power: -max(map(len, power[1])))
    word = "|".join(f"({any_of(words)})" for _, words in by_power)
    is_inside = language in WITHOUT_SPACES
    about, end = (f"[{_ABOUT}]?", f"(?:(?<!千)|(?![{_MEASURES}]))") if is_inside else ("", rf"(?![{SIGNS}])")
    return Scales(
        tuple(power for power, _ in by_power),
        re.compile(rf"[\s-]{{0,2}}{about}(?:{word}){end}"),
        re.compile(rf"(?<![{SIGNS}])(?:{word})\s\Z") if language in _BEFORE_NUMBERS else None,
    )


class Currencies(NamedTuple):
    """The currencies of the table: the units of each that a dollar is worth, and patterns around a number.

    Each pattern has a group for each currency, named by its code.
    """

    rates: dict[str, float]
    before: re.Pattern[str]
    after: re.Pattern[str]


@cache
def currencies() -> Currencies:
    """Return the currencies, for folded texts."""
    rates, groups = dict[str, float](), list[str]()
    for code, entry in damage_table().currencies.items():
        rate, _, words = entry.partition(":")
        rates[code] = float(rate)
        # Endings follow words of Korean, and the next word those of languages without spaces.
        folded = [fold(word.replace("_", " ")) for word in words.split()]
        spaced, others = ([word for word in folded if word.isascii() is is_ascii] for is_ascii in (True, False))
        ends = [f"{any_of(spaced)}(?![a-z])", *([any_of(others)] if others else [])]
        groups.append(f"(?P<{code}>{'|'.join(ends)})")
    word = "|".join(groups)
    return Currencies(
        rates,
        re.compile(rf"(?<![a-z])(?:{word})\s?\Z"),
        re.compile(rf"\s{{0,2}}(?:{word})"),
    )


@cache
def months() -> dict[str, str]:
    """Return the number of each month by its names in English and German, in small letters."""
    parts = (part.partition(":") for part in damage_table().multipliers.months.split())
    return {name: number for number, _, names in parts for name in names.split(",")}
