"""Numbers that are written as several words, or as one compound: "twenty-three", "einundzwanzig", "quatre-vingt-dix".

`numerals` reads the words of ``data/numerals.toml`` from left to right: a smaller number is added to a greater one, and
hundreds, thousands and millions multiply what stands before them. A word that fits neither way begins another number.
Numbers below 11 are left out, since `language_tables` has their words, and so are vague ones such as "hundred" alone.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import msgspec

from steelyard.core.language_words import SIGNS, any_of, fold
from steelyard.prompts.taxonomy import read_data

_SMALLEST = 11
_HYPHENS = re.compile(r"[-\u2010\u2011\u00a0\u202f]")


class _Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    atoms: str
    joins: str = ""
    ends: str = ""
    fused: bool = False
    reversed: bool = False
    inside: bool = False


class _Atom(NamedTuple):
    value: int
    role: str
    """``x`` where it multiplies the unit before it by ten, ``+`` where it adds ten to it, or empty."""
    room: int
    """The number below which others may be added to it."""


class _Numerals(NamedTuple):
    """The words of a language: the pattern of a run of them, that of one word, and what each one means."""

    run: re.Pattern[str]
    word: re.Pattern[str]
    atoms: dict[str, _Atom]
    beginnings: tuple[tuple[str, _Atom], ...]
    is_reversed: bool

    def atom(self, word: str) -> _Atom | None:
        """Return what a word means; null for one that only joins others."""
        whole = self.atoms.get(word)
        return whole or next((atom for beginning, atom in self.beginnings if word.startswith(beginning)), None)


@cache
def _language(code: str) -> _Numerals | None:
    table = read_data("numerals.toml")
    if code not in table:
        return None
    entry = msgspec.convert(table[code], _Language)
    words = dict[str, _Atom]()
    for part in entry.atoms.split():
        number, _, names = part.partition(":")
        value, _, room = number.lstrip("x+").partition("=")
        role = number[0] if number[0] in "x+" else ""
        atom = _Atom(int(value), role, int(room) if room else _room(int(value)))
        for name in names.split(","):
            words[fold(name.replace("_", " "))] = atom
    word, join = any_of(words), any_of(map(fold, entry.joins.split())) if entry.joins else "(?!)"
    edge = "" if entry.inside else f"(?![{SIGNS}])"
    start = "" if entry.inside else f"(?<![{SIGNS}])"
    between = f"(?: ?{join} ?|,? )?" if entry.fused else f",? (?:{join} )?"
    piece = word if entry.fused else f"{word}{edge}"
    end = f"(?:{any_of(map(fold, entry.ends.split()))})?" if entry.ends else ""
    first = f"(?=[{re.escape(''.join(sorted({name[:1] for name in words})))}])"
    return _Numerals(
        run=re.compile(f"{start}{first}{piece}(?:{between}{piece}){{0,15}}+{end}{edge}"),
        word=re.compile(f"{word}|{join}"),
        atoms={name: atom for name, atom in words.items() if not name.endswith("*")},
        beginnings=tuple((name[:-1], atom) for name, atom in words.items() if name.endswith("*")),
        is_reversed=entry.reversed,
    )


def _room(value: int) -> int:
    """Return the number below which others may follow: units after tens, all below a hundred after hundreds."""
    if value < 20:
        return 1
    return next(power for power in (10**9, 10**6, 1000, 100, 10) if value >= power)


def numerals(folded: str, code: str) -> Iterator[int]:
    """Yield the compound numbers of a folded text in order; none for a language without words."""
    language = _language(code)
    if language is None:
        return
    text = _HYPHENS.sub(" ", folded)
    for run in language.run.finditer(text):
        number = _Number()
        is_joined, end = False, 0
        for match in language.word.finditer(run[0]):
            atom = language.atom(match[0])
            if atom is None:
                is_joined = True
                continue
            # A comma follows thousands, and otherwise ends a number.
            is_listed = "," in run[0][end : match.start()] and number.has_rest
            end = match.end()
            if is_listed or not number.add(atom, is_after_unit=is_joined and language.is_reversed):
                yield from number.result()
                number = _Number()
                number.add(atom, is_after_unit=False)
            is_joined = False
        yield from number.result()


class _Number:
    """A number that is read word by word."""

    def __init__(self) -> None:
        self._total = self._group = 0
        self._room, self._scale = 10**15, 10**15
        self._is_vague = True

    @property
    def has_rest(self) -> bool:
        """True for a number of more than whole thousands."""
        return self._group > 0

    def add(self, atom: _Atom, *, is_after_unit: bool) -> bool:
        """Add a word; false for one that begins another number."""
        value, unit = atom.value, self._group % 10
        has_unit = self._room == 1 and unit > 0 and self._group % 100 < 10
        if atom.role and has_unit:
            self._group += 9 * unit if atom.role == "x" else 10
            self._room = 10 if atom.role == "x" else 1
        elif value >= 1000 and value < self._scale:
            self._total += (self._group or 1) * value
            self._group, self._scale, self._room = 0, value, value
        elif value == 100 and 0 <= self._group < 100 and self._room > 0:
            self._group = (self._group or 1) * 100
            self._room = 100
        elif value < self._room and value < 1000:
            self._group += value
            self._room = 10 if atom.role == "x" else atom.room
        elif is_after_unit and has_unit and value % 10 == 0 and 20 <= value < 100:
            self._group += value
            self._room = 1
        else:
            return False
        self._is_vague = self._is_vague and (value == 100 or value >= 1000)
        return True

    def result(self) -> Iterator[int]:
        """Yield the number, unless it is small or vague."""
        if self._total + self._group >= _SMALLEST and not self._is_vague:
            yield self._total + self._group
