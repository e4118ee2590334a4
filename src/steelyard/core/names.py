"""Names that people give to accounts, projects and batches: what can be one, and which two look the same.

A name stands within sentences and beside other names. It has no character that is not seen or that turns the direction
of what follows; joiners, which many scripts need within words, count as letters do.
"""

import re
import unicodedata
from collections.abc import Iterable

# Controls of direction, spaces without width, fillers and other characters that have no shape (Unicode 16,
# Default_Ignorable_Code_Point without joiners and variation selectors; interlinear annotation; the blank of Braille).
UNSEEN = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff"
    r"\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_UNSEEN_CHARACTER = re.compile(f"[{UNSEEN}]")
_UNSEEN_OR_CONTROL = re.compile(rf"[{UNSEEN}\x00-\x1f\x7f-\x9f\u2028\u2029]")
_JOINER = "[\u200c\u200d]"
# A joiner joins two letters or signs: at an end, beside a space or another joiner it is not seen.
_LOOSE_JOINER = re.compile(rf"(?:^|[\s\u200c\u200d]){_JOINER}|{_JOINER}(?:$|\s)")
NAME_RULE = "1 to 200 characters on one line, none of them unseen or turning the direction of writing"
"""Allowed names, for errors."""
_REFUSED = ("Cc", "Cs", "Zl", "Zp")


def is_name(text: str, *, most: int = 200) -> bool:
    """Tell whether a text can be a name: seen as a whole, on one line, of ``most`` characters, spaces around it apart.

    A mark that combines with the letter before it cannot be the first character.
    """
    name = text.strip()
    return (
        0 < len(name) <= most
        and not any(unicodedata.category(character) in _REFUSED for character in name)
        and not unicodedata.category(name[0]).startswith("M")
        and not _UNSEEN_CHARACTER.search(name)
        and not _LOOSE_JOINER.search(name)
    )


def normalize_name(text: str) -> str:
    """Return a name as it is stored: without spaces around it, each letter with its marks in one way (Unicode NFC)."""
    return unicodedata.normalize("NFC", text.strip())


def name_key(name: str) -> str:
    """Return a key that names which look the same have in common: case, width, joiners and runs of spaces aside.

    Letters of different scripts that look alike are different.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return " ".join(re.sub(_JOINER, "", folded).split())


def similar_name(name: str, others: Iterable[str]) -> str | None:
    """Return the first of other names that looks the same; null where there is none."""
    key = name_key(name)
    return next((other for other in others if name_key(other) == key), None)


def escape_unseen(text: str) -> str:
    """Return a text of JSON with the characters that are not seen, or turn directions, as escapes of JSON."""
    return _UNSEEN_CHARACTER.sub(_escaped, text)


def mark_unseen(text: str) -> str:
    """Return a text with the number of each character that is not seen, or turns directions, in its place: ⟨U+202E⟩."""
    return _UNSEEN_OR_CONTROL.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", text)


def _escaped(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
