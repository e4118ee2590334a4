"""Names of columns as they are compared, and the names of answers that a language makes of a noun and a side."""

import re
import unicodedata
from functools import cache
from itertools import product

from steelyard.prompts.taxonomy import read_data

_VOWEL_SIGNS = re.compile("[\u0640\u064b-\u065f\u0670]")
"""The vowel signs of Arabic and its tatweel, with which a name of a column may be written."""
_SPELLINGS = str.maketrans("أإآٱىةئؤ", "اااايهيو")
"""Letters of Arabic that many write without their hamza and dots."""


def column_word(name: str) -> str:
    """Return the name of a column for comparison: in lower case, without signs that many leave out."""
    word = _VOWEL_SIGNS.sub("", unicodedata.normalize("NFKC", name))
    return " ".join(word.casefold().translate(_SPELLINGS).split())


def column_words(*names: str) -> tuple[str, ...]:
    """Return names for comparison."""
    return tuple(map(column_word, names))


@cache
def pair_names() -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return the names of a better and a worse answer: those of texts, and those that may be of models."""
    sure: list[tuple[str, ...]] = []
    doubtful: list[tuple[str, ...]] = []
    for words in read_data("column_names.toml").values():
        sure += [column_words(*side) for side in words["sides"]]
        doubtful += [column_words(*side) for side in words["models"]]
        marks = (*words["sides"], *words.get("initials", ()), *words["models"])
        for noun, join, (better, worse) in product(words["nouns"], words["joins"], marks):
            sure.append(column_words(f"{better}{join}{noun}", f"{worse}{join}{noun}"))
            sure.append(column_words(f"{noun}{join}{better}", f"{noun}{join}{worse}"))
    return sure, doubtful


@cache
def ordered_names() -> tuple[tuple[str, ...], ...]:
    """Return the names of the first, the second and further answers, by an ordinal number before or behind the noun."""
    names: dict[tuple[str, ...], None] = {}
    for words in read_data("column_names.toml").values():
        joins = dict.fromkeys((*words["joins"], " ", "_"))
        for noun, join, ordinals in product(words["nouns"], joins, words["ordinals"]):
            names[column_words(*(f"{ordinal}{join}{noun}" for ordinal in ordinals))] = None
            names[column_words(*(f"{noun}{join}{ordinal}" for ordinal in ordinals))] = None
    return tuple(names)
