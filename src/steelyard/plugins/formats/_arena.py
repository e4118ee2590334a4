"""The conversations of Chatbot Arena's rows: turns of text, or of lists of parts, and languages by name or by code."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from steelyard.core.protocols import Row
from steelyard.plugins.formats._fields import count_other_keys
from steelyard.plugins.formats._implicit import Parts, shared_turns, whole_turns
from steelyard.plugins.formats._languages import code_of, name_of


class Turns(NamedTuple):
    """What both conversations share and how each goes on; ``blocks`` is how a text part was written, null if none."""

    parts: Parts
    blocks: dict[str, Any] | None


def both_turns(row: Row, sides: Sequence[str], noted: Counter[str]) -> Turns:
    """The turns of both conversations. Raises RecordError where they share none, or are no turns."""
    blocks: dict[str, Any] | None = None
    read: dict[str, Any] = {}
    for key in sides:
        turns = row.value.get(key)
        count_other_keys(turns, ("role", "content"), noted)
        read[key] = [_plain(turn, noted) for turn in turns] if isinstance(turns, list) else turns
        for turn in turns if isinstance(turns, list) else ():
            content = turn.get("content") if isinstance(turn, dict) else None
            for part in content if isinstance(content, list) else ():
                said = {name: value for name, value in part.items() if name != "text"} if isinstance(part, dict) else {}
                blocks = said if blocks is None else blocks
                noted["other keys of turns, left out"] += said != blocks
    return Turns(shared_turns(Row(row.place, read), sides), blocks)


def _plain(turn: Any, noted: Counter[str]) -> Any:
    """The turn with its text parts as one text; parts that are no text (images) are left out and counted."""
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(content, list):
        return turn
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    noted["parts of turns that are no text, left out"] += len(content) - len(texts)
    noted["turns whose parts are joined"] += len(texts) > 1
    return {"role": turn.get("role"), "content": "\n".join(texts)}


def said_turns(parts: Parts, sides: Sequence[str], blocks: dict[str, Any] | None) -> dict[str, Any]:
    """Both conversations as lists of turns, of text or of one text part each."""
    whole = zip(sides, whole_turns(parts).values(), strict=True)
    if blocks is None:
        return dict(whole)
    return {key: [turn | {"content": [blocks | {"text": turn["content"]}]} for turn in turns] for key, turns in whole}


def language_in(said: str | None) -> str | None:
    """The code of a language that is said by its name or code; null for ``unknown`` and names without one."""
    return None if said is None else code_of(said)


def said_language(code: str | None) -> str | None:
    """The language's name as the rows say it."""
    return None if code is None else name_of(code)
