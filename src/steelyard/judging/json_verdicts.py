"""The JSON objects of a reply, as models write them: with other quotation marks, or cut off after the verdict."""

import json
import re
from typing import Any, NamedTuple

from steelyard.core.types import JsonObject
from steelyard.judging.verdict_lines import label_of_line

_JSON_START = re.compile(r'\{\s*"')
_CURLY = str.maketrans("“”„‟", '""""')
_ANGLED = str.maketrans("“”„‟«»「」『』", '"' * 10)
_SINGLE = str.maketrans("'‘’", '"""')
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")
_WORK_PER_CHARACTER = 20
"""The decoder's work for each character of a reply, beyond which JSON is no longer sought: it bounds the time."""
_DEEPEST = 50
_CUT = "\ue001"
"""The end of a text that was cut off (private use): such a text is no label."""


class JsonBlock(NamedTuple):
    """An outermost JSON object of a text that has the key: its span, and the values of the key in it."""

    start: int
    end: int
    values: tuple[str, ...]


def json_values(text: str, key: str) -> list[JsonBlock]:
    """Return the objects of the text with the key's values, twice from an object that repeats it.

    Other quotation marks count where straight double ones give nothing, and a comma before the end is none. An object
    without an end counts as far as it goes.
    """
    plain = _TRAILING_COMMA.sub(" ", text)
    # A single mark may be an apostrophe, so these come last.
    for candidate in (text, plain.translate(_CURLY), plain.translate(_ANGLED), plain.translate(_SINGLE)):
        blocks = _whole_objects(candidate, key) or _cut_object(candidate, key)
        if blocks:
            return blocks
    return []


def _whole_objects(text: str, key: str) -> list[JsonBlock]:
    blocks = list[JsonBlock]()
    decoder, end, work = _decoder(key), 0, 0
    while start := _JSON_START.search(text, end):
        try:
            value, end = decoder.raw_decode(text, start.start())
        except json.JSONDecodeError as error:
            end = start.start() + 1
            # The characters read in vain, and those that the error's line number makes the decoder count again.
            work += 1 + error.pos - start.start() + error.pos // 16
        except (RecursionError, ValueError):
            return []  # nested too deeply, or a number of thousands of digits
        else:
            if value[""]:
                blocks.append(JsonBlock(start.start(), end, tuple(map(_label, value[""]))))
        if work > _WORK_PER_CHARACTER * len(text):
            return []
    return blocks


def _cut_object(text: str, key: str) -> list[JsonBlock]:
    """Return the object that the text ends within; none where it is cut within the key's value."""
    start = _JSON_START.search(text)
    if start is None:
        return []
    closing = _closing(text[start.start() :])
    if closing is None:
        return []
    cut = text[start.start() :].rstrip()
    for end in (closing, f": null{closing}", f"null{closing}"):
        try:
            value = _decoder(key).decode(cut.removesuffix(",") + end)
        except (json.JSONDecodeError, RecursionError, ValueError):
            continue
        return [JsonBlock(start.start(), len(text), tuple(map(_label, value[""])))] if value[""] else []
    return []


def _closing(text: str) -> str | None:
    """Return the signs that end the JSON in which the text stops; null where it is whole or nested too deeply."""
    opened, is_string, is_escaped = list[str](), False, False
    for sign in text:
        if is_string:
            is_string = is_escaped or sign != '"'
            is_escaped = sign == "\\" and not is_escaped
        elif sign == '"':
            is_string = True
        elif sign in "{[":
            opened.append("}" if sign == "{" else "]")
        elif sign in "}]" and opened:
            opened.pop()
        if not opened or len(opened) > _DEEPEST:
            return None
    return (f'{_CUT}"' if is_string else "") + "".join(reversed(opened))


def _decoder(key: str) -> json.JSONDecoder:
    def values_of_key(pairs: list[tuple[str, Any]]) -> JsonObject:
        return {"": [value for name, value in pairs if name.strip().casefold() == key]}

    return json.JSONDecoder(object_pairs_hook=values_of_key, strict=False)


def _label(value: Any) -> str:
    """Return the label in a JSON value, such as "Answer A"; other values as JSON, for the message."""
    # bool is a subclass of int: `true` is no rating.
    if isinstance(value, bool) or not isinstance(value, str | int):
        text = json.dumps(value)[:20]
    else:
        text = label_of_line(str(value)) or str(value)
    return " ".join(text.split())
