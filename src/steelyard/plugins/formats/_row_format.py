"""A format of rows as a value: the reader of a case, ids, and the recorded form of a row.

A case holds less than a row: whether a text was a list of one turn, which keys were null or absent, an id that was a
number. `as_read` records this form in the case's ``meta``, so that the same format writes the same bytes again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.checks import UniqueIds, content_id
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment, Message, Meta, Prompt, Rating, Response
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import AS_READ
from steelyard.plugins.formats._turns import (
    ROLE_AND_CONTENT,
    answer_of,
    count_other_keys,
    field_turns,
    response_of,
    turn_keys,
)

OTHER_SHAPE = "cases of another shape"
"""The counter of cases that do not fit a format of a fixed shape; they are not written."""
TEXT_ROWS = "one user turn, and answers of one assistant turn"
"""The cases that can be written as texts alone."""
TRL_COLUMNS = (
    "input_ids", "labels", "attention_mask", "position_ids", "seq_lengths", "completion_mask", "assistant_masks",
    "prompt_ids", "completion_ids", "chosen_ids", "rejected_ids", "chosen_input_ids", "rejected_input_ids",
    "KL_completion_ids", "ref_logps", "ref_KL_logps", "ref_chosen_logps", "ref_rejected_logps",
)  # fmt: skip
"""The columns that TRL's trainers take for tokens, masks and reference probabilities of a prepared data set."""


def as_read(kind: str, **facts: Any) -> Meta:
    """Return a case's ``meta`` with the form of its row; only the same format reads it when it writes again."""
    # An id that is 0 or empty is still a fact.
    form = {name: value for name, value in facts.items() if value is not None and value is not False and value != []}
    return {AS_READ: {"format": kind, **form}} if form else {}


def form_of(case: Case, kind: str) -> JsonObject:
    """Return the form that `as_read` recorded for this format; empty for cases of other origin."""
    form = case.meta.get(AS_READ)
    return form if isinstance(form, dict) and form.get("format") == kind else {}


def in_form(row: JsonObject, form: JsonObject, made: Collection[str] = ()) -> JsonObject:
    """Return the row without the keys that it lacked when it was read, and with its nulls; 0 is a value.

    A key that has a value now stays, unless the writer always makes one: such keys are ``made``.
    """
    has_value = {key: bool(value) or isinstance(value, int | float) for key, value in row.items() if key not in made}
    absent, null = set(form.get("absent", ())), form.get("null", ())
    present = {key: value for key, value in row.items() if key not in absent or has_value.get(key, False)}
    return present | {key: None for key in null if not has_value.get(key, False)}


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


def are_objects(value: Any, keys: Collection[str]) -> bool:
    """Return whether the value is a list of objects that have these keys."""
    return isinstance(value, list) and all(isinstance(item, dict) and set(keys) <= item.keys() for item in value)


def present(fields: JsonObject) -> JsonObject:
    """Return the fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


class PromptIds:
    """Ids for the rows of one file: a row's own id must be unique; a made id is a hash of the whole row."""

    def __init__(self, warnings: Counter[str]) -> None:
        self._warnings = warnings
        self._made = UniqueIds()
        self._shared = UniqueIds()
        self._rows: dict[tuple[str, str | None], tuple[Place, bytes | None]] = {}

    def take(
        self,
        row: Row,
        name: str | None = None,
        *,
        language: str | None = None,
        messages: Sequence[Message] | None = None,
    ) -> str:
        """Return the row's own id, or a made one where it has none; an equal row gets ``~2`` and is counted.

        Raises RecordError when another row of the same language has the id too. With ``messages``, rows of one prompt
        may share its id.
        """
        if name is None:
            before = self._made.num_repeated
            made = self._made.take(content_id(row.value))
            self._warnings["repeated rows"] += self._made.num_repeated - before
            return made
        key = (name, language)
        digest = None if messages is None else bytes.fromhex(text_id(messages))
        if key not in self._rows:
            self._rows[key] = (row.place, digest)
        elif digest is None or digest != self._rows[key][1]:
            problem = f"id {name!r} is already used at {self._rows[key][0]}"
            allowed = "unique ids" if digest is None else "one id for one prompt"
            raise RecordError(problem, where=row.place, allowed=allowed)
        return name

    def take_shared(self, name: str) -> str:
        """Return an id that several rows may have; a repeated one gets ``~2`` and is counted."""
        free = self._shared.take(name)
        self._warnings["repeated prompt ids"] += free != name
        return free


