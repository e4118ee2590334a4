"""A prompt that stands inside both answers: where it ends, and rows in which it is found again."""

import os.path
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Message
from steelyard.plugins.formats._fields import as_turns, turns_of

_MARK = "\n\nAssistant:"
SIDES = ("chosen", "rejected")


class Parts(NamedTuple):
    """The turns of a pair: what both share, and what each goes on with."""

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]


def cut_turns(chosen: Sequence[Message], rejected: Sequence[Message]) -> Parts:
    """The longest common run of turns is the prompt; at least one turn stays on either side: it is the answer."""
    length = 0
    while length < min(len(chosen), len(rejected)) - 1 and chosen[length] == rejected[length]:
        length += 1
    return Parts(tuple(chosen[:length]), tuple(chosen[length:]), tuple(rejected[length:]))


def shared_turns(row: Row, sides: Sequence[str], *, do: str | None = None) -> Parts:
    """The parts of two lists of turns. Raises RecordError for other values, and where they share no turn."""
    parts = cut_turns(*(turns_of(row.value.get(key), row.place, key, role="assistant") for key in sides))
    if not parts.prompt:
        raise RecordError(f"{' and '.join(sides)} share no turn", where=row.place, do=do)
    return parts


def implicit_parts(row: Row, noted: Counter[str], sides: Sequence[str] = SIDES, *, do: str | None = None) -> Parts:
    """The parts of two texts or two lists of turns with the prompt inside both. Raises RecordError where none is.

    Texts keep their marks: what is written again is what was read.
    """
    chosen, rejected = (row.value.get(key) for key in sides)
    if not (isinstance(chosen, str) and isinstance(rejected, str)):
        return shared_turns(row, sides, do=do)
    common = os.path.commonprefix([chosen, rejected])  # noqa: RUF071  characters are what is meant
    at = common.rfind(_MARK)
    end = at + len(_MARK) if at >= 0 else common[: min(map(len, (chosen, rejected))) - 1].rfind("\n") + 1
    if end <= 0:
        raise RecordError(f"{' and '.join(sides)} share no prompt", where=row.place, do=do)
    noted["prompts cut at a line break, not at a turn"] += at < 0
    texts = ("user", common[:end]), ("assistant", chosen[end:]), ("assistant", rejected[end:])
    return Parts(*((Message(role=role, content=text),) for role, text in texts))


def is_text(turns: Sequence[Message], role: str) -> bool:
    """Whether the turns can stand as one text: a single turn of the role."""
    return len(turns) == 1 and turns[0].role == role


def are_texts(parts: Parts) -> bool:
    """Whether all three parts can."""
    return is_text(parts.prompt, "user") and is_text(parts.chosen, "assistant") and is_text(parts.rejected, "assistant")


def whole_texts(parts: Parts, sides: Sequence[str] = SIDES) -> dict[str, Any] | None:
    """Both conversations as texts; null where the prompt would not be found again."""
    prompt, chosen, rejected = (turns[0].content if turns else "" for turns in parts)
    row = dict(zip(sides, (prompt + chosen, prompt + rejected), strict=True))
    try:
        found = implicit_parts(Row(Place("the row to write"), row), Counter(), sides)
    except RecordError:
        return None
    return row if found == parts else None


def whole_turns(parts: Parts, sides: Sequence[str] = SIDES) -> dict[str, Any]:
    """Both conversations as lists of turns."""
    whole = (as_turns(parts.prompt + parts.chosen), as_turns(parts.prompt + parts.rejected))
    return dict(zip(sides, whole, strict=True))


def is_found_again(parts: Parts) -> bool:
    """Whether the cut of both conversations falls where it fell: not if the answers begin with equal turns."""
    return bool(parts.prompt) and cut_turns(parts.prompt + parts.chosen, parts.prompt + parts.rejected) == parts
