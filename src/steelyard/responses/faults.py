"""Figures of faults in one response: garbled, repeated, copied from the prompt, left-over marks of templates.

Each function returns a number that grows with the fault, and 0 (or null) where there is none. All take time that is
linear in the length of the text: a hostile answer costs no more than its size.
"""

import re
import zlib
from functools import cache
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from steelyard.core.languages import language_part
from steelyard.responses.subject import Subject
from steelyard.responses.unfinished import LIST_ITEM, size_of

Hashes = NDArray[np.uint64]

# --- Garbled ---------------------------------------------------------------------------------------------------------

_CP1252 = "€‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ‘’“”•–—˜™š›œžŸ\u0080-\u00bf"
_MOJIBAKE = re.compile(
    # UTF-8 read as Windows-1252, then as GBK, and memory that was never written.
    rf"[à-ï][{_CP1252}]{{2}}|[ð-ô][{_CP1252}]{{3}}|(?:[ÂÃÄÅÎÏÐÑØÙÚÛ×][{_CP1252}]\s?){{2}}"
    r"|[ÃÄÅÎÏÐÑØÙ][\u0080-\u00a9\u00ac-\u00ba\u00bc-\u00bf€‚ƒ†‡ˆ‰Š‹ŒŽ•˜™š›œžŸ]"
    r"|锟斤拷|烫烫烫|屯屯屯|(?:[锛銆鐨鏄鍦涓浠ヤ鍙彲][^\s]{0,2}){3}"
)
_MISREAD_START = re.compile("[à-ôÂÃÄÅÎÏÐÑØÙÚÛ×锟烫屯锛銆鐨鏄鍦涓浠ヤ鍙彲]")
"""The characters with which misread text begins: most texts have none, which costs one look."""
# Every alternative of a pattern that is tried on each text begins with a literal: a search then skips to the next one.
_LEFTOVER_CODES = re.compile(r"\\u[0-9a-fA-F]{4}|&#\d{2,6};|&(?:nbsp|quot|amp|lt|gt);|<0x[0-9A-F]{2}>|Ġ\w|▁\w|Ċ")


def broken_characters(subject: Subject) -> float:
    """Count broken characters a thousand characters.

    Replacement characters, controls, private use, unassigned code points, half surrogate pairs, UTF-8 read in another
    encoding, and in prose characters left over as escapes or pieces of tokens.
    """
    text = subject.text
    if not text:
        return 0.0
    number = 0 if text.isascii() and text.isprintable() else int(_is_broken()[subject.points].sum())
    if not text.isascii() and _MISREAD_START.search(text):
        number += 3 * sum(1 for _ in _MOJIBAKE.finditer(text))
    leftovers = sum(1 for _ in _LEFTOVER_CODES.finditer(subject.prose))
    return 1000 * (number + (leftovers if leftovers > 1 else 0)) / len(text)


@cache
def _is_broken() -> NDArray[np.bool_]:
    """Return whether each code point is broken wherever it stands; made once in about 0.1 s."""
    table = np.zeros(0x110000, bool)
    for point in range(0x1F000):
        kind = category(chr(point))
        table[point] = kind in ("Co", "Cs") or (kind == "Cc" and point not in (9, 10, 13))
        # Letters newer than Python's tables are in blocks of their own; unassigned holes between letters are errors.
        table[point] |= kind == "Cn" and point < 0x3100
    table[0xFFFD] = True
    table[0xFDD0:0xFDF0] = True
    table[0xF0000:] = True
    table[0xFFFE:0x10000] = True
    return table


_SPACED_MARKS = re.compile(r"[,.;:!?)\]،؛؟।]")
_MISPLACED = r"[,;،؛]\s*[,;.!?،؛؟]|^[ \t]*[,;!?)،؛؟](?!\w)|[(\[]\s*[,.;:!?)\]،؛؟]|(?<=[^\W\d_])[ ]+{marks}(?=\s|$)"
_SPACED_MISPLACED = re.compile(_MISPLACED.format(marks="[,.;!?)،؛؟]"), re.MULTILINE)
_FRENCH_MISPLACED = re.compile(_MISPLACED.format(marks="[,.)]"), re.MULTILINE)
"""In French a space precedes high marks."""
_WIDE_MARKS = re.compile(r"[，。、；：！？）（“”「」]")
_WIDE_MISPLACED = re.compile(
    r"[，、；：][，、；：。！？）]|[。！？][，、；：]|^[ \t]*[，。、；：！？）】」』”]"
    r"|[（【「『“][，。、；：！？）】」』”]|(?:^|[，。；：！？])(?:[的们吗呢吧](?![确士话])|了(?![解不结却无然]))|(?:的的|了了|是是|和和|在在|有有)",
    re.MULTILINE,
)
_FEWEST_MARKS = 4


def misplaced_marks(subject: Subject) -> float:
    """Return the share of punctuation marks that are where no sentence has one, as in shuffled text.

    Marks before a comma or after an opening bracket, at the start of a line, after a space, and Chinese
    particles that open a clause. Texts with fewer than four marks have 0.
    """
    text = subject.prose
    wide = len(_WIDE_MARKS.findall(text))
    if wide >= _FEWEST_MARKS:
        return min(1.0, sum(1 for _ in _WIDE_MISPLACED.finditer(text)) / wide)
    marks = len(_SPACED_MARKS.findall(text))
    if marks < _FEWEST_MARKS:
        return 0.0
    misplaced = _FRENCH_MISPLACED if language_part(subject.language) == "fr" else _SPACED_MISPLACED
    return min(1.0, sum(1 for _ in misplaced.finditer(text)) / marks)


