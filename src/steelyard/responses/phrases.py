"""Phrases that answers are cleaned by: refusals in 23 languages, and the names by which a model says what it is.

The words are a table of the package's data (`cleaning.toml`). A refusal counts near the beginning of a short answer.
A name counts in a sentence that introduces its speaker, in the first person or as a greeting does: it is replaced by
`MASK`, of one length for every name, because a name tells annotators whose answer they judge.
"""

import re
from functools import cached_property
from typing import NamedTuple

from steelyard.core.languages import language_part
from steelyard.core.types import Record
from steelyard.responses.subject import Subject

MASK = "[name]"
"""The text in place of a masked name: not part of any language, equal for all names."""

_BEGINNING = 160
"""Characters within which a refusal begins."""
_WITHOUT_SPACES = {"zh", "ja"}
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:\.(?=\S)[^.!?。！？\n]*)*[.!?。！？\n]*")
UNUSUAL_CASE = re.compile(
    "[\u0130\u0131\u017f\u03a3\u03c2\u0390\u03b0\u1fd3\u1fe3\u0345\u1fbe\u00b5\u03d0\u03d1\u03f4\u03d5\u03d6\u03f0\u03f1\u03f5\u1c80-\u1c88\u1e9b\ufb05\ufb06]"
)
"""Letters that a pattern compares with others than their lower case: dotless i, long s, final sigma, symbols."""
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "＇": "'", "‘": "'"})


class Names(Record, frozen=True, kw_only=True):
    """Names of models and makers, phrases that precede or follow them, and words of the first person (all patterns).

    ``greetings`` are whole sentences that need no first person; ``@`` stands for a name in them.
    """

    words: tuple[str, ...]
    introductions: tuple[str, ...]
    followers: tuple[str, ...]
    greetings: tuple[str, ...]
    first_person: str


class CleaningTable(Record, frozen=True, kw_only=True):
    """The table of phrases: patterns of refusals by language, words that each of them has one of, names, and open ends.

    ``open_ends`` has by language the words after which another one must come.
    """

    refusals: dict[str, tuple[str, ...]]
    refusal_words: dict[str, tuple[str, ...]]
    open_ends: dict[str, tuple[str, ...]]
    names: Names


class _Refusals(NamedTuple):
    """The patterns of some languages as one, and the words without which it matches nothing."""

    pattern: re.Pattern[str]
    words: tuple[str, ...]


class AnswerPhrases:
    """The compiled phrases: made once in a process."""

    def __init__(self, table: CleaningTable) -> None:
        self._table = table
        self._refusals_by_language: dict[str, _Refusals] = {}

    def _refusals(self, language: str | None) -> "_Refusals":
        """Return the refusals of a language and of English, to which models return; of all languages for another."""
        code = language_part(language)
        if code not in self._refusals_by_language:
            known = self._table.refusals
            names = dict.fromkeys((code, "en")) if code in known else known
            patterns = "|".join(f"(?:{each})" for name in names for each in known[name])
            words = tuple(dict.fromkeys(word for name in names for word in self._table.refusal_words[name]))
            self._refusals_by_language[code] = _Refusals(re.compile(patterns, re.IGNORECASE), words)
        return self._refusals_by_language[code]

    @cached_property
    def _name(self) -> re.Pattern[str]:
        # The longest name first: `GPT` is the beginning of others. Between letters of one script a name is a part of
        # another word, but Han characters have no spaces between words.
        words = sorted(self._table.names.words, key=len, reverse=True)
        # Grouped by their first characters, by which a search skips everything else without trying a word.
        groups = {word[0]: [each[1:] for each in words if each[0] == word[0]] for word in words}
        starts = "|".join(rf"{first}(?<![A-Za-z0-9_]{first})(?:{'|'.join(rest)})" for first, rest in groups.items())
        return re.compile(rf"(?:{starts})(?![A-Za-z_]|\d)")

    @cached_property
    def _introduction(self) -> re.Pattern[str]:
        before = "|".join(self._table.names.introductions)
        after = "|".join(self._table.names.followers)
        return re.compile(rf"(?i:{before})[\"'“‘「『《(（*_ ]*@|@[\"'”’」』》)）*_ ]*(?i:{after})")

    @cached_property
    def _greeting(self) -> re.Pattern[str]:
        return re.compile("|".join(f"(?:{each})" for each in self._table.names.greetings), re.IGNORECASE)

    @cached_property
    def _first_person(self) -> re.Pattern[str]:
        return re.compile(self._table.names.first_person, re.IGNORECASE)

    def refusals(self, subject: Subject) -> float:
        """Count the phrases that decline near the beginning of the answer."""
        beginning = subject.text[: 2 * _BEGINNING].translate(_APOSTROPHES)
        refusals = self._refusals(subject.language)
        lowered = beginning.lower()
        # The search for patterns of a language takes fifty times as long as that for its words.
        if not any(word in lowered for word in refusals.words) and not UNUSUAL_CASE.search(beginning):
            return 0.0
        return float(sum(1 for match in refusals.pattern.finditer(beginning) if match.start() <= _BEGINNING))

    def is_open_end(self, text: str, language: str | None) -> bool:
        """Return whether the last word of a text needs another one after it, such as an article; case counts."""
        code = language_part(language)
        words = self._table.open_ends.get(code, ())
        if code in _WITHOUT_SPACES:
            return text.endswith(words)
        return re.split(r"[^\w'’]+", text)[-1].replace("’", "'") in words

    def own_names(self, text: str) -> tuple[tuple[int, int], ...]:
        """Return the places of names by which the answer says what it is, as (start, end) in order."""
        if not self._name.search(text):
            return ()
        places: list[tuple[int, int]] = []
        for sentence in _SENTENCE.finditer(text):
            names = list(self._name.finditer(sentence[0]))
            if names and self._introduces(sentence[0], names):
                places += [(sentence.start() + name.start(), sentence.start() + name.end()) for name in names]
        return tuple(places)

    def _introduces(self, sentence: str, names: list[re.Match[str]]) -> bool:
        plain = sentence.translate(_APOSTROPHES)
        # Each name is one character, so that the patterns are about the words around it.
        end, marked = 0, ""
        for name in names:
            marked += plain[end : name.start()].replace("@", " ") + "@"
            end = name.end()
        marked += plain[end:].replace("@", " ")
        if self._greeting.fullmatch(marked.strip()):
            return True
        return self._first_person.search(plain) is not None and self._introduction.search(marked) is not None

    def masked(self, text: str) -> str:
        """Return the text with every name of `own_names` replaced by `MASK`."""
        pieces: list[str] = []
        end = 0
        for start, stop in self.own_names(text):
            pieces += [text[end:start], MASK]
            end = stop
        return "".join([*pieces, text[end:]])
