"""Phrases that answers are cleaned by: refusals in 23 languages, and the names by which a model says what it is.

The words are a table of the package's data (`cleaning.toml`). A refusal counts near the beginning of a short answer.
A name counts in a sentence that speaks in the first person and introduces its speaker: it is replaced by `MASK`, of one
length whatever the name was, because a name tells annotators whose answer they judge.
"""

import re
from functools import cached_property

from steelyard.core.types import Record
from steelyard.responses.subject import Subject

MASK = "[name]"
"""The text in place of a masked name: not part of any language, equal for all names."""

_BEGINNING = 160
"""A refusal begins within so many characters."""
_SENTENCE = re.compile(r"[^.!?。！？\n]*(?:\.(?=\S)[^.!?。！？\n]*)*[.!?。！？\n]*")
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "＇": "'", "‘": "'"})


class Names(Record, frozen=True, kw_only=True):
    """Names of models and makers, phrases that precede or follow them, and words of the first person (all patterns)."""

    words: tuple[str, ...]
    introductions: tuple[str, ...]
    followers: tuple[str, ...]
    first_person: str


class CleaningTable(Record, frozen=True, kw_only=True):
    """The table of phrases: patterns of refusals by language, and names."""

    refusals: dict[str, tuple[str, ...]]
    names: Names


class AnswerPhrases:
    """The compiled phrases: made once in a process."""

    def __init__(self, table: CleaningTable) -> None:
        self._table = table
        self._refusal_patterns: dict[str, re.Pattern[str]] = {}

    def _refusal(self, language: str | None) -> re.Pattern[str]:
        """Return the patterns of a language and of English, to which models return; of all languages for another."""
        code = re.split("[-_]", language or "")[0].lower()
        if code not in self._refusal_patterns:
            known = self._table.refusals
            groups = [known[name] for name in dict.fromkeys((code, "en"))] if code in known else known.values()
            patterns = "|".join(f"(?:{each})" for group in groups for each in group)
            self._refusal_patterns[code] = re.compile(patterns, re.IGNORECASE)
        return self._refusal_patterns[code]

    @cached_property
    def _name(self) -> re.Pattern[str]:
        # The longest name first: `GPT` is the beginning of others. Between letters of one script a name is a part of
        # another word, but Han characters have no spaces between words.
        words = sorted(self._table.names.words, key=len, reverse=True)
        return re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(words)})(?![A-Za-z_]|\d)")

    @cached_property
    def _introduction(self) -> re.Pattern[str]:
        before = "|".join(self._table.names.introductions)
        after = "|".join(self._table.names.followers)
        return re.compile(rf"(?i:{before})[\"'“‘「『《(（*_ ]*@|@[\"'”’」』》)）*_ ]*(?i:{after})")

    @cached_property
    def _first_person(self) -> re.Pattern[str]:
        return re.compile(self._table.names.first_person, re.IGNORECASE)

    def refusals(self, subject: Subject) -> float:
        """Count the phrases that decline near the beginning of the answer."""
        beginning = subject.text[: 2 * _BEGINNING].translate(_APOSTROPHES)
        refusal = self._refusal(subject.language)
        return float(sum(1 for match in refusal.finditer(beginning) if match.start() <= _BEGINNING))

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
        if not self._first_person.search(plain):
            return False
        # Each name is one character, so that the pattern is about the words around it.
        end, marked = 0, ""
        for name in names:
            marked += plain[end : name.start()].replace("@", " ") + "@"
            end = name.end()
        return self._introduction.search(marked + plain[end:].replace("@", " ")) is not None

    def masked(self, text: str) -> str:
        """Return the text with every name of `own_names` replaced by `MASK`."""
        pieces: list[str] = []
        end = 0
        for start, stop in self.own_names(text):
            pieces += [text[end:start], MASK]
            end = stop
        return "".join([*pieces, text[end:]])
