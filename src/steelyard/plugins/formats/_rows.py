"""Rows as cases and back: the loop of formats, fields as turns, ids, and the recorded form of a row.

A case holds less than a row: whether a text was a list of one turn, which keys were null or absent, an id that was a
number. `as_read` records this form in the case's ``meta``, so that the same format writes the same bytes again.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from steelyard.core.checks import UniqueIds, content_id
from steelyard.core.errors import Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message, Meta, Prompt, Response
from steelyard.curation.format_support import AS_READ

OTHER_SHAPE = "cases of another shape"
"""The counter of cases that do not fit a format of a fixed shape; they are not written."""
ROLE_AND_CONTENT = ("role", "content")
_LANGUAGES = {
    "Arabic": "ar", "Bengali": "bn", "Bulgarian": "bg", "Catalan": "ca", "Chinese": "zh", "Croatian": "hr",
    "Czech": "cs", "Danish": "da", "Dutch": "nl", "English": "en", "Estonian": "et", "Finnish": "fi", "French": "fr",
    "German": "de", "Greek": "el", "Hebrew": "he", "Hindi": "hi", "Hungarian": "hu", "Indonesian": "id",
    "Italian": "it", "Japanese": "ja", "Korean": "ko", "Latvian": "lv", "Lithuanian": "lt", "Norwegian": "no",
    "Persian": "fa", "Polish": "pl", "Portuguese": "pt", "Romanian": "ro", "Russian": "ru", "Serbian": "sr",
    "Slovak": "sk", "Slovenian": "sl", "Spanish": "es", "Swahili": "sw", "Swedish": "sv", "Tamil": "ta", "Thai": "th",
    "Turkish": "tr", "Ukrainian": "uk", "Urdu": "ur", "Vietnamese": "vi",
}  # fmt: skip
_CODES = {name.lower(): code for name, code in _LANGUAGES.items()}
_NAMES_OF_CODES = {code: name for name, code in _LANGUAGES.items()}
LANGUAGE_CODE = re.compile(r"[a-z]{2,3}([-_][A-Za-z0-9]+)*")


def language_code(name: str | None) -> str | None:
    """Return the code of a language's English name in any case, or the code itself; null for anything else."""
    if name is None:
        return None
    return _CODES.get(name.lower()) or (name if LANGUAGE_CODE.fullmatch(name) else None)


def language_name(code: str | None) -> str | None:
    """Return the English name of a code, such as ``Chinese``; a code without one stays as it is."""
    return None if code is None else _NAMES_OF_CODES.get(code, code)


def turns_of(value: Any, place: Place, key: str, *, role: str) -> tuple[Message, ...]:
    """Read a text as one turn of the role, or a list of ``{role, content}``. Raises RecordError for other values."""
    if isinstance(value, str):
        return (Message(role=role, content=value),)
    is_turns = isinstance(value, list) and all(
        isinstance(turn, dict) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
        for turn in value
    )
    if not is_turns or not value:
        problem = f"{key!r} is neither a text nor turns of role and content"
        raise RecordError(problem, where=place._replace(path=key), allowed='a text, or [{"role": …, "content": …}, …]')
    return tuple(Message(role=turn["role"], content=turn["content"]) for turn in value)


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
    known_keys = set(known)
    for turn in turns if isinstance(turns, list) else [turns]:
        fields = turn if isinstance(turn, dict) else {}
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


def answer_or_none(response: Response) -> str | None:
    """Return the answer as one text; null where it has other turns."""
    if response.text is not None:
        return response.text
    turns = response.messages or ()
    return turns[0].content if turns and is_text(turns, "assistant") else None


def only_question(messages: Sequence[Message]) -> str | None:
    """Return the prompt's text where it is one user turn, else null."""
    return messages[0].content if is_text(messages, "user") else None


def answer_ids(turns: Sequence[Sequence[Message]], warnings: Counter[str]) -> tuple[str, ...]:
    """Make ids of the answers' texts; equal answers get ``~2`` and are counted."""
    ids = UniqueIds()
    names = ids.take_all(content_id("\n".join(turn.content for turn in answer)) for answer in turns)
    if ids.num_repeated:
        warnings["repeated responses"] += ids.num_repeated
    return names


def make_prompt(messages: Sequence[Message], **fields: Any) -> Prompt:
    """Return a prompt of these turns; empty values are left out."""
    return Prompt(messages=tuple(messages), **{name: value for name, value in fields.items() if value or name == "id"})


def question_prompt(text: str, **fields: Any) -> Prompt:
    """Return a prompt of one user turn; empty values are left out."""
    return make_prompt((Message(role="user", content=text),), **fields)


def responses_of(
    names: Sequence[str],
    answers: Sequence[Sequence[Message]],
    *,
    authors: Sequence[str | None] = (),
    metas: Sequence[Meta | None] = (),
) -> tuple[Response, ...]:
    """Return the responses of these ids and turns, with their authors and ``meta`` where there are any."""
    fields = zip(authors or [None] * len(names), metas or [None] * len(names), strict=True)
    return tuple(
        response_of(name, turns, author=author, meta=meta)
        for name, turns, (author, meta) in zip(names, answers, fields, strict=True)
    )


def without_absent(row: JsonObject, form: JsonObject, always: Collection[str] = ()) -> JsonObject:
    """Return the row without the keys that it lacked when it was read.

    A key that has a value now stays, unless it is in ``always``.
    """
    absent = set(form.get("absent", ()))
    return {key: value for key, value in row.items() if key not in absent or (value and key not in always)}


