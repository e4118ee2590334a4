"""Decode JSON text that must be whole: unique keys, bounded memory, and the exact defect where it is not JSON.

A list in a cell of a table is JSON, or printed by Python or NumPy (`decode_list`).
"""

import ast
import io
import json
import re
import tokenize
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import msgspec

from steelyard.core.errors import Place, RecordError, repeated
from steelyard.io.encodings import check_utf8, place_of
from steelyard.io.lines import bounded_memory

_LONG_BYTES = 2**20
_SPACED_KEY = re.compile(rb'"[ \t\r\n]+:')
_POSITION = re.compile(r"\(byte (\d+)\)")
_HALF = re.compile(
    # A backslash that is escaped, and a whole pair, are passed over; what is left has no partner.
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_HALF_OF_PAIR = re.compile(rb"(\\(u([dD][0-9a-fA-F]{0,3})?)?)?\s*")
_NEARBY_BYTES = 64
_ADJACENT = re.compile(r"['\"\]}]\s+['\"\[{]")
"""Two values with blanks alone between them: NumPy prints no commas, and Python would join two texts."""
_VALUES = (tokenize.STRING, tokenize.NUMBER, tokenize.NAME)


def decode_list(text: str) -> list[Any] | None:
    """Return the list that a text holds as JSON, or as Python and NumPy print it; null for any other text."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = _printed_list(text)
    return value if isinstance(value, list) else None


def _printed_list(text: str) -> Any:
    try:
        try:
            value = ast.literal_eval(_with_commas(text) if _ADJACENT.search(text) else text)
        except SyntaxError:
            value = ast.literal_eval(_with_commas(text))
        # A list that NumPy shortened holds an ellipsis, which is no value of JSON.
        return msgspec.json.decode(msgspec.json.encode(value))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError, tokenize.TokenError):
        return None


def _with_commas(text: str) -> str:
    words: list[str] = []
    is_after_value = False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if is_after_value and (token.type in _VALUES or token.string in ("[", "{", "-")):
            words.append(",")
        if token.string.strip():
            words.append(token.string)
            is_after_value = token.type in _VALUES or token.string in ("]", "}")
    return " ".join(words)


class _Defect(NamedTuple):
    """The fault in a text, the byte where it is, and what is allowed there."""

    problem: str
    position: int = 0
    allowed: str | None = None
    do: str | None = None


_NO_NUMBER = "write null for a missing number"
_DUMPS = "write it with json.dumps"
_WORDS = {
    b"NaN": _Defect("NaN is no number of JSON", do=_NO_NUMBER),
    b"nan": _Defect("nan is no number of JSON", do=_NO_NUMBER),
    b"Infinity": _Defect("Infinity is no number of JSON", do=_NO_NUMBER),
    b"inf": _Defect("inf is no number of JSON", do=_NO_NUMBER),
    b"None": _Defect("None is Python's word for null", do=_DUMPS),
    b"True": _Defect("True is Python's word for true", do=_DUMPS),
    b"False": _Defect("False is Python's word for false", do=_DUMPS),
    b"undefined": _Defect("undefined is no value of JSON", do="write null"),
    b"'": _Defect("single quotation marks, as Python prints them", allowed='{"name": "text"}', do=_DUMPS),
    b"\0": _Defect("a NUL byte", do="write the file again as plain UTF-8"),
    b"//": _Defect("a comment", do="remove the comment"),
}


def decode_json(content: bytes, place: Place, kind: Any = Any) -> Any:
    """Decode a line, or a whole file, of JSON. Its place without a line is that of a whole file.

    Raises RecordError with the defect and its line, and `msgspec.ValidationError` for a value of another type.
    """
    try:
        with bounded_decoding(len(content), place):
            value = msgspec.json.decode(content, type=kind)
            check_keys(content, value if kind is Any else msgspec.json.decode(content), place)
    except msgspec.ValidationError as error:
        if "out of range" in str(error):
            raise RecordError("a number out of range", where=place, allowed="numbers below 1.8e308") from error
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise json_error(content, place, error) from error
    return value


def json_error(content: bytes, place: Place, error: Exception) -> RecordError:
    """Return the error for text that is not JSON, by its decoder's error. Raises FileError if it is not UTF-8."""
    if isinstance(error, RecursionError):
        return RecordError("lists within lists, too deep to be read", where=place)
    check_utf8(content, place)
    is_line = place.line is not None
    allowed = "one JSON object a line" if is_line else "JSON"
    defect = next(_defects(content, str(error)), None)
    if defect is None:
        end = place_of(content, len(content.rstrip()), place)
        problem = f"the {'line' if is_line else 'file'} is cut off"
        do = "write it again as one line" if is_line else "copy or download the file again"
        return RecordError(problem, where=end, allowed=allowed, do=do)
    where = place_of(content, defect.position, place)
    problem = f"the {'line' if is_line else 'file'} is not JSON: {defect.problem}"
    return RecordError(problem, where=where, allowed=defect.allowed or allowed, do=defect.do)


def _defects(content: bytes, message: str) -> Iterator[_Defect]:
    """Yield the defects that explain the decoder's message, the likeliest first; none for text that ends early."""
    place_text = _POSITION.search(message)
    position = len(content) if place_text is None else int(place_text[1])
    if place_text is None or "surrogate" in message:
        halves = [half for half in _HALF.finditer(content) if half[1] and half.end() <= position]
        half = next(iter(halves if place_text is None else halves[::-1]), None)
        if half is not None and not _HALF_OF_PAIR.fullmatch(content, half.end()):
            problem = f"the escape {half[1].decode()} is half of a character (a surrogate without its pair)"
            yield _Defect(problem, half.start(1), do="write the whole character, or remove the escape")
    if place_text is None:
        return
    rest = content[position : position + _NEARBY_BYTES]
    yield from (defect._replace(position=position) for start, defect in _WORDS.items() if rest.startswith(start))
    if "trailing comma" in message:
        yield _Defect("a comma before the closing bracket", position, do="remove the comma")
    if "trailing characters" in message:
        if content[position - 1 :].strip() == b",":
            yield _Defect("a comma after the object", position, do="remove the comma at the end of each line")
        is_further = content[position - 1 :].lstrip(b", \t\r\n")[:1] in (b"{", b"[")
        problem = "a second object after the first" if is_further else "text after the end of the object"
        yield _Defect(problem, position, do="write one object a line, with a line feed after each")
    if rest[:1] and rest[0] < ord(" "):
        problem = f"a control character ({rest[:1]!r}) inside a text"
        yield _Defect(problem, position, allowed=r"control characters as escapes, such as \t and \n")
    reason = message.removeprefix("JSON is malformed: ").partition(" (byte")[0]
    yield _Defect(f"{reason}, byte {position + 1}", position)


def check_keys(line: bytes, value: Any, place: Place) -> None:
    """Raise RecordError where an object in the line repeats a key: a decoder would silently keep one of the two.

    ``value`` is the decoded line. The line is parsed again only where counting keys cannot prove that none was lost.
    """
    if not _has_all_keys(line, value):
        json.loads(line, object_pairs_hook=partial(_check_object, place), parse_int=len, parse_float=len)


def bounded_decoding(num_bytes: int, place: Place | str) -> AbstractContextManager[None]:
    """Limit the memory for decoding a long JSON text: a list of empty lists takes 30 times its bytes.

    The context raises FileError where decoding takes more.
    """
    return bounded_memory(place, limit=2**30 + 8 * num_bytes) if num_bytes > _LONG_BYTES else nullcontext()


def _has_all_keys(line: bytes, value: Any) -> bool:
    """Return whether the line has as many keys as the value decoded from it. False where counting cannot tell.

    A key ends in ``":``. Inside a string these two bytes follow a backslash, and occur equally often in the line and in
    the encoded value, unless the line escapes them by number. A repeated key is missing in the encoded value.
    """
    if b"\\u00" in line or _SPACED_KEY.search(line):
        return False
    return line.count(b'":') == msgspec.json.encode(value).count(b'":')


def _check_object(place: Place, pairs: list[tuple[str, Any]]) -> None:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise RecordError(f"{repeated(keys)!r} is given twice", where=place, allowed="each key once")
