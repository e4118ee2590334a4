"""What the formats share: reading a field or saying what is wrong with it, texts as turns, and what stays unsaid."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from steelyard.core.errors import Place, RecordError
from steelyard.core.identity import UniqueIds, content_id
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.plugins.formats._parts import AS_READ


def text_field(row: Row, key: str, *, default: str | None = None) -> str:
    """The text under the key. Raises RecordError when it is absent (without a default) or no text."""
    value = row.value.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        found = "lacks" if value is None else f"has {type(value).__name__} under"
        raise RecordError(f"the row {found} {key!r}", where=row.place, allowed=f"{key}: a text")
    return value


def optional_text(row: Row, key: str) -> str | None:
    """The text under the key, null where there is none. Raises RecordError for anything else."""
    return None if row.value.get(key) is None else text_field(row, key)


def is_number(value: Any) -> bool:
    """Whether the value is a finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def list_field(row: Row, key: str, *, default: Sequence[Any] | None = None) -> Sequence[Any]:
    """The list under the key. Raises RecordError as `text_field` does."""
    value = row.value.get(key)
    if value is None and default is not None:
        return default
    if not isinstance(value, list):
        found = "lacks" if value is None else f"has {type(value).__name__} under"
        raise RecordError(f"the row {found} {key!r}", where=row.place, allowed=f"{key}: a list")
    return value


def turns_of(value: Any, place: Place, key: str, *, role: str) -> tuple[Message, ...]:
    """A text as one turn of the role, or a list of ``{role, content}`` as it is. Raises RecordError for others."""
    if isinstance(value, str):
        return (Message(role=role, content=value),)
    is_turns = isinstance(value, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
        for turn in value
    )
    if not is_turns or not value:
        found = f"{key!r} is neither a text nor turns of role and content"
        raise RecordError(found, where=place._replace(path=key), allowed='a text, or [{"role": …, "content": …}, …]')
    return tuple(Message(role=turn["role"], content=turn["content"]) for turn in value)


def turn_keys(row: Row, keys: Iterable[str]) -> list[str]:
    """Those of the keys whose values are lists of turns: one turn and a text look alike in the record."""
    return [key for key in keys if isinstance(row.value.get(key), list)]


def count_other_keys(turns: Any, known: Iterable[str], noted: Counter[str]) -> None:
    """Count what turns say beyond the known keys (a name, a weight, tool calls): the record cannot hold it."""
    named = set(known)
    for turn in turns if isinstance(turns, list) else [turns]:
        said = turn if isinstance(turn, dict) else {}
        other = sum(value is not None for key, value in said.items() if key not in named)
        if other:
            noted["other keys of turns, left out"] += other


def nulls_of(row: Row, keys: Iterable[str]) -> list[str]:
    """Those of the keys that stand in the row as null, as optional columns of tables do."""
    return [key for key in keys if key in row.value and row.value[key] is None]


def with_nulls(row: dict[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """The row, with null again where it was read so and there is still nothing to say."""
    return row | {key: None for key in form.get("null", ()) if not row.get(key)}


def as_turns(messages: Iterable[Message]) -> list[dict[str, str]]:
    """The turns as plain dictionaries."""
    return [{"role": message.role, "content": message.content} for message in messages]


def text_or_list(turns: Sequence[Message], role: str, *, as_list: bool = False) -> str | list[dict[str, str]]:
    """One turn of the role as its text, unless it was read as a list; other turns as they are."""
    return turns[0].content if len(turns) == 1 and turns[0].role == role and not as_list else as_turns(turns)


def response_of(response_id: str, turns: Sequence[Message], **fields: Any) -> Response:
    """A response of one assistant turn as text, any other as its turns."""
    if len(turns) == 1 and turns[0].role == "assistant":
        return Response(id=response_id, text=turns[0].content, **fields)
    return Response(id=response_id, messages=tuple(turns), **fields)


def answer_turns(response: Response) -> tuple[Message, ...]:
    """The response's turns; of a text, one assistant turn."""
    return response.messages or (Message(role="assistant", content=response.text or ""),)


def rest(row: Row, known: Iterable[str]) -> dict[str, Any] | None:
    """The row's other keys, for ``meta``; null if there are none."""
    named = set(known)
    return {key: value for key, value in row.value.items() if key not in named} or None


def answer_ids(turns: Sequence[Sequence[Message]], noted: Counter[str]) -> tuple[str, ...]:
    """Ids made of the answers' texts; equal answers get ``~2`` and are counted."""
    ids = UniqueIds()
    made = ids.take_all(content_id("\n".join(turn.content for turn in one)) for one in turns)
    if ids.num_repeated:
        noted["repeated responses"] += ids.num_repeated
    return made


def as_read(kind: str, **facts: Any) -> dict[str, Any]:
    """What the turns do not say of a row's form, for the case's ``meta``; only the same format reads it again."""
    # An id may be 0 or empty and is still said.
    said = {name: value for name, value in facts.items() if value is not None and value is not False and value != []}
    return {AS_READ: {"format": kind, **said}} if said else {}


def form_of(case: Case, kind: str) -> dict[str, Any]:
    """What ``as_read`` kept when the case was read from this format; empty for cases from anywhere else."""
    kept = case.meta.get(AS_READ)
    return kept if isinstance(kept, dict) and kept.get("format") == kind else {}


def with_meta(row: dict[str, Any], case: Case, known: Iterable[str], lost: Counter[str]) -> dict[str, Any]:
    """The row and the prompt's ``meta``; a key there that the format itself uses is left out and counted."""
    taken = {*known, *row}
    meta = case.prompt.meta or {}
    clashing = sum(key in taken for key in meta)
    if clashing:
        lost["prompt meta under the format's own names"] += clashing
    return row | {key: value for key, value in meta.items() if key not in taken}


def only_question(messages: Sequence[Message]) -> str | None:
    """The prompt's text where it is one user turn; null where a format with one text for it cannot hold it."""
    return messages[0].content if len(messages) == 1 and messages[0].role == "user" else None


class PromptIds:
    """Ids for the rows of one file: given ones must be unique, made ones are hashes of the whole row."""

    def __init__(self, noted: Counter[str]) -> None:
        self._noted = noted
        self._made = UniqueIds()
        self._given: dict[tuple[str, str | None], Place] = {}

    def made(self, row: Row) -> str:
        """An id for a row that has none; an equal row gets ``~2`` and is counted."""
        before = self._made.num_repeated
        made = self._made.take(content_id(row.value))
        self._noted["repeated rows"] += self._made.num_repeated - before
        return made

    def given(self, name: str, row: Row, *, language: str | None = None) -> str:
        """The row's own id. Raises RecordError when another row of the same language has it too."""
        key = (name, language)
        if key in self._given:
            raise RecordError(
                f"id {name!r} stands at {self._given[key]} already", where=row.place, allowed="unique ids"
            )
        self._given[key] = row.place
        return name


def with_prompt(messages: Sequence[Message], **fields: Any) -> Prompt:
    """A prompt of these turns, empty values left out."""
    return Prompt(messages=tuple(messages), **{name: value for name, value in fields.items() if value})
