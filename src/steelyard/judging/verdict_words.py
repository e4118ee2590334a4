"""The words with which judges announce, negate and report verdicts: ``data/verdict_words.toml`` as patterns.

A word is a whole word, with its clitics, or a part of the text in languages without spaces or with endings. Patterns
take time linear in the length of the text for any content: a reply may be written to stall the run.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import msgspec

_CHUNK = 256
_GAP = "\ue004"
# Letters, with the signs that belong to one: accents, vowel signs of Devanagari and Thai, and joiners.
SIGNS = r"\w\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200c\u200d"
# Vowel signs of Arabic and Hebrew, tatweel, and the dot that a capital dotted I leaves: spellings of one word.
_UNWRITTEN = re.compile("[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u0307]")


class LanguageWords(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of ``verdict_words.toml``, whose head explains the fields."""

    negation: tuple[str, ...]
    worse: tuple[str, ...]
    idioms: tuple[str, ...]
    breaks: tuple[str, ...]
    announces: tuple[str, ...]
    reports: tuple[str, ...]
    answer: tuple[str, ...]
    verdicts: tuple[str, ...]
    score: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    ratings: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    degrees: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ("",)
    common: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    unreported: tuple[str, ...] = ()
    inside: bool = False


@cache
def language_words() -> dict[str, LanguageWords]:
    """Return the words by language."""
    text = (files("steelyard") / "data/verdict_words.toml").read_text(encoding="utf-8")
    # In the forms that the texts of replies have, but for the sign of a gap.
    plain = unicodedata.normalize("NFKC", text.replace("…", _GAP))
    return msgspec.convert(tomllib.loads(plain), dict[str, LanguageWords])


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, the longest first; * stands for letters, a gap for up to six words."""
    gap, ending = r"(?:\s+[^\s,;:.!?،؛]+){0,6}?\s+", rf"[{SIGNS}]*"
    patterns = (
        re.escape(word).replace(rf"\ {_GAP}\ ", gap).replace(r"\*", ending).replace(r"\ ", r"\s+")
        for word in sorted(words, key=len, reverse=True)
    )
    return f"(?:{'|'.join(patterns)})"


def whole_words(words: Iterable[str]) -> str:
    """Return a pattern of any of the words as whole words."""
    return rf"(?<![{SIGNS}]){any_of(words)}(?![{SIGNS}])"


def fold(text: str, *, is_cased: bool = False) -> str:
    """Return the text in composed letters without vowel signs, in small letters unless ``is_cased``."""
    text = _UNWRITTEN.sub("", text.replace("’", "'").replace("İ", "i"))
    # In chunks: composing sorts runs of combining marks, in time quadratic in the run.
    text = "".join(unicodedata.normalize("NFKC", text[start : start + _CHUNK]) for start in range(0, len(text), _CHUNK))
    return text if is_cased else text.casefold()


@cache
def matching(field: str) -> re.Pattern[str]:
    """Return a pattern of the words of a field in all languages: whole words, or parts of the text."""
    whole, inside = set[str](), set[str]()
    for words in language_words().values():
        for word in getattr(words, field):
            # A word that begins with a sign holds its bounds.
            (inside if words.inside or word.startswith(",") else whole).add(fold(word))
    alternatives = [whole_words(whole)] * bool(whole) + [any_of(inside)] * bool(inside)
    return re.compile("|".join(alternatives), re.IGNORECASE)


@cache
def announcement() -> re.Pattern[str]:
    """Return the pattern of an announcement. Its repetition is possessive: its time is linear."""
    words = {fold(word) for each in language_words().values() if not each.inside for word in each.announces}
    inside = {fold(word) for each in language_words().values() if each.inside for word in each.announces}
    elided = {word for word in words if word.endswith("'")}
    return re.compile(
        rf"(?:{any_of(words - elided)}(?![{SIGNS}])|{any_of(elided)}|{any_of(inside)}"
        r"|\[the (?:begin|end) of [a-z ]{1,40}\]|[\s:,*_#\-–—()\[\]`\"'，、：；。،؛.…])*+"
    )


@cache
def words_by_language() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Return the languages in which each word is a negation, and those in which it is an ordinary word."""
    negations, common = dict[str, set[str]](), dict[str, set[str]]()
    for language, words in language_words().items():
        if words.inside:
            continue
        prefixed = {fold(prefix + word) for prefix in ("", *words.prefixes) for word in words.negation}
        for word in prefixed | {fold(word) for word in words.worse}:
            negations.setdefault(word, set()).add(language)
        for word in words.common:
            common.setdefault(fold(word), set()).add(language)
    return negations, common


@cache
def negation_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of single words with endings, of phrases, and of parts of the text."""
    each = [(words, fold(word)) for words in language_words().values() for word in (*words.negation, *words.worse)]
    inside = {word for words, word in each if words.inside}
    endings = {word for words, word in each if not words.inside and "*" in word and " " not in word}
    phrases = {word for words, word in each if not words.inside and " " in word}
    return (
        re.compile(any_of(endings)),
        re.compile(whole_words(phrases)),
        re.compile(any_of(inside)),
    )


@cache
def break_pattern() -> re.Pattern[str]:
    """Return the pattern of a clause that begins with a conjunction and goes on."""
    return re.compile(rf"(?:{matching('breaks').pattern})\s*(?=\S)", re.IGNORECASE)


@cache
def reporting() -> tuple[re.Pattern[str], list[tuple[re.Pattern[str], re.Pattern[str]]]]:
    """Return the pattern of verbs that are enough alone, and for other languages those of speakers and verbs."""
    alone, inside, pairs = set[str](), set[str](), list[tuple[re.Pattern[str], re.Pattern[str]]]()
    for words in language_words().values():
        verbs, quotes = set(map(fold, words.reports)), set(map(fold, words.quotes))
        bounded = any_of if words.inside else whole_words
        if words.speakers:
            pairs.append((re.compile(bounded(map(fold, words.speakers))), re.compile(bounded(verbs))))
        (inside if words.inside else alone).update(quotes if words.speakers else quotes | verbs)
    return re.compile(f"{whole_words(alone)}|{any_of(inside)}"), pairs
