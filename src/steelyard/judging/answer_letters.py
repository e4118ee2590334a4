"""Letters of other scripts that name the answers of a judge's question, such as ب, ख and 乙, as the labels A to E.

Many of these letters are words too, or parts of words. One names an answer where it stands alone behind a noun for an
answer, or between signs such as brackets and ends of lines. Where a reply has no Latin labels, a letter that is not a
word of its language also does anywhere else, and so does a capital that does not begin a sentence.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from steelyard.core.language_words import SIGNS, any_of, language_words

LABELS = "ABCDE"
# Letters of Cyrillic and Greek that look as Latin ones, where a keyboard wrote them instead.
_LOOK_ALIKES = {"А": "A", "В": "B", "С": "C", "Е": "E", "Α": "A", "Β": "B", "Ε": "E"}
_AMBIGUOUS = "В"
"""The third letter of Cyrillic, and the look-alike of B."""
_LATIN = re.compile(r"(?<![A-Za-z])[A-E](?![A-Za-z])")
_KATAKANA = "\u30a1-\u30fa\u30fc"
_LONGEST_NOUN = 40
_INNER = re.compile(r"[^\W\d_][ \t]$")
_OPENING = re.compile(r"(?:^|[\[({<\"'“«„「『*_|>:=\u2013\u2014→⇒])[ \t]?$")
_CLOSING = re.compile(r"[ \t]{0,4}(?:$|[(\])}<\"'”“»」』*_|.:=>→⇒。।])", re.MULTILINE)


class _Letter(NamedTuple):
    """A letter's label, whether it is a word or a part of words too, and the nouns of its language for an answer."""

    label: str
    is_word: bool
    is_part: bool
    nouns: re.Pattern[str]


def with_latin_letters(text: str, labels: Sequence[str]) -> str:
    """Return the text with Latin letters for those of other scripts that name an answer.

    The letter that is the third of Cyrillic and looks as B is either: the third beside others of that alphabet, B where
    only two answers are labelled, and itself elsewhere.
    """
    pattern, letters, alphabet = _letters()
    if text.isascii() or not pattern.search(text):
        return text
    has_latin = _LATIN.search(text) is not None
    is_third = alphabet.search(text) is not None

    def replacement(match: re.Match[str]) -> str:
        sign = match[0]
        if sign == _AMBIGUOUS and not is_third and len(labels) != 2:
            return sign
        before = text[max(0, match.start() - _LONGEST_NOUN) : match.start()]
        line = before.rpartition("\n")[2] if "\n" in before or match.start() <= _LONGEST_NOUN else f".{before}"
        is_between = _OPENING.search(line) is not None and _CLOSING.match(text, match.end()) is not None
        is_inner = _INNER.search(line) is not None and line[-2].islower()
        for letter in letters[sign]:
            is_named = letter.nouns.search(line) is not None and not (letter.is_part and has_latin)
            is_free = not letter.is_word or (sign.isupper() and is_inner)
            if is_between or is_named or (is_free and not has_latin):
                is_look_alike = sign == _AMBIGUOUS and not is_third
                return _LOOK_ALIKES[sign] if is_look_alike else letter.label
        return sign

    return pattern.sub(replacement, text)


@cache
def _letters() -> tuple[re.Pattern[str], dict[str, list[_Letter]], re.Pattern[str]]:
    """Return the pattern of all letters, their meanings, and that of Cyrillic ones that look as no other."""
    meanings = dict[str, list[_Letter]]()
    bounded, katakana, parts = set[str](), set[str](), list[str]()
    for words in language_words().values():
        particles = f"{any_of(words.particles)}?" if words.particles else ""
        nouns = re.compile(rf"{any_of(words.answer)}{particles}[ \t]?[\[(\"'“«„「『*_]{{0,4}}$", re.IGNORECASE)
        for is_word, names in ((False, words.letters), (True, words.named_letters)):
            for label, spellings in zip(LABELS, names, strict=True) if names else ():
                for spelling in spellings.split():
                    meanings.setdefault(spelling, []).append(_Letter(label, is_word, words.inside, nouns))
                    if "\u3400" <= spelling <= "\u9fff":
                        parts.append(spelling)
                    elif words.particles:
                        parts.append(rf"{spelling}(?={particles}(?![{SIGNS}]))")
                    else:
                        (katakana if "\u30a1" <= spelling <= "\u30fa" else bounded).add(spelling)
    for sign, label in _LOOK_ALIKES.items():
        if sign not in meanings:
            cyrillic = meanings["Б"][0]
            meanings[sign] = [cyrillic._replace(label=label)]
            bounded.add(sign)
    pattern = re.compile(
        rf"(?<![{SIGNS}]){any_of(bounded)}(?![{SIGNS}]|[-־][{SIGNS}])"
        rf"|(?<![{_KATAKANA}]){any_of(katakana)}(?![{_KATAKANA}])|{'|'.join(parts)}"
    )
    return pattern, meanings, re.compile(rf"(?<![{SIGNS}])[БГД](?![{SIGNS}])")
