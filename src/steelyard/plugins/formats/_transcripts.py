r"""Conversations written as one text, a mark before each turn: into turns, and back to the same letters.

A turn that its text would not give back is no transcript: writing tells it by reading again.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple

from steelyard.core.types import Message


class Marks(NamedTuple):
    """How turns are marked: ``template`` with a name in place of ``{}``, the role of each name, what stands before.

    ``before`` is the role of the text that has no mark, at the beginning; ``gap`` stands between a mark and its text,
    and single turns may lack it.
    """

    template: str
    roles: Mapping[str, str]
    before: str
    gap: str = ""

    def pattern(self) -> re.Pattern[str]:
        """The marks, with the name as the group."""
        before, after = map(re.escape, self.template.split("{}"))
        return re.compile(f"{before}({'|'.join(map(re.escape, self.roles))}){after}")


class Transcript(NamedTuple):
    """The turns, and the places of those that have no gap after their mark."""

    turns: tuple[Message, ...]
    bare: list[int]


HUMAN = Marks("\n\n{}:", {"Human": "user", "Assistant": "assistant"}, before="system", gap=" ")
"""Anthropic's marks."""
EXTRA_ID = Marks("\n<extra_id_1>{}\n", {"User": "user", "Assistant": "assistant"}, before="user")
"""The marks of HelpSteer's prompts: the first turn has none."""


def turns_in(text: str, marks: Marks) -> Transcript:
    """The turns of a text; one without a mark is a single turn."""
    found = list(marks.pattern().finditer(text))
    before = text[: found[0].start()] if found else text
    turns = [Message(role=marks.before, content=before)] if before or marks.before == "user" else []
    bare: list[int] = []
    for mark, following in zip_longest(found, found[1:]):
        said = text[mark.end() : following.start() if following else len(text)]
        if marks.gap and not said.startswith(marks.gap):
            bare.append(len(turns))
        turns.append(Message(role=marks.roles[mark[1]], content=said.removeprefix(marks.gap)))
    return Transcript(tuple(turns), bare)


def text_of(turns: Sequence[Message], marks: Marks, bare: Collection[int] = ()) -> str | None:
    """The turns as one text; null where it would be read as other turns."""
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