class CaseReader(NamedTuple):
    """The rows of one case, mostly one, with the ids and the counted warnings of their file.

    ``form`` is what every case of the format records of its row: absent keys, nulls, lists of turns.
    """

    kind: str
    keys: tuple[str, ...]
    rows: Sequence[Row]
    ids: PromptIds
    warnings: Counter[str]
    form: Mapping[str, Sequence[str]] = MappingProxyType({})

    @property
    def row(self) -> Row:
        """Return the first row."""
        return self.rows[0]

    def turns(self, key: str, role: str) -> tuple[Message, ...]:
        """Read the turns under a key of the first row; a text is one turn of the role."""
        return field_turns(self.row, key, role=role)

    def prompt(self, turns: str | Sequence[Message], *, name: str | None = None, **fields: Any) -> Prompt:
        """Return the prompt of these turns, or of one question; empty fields are left out.

        Its id is the name, or else made of the first row. Fields under other keys go into its ``meta``.
        """
        values: JsonObject = {"meta": self.row.others(self.keys), **fields}
        prompt_id = values.pop("id") if "id" in values else self.ids.take(self.row, name)
        messages = (Message(role="user", content=turns),) if isinstance(turns, str) else tuple(turns)
        return Prompt(id=prompt_id, messages=messages, **{field: value for field, value in values.items() if value})

    def responses(
        self,
        answers: Iterable[str | Sequence[Message]],
        *,
        ids: Sequence[str] = (),
        authors: Sequence[str | None] = (),
        metas: Sequence[Meta | None] = (),
    ) -> tuple[Response, ...]:
        """Return the answers as responses; without ``ids`` theirs are made of the texts, and equal ones are counted."""
        turns = [answer_of(answer) if isinstance(answer, str) else answer for answer in answers]
        names = ids or answer_ids(turns, self.warnings)
        fields = zip(names, turns, authors or [None] * len(turns), metas or [None] * len(turns), strict=True)
        return tuple(response_of(name, answer, author=author, meta=meta) for name, answer, author, meta in fields)

    def meta(self, **facts: Any) -> Meta:
        """Return the case's ``meta`` with the form of its rows: these facts and those of every case."""
        return as_read(self.kind, **{**facts, **self.form, **facts})


def answer_ids(answers: Iterable[Sequence[Message]], warnings: Counter[str]) -> tuple[str, ...]:
    """Make ids of the answers' texts; equal answers get ``~2`` and are counted."""
    ids = UniqueIds()
    names = ids.take_all(content_id("\n".join(turn.content for turn in answer)) for answer in answers)
    if ids.num_repeated:
        warnings["repeated responses"] += ids.num_repeated
    return names