def as_read(kind: str, **facts: Any) -> Meta:
    """Return a case's ``meta`` with the form of its row; only the same format reads it when it writes again."""
    # An id that is 0 or empty is still a fact.
    form = {name: value for name, value in facts.items() if value is not None and value is not False and value != []}
    return {AS_READ: {"format": kind, **form}} if form else {}


def form_of(case: Case, kind: str) -> JsonObject:
    """Return the form that `as_read` recorded for this format; empty for cases of other origin."""
    form = case.meta.get(AS_READ)
    return form if isinstance(form, dict) and form.get("format") == kind else {}


def with_nulls(row: JsonObject, form: JsonObject) -> JsonObject:
    """Return the row with the nulls that it was read with, where it still has no value for them; 0 is a value."""
    values = {key: row.get(key) for key in form.get("null", ())}
    return row | {key: None for key, value in values.items() if not value and not isinstance(value, int | float)}


def with_meta(row: JsonObject, case: Case, known: Iterable[str], dropped: Counter[str]) -> JsonObject:
    """Return the row with the prompt's ``meta``; keys that the format uses itself are left out and counted."""
    return row | other_meta(case.prompt.meta, {*known, *row}, dropped, of="prompt")


def other_meta(meta: Meta | None, taken: Iterable[str], dropped: Counter[str], *, of: str = "response") -> JsonObject:
    """Return the entries of a ``meta`` under keys that are not taken; the others are counted."""
    taken_keys = set(taken)
    num_clashing = sum(key in taken_keys for key in meta or {})
    if num_clashing:
        dropped[f"{of} meta under keys of the format"] += num_clashing
    return {key: value for key, value in (meta or {}).items() if key not in taken_keys}


def without_keys(meta: Meta | None, keys: Iterable[str]) -> Meta | None:
    """Return the entries of a ``meta`` under other keys; null where there are none."""
    removed = set(keys)
    return {key: value for key, value in (meta or {}).items() if key not in removed} or None


class PromptIds:
    """Ids for the rows of one file: a row's own id must be unique; a made id is a hash of the whole row."""

    def __init__(self, warnings: Counter[str]) -> None:
        self._warnings = warnings
        self._made = UniqueIds()
        self._places: dict[tuple[str, str | None], Place] = {}

    def take(self, row: Row, name: str | None = None, *, language: str | None = None) -> str:
        """Return the row's own id, or a made one where it has none; an equal row gets ``~2`` and is counted.

        Raises RecordError when another row of the same language has the id too.
        """
        if name is None:
            before = self._made.num_repeated
            made = self._made.take(content_id(row.value))
            self._warnings["repeated rows"] += self._made.num_repeated - before
            return made
        key = (name, language)
        if key in self._places:
            problem = f"id {name!r} is already used at {self._places[key]}"
            raise RecordError(problem, where=row.place, allowed="unique ids")
        self._places[key] = row.place
        return name


class RowFormat(NamedTuple):
    """A format whose rows are one case each, as a value.

    ``parse`` reads a row. ``rows_of`` yields the rows of a case from its form, mostly one; each gets the nulls that it
    was read with and the prompt's ``meta``. ``id_scope`` gives the scope in which the written ``id`` of rows is unique:
    a repeated one gets ``~2`` and is counted.
    """

    kind: str
    keys: tuple[str, ...]
    supports: frozenset[str]
    matches: Callable[[JsonObject], bool]
    parse: "Callable[[Row, PromptIds, Counter[str]], Case]"
    rows_of: Callable[[Case, JsonObject, Counter[str]], Iterable[JsonObject]]
    id_scope: Callable[[Prompt], Hashable] | None = None

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases of the rows."""
        ids = PromptIds(warnings)
        return (self.parse(row, ids, warnings) for row in rows)

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the rows of the cases."""
        ids: defaultdict[Hashable, UniqueIds] = defaultdict(UniqueIds)
        for case in cases:
            # A copy: ``rows_of`` may remove facts that no longer hold.
            form = dict(form_of(case, self.kind))
            for row in self.rows_of(case, form, dropped):
                if self.id_scope is not None and "id" in row:
                    free = ids[self.id_scope(case.prompt)].take(str(row["id"]))
                    dropped["repeated ids of a subset"] += free != str(row["id"])
                    row["id"] = row["id"] if free == str(row["id"]) else free
                yield with_meta(with_nulls(row, form), case, self.keys, dropped)


# Formats of one answer per row: consecutive rows of one question are one case. A field under another key belongs to the
# prompt where all rows of the case agree on it, and else to the answer.


def groups_of(rows: Iterable[Row], key: Callable[[Row], object]) -> Iterator[list[Row]]:
    """Yield the rows in runs of one key."""
    return (list(group) for _, group in groupby(rows, key=key))


def group_id(group: Sequence[Row], ids: PromptIds) -> str:
    """Return an id for the case of rows without one; equal rows get ``~2`` and are counted."""
    return ids.take(Row(group[0].place, {"rows": [row.value for row in group]}))


def split_meta(group: Sequence[Row], known: Collection[str]) -> tuple[Meta | None, list[Meta | None]]:
    """Return the other fields that all rows share, and those of each row."""
    metas = [row.others(known) or {} for row in group]
    shared = {
        key: value for key, value in metas[0].items() if all(key in meta and meta[key] == value for meta in metas)
    }
    return shared or None, [{key: value for key, value in meta.items() if key not in shared} or None for meta in metas]


def with_metas(
    row: JsonObject, case: Case, meta: Meta | None, known: Collection[str], dropped: Counter[str]
) -> JsonObject:
    """Return the row with the prompt's and the answer's ``meta``; keys that are taken are left out and counted."""
    row = with_meta(row, case, known, dropped)
    return row | other_meta(meta, {*known, *row}, dropped)
