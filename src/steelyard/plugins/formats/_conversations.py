r"""Conversations in other shapes than turns: one text with marks, or a system text, exchanges and an open question.

A transcript is one text with a mark before each turn. It can be read into turns and written back to the same letters;
turns that a transcript would not give back are not written as one.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from steelyard.core.types import Message


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


class Transcript(NamedTuple):
    """The turns of a transcript, and the positions of those that have no gap after their mark."""

    turns: tuple[Message, ...]
    bare: list[int]


HUMAN = TurnMarks("\n\n{}:", {"Human": "user", "Assistant": "assistant"}, before="system", gap=" ")
"""Anthropic's marks."""
EXTRA_ID = TurnMarks("\n<extra_id_1>{}\n", {"User": "user", "Assistant": "assistant"}, before="user")
"""The marks of HelpSteer's prompts: the first turn has none."""


def turns_in(text: str, marks: TurnMarks) -> Transcript:
    """Read the turns of a text; a text without a mark is a single turn."""
    matches = list(marks.pattern().finditer(text))
    before = text[: matches[0].start()] if matches else text
    turns = [Message(role=marks.before, content=before)] if before or marks.before == "user" else []
    bare: list[int] = []
    for mark, following in zip_longest(matches, matches[1:]):
        content = text[mark.end() : following.start() if following else len(text)]
        if marks.gap and not content.startswith(marks.gap):
            bare.append(len(turns))
        turns.append(Message(role=marks.roles[mark[1]], content=content.removeprefix(marks.gap)))
    return Transcript(tuple(turns), bare)


def text_of(turns: Sequence[Message], marks: TurnMarks, bare: Collection[int] = ()) -> str | None:
    """Return the turns as one text; null where it would be read as other turns."""
    names = {role: name for name, role in marks.roles.items()}
    text = ""
    for place, turn in enumerate(turns):
        if place == 0 and turn.role == marks.before:
            text += turn.content
        elif turn.role in names:
            gap = "" if place in bare else marks.gap
            text += marks.template.format(names[turn.role]) + gap + turn.content
        else:
            return None
    return text if turns_in(text, marks).turns == tuple(turns) else None


class Conversation(NamedTuple):
    """A prompt as its system text, its closed exchanges, and its open question."""

    system: str | None
    history: list[tuple[str, str]]
    question: str

    def question_apart(self, extra: str) -> tuple[str, str]:
        """Split a known end off the question: instruction and input. The end is empty where it is not there."""
        if not extra or not f"\n{self.question}".endswith(f"\n{extra}"):
            return self.question, ""
        # An empty instruction leaves no line break before the input.
        return self.question[: -len(extra)].removesuffix("\n"), extra


def system_text(messages: Iterable[Message], dropped: Counter[str]) -> str | None:
    """Return the system turns as one text, for formats with one place for it; changes are counted."""
    turns = list(messages)
    texts = [turn.content for turn in turns if turn.role == "system"]
    in_place = [turn for turn in turns[:1] if turn.role == "system" and turn.content]
    if len(texts) > len(in_place):
        dropped["system turns joined, moved or empty"] += len(texts) - len(in_place)
    return "\n".join(texts) if texts else None


def conversation_of(messages: tuple[Message, ...], dropped: Counter[str]) -> Conversation:
    """Return the prompt in exchanges of user and assistant; turns that do not alternate are joined and counted."""
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
    return Conversation(system, history, question)