class RowFormat(NamedTuple):
    """A format as a value: how rows of a case are read, and a case is written as rows.

    A case is one row, or with ``group_key`` the consecutive rows of one such key. ``parse`` reads a case. ``rows_of``
    yields the rows of a case from its form; each gets its form back and the prompt's ``meta``. Null ``rows_of`` is a
    format that is only read, and records no form. Keys by their handling:

    - ``null_keys``, ``absent_keys``: keys that are written as null, or not at all, where they were read so;
    - ``made_keys``: those among them for which ``rows_of`` always makes a value, such as an id;
    - ``turn_keys``: turns, whose other ``turn_fields`` are counted; ``list_keys``: turns that can also be one text.

    A row with lists of answers under one of ``better_keys`` or of ``worse_keys`` is read as a row for each pair of a
    better and a worse one. Where ``has_evidence_rows``, a row is one judgment, rating or answer, and a conversion joins
    the rows of one prompt. ``id_scope`` gives the scope in which the written ``id`` of rows is unique: a repeated one
    gets ``~2`` and is counted. ``required`` is the shape that the setting ``texts`` requires of all cases.
    ``reads_text`` says which further texts the format reads, by their key, and ``reserved_keys`` are those that its
    trainer reads in another sense: a prompt's ``meta`` is not written there.
    """

    kind: str
    keys: tuple[str, ...]
    supports: frozenset[str]
    matches: Callable[[JsonObject], bool]
    parse: Callable[[CaseReader], Case]
    rows_of: Callable[[Case, JsonObject, Counter[str]], Iterable[JsonObject]] | None = None
    null_keys: tuple[str, ...] = ()
    absent_keys: tuple[str, ...] = ()
    made_keys: tuple[str, ...] = ()
    turn_keys: tuple[str, ...] = ()
    turn_fields: tuple[str, ...] = ROLE_AND_CONTENT
    list_keys: tuple[str, ...] = ()
    group_key: Callable[[Row], object] | None = None
    better_keys: tuple[str, ...] = ()
    worse_keys: tuple[str, ...] = ()
    has_evidence_rows: bool = False
    id_scope: Callable[[Prompt], Hashable] | None = None
    required: str | None = None
    reads_text: Callable[[str, str], bool] = lambda key, text: False
    reserved_keys: tuple[str, ...] = ()

    @property
    def is_written(self) -> bool:
        """Return whether cases can be written as rows."""
        return self.rows_of is not None

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases of the rows."""
        ids = PromptIds(warnings)
        for keys in (self.better_keys, self.worse_keys):
            rows = chain.from_iterable(map(partial(_apart, keys=keys), rows)) if keys else rows
        for group in ([row] for row in rows) if self.group_key is None else groups_of(rows, self.group_key):
            row = group[0]
            for key in (*self.turn_keys, *self.list_keys):
                count_other_keys(row.value.get(key), warnings, self.turn_fields)
            form = {
                "absent": row.absent(self.absent_keys),
                "null": row.nulls(self.null_keys),
                "turns": turn_keys(row, self.list_keys),
            }
            yield self.parse(CaseReader(self.kind, self.keys, group, ids, warnings, form))

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield the rows of the cases. Raises ConfigError at the end where cases lack the required shape."""
        assert self.rows_of is not None, "a format that is only read"
        ids: defaultdict[Hashable, UniqueIds] = defaultdict(UniqueIds)
        num_cases, num_before = 0, dropped[OTHER_SHAPE]
        for case in cases:
            num_cases += 1
            # A copy: ``rows_of`` may remove facts that no longer hold.
            form = dict(form_of(case, self.kind))
            texts = {key: text for key, text in (case.prompt.meta or {}).items() if text and isinstance(text, str)}
            known = (*self.keys, *self.reserved_keys, *(key for key in texts if self.reads_text(key, texts[key])))
            for row in self.rows_of(case, form, dropped):
                if self.id_scope is not None and "id" in row:
                    free = ids[self.id_scope(case.prompt)].take(str(row["id"]))
                    dropped["repeated ids of a subset"] += free != str(row["id"])
                    row["id"] = row["id"] if free == str(row["id"]) else free
                yield with_meta(in_form(row, form, self.made_keys), case, known, dropped)
        num_others = dropped[OTHER_SHAPE] - num_before
        if self.required and num_others:
            problem = f"{num_others:,} of {num_cases:,} prompts cannot be written as texts"
            do = "leave texts away: all rows are then lists of turns"
            raise ConfigError(problem, where="texts", allowed=self.required, do=do)


def _apart(row: Row, keys: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each answer of a list under one of the keys: texts, or lists of turns."""
    for key in keys:
        items = row.value.get(key)
        if isinstance(items, list) and items and all(isinstance(item, str | list) for item in items):
            yield from (Row(row.place, row.value | {key: item}) for item in items)
            return
    yield row


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


def with_each(
    case: Case,
    *,
    judgment: Callable[[Judgment], Judgment] = lambda item: item,
    rating: Callable[[Rating], Rating] = lambda item: item,
) -> Case:
    """Return the case with each piece of evidence changed, such as without details that a format holds elsewhere."""
    return replace(
        case,
        judgments=tuple(map(judgment, case.judgments)),
        ratings=tuple(map(rating, case.ratings)),
    )
