"""Tell files that are not text in any encoding, and pages of the web, by their first bytes."""

import codecs
import re
import unicodedata
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from steelyard.io.encodings import has_broken_utf8, marked_encoding

START_BYTES = 2**12
_SHEET = "save the sheet as CSV in UTF-8"
DATA_FORMATS = "give the data as JSON lines, CSV or Parquet"
_WEIGHTS = f"{DATA_FORMATS}; a model is named by the folder that holds its weights"
_PICKLE = ("a pickle of Python", f"it is not opened, since it may run programs: {DATA_FORMATS}")
_BINARY_FORMATS = {
    b"PK\x03\x04": ("a zip archive or a spreadsheet", f"unpack it, or {_SHEET}"),
    b"PAR1": ("Parquet", "cases and tables may be Parquet, under a name that ends in .parquet"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": ("a spreadsheet of an old version", _SHEET),
    b"ARROW1\x00\x00": ("Arrow", "write it as Parquet, under a name that ends in .parquet"),
    b"SQLite format 3\x00": ("an SQLite database", "export the table as CSV"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "unpack it"),
    b"Rar!": ("a rar archive", "unpack it"),
    b"\x04\x22\x4d\x18": ("lz4", "unpack it, or pack it with gzip or zstd"),
    b"%PDF-": ("PDF", "save its text as CSV or as JSON lines"),
    b"\x89PNG": ("a picture (PNG)", DATA_FORMATS),
    b"\xff\xd8\xff": ("a picture (JPEG)", DATA_FORMATS),
    b"\x93NUMPY": ("an array of NumPy", DATA_FORMATS),
    b"\x89HDF": ("HDF5", DATA_FORMATS),
    b"GGUF\x03\0": ("weights of a model (GGUF)", f"{_WEIGHTS}, in Hugging Face format"),
    **{bytes((0x80, protocol)): _PICKLE for protocol in range(2, 6)},
}
_TEXT_PICKLE = re.compile(rb"\([dl]p\d+\n|\(V[^\n]*\np\d+\n|c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n(?:p\d+\n)?\(")
"""A list, a dict, a tuple or an object in protocol 0, which is text."""
_WEB_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_PROSE_SUFFIXES = (".txt", ".md", ".html", ".jinja")
"""Endings of files of prompts, guidelines and templates, whose text may be a page of the web."""
_CONTROLS = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
_NOT_TEXT = ("Cc", "Cn", "Co", "Cs")
_MOST_BROKEN = 2
"""A text with a few damaged characters is still a text, and its error names their lines."""
_LEAST_BROKEN_SHARE = 1 / 40
"""Of random bytes, a tenth are control characters, and a tenth of pairs are for private use."""
_TORCH_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt")
_SAFETENSORS = re.compile(rb".{5}\0{3}\{\s*\"", re.DOTALL)
"""The length of the header in 8 bytes, below 2**40, and the JSON object that it is."""
_TAR_MARK = slice(257, 262)


class FileType(NamedTuple):
    """The name of a type of files, the advice on one, and in ``lacks`` the type that was expected."""

    name: str
    do: str
    lacks: str = "text in UTF-8"


def type_of(path: Path, start: bytes) -> FileType | None:
    """Return the type of a file by its first bytes, unpacked; null for one that may be text in UTF-8 or by its mark."""
    is_torch = start.startswith(b"PK\x03\x04") and path.suffix.lower() in _TORCH_SUFFIXES
    if is_torch or _SAFETENSORS.match(start):
        return FileType("weights of PyTorch" if is_torch else "weights of a model (safetensors)", _WEIGHTS)
    for magic, (name, do) in _BINARY_FORMATS.items():
        if start.startswith(magic):
            return FileType(name, do)
    if _TEXT_PICKLE.match(start):
        return FileType(*_PICKLE, lacks="JSON or a table")
    if start[_TAR_MARK] == b"ustar":
        return FileType("a tar archive", f"unpack it: tar xf {quote(str(path))}")
    if _WEB_PAGE.match(start) and path.suffix.lower() not in _PROSE_SUFFIXES:
        do = "download the file itself: the page may ask for a login, or show the file"
        return FileType("a page of the web (HTML)", do, lacks="data")
    return None


def is_binary(start: bytes) -> bool:
    """Return whether the first bytes of a file are not text in any encoding.

    A single NUL or control character in a text is an error of its line.
    """
    if (encoding := marked_encoding(start)) is not None:
        # The decoder holds back a character that the end of the sample cuts.
        text = codecs.getincrementaldecoder(encoding)("replace").decode(start)
        return _is_mostly_broken(sum(_is_no_text(character) for character in text), len(text))
    controls = len(_CONTROLS.findall(start))
    if controls and b"\0" in start:
        return True
    return has_broken_utf8(start) and _is_mostly_broken(controls, len(start))


def _is_no_text(character: str) -> bool:
    return character == "\ufffd" or (unicodedata.category(character) in _NOT_TEXT and not character.isspace())


def _is_mostly_broken(broken: int, characters: int) -> bool:
    return broken > _MOST_BROKEN and broken > _LEAST_BROKEN_SHARE * characters
