r"""Turns and their forms in rows: a text or a list, one text with marks, or a system text with exchanges.

A transcript is one text with a mark before each turn. It is read into turns.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import JsonObject, Message, Response
from steelyard.io.json_text import decode_list

ROLE_AND_CONTENT = ("role", "content")


SENDER_ROLES = {
    "human": "user", "gpt": "assistant", "chatgpt": "assistant", "bot": "assistant", "prompter": "user",
    "observation": "tool", "function_call": "function",
}  # fmt: skip
"""The roles of senders in turns of ``from`` and ``value``, or of ``role`` and ``text``; others stay as they are."""
_OF_TURNS = {"role", "from", "content", "type"}
"""The keys by which an object is a turn or one of its blocks."""
_TEXT_KEYS = ("text", "value")
"""The keys of a text in a content block, after those of Anthropic and OpenAI, and of LLaMA-Factory."""


def turns_of(value: Any, place: Place, key: str, *, role: str) -> tuple[Message, ...]:
    """Read a text as one turn of the role, or turns as a list (one turn also alone). Raises RecordError otherwise.

    A turn is ``{role, content}``, ``{role, text}`` or ``{from, value}``; a content is a text, or a list of blocks
    whose texts are joined by line breaks.
    """
    if isinstance(value, str):
        return (Message(role=role, content=value),)
    turns = [_turn(turn) for turn in ([value] if isinstance(value, dict) else value if isinstance(value, list) else ())]
    if not turns or None in turns:
        problem = f"{key!r} is neither a text nor turns of role and content"
        bad = value[turns.index(None)] if isinstance(value, list) and turns else None
        if isinstance(bad, dict) and bad.keys() & {"role", "from"}:
            calls = ", but tool calls, which a case cannot hold" if bad.get("tool_calls") else ""
            problem = f"turn {turns.index(None) + 1} of {key!r} has no text{calls}"
        raise RecordError(problem, where=place._replace(path=key), allowed='a text, or [{"role": …, "content": …}, …]')
    return tuple(turn for turn in turns if turn is not None)


def earlier_turns(value: Any, place: Place, key: str) -> tuple[Message, ...]:
    """Read the turns before a prompt: pairs of a question and its answer, or turns, as a list or its JSON text.

    None where there are none. Raises RecordError for anything else.
    """
    exchanges = decode_list(value) if isinstance(value, str) else value
    turns: list[Any] = []
    for item in exchanges if isinstance(exchanges, list) else () if value in (None, "") else (value,):
        if isinstance(item, list) and len(item) == 2:
            turns += ({"role": role, "content": text} for role, text in zip(("user", "assistant"), item, strict=True))
        else:
            turns.append(item)
    if None in map(_turn, turns):
        problem = f"{key!r} is neither pairs of a question and its answer nor turns"
        allowed = '[["question", "answer"], …], or [{"role": …, "content": …}, …]'
        raise RecordError(problem, where=place._replace(path=key), allowed=allowed)
    return turns_of(turns, place, key, role="user") if turns else ()


def _turn(turn: Any) -> Message | None:
    if not isinstance(turn, dict):
        return None
    if "content" in turn:
        role, content = turn.get("role"), turn["content"]
    else:
        sender = turn.get("from", turn.get("role"))
        role = SENDER_ROLES.get(sender, sender) if isinstance(sender, str) else None
        content = turn.get("value", turn.get("text"))
    if isinstance(content, list) and content:
        content = _block_text(content)
    return Message(role=role, content=content) if isinstance(role, str) and isinstance(content, str) else None


def _block_text(blocks: Sequence[Any]) -> str | None:
    """Return the text of content blocks; null where a block is neither a text nor of another declared type."""
    texts: list[str] = []
    for block in blocks:
        fields = block if isinstance(block, dict) else {"text": block}
        text = next((fields[key] for key in _TEXT_KEYS if isinstance(fields.get(key), str)), None)
        if text is not None:
            texts.append(text)
        elif not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return None
    return "\n".join(texts)


def decoded_turns(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values with texts of lists of turns decoded, if each of them is one; otherwise as they are."""
    lists = [_decoded(value) for value in values]
    return values if None in lists else lists


def are_conversations(sides: Sequence[Any]) -> bool:
    """Return whether each value is a list of turns that begins before an answer."""
    firsts = [_turn(side[0]) if isinstance(side, list) and len(side) > 1 else None for side in sides]
    return all(first is not None and first.role != "assistant" for first in firsts)


def _decoded(value: Any) -> list[JsonObject] | None:
    turns = decode_list(value) if isinstance(value, str) else None
    return turns if turns and None not in map(_turn, turns) else None


def field_turns(row: Row, key: str, *, role: str) -> tuple[Message, ...]:
    """Read the turns under a key, as `turns_of` does."""
    return turns_of(row.value.get(key), row.place, key, role=role)


def answer_of(text: str) -> tuple[Message, ...]:
    """Return an answer of one assistant turn."""
    return (Message(role="assistant", content=text),)


def turn_keys(row: Row, keys: Iterable[str]) -> list[str]:
    """Return the keys whose values are lists of turns: a case does not tell one turn from a text."""
    return [key for key in keys if isinstance(row.value.get(key), list)]


