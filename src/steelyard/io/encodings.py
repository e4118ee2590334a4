"""Text as UTF-8, and the likely encoding of a file that has another one."""

import codecs
import re
from functools import cache
from pathlib import Path
from shlex import quote

from steelyard.core.errors import FileError, Place
from steelyard.io.compression import compression_of, data_suffix, open_unpacked
from steelyard.prompts.taxonomy import read_data

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_BYTES = 2**16
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_COMMON_CHINESE = re.compile(rb"(?:[\xa1-\xa3\xb0-\xd7][\xa1-\xfe])+")
_LONGEST_ACCENTS = 2
_LEAST_SHARE = 0.1
_MOST_CHANCE = 8
"""In another encoding some characters, at most this many for each other byte, look like UTF-8."""


def check_utf8(content: bytes, place: Place) -> str:
    """Decode bytes as UTF-8. Raises FileError that names the first byte that is not UTF-8, and its line."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"byte {error.start + 1} is not UTF-8 (0x{content[error.start]:02x})",
            where=place_of(content, error.start, place),
            do=_conversion(content[max(0, error.start - _SAMPLE_BYTES) : error.start + _SAMPLE_BYTES], place),
        ) from error


def place_of(content: bytes, position: int, place: Place) -> Place:
    """Return the place of a byte: a whole file's place gets its line, a line's place stays."""
    return place if place.line is not None else place._replace(line=content.count(b"\n", 0, position) + 1)


def wide_encoding(start: bytes) -> str | None:
    """Return the encoding of text that takes two or four bytes a character, by its first bytes; null for other text."""
    for mark, name in _WIDE_MARKS.items():
        if start.startswith(mark):
            return name
    zeros = [start[offset::2].count(0) for offset in (0, 1)]
    # Without a mark, the zero bytes of ASCII characters (spaces, marks, line ends) all lie on one side. One or two are
    # NUL characters in a text of single bytes.
    if min(zeros) == 0 and max(zeros) > max(2, len(start) // 20):
        return "UTF-16LE" if zeros[1] else "UTF-16BE"
    return None


def conversion_command(path: Path, encoding: str) -> str:
    """Return the shell command that writes a file as UTF-8 beside it."""
    kind = compression_of(path)
    suffix = data_suffix(path)
    target = quote(str(path.parent / f"{path.name.partition(suffix)[0] if suffix else path.name}-utf8{suffix}"))
    if kind is None:
        return f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > {target}"
    return f"{kind.command} {quote(str(path))} | iconv -f {encoding} -t UTF-8 > {target}"


def _conversion(nearby: bytes, place: Place) -> str:
    """Return the remedy for a file that is not UTF-8: by its start, or where that is ASCII, by the bytes nearby."""
    path, sample = Path(place.file), nearby
    if not path.is_file():
        return "write the text as UTF-8"
    with open_unpacked(path) as file:
        start = file.read(_SAMPLE_BYTES)
    if _HIGH_BYTES.search(start):
        sample = start
    broken = _HIGH_BYTES.findall(_UTF8_CHARACTER.sub(b" ", sample))
    if len(_UTF8_CHARACTER.findall(sample)) > _MOST_CHANCE * sum(map(len, broken)):
        command = conversion_command(path, "UTF-8").replace("iconv", "iconv -c")
        return f"write the text again, the rest is UTF-8; without the broken bytes: {command}"
    encoding = likely_encoding(sample)
    return f"convert it, here from {encoding}, and check the texts: {conversion_command(path, encoding)}"


def likely_encoding(sample: bytes) -> str:
    """Return the encoding whose frequent characters have the largest share in the sample, which is not UTF-8.

    Bytes above ASCII come in pairs where a character takes two; they come in long runs where letters beyond ASCII make
    up words, and mostly alone where they are accented Latin letters. LATIN1 reads anything.
    """
    runs = _HIGH_BYTES.findall(sample)
    if all(len(run) % 2 == 0 for run in runs):
        encoding = _most_frequent(sample, "pairs")
        if encoding is not None:
            return encoding
        if all(_COMMON_CHINESE.fullmatch(run) for run in runs):
            return "GB18030"
    in_words = sum(len(run) for run in runs if len(run) > _LONGEST_ACCENTS)
    if 2 * in_words > sum(map(len, runs)):
        return _most_frequent(sample, "pairs", "words") or "LATIN1"
    return _most_frequent(sample, "accents") or "LATIN1"


def _most_frequent(sample: bytes, *parts: str) -> str | None:
    shares = {
        name: _share(sample, name, characters)
        for part in parts
        for name, characters in _frequent_characters()[part].items()
    }
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= _LEAST_SHARE else None


def _share(sample: bytes, encoding: str, characters: frozenset[str]) -> float:
    try:
        # The decoder holds back a character that the end of the sample cuts.
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0
    letters = [character for character in text if not character.isascii()]
    return sum(letter in characters for letter in letters) / max(1, len(letters))


@cache
def _frequent_characters() -> dict[str, dict[str, frozenset[str]]]:
    return {
        part: {name: frozenset(characters) for name, characters in table.items()}
        for part, table in read_data("encodings.toml").items()
    }
