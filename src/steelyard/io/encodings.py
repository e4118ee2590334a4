"""Text as UTF-8, read from other encodings, and the likely encoding of a file that has another one."""

import codecs
import io
import re
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any

from steelyard.core.errors import ConfigError, FileError, Place, choices
from steelyard.core.remedies import Advice, Remedy
from steelyard.io.compression import compression_of, data_suffix, open_unpacked
from steelyard.prompts.taxonomy import read_data

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SAMPLE_BYTES = _CHUNK_BYTES = 2**16
_HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
_UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_WIDE_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""The byte order marks of UTF-16 and UTF-32."""
_COMMON_CHINESE = re.compile(rb"(?:[\xa1-\xa3\xb0-\xd7][\xa1-\xfe])+")
_LEAST_RATIO_OF_ZEROS = 8
_LONGEST_ACCENTS = 2
_LEAST_SHARE = 0.1
_HIGH_CODES = 128
"""The bytes above ASCII, each of them a character in an encoding of single bytes."""
_MOST_CHANCE = 8
"""In another encoding some characters, at most this many for each other byte, look like UTF-8."""


class EncodingError(FileError):
    """A file whose text cannot be decoded. ``encoding``: the likely one of text that was read as UTF-8, else null."""

    def __init__(self, problem: str, *, encoding: str | None = None, **parts: Any) -> None:
        super().__init__(problem, **parts)
        self.encoding = encoding


def check_utf8(content: bytes, place: Place) -> str:
    """Decode bytes as UTF-8. Raises EncodingError that names the first byte that is not UTF-8, and its line."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not UTF-8 (0x{content[error.start]:02x})"
        nearby = content[max(0, error.start - _SAMPLE_BYTES) : error.start + _SAMPLE_BYTES]
        raise _encoding_error(problem, nearby, place_of(content, error.start, place)) from error


def check_encoding(name: str | None, *, where: str) -> None:
    """Raise ConfigError for a name that no encoding of text has; null passes."""
    try:
        b"a".decode("utf-8" if name is None else name)
    except UnicodeDecodeError:
        return  # one byte is no whole character there
    except (LookupError, ValueError) as error:
        frequent = (key.lower() for part in _frequent_characters().values() for key in part)
        known = (*frequent, "gbk", "shift_jis", "utf-16", "latin1")
        problem = f"no encoding of text is {name!r}"
        raise ConfigError(problem, where=where, allowed=choices(name or "", known)) from error


def open_text(path: Path, encoding: str | None = None) -> io.BufferedReader:
    """Open a file for reading its text as bytes in UTF-8, unpacked.

    Null stands for UTF-8, or for the encoding of a byte order mark: UTF-16 or UTF-32. Reading raises FileError with the
    line where the text has another encoding.
    """
    source = open_unpacked(path)
    name = encoding or marked_encoding(source.peek(4))
    return source if name is None else io.BufferedReader(_Transcoded(path, source, name), _CHUNK_BYTES)


def is_plain_text(path: Path) -> bool:
    """Return whether the bytes of a file are its text: it is neither compressed nor in an encoding with a mark."""
    with path.open("rb") as file:
        return compression_of(path) is None and marked_encoding(file.read(4)) is None


class _Transcoded(io.RawIOBase):
    """The text of a file in an encoding, as UTF-8."""

    def __init__(self, path: Path, source: io.BufferedReader, encoding: str) -> None:
        self._path, self._source, self._encoding = path, source, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._ready, self._line, self._is_end = b"", 1, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._ready and not self._is_end:
            content = self._source.read(_CHUNK_BYTES)
            self._is_end = not content
            try:
                self._ready = self._decoder.decode(content, self._is_end).encode()
            except UnicodeError as error:
                raise self._error(error) from error
            self._line += self._ready.count(b"\n")
        part, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)

    def _error(self, error: UnicodeError) -> EncodingError:
        """Return the error for the first bytes that the encoding does not have."""
        content, line, shown = b"", self._line, ""
        if isinstance(error, UnicodeDecodeError):
            content, shown = error.object, f" (0x{error.object[error.start]:02x})"
            line += content[: error.start].decode(self._encoding, "ignore").count("\n")
        likely = _likely_name(content)
        do = Advice(
            "name the encoding of the file", *((", here perhaps: ", Remedy("encoding", likely)) if likely else ())
        )
        return EncodingError(f"this is not {self._encoding}{shown}", where=Place(str(self._path), line), do=do)

    def close(self) -> None:
        self._source.close()
        super().close()