def count_other_keys(turns: Any, warnings: Counter[str], known: Iterable[str] = ROLE_AND_CONTENT) -> None:
    """Count the values of turns under other keys (a name, a weight, tool calls): a case cannot hold them."""
    for turn in turns if isinstance(turns, list) else [turns]:
        fields = turn if isinstance(turn, dict) and turn.keys() & _OF_TURNS else {}
        known_keys = {*known, *(() if "content" in fields else ("from", *_TEXT_KEYS))}
        num_other = sum(value is not None for key, value in fields.items() if key not in known_keys)
        if num_other:
            warnings["other keys of turns, left out"] += num_other


def as_turns(messages: Iterable[Message]) -> list[JsonObject]:
    """Return the turns as JSON objects."""
    return [{"role": message.role, "content": message.content} for message in messages]


def is_text(turns: Sequence[Message], role: str) -> bool:
    """Return whether the turns can be written as one text: a single turn of the role."""
    return len(turns) == 1 and turns[0].role == role


def text_or_list(turns: Sequence[Message], role: str, *, as_list: bool = False) -> str | list[JsonObject]:
    """Return one turn of the role as its text, unless it was read as a list; other turns as a list."""
    return turns[0].content if is_text(turns, role) and not as_list else as_turns(turns)


def response_of(response_id: str, turns: Sequence[Message], **fields: Any) -> Response:
    """Return a response: one assistant turn as its text, other turns as they are."""
    if is_text(turns, "assistant"):
        return Response(id=response_id, text=turns[0].content, **fields)
    return Response(id=response_id, messages=tuple(turns), **fields)


def answer_turns(response: Response) -> tuple[Message, ...]:
    """Return the response's turns; a text is one assistant turn."""
    return response.messages or answer_of(response.text or "")


def answer_text(response: Response, dropped: Counter[str]) -> str:
    """Return the answer as one text; of several turns the last is kept, and the others are counted."""
    if response.text is not None:
        return response.text
    turns = response.messages or ()
    dropped["earlier turns of an answer"] += max(0, len(turns) - 1)
    return turns[-1].content if turns else ""


class TurnMarks(NamedTuple):
    """The marks of turns: ``template`` has ``{}`` in place of a name, ``roles`` gives the role of each name.

    ``before`` is the role of unmarked text at the beginning. ``gap`` separates a mark from its text; single turns
    may lack it.
    """

    template: str
    roles: Mapping[str, str]
    before: str
    gap: str = ""

    def pattern(self) -> re.Pattern[str]:
        """Return a pattern of the marks, with the name as the group."""
        before, after = map(re.escape, self.template.split("{}"))
        return re.compile(f"{before}({'|'.join(map(re.escape, self.roles))}){after}")


HUMAN = TurnMarks("\n\n{}:", {"Human": "user", "Assistant": "assistant"}, before="system", gap=" ")
"""Anthropic's marks."""
EXTRA_ID = TurnMarks("\n<extra_id_1>{}\n", {"User": "user", "Assistant": "assistant"}, before="user")
"""The marks of HelpSteer's prompts: the first turn has none."""


def turns_in(text: str, marks: TurnMarks) -> tuple[Message, ...]:
    """Read the turns of a text; a text without a mark is a single turn."""
    matches = list(marks.pattern().finditer(text))
    before = text[: matches[0].start()] if matches else text
    turns = [Message(role=marks.before, content=before)] if before or marks.before == "user" else []
    for mark, following in zip_longest(matches, matches[1:]):
        content = text[mark.end() : following.start() if following else len(text)]
        turns.append(Message(role=marks.roles[mark[1]], content=content.removeprefix(marks.gap)))
    return tuple(turns)


def system_text(messages: Iterable[Message], dropped: Counter[str]) -> str | None:
    """Return the system turns as one text, for formats with one place for it; changes are counted."""
    turns = list(messages)
    texts = [turn.content for turn in turns if turn.role == "system"]
    in_place = [turn for turn in turns[:1] if turn.role == "system" and turn.content]
    if len(texts) > len(in_place):
        dropped["system turns joined, moved or empty"] += len(texts) - len(in_place)
    return "\n".join(texts) if texts else None


def conversation_of(
    messages: tuple[Message, ...], dropped: Counter[str]
) -> tuple[str | None, list[tuple[str, str]], str]:
    """Return the prompt as its system text, its closed exchanges of user and assistant, and its open question.

    Turns that do not alternate are joined and counted.
    """
    system = system_text(messages, dropped)
    turns = [message for message in messages if message.role != "system"]
    merged: list[Message] = []
    for turn in turns:
        role = "assistant" if turn.role == "assistant" else "user"
        if turn.role not in ("user", "assistant"):
            dropped["roles"] += 1
        if merged and merged[-1].role == role:
            dropped["turns joined"] += 1
            merged[-1] = Message(role=role, content=f"{merged[-1].content}\n{turn.content}")
        else:
            merged.append(Message(role=role, content=turn.content))
    if merged and merged[0].role == "assistant":
        dropped["turns joined"] += 1
        merged = [Message(role="user", content=""), *merged]
    is_open = bool(merged) and merged[-1].role == "user"
    if not is_open:
        dropped["conversations without an open question"] += 1
    question = merged.pop().content if is_open else ""
    history = [(merged[index].content, merged[index + 1].content) for index in range(0, len(merged) - 1, 2)]
    return system, history, question
