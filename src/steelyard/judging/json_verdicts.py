"""The JSON objects of a reply, as models write them: with other quotation marks, or cut off after the verdict."""

import json
import re
from typing import Any, NamedTuple

from steelyard.core.types import JsonObject
from steelyard.judging.reply_words import announces
from steelyard.judging.verdict_words import score_noun

_JSON_START = re.compile(r'\{\s*"')
_CURLY = str.maketrans("“”„‟", '""""')
_ANGLED = str.maketrans("“”„‟«»「」『』‘’", '"' * 10 + "''")
_TOKEN = re.compile(
    r"""
    [{}] | (?P<text>(?P<quote>["'])(?:\\.|\\\Z|[^\\])*?(?:(?P=quote)(?=\s*(?:[,:}\]\#]|/[/*]))|\Z))
    | (?P<word>[^\W\d]\w*) | //[^\n]* | \#[^\n]* | /\*.*?(?:\*/|\Z) | ,(?=(?:\s|//[^\n]*|\#[^\n]*)*[}\]])
    """,
    re.DOTALL | re.VERBOSE,
)
"""Notations beside JSON: texts that end before a sign of JSON alone, bare words, comments, and a comma
at the end of a list."""
_ESCAPED = {"\\'": "'", '"': '\\"', "\\": ""}
_WORDS = {"None": "null", "True": "true", "False": "false", "null": "null", "true": "true", "false": "false"}
_WORK_PER_CHARACTER = 20
"""The decoder's work for each character of a reply, beyond which the search for JSON ends: it bounds the time."""
_DEEPEST = 50
_MOST_LEVELS = 4
_CALLS = ("arguments", "parameters", "function", "function_call", "tool_call", "tool_calls")
_LONGEST_VALUE = 40
_CUT = "\ue001"
"""The end of a text that was cut off (private use): such a text never is a label."""


class JsonBlock(NamedTuple):
    """An outermost JSON object of a text that has the key: its span, and the values of the key in it."""

    start: int
    end: int
    values: tuple[str, ...]


class JsonReading(NamedTuple):
    """The outermost objects that have the key, in the text with its quotation marks and comments as JSON has them."""

    text: str
    blocks: list[JsonBlock]


class _Key(NamedTuple):
    """The key that holds the verdict, whether other names of it count, and the texts around the object."""

    name: str
    is_named_freely: bool
    depth: int = 0

    def names(self, name: str, value: Any) -> bool:
        """Return whether a short value stands under another name of the verdict, or of the rating."""
        if not self.is_named_freely or not isinstance(value, str | int) or len(str(value)) > _LONGEST_VALUE:
            return False
        plain = name.replace("_", " ").strip()
        if self.name == "rating":
            return score_noun().fullmatch(plain.casefold()) is not None
        return isinstance(value, str) and announces(plain)


def json_values(text: str, key: str, *, is_named_freely: bool = False) -> JsonReading:
    """Return the objects of the text with the key's values, twice from an object that repeats it.

    Other quotation marks and other notations (single quotation marks, bare words, comments) count where JSON gives
    nothing, and so does a text in JSON that is an object. An object without an end counts as far as it goes. Where
    ``is_named_freely``, short values under other names of a verdict or a rating count in objects without the key.
    """
    search = _Key(key, is_named_freely)
    whole = _written_out(text.strip("` \n"), search) if text.lstrip("` \n").startswith('"') else None
    if isinstance(whole, dict) and whole[""]:
        return JsonReading(text, [JsonBlock(0, len(text), tuple(map(_label, whole[""])))])
    for candidate in (text, text.translate(_CURLY), _as_json(text.translate(_ANGLED))):
        blocks = _whole_objects(candidate, search) or _cut_object(candidate, search)
        if blocks:
            return JsonReading(candidate, blocks)
    return JsonReading(text, [])


def _as_json(text: str) -> str:
    """Return the text with its objects, as Python, JavaScript and people write them, as JSON."""
    parts, place = list[str](), 0
    while (start := text.find("{", place)) >= 0:
        parts.append(text[place:start])
        place, depth = start, 0
        for match in _TOKEN.finditer(text, start):
            parts += [text[place : match.start()], _json_token(match)]
            place = match.end()
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if not depth:
                break
        else:
            break
    return "".join([*parts, text[place:]])


def _json_token(match: re.Match[str]) -> str:
    if match["word"]:
        return _WORDS.get(match["word"], f'"{match["word"]}"')
    if not match["text"]:
        return match[0] if match[0] in "{}" else " "
    # A text that was cut off stays without an end.
    end = '"' if len(match[0]) > 1 and match[0].endswith(match["quote"]) else ""
    inner = match[0][1 : len(match[0]) - len(end)]
    return '"' + re.sub(r"""\\.|\\$|["]""", lambda sign: _ESCAPED.get(sign[0], sign[0]), inner, flags=re.DOTALL) + end


def _whole_objects(text: str, key: _Key) -> list[JsonBlock]:
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


def _cut_object(text: str, key: _Key) -> list[JsonBlock]:
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


def _decoder(key: _Key) -> json.JSONDecoder:
    def values_of_key(pairs: list[tuple[str, Any]]) -> JsonObject:
        verdicts = [value for name, value in pairs if name.strip().casefold() == key.name]
        # One level above may name the result, or be the call of a tool: {"result": {"verdict": "A"}}.
        inner = [
            value
            for name, part in pairs
            if announces(name) or name in _CALLS or (name == "input" and any(other == "name" for other, _ in pairs))
            for each in (part if isinstance(part, list) else [part])
            if isinstance(value := _written_out(each, key), dict) and value[""]
        ]
        free = [value for name, value in pairs if key.names(name, value)]
        return {
            "": [
                each
                for value in verdicts or inner or free
                for each in (value[""] if isinstance(value, dict) else [value])
            ]
        }

    return json.JSONDecoder(object_pairs_hook=values_of_key, strict=False)


def _written_out(value: Any, key: _Key) -> Any:
    """Return the object that a text holds as JSON, as calls of tools write their arguments; any other value as it is.

    Each level of texts in texts doubles the signs that escape, so that few of them are all that models write.
    """
    if not isinstance(value, str) or key.depth >= _MOST_LEVELS or not value.lstrip().startswith(("{", '"')):
        return value
    inside = key._replace(depth=key.depth + 1)
    try:
        inner = _decoder(inside).decode(value)
    except (json.JSONDecodeError, RecursionError, ValueError):
        return value
    return _written_out(inner, inside)


def _label(value: Any) -> str:
    """Return a JSON value as a text, that of a list of one value; other values as JSON, for the message."""
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    # bool is a subclass of int: `true` is no rating.
    is_plain = isinstance(value, str | int) and not isinstance(value, bool)
    text = str(value) if is_plain else json.dumps(value)[:20]
    return " ".join(text.split())
