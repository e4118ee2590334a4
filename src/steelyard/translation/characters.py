"""The characters of a translation: those that are not seen, broken ones, and letters that are all capitals.

Translators write signs of no width and of direction where the source has none. A person does not see them, and a
tokenizer does: `without_unseen` takes them out before a translation is put together, so that pieces keep theirs. Where
a script needs such signs they stay: Persian and Indic scripts join and part letters by them, Thai and Khmer mark words,
Arabic and Hebrew order their lines.
"""

import re
from collections.abc import Iterator

from steelyard.core.languages import script_code, writing_direction
from steelyard.core.names import mark_unseen
from steelyard.responses.faults import broken_characters
from steelyard.translation.damage_kinds import DamageFinding, finding
from steelyard.translation.passages import Passage, PassagePair

_JOINERS, _BREAK, _DIRECTIONS = "\u200c\u200d", "\u200b", "\u200e\u200f\u061c\u202a\u202b\u202c\u2066\u2067\u2068\u2069"
_UNSEEN = f"{_JOINERS}{_BREAK}{_DIRECTIONS}\u202d\u202e\u00ad\u034f\u180e\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"
"""Also signs that turn the order of letters over, soft hyphens, and marks of a file's beginning."""
_UNSEEN_SIGN = re.compile(f"[{_UNSEEN}]")
_JOINING = frozenset(
    ("Arab", "Syrc", "Mong", "Deva", "Beng", "Gujr", "Guru", "Knda", "Mlym", "Orya", "Sinh", "Taml", "Telu")
)
_WITHOUT_SPACES = frozenset(("Thai", "Khmr", "Laoo", "Mymr", "Tibt"))
_OPENED = {"\u202a": "\u202c", "\u202b": "\u202c", "\u2066": "\u2069", "\u2067": "\u2069", "\u2068": "\u2069"}
_CLOSED = frozenset(_OPENED.values())
_BLANK = re.compile(r"[ \u00a0]")
_MOST_CAPITALS, _SOME, _FEWEST, _BESIDE = 0.9, 0.5, 20, 25


def without_unseen(translated: str, source: str, language: str | None) -> str:
    """Return a translation without the unseen signs that neither its source has nor its language needs."""
    if translated.isascii() or _UNSEEN_SIGN.search(translated) is None:
        return translated
    needed = {*_needed(translated, language), *source}
    is_spaced = language is not None and script_code(language) not in ("Hans", "Hant", "Jpan")
    if is_spaced and _BREAK not in needed and translated.count(_BREAK) > translated.count(" "):
        translated = translated.replace(_BREAK, " ")  # they stand for the blanks
    return _UNSEEN_SIGN.sub(lambda match: match[0] if match[0] in needed else "", translated)


def _needed(text: str, language: str | None) -> str:
    """Return the unseen signs that a text of a language may have."""
    script = script_code(language) if language else None
    joiners = _JOINERS if script in _JOINING else ""
    breaks = _BREAK if script in _WITHOUT_SPACES else ""
    return joiners + breaks + (_DIRECTIONS if writing_direction(language) == "rtl" and _is_closed(text) else "")


def _is_closed(text: str) -> bool:
    """Return whether each sign that begins a direction has its end in the same line."""
    for line in text.split("\n"):
        open_signs: list[str] = []
        for sign in line:
            if sign in _OPENED:
                open_signs.append(_OPENED[sign])
            elif sign in _CLOSED and (not open_signs or open_signs.pop() != sign):
                return False
        if open_signs:
            return False
    return True


def check_characters(pair: PassagePair) -> Iterator[DamageFinding]:
    """Find broken characters, unseen ones without a use, capitals alone, and blanks that are all fixed."""
    source, target = pair
    if broken_characters(target.subject) > 0 and not source.once(_broken):
        yield finding("characters", pair, "", mark_unseen(" ".join(target.text.split())))
    elif (seen := without_unseen(target.text, source.text, target.language)) != target.text:
        place = next((place for place, (a, b) in enumerate(zip(target.text, seen, strict=False)) if a != b), len(seen))
        context = " ".join(target.text[max(0, place - _BESIDE) : place + _BESIDE].split())
        yield finding("characters", pair, "", mark_unseen(context))
    elif target.size < _FEWEST:
        return
    elif _share_of_capitals(target) > _MOST_CAPITALS and source.once(_share_of_capitals) < _SOME:
        yield finding("characters", pair, source.text, target.text)
    elif _share_of_fixed(target) > _SOME and source.once(_share_of_fixed) < _SOME:
        yield finding("characters", pair, "", f"U+00A0: {target.text}")


def _broken(passage: Passage) -> float:
    return broken_characters(passage.subject)


def _share_of_capitals(passage: Passage) -> float:
    """Return the share of capitals among all letters."""
    return sum(map(str.isupper, passage.prose)) / max(1, sum(map(str.isalpha, passage.prose)))


def _share_of_fixed(passage: Passage) -> float:
    """Return the share of blanks at which no line may break."""
    blanks = _BLANK.findall(passage.prose)
    return blanks.count("\u00a0") / max(1, len(blanks))