def _likely_name(content: bytes) -> str | None:
    """Return the encoding of bytes that have characters beyond ASCII: UTF-8, or the likely one."""
    if not _HIGH_BYTES.search(content):
        return None
    return likely_encoding(content) if _broken_bytes(content) else "UTF-8"


def _broken_bytes(content: bytes) -> list[bytes]:
    """Return the runs of bytes above ASCII that are not UTF-8."""
    return _HIGH_BYTES.findall(_UTF8_CHARACTER.sub(b" ", content))


def has_broken_utf8(start: bytes) -> bool:
    """Return whether the first bytes of a file are not UTF-8; the last character may be cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return True
    return False


def place_of(content: bytes, position: int, place: Place) -> Place:
    """Return the place of a byte: a whole file's place gets its line, a line's place stays."""
    return place if place.line is not None else place._replace(line=content.count(b"\n", 0, position) + 1)


def marked_encoding(start: bytes) -> str | None:
    """Return the encoding that a byte order mark names; null without one, and for that of UTF-8."""
    return next((name for mark, name in _WIDE_MARKS.items() if start.startswith(mark)), None)


def check_narrow(start: bytes, path: Path) -> None:
    """Raise EncodingError for text of two bytes a character without a byte order mark, by its first bytes."""
    encoding = None if marked_encoding(start) else _wide_encoding(start)
    if encoding is not None:
        do = f"convert it: {conversion_command(path, encoding)}"
        problem = f"this is {encoding}, not text in UTF-8"
        raise EncodingError(problem, encoding=encoding, where=str(path), do=do)


def _wide_encoding(start: bytes) -> str | None:
    zeros = [start[offset::2].count(0) for offset in (0, 1)]
    # Without a mark, the zero bytes of ASCII characters (spaces, marks, line ends) lie on one side, but for characters
    # such as U+4E00. One or two are NUL characters in a text of single bytes.
    if _LEAST_RATIO_OF_ZEROS * min(zeros) <= max(zeros) > max(2, len(start) // 20):
        return "UTF-16LE" if zeros[1] > zeros[0] else "UTF-16BE"
    return None


def conversion_command(path: Path, encoding: str) -> str:
    """Return the shell command that writes a file as UTF-8 beside it."""
    kind = compression_of(path)
    suffix = data_suffix(path)
    target = quote(str(path.parent / f"{path.name.partition(suffix)[0] if suffix else path.name}-utf8{suffix}"))
    if kind is None:
        return f"iconv -f {encoding} -t UTF-8 {quote(str(path))} > {target}"
    return f"{kind.command} {quote(str(path))} | iconv -f {encoding} -t UTF-8 > {target}"


def _encoding_error(problem: str, nearby: bytes, place: Place) -> EncodingError:
    """Return the error for a file that is not UTF-8: by its start, or where that is ASCII, by the bytes nearby."""
    path, sample = Path(place.file), nearby
    if not path.is_file():
        return EncodingError(problem, where=place, do="write the text as UTF-8")
    with open_unpacked(path) as file:
        start = file.read(_SAMPLE_BYTES)
    if _HIGH_BYTES.search(start):
        sample = start
    broken = _broken_bytes(sample)
    if len(_UTF8_CHARACTER.findall(sample)) > _MOST_CHANCE * sum(map(len, broken)):
        command = conversion_command(path, "UTF-8").replace("iconv", "iconv -c")
        do = f"write the text again, the rest is UTF-8; without the broken bytes: {command}"
        return EncodingError(problem, where=place, do=do)
    encoding = likely_encoding(sample)
    do = f"convert it, here from {encoding}, and check the texts: {conversion_command(path, encoding)}"
    return EncodingError(problem, encoding=encoding, where=place, do=do)


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
        name: _share(sample, name, characters, chance=0 if part == "pairs" else len(characters) / _HIGH_CODES)
        for part in parts
        for name, characters in _frequent_characters()[part].items()
    }
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] >= _LEAST_SHARE else None


def _share(sample: bytes, encoding: str, characters: frozenset[str], *, chance: float) -> float:
    """Return the share of frequent characters beyond that of bytes by chance, as in text of another encoding."""
    try:
        # The decoder holds back a character that the end of the sample cuts.
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return 0
    letters = [character for character in text if not character.isascii()]
    return (sum(letter in characters for letter in letters) / max(1, len(letters)) - chance) / (1 - chance)


@cache
def _frequent_characters() -> dict[str, dict[str, frozenset[str]]]:
    return {
        part: {name: frozenset(characters) for name, characters in table.items()}
        for part, table in read_data("encodings.toml").items()
    }
