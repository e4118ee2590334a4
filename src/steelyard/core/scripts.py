"""Scripts of a text: how many of its letters are Latin, Han, Cyrillic and so on, by one table over all code points.

Scripts have their Unicode names. Letters and the vowel signs and marks inside a script count; digits, punctuation,
symbols, emoji and marks of no script of their own do not, so that text without letters has no script. The table follows
Unicode blocks, and each code point's category decides whether it is a letter. Hiragana and Katakana include the
prolonged sound mark; styled Latin letters of mathematics have no script, since they occur in texts of any language.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

ScriptCodes = NDArray[np.uint8]

OTHER = "Other"
"""Letters of scripts that are not in the table."""

_BLOCKS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "Latin": (
        (0x0041, 0x02AF), (0x1D00, 0x1D25), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA722, 0xA7FF), (0xAB30, 0xAB64),
        (0xFB00, 0xFB06), (0xFF21, 0xFF5A),
    ),
    "Greek": ((0x0370, 0x03E1), (0x03F0, 0x03FF), (0x1F00, 0x1FFF)),
    "Cyrillic": ((0x0400, 0x052F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "Armenian": ((0x0530, 0x058F), (0xFB13, 0xFB17)),
    "Hebrew": ((0x0590, 0x05FF), (0xFB1D, 0xFB4F)),
    "Arabic": ((0x0600, 0x06FF), (0x0750, 0x077F), (0x0870, 0x08FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC)),
    "Syriac": ((0x0700, 0x074F), (0x0860, 0x086F)),
    "Thaana": ((0x0780, 0x07BF),),
    "Devanagari": ((0x0900, 0x097F), (0xA8E0, 0xA8FF)),
    "Bengali": ((0x0980, 0x09FF),),
    "Gurmukhi": ((0x0A00, 0x0A7F),),
    "Gujarati": ((0x0A80, 0x0AFF),),
    "Oriya": ((0x0B00, 0x0B7F),),
    "Tamil": ((0x0B80, 0x0BFF),),
    "Telugu": ((0x0C00, 0x0C7F),),
    "Kannada": ((0x0C80, 0x0CFF),),
    "Malayalam": ((0x0D00, 0x0D7F),),
    "Sinhala": ((0x0D80, 0x0DFF),),
    "Thai": ((0x0E00, 0x0E7F),),
    "Lao": ((0x0E80, 0x0EFF),),
    "Tibetan": ((0x0F00, 0x0FFF),),
    "Myanmar": ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    "Georgian": ((0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F)),
    "Ethiopic": ((0x1200, 0x139F), (0x2D80, 0x2DDF), (0xAB00, 0xAB2F)),
    "Cherokee": ((0x13A0, 0x13FF), (0xAB70, 0xABBF)),
    "Khmer": ((0x1780, 0x17FF),),
    "Mongolian": ((0x1800, 0x18AF),),
    "Hangul": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF), (0xFFA0, 0xFFDC)),
    "Hiragana": ((0x3040, 0x3098), (0x309B, 0x309F)),
    "Katakana": ((0x30A0, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),
    "Bopomofo": ((0x3100, 0x312F), (0x31A0, 0x31BF)),
    "Han": (
        (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD),
    ),
}  # fmt: skip
# Letters by category that belong to no script: modifiers, letter-like symbols, styled letters of mathematics.
_COMMON = (
    (0x02B0, 0x036F), (0x1D26, 0x1DFF), (0x2070, 0x214F), (0x20D0, 0x20FF), (0x3000, 0x3004), (0x3031, 0x303F),
    (0x3099, 0x309A), (0xFE00, 0xFE2F), (0x1D400, 0x1D7FF), (0xE0000, 0x10FFFF),
)  # fmt: skip
_ALWAYS_LETTERS = 0x20000
"""From here on are only Han characters and what is common: newer ones than Python's own tables are counted too."""
_NUM_CODE_POINTS = 0x110000

SCRIPTS: tuple[str, ...] = ("", *_BLOCKS, OTHER)
"""The name of each code of `script_codes`; the first, empty, is that of characters without a script."""

WRITING_SYSTEMS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "Japanese": frozenset({"Han", "Hiragana", "Katakana"}),
        "Hangul": frozenset({"Hangul", "Han"}),
        "Han": frozenset({"Han", "Bopomofo"}),
    }
)
"""Scripts of a language's writing where it is more than one, by the name in the table of languages."""


def script_codes(text: str) -> ScriptCodes:
    """Return the script of each code point as an index into `SCRIPTS`, shape (code point,); 0 for no letter."""
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    return _table()[points]


def count_scripts(text: str) -> dict[str, int]:
    """Count the letters of each script that the text has, most frequent first."""
    counts = np.bincount(script_codes(text), minlength=len(SCRIPTS))
    present = [(int(counts[code]), name) for code, name in enumerate(SCRIPTS) if code and counts[code]]
    return {name: number for number, name in sorted(present, key=lambda item: (-item[0], item[1]))}


def scripts_of(writing_system: str) -> frozenset[str]:
    """Return the scripts of a writing system: several for Japanese, Korean (Hangul) and Chinese (Han)."""
    return WRITING_SYSTEMS.get(writing_system, frozenset({writing_system}))


@cache
def _table() -> ScriptCodes:
    """Return the code of every code point, made once in about 30 ms: 1.1 MB."""
    table = np.zeros(_NUM_CODE_POINTS, np.uint8)
    is_letter = np.fromiter((category(chr(point))[0] in "LM" for point in range(_ALWAYS_LETTERS)), bool)
    table[:_ALWAYS_LETTERS][is_letter] = SCRIPTS.index(OTHER)
    for first, last in _COMMON:
        table[first : last + 1] = 0
    for code, blocks in enumerate(_BLOCKS.values(), start=1):
        for first, last in blocks:
            known = is_letter[first : last + 1] if last < _ALWAYS_LETTERS else np.ones(last + 1 - first, bool)
            table[first : last + 1][known] = code
    return table