# --- Repeated and copied ---------------------------------------------------------------------------------------------

_WINDOW, _DENSE_WINDOW = 30, 10
_FEWEST_LINES, _SHORTEST_LINE = 4, 8
_SHORTEST_COMPRESSED = 600


def repeated_windows(subject: Subject) -> float:
    """Return the share of runs of 30 characters (10 of Han, kana or Hangul) that occurred before in the text."""
    size = _DENSE_WINDOW if subject.is_dense else _WINDOW
    return repeated_share(subject, size) if len(subject.points) >= 3 * size else _repeated_short(subject.text)


def repeated_share(subject: Subject, size: int) -> float:
    """Return the share of runs of ``size`` characters that occurred before in the text; 0 for less than two runs."""
    if len(subject.points) < 2 * size:
        return 0.0
    hashes = np.sort(window_hashes(subject.points, size))
    return float(1 - (1 + np.count_nonzero(hashes[1:] != hashes[:-1])) / len(hashes))


def _repeated_short(text: str) -> float:
    """Return the share of a short text that is one unit of up to a third of it again and again."""
    match = re.search(r"(\S.{0,9}?)\1{4,}", text, re.DOTALL)
    return len(match[0]) / len(text) if match and not re.fullmatch(r"[\W\d_]+", match[1]) else 0.0


def repeated_lines(subject: Subject) -> float:
    """Return the share of lines outside code that an earlier line equals, but for its number in a list.

    Lines under eight characters do not count.
    """
    lines = [LIST_ITEM.sub("", line).strip() for line in subject.without_code.split("\n")]
    lines = [line for line in lines if len(line) >= _SHORTEST_LINE and not line.startswith("|")]
    return 1 - len(set(lines)) / len(lines) if len(lines) >= _FEWEST_LINES else 0.0


def compressibility(subject: Subject) -> float:
    """Return the share of the bytes that compression saves, for texts of 600 bytes and more."""
    encoded = subject.text.encode("utf-8", "surrogatepass")
    return 1 - len(zlib.compress(encoded, 1)) / len(encoded) if len(encoded) >= _SHORTEST_COMPRESSED else 0.0


def window_hashes(points: NDArray[np.uint32], size: int) -> Hashes:
    """Return a 64-bit hash of every run of ``size`` code points, shape (character - size + 1,)."""
    values = points.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    values ^= values >> np.uint64(29)
    # A polynomial over the characters of the window, modulo 2^64. The window is doubled, and extended by one character
    # where the next binary digit of the size is 1: 30 characters take eight passes instead of thirty.
    hashes, width = values, 1
    for digit in f"{size:b}"[1:]:
        hashes = hashes[:-width] * _power(width) + hashes[width:]
        width *= 2
        if digit == "1":
            hashes = hashes[:-1] * _power(1) + values[width : width + len(hashes) - 1]
            width += 1
    return hashes


def _power(exponent: int) -> np.uint64:
    return np.uint64(pow(0xBF58476D1CE4E5B9, exponent, 2**64))


_FEWEST_ECHOED = 20
_ECHO_WINDOW, _DENSE_ECHO_WINDOW = 16, 6


def echoed_share(subject: Subject) -> float:
    """Return the share of the answer that is copied from the prompt, in runs of 16 characters (6 where dense).

    1 for an answer that begins with the whole prompt. Answers and prompts under 20 letters have 0.
    """
    prompt, text = subject.prompt.strip(), subject.text.strip()
    size = _DENSE_ECHO_WINDOW if subject.is_dense else _ECHO_WINDOW
    if subject.size < _FEWEST_ECHOED or len(prompt) <= size or len(text) <= size:
        return 0.0
    if size_of(prompt) >= _FEWEST_ECHOED and text.startswith(prompt):
        return 1.0
    points = np.frombuffer(prompt.encode("utf-32-le", "surrogatepass"), np.uint32)
    copied, hashes = np.sort(window_hashes(points, size)), window_hashes(subject.points, size)
    nearest = np.minimum(np.searchsorted(copied, hashes), len(copied) - 1)
    return float(np.count_nonzero(copied[nearest] == hashes) / len(hashes))


_CODE_IN_LINE = re.compile(r"`[^`\n]+`")
_LEFTOVERS = re.compile(
    r"<\|(?:im_start|im_end|endoftext|end|eot_id|begin_of_text|start_header_id|end_header_id|user|assistant|system"
    r"|end_of_turn|eom_id|sep|pad|observation)\|>|<｜[^｜\n]{1,40}｜>|</?s>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>"
    r"|</?(?:think|thinking|answer|reasoning)>|\[(?:gMASK|CLS|SEP|PAD|UNK|MASK|BOS|EOS)\]"
    r"|<(?:unk|pad|bos|eos|eoa|eoh|eop|sop)>|<reserved_\d+>"
    r"|^[ \t]*#{2,3} (?:Response|Instruction|Input|Human|Assistant)s?:"
    r"|^[ \t]*(?:(?:Human|User|USER|ASSISTANT|Assistant|Question)[ \t]?[:：]|(?:用户|人类|助手|问)[:：])"
    r"|\{\{[^{}\n]{1,40}\}\}",
    re.MULTILINE,
)


def template_leftovers(subject: Subject) -> float:
    """Count marks of chat templates, of turns and of reasoning; code does not count."""
    text = _CODE_IN_LINE.sub(" ", subject.without_code) if "`" in subject.text else subject.text
    return float(sum(1 for _ in _LEFTOVERS.finditer(text)))
