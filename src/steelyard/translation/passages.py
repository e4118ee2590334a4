"""One text of a case as the checks of a translation see it: its code, its prose, its lines and its sentences.

Prose is the text without code, formulas, internet addresses and markup: what a translator translates. Every part takes
time linear in the length of the text.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from steelyard.core.iteration import batched
from steelyard.core.languages import language_key, language_part
from steelyard.core.scripts import SCRIPTS, script_codes
from steelyard.core.text import prompt_text, response_text
from steelyard.core.types import Case, Response
from steelyard.responses.subject import LETTER_WEIGHTS, Subject
from steelyard.translation.blocks import code_spans
from steelyard.translation.program_lines import code_lines

Reading = TypeVar("Reading")
PROMPT = "prompt"
"""The place of the whole conversation that the responses answer."""
_UNTRANSLATED_SIGNS = ("$", "\\", "://", "www.", "@", "<")
_FENCE = re.compile(
    r"^[ \t]*(?:(`{3,})(?![^\n]*`)|(~{3,}))[^\n]*(?:\n.*?)??(?:^[ \t]*(?(1)\1`*|\2~*)[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_FORMULA = (
    r"\$\$[^$]+\$\$|\$(?=[^\s$\d])[^$\n]{1,200}\$|\\\[(?:[^\\]|\\(?![\[\]]))*+\\\]|\\\((?:[^\\]|\\(?![()]))*+\\\)"
)
_URL = r"https?://[^\s<>，。；）】」]+|www\.[^\s<>，。；）】」]+"
_E_MAIL = r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}"
_TAG = r"</?[A-Za-z][^<>\n]{0,200}>"
_UNTRANSLATED = re.compile(f"{_FORMULA}|{_URL}|{_E_MAIL}|{_TAG}")
_LONGEST_EXCERPT = 80
_SPACED_END = r"(?<![.!?…])[.!?…]++[\"'“”‘’«»)\]*_]*+(?=\s)"
"""A final mark before a space; those of other scripts end a sentence without one."""
_SENTENCE_END = re.compile(rf"(?:{_SPACED_END}|[。！？][」』”’）】\"]*+|[؟।॥።፧။۔։]+[\"'”»)]*+)\s*|\n\s*|\Z")
_GREEK_END = re.compile(_SENTENCE_END.pattern.replace("!?…", "!?…;\u037e"))
"""In Greek a semicolon is the mark of a question."""
_ABBREVIATIONS = r"Mr|Mrs|Ms|Dr|Prof|St|vs|e\.g|i\.e|etc|bzw|ca|Str|Sr|Sra|Dra|Jr|Inc|Ltd|Co|al|Fig|p|pp|Sept|Mio|Mrd"
_NO_END = re.compile(rf"(?:\b[^\W\d_]\.\s?[^\W\d_]|\b(?:{_ABBREVIATIONS}))\.$")
"""An abbreviation, which no sentence ends with; letters with a full stop each, such as ``d. h.``"""
_LETTER = re.compile(r"\b[^\W\d_]\.$")
_FIGURES = re.compile(r"\d+\.$")
_RESULT = re.compile(r"[=≈:]\s?\d+\.$")
_MAYBE_END = re.compile(r"(?:\b[apπμ]\.\s?[mμ]|\betc|\bт\.\s?д)\.$")
"""An abbreviation that a sentence may end with."""
_ZONE = r"[A-Z]{2,4}\b|(?:[A-Z]\w+ ){1,2}[Tt]ime\b"
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_DATE = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d"
_OF_TIME = re.compile(f"{_ZONE}|{_WEEKDAY}|{_DATE}")
"""Words after a time of day in its sentence: a zone, a day of the week, a date."""
_SHORT_WORD = re.compile(r"\b[^\W\d_]{1,3}\.$")
"""A word such as No. or Nr., which no sentence ends with where a digit follows."""
_ORDINALS = {"de", "hu", "fi", "et", "cs", "sk", "sl", "hr", "sr", "pl", "da", "no", "nb", "tr", "lv", "is", "eu"}
"""Languages that write ordinal numbers with a full stop."""
_WIDE_ENDS = "。！？।॥"
_UNSEGMENTED = {"th", "lo", "km", "my", "bo"}
"""Languages that are written without marks between sentences, or usually so."""
_MOST_SOURCES, _LONGEST_SOURCE = 16_384, 20_000
"""Texts of sources that are kept for their translations into other languages, and the characters of the longest."""


class Passage:
    """One text of a case in one language: the whole prompt or one response. Parts are computed when first needed."""

    def __init__(self, place: str, text: str, language: str | None) -> None:
        self.place = place
        self.text = text
        self.language = language_key(language or "")
        self._readings: dict[Callable[[Passage], Any], Any] = {}

    def once(self, read: Callable[["Passage"], Reading]) -> Reading:
        """Return what a function makes of the text, computed once: a source has many translations."""
        if read not in self._readings:
            self._readings[read] = read(self)
        return self._readings[read]

    @cached_property
    def code(self) -> str:
        """The language without its script: ``zh`` for Traditional Chinese."""
        return language_part(self.language)

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """The blocks of code between fences, with them."""
        if "```" not in self.text and "~~~" not in self.text:
            return ()
        return tuple(match[0].strip() for match in _FENCE.finditer(self.text))

    @cached_property
    def outside_blocks(self) -> str:
        """The text outside blocks of code."""
        return _FENCE.sub("\n", self.text) if self.blocks else self.text

    @cached_property
    def inline(self) -> tuple[str, ...]:
        """The code within lines, between marks of the same number."""
        text = self.outside_blocks
        return tuple(text[start:end] for start, end in code_spans(text))

    @cached_property
    def _split(self) -> tuple[tuple[str, ...], tuple[str, ...], int]:
        """The lines of prose, those of unfenced programs, and the number of paragraphs of prose."""
        lines: list[str] = []
        code: list[str] = []
        num_paragraphs, is_inside = 0, False
        every = self.outside_blocks.split("\n")
        for line, is_code in zip(every, code_lines(every), strict=True):
            body = line.strip()
            is_prose = bool(body) and not is_code
            if is_prose:
                lines.append(line)
            elif body:
                code.append(line)
            num_paragraphs += is_prose and not is_inside and any(map(str.isalnum, body))
            is_inside = is_prose
        return tuple(lines), tuple(code), num_paragraphs

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines outside code that hold anything."""
        return self._split[0]

    @property
    def code_lines(self) -> tuple[str, ...]:
        """The lines of programs that stand outside blocks of code, and the results of calls in sessions."""
        return self._split[1]

    @property
    def num_paragraphs(self) -> int:
        """The number of runs of lines of prose between blank lines and code."""
        return self._split[2]

    @cached_property
    def prose(self) -> str:
        """The text without code, formulas, addresses and markup."""
        text = "\n".join(self.lines)
        if "`" in text:
            places = [0, *(place for span in code_spans(text) for place in span), len(text)]
            text = " ` ".join(text[start:end] for start, end in batched(places, 2))
        return _UNTRANSLATED.sub(" ", text) if any(sign in text for sign in _UNTRANSLATED_SIGNS) else text

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of the prose; lines end a sentence as final marks do. Lines for a script without marks."""
        if self.code in _UNSEGMENTED:
            return tuple(line.strip() for line in self.prose.split("\n") if any(map(str.isalnum, line)))
        sentences: list[str] = []
        start = 0
        for match in (_GREEK_END if self.code == "el" else _SENTENCE_END).finditer(self.prose):
            end = match.end()
            mark = match[0].strip()
            is_wrapped = self.prose[end : end + 1].islower() and not (mark and mark[0] in _WIDE_ENDS)
            last = self.prose[max(start, match.start() - 10) : match.start() + 1]
            is_short = mark == "." and self._is_abbreviated(last, start=start, end=end)
            # A line that goes on in small letters is wrapped.
            if end < len(self.prose) and (is_wrapped or ("\n" not in match[0] and is_short)):
                continue
            piece = self.prose[start:end]
            start = end
            if any(map(str.isalnum, piece)):
                sentences.append(piece.strip())
        return tuple(sentences)

    def _is_abbreviated(self, last: str, *, start: int, end: int) -> bool:
        """Return whether the full stop after some letters or figures belongs to them."""
        following = self.prose[end : end + 2]
        if _MAYBE_END.search(last) and following[:1].isupper():
            return _OF_TIME.match(self.prose, end) is not None
        if _NO_END.search(last) or (following[:1].isdigit() and _SHORT_WORD.search(last)):
            return True
        if _LETTER.search(last):
            # An initial, or the first of letters with a full stop each; "below threshold t." is an end.
            return last[-2].isupper() or following[1:] == "."
        if figures := _FIGURES.search(last):
            is_item = end - start < 12 and self.prose[start:end].strip() == figures[0]
            # After an ordinal only German writes nouns, and so most words, with capitals.
            is_ordinal = self.code == "de" or (self.code in _ORDINALS and not following[:1].isupper())
            return is_item or (is_ordinal and len(figures[0]) <= 3 and figures[0] != "0." and not _RESULT.search(last))
        return False

    @cached_property
    def sentence_sizes(self) -> tuple[float, ...]:
        """The length of each sentence in Latin letters."""
        weights = LETTER_WEIGHTS[script_codes("".join(self.sentences))]
        # Weights are halves, so that their sums are exact in any order.
        totals = np.concatenate(([0.0], weights.cumsum()))
        ends = np.cumsum([0, *map(len, self.sentences)])
        return tuple(np.diff(totals[ends]).tolist())

    @property
    def is_segmented(self) -> bool:
        """True for a language with marks between sentences."""
        return self.code not in _UNSEGMENTED

    @cached_property
    def scripts(self) -> Counter[str]:
        """The number of letters of each script in the prose."""
        counts = np.bincount(script_codes(self.prose), minlength=len(SCRIPTS))
        return Counter({name: int(counts[code]) for code, name in enumerate(SCRIPTS) if code and counts[code]})

    @cached_property
    def size(self) -> float:
        """The length of the prose in Latin letters: a Han character counts as three."""
        return letter_size(self.prose)

    @cached_property
    def subject(self) -> Subject:
        """The text as the rules of cleaning see it."""
        return Subject(Response(id=self.place, text=self.text), prompt="", language=self.language, task="text")


class PassagePair(NamedTuple):
    """A text of the source and its translation."""

    source: Passage
    target: Passage


def passages(case: Case) -> tuple[Passage, ...]:
    """Return the texts of a case: the whole prompt, then the responses in order."""
    language = case.prompt.language
    prompt = Passage(PROMPT, prompt_text(case), language)
    return (prompt, *(Passage(f"response {each.id}", response_text(each), language) for each in case.responses))


def source_passages(case: Case) -> tuple[Passage, ...]:
    """Return the texts of a source as `passages` does, with what was read of them for another language."""
    return tuple(
        each if len(each.text) > _LONGEST_SOURCE else _kept_source(each.place, each.text, each.language)
        for each in passages(case)
    )


_kept_source = lru_cache(_MOST_SOURCES)(Passage)


def letter_size(text: str) -> float:
    """Return the length of a text in Latin letters: a Han character counts as three, signs as nothing."""
    return float(LETTER_WEIGHTS[script_codes(text)].sum())


def excerpt(text: str) -> str:
    """Return a text on one line, and its beginning where it is long."""
    line = " ".join(text[: 4 * _LONGEST_EXCERPT].split())
    return line if len(line) <= _LONGEST_EXCERPT else f"{line[: _LONGEST_EXCERPT - 1]}\u2026"
