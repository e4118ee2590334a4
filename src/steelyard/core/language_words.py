"""Words of negation, and of verdicts, in many languages: ``data/verdict_words.toml`` as records and patterns.

A word is a whole word, with its clitics, or a part of the text in languages without spaces or with endings. Patterns
take time linear in the length of the text for any content: a text may be written to stall the run.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from itertools import groupby, takewhile
from operator import itemgetter

import msgspec

_CHUNK = 256
GAP = "\ue004"
# Letters, with the signs that belong to one: accents, vowel signs of the scripts of India and of Thai, and joiners.
SIGNS = (
    r"\w\u0300-\u036f\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0b82\u0bbe-\u0bcd"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u200c\u200d"
)
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
    hedges: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ("",)
    common: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()
    unreported: tuple[str, ...] = ()
    although: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    according: tuple[str, ...] = ()
    declines: tuple[str, ...] = ()
    ties: tuple[str, ...] = ()
    confidence: tuple[str, ...] = ()
    letters: tuple[str, ...] = ()
    named_letters: tuple[str, ...] = ()
    particles: tuple[str, ...] = ()
    inside: bool = False


@cache
def language_words() -> dict[str, LanguageWords]:
    """Return the words by language."""
    text = (files("steelyard") / "data/verdict_words.toml").read_text(encoding="utf-8")
    # In the forms that the texts of replies have, but for the sign of a gap.
    plain = unicodedata.normalize("NFKC", text.replace("…", GAP))
    return msgspec.convert(tomllib.loads(plain), dict[str, LanguageWords])


def any_of(words: Iterable[str]) -> str:
    """Return a pattern of any of the words, the longest first; * stands for letters, a gap for up to six words.

    Plain words become a tree of their beginnings, in which a search tries one branch a letter instead of every word.
    """
    gap, ending = r"(?:\s+[^\s,;:.!?،؛]+){0,6}?\s+", rf"[{SIGNS}]*"
    patterns = list[str]()
    longest_first = sorted(set(words), key=len, reverse=True)
    for is_open, run in groupby(longest_first, lambda word: "*" in word or GAP in word):
        if is_open:
            escaped = (re.escape(word).replace(rf"\ {GAP}\ ", gap).replace(r"\*", ending) for word in run)
            patterns += [word.replace(r"\ ", r"\s+") for word in escaped]
        else:
            patterns.append(_tree(sorted(run)))
    return f"(?:{'|'.join(patterns)})"


def _tree(words: list[str]) -> str:
    """Return a pattern of any of the sorted words, the longest first, with each common beginning written once."""
    # Of sorted words the first and the last have in common what all have.
    alike = takewhile(lambda letters: letters[0] == letters[1], zip(words[0], words[-1], strict=False))
    common = "".join(first for first, _ in alike)
    branches = [
        _tree([*ends]) for _, ends in groupby((word[len(common) :] for word in words if word != common), itemgetter(0))
    ]
    start = re.escape(common).replace(r"\ ", r"\s+")
    return f"{start}(?:{'|'.join(branches)}){'?' if common in words else ''}" if branches else start


def whole_words(words: Iterable[str]) -> str:
    """Return a pattern of any of the words as whole words."""
    return rf"(?<![{SIGNS}]){any_of(words)}(?![{SIGNS}])"


def fold(text: str, *, is_cased: bool = False) -> str:
    """Return the text in composed letters without vowel signs, in small letters unless ``is_cased``."""
    if text.isascii():
        return text if is_cased else text.casefold()
    text = _UNWRITTEN.sub("", text.replace("’", "'").replace("İ", "i"))
    # In chunks: composing sorts runs of combining marks, in time quadratic in the run.
    text = "".join(unicodedata.normalize("NFKC", text[start : start + _CHUNK]) for start in range(0, len(text), _CHUNK))
    return text if is_cased else text.casefold()
