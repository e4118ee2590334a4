"""Cases as OpenAssistant's message trees: a tree is put together from its cases, and written depth first.

A case that was read from a tree knows the ids of the messages above it. Those of other cases are hashes of the turns up
to there, so that conversations with one beginning are one tree. A message above a case that is in no case of its own is
written with its text alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from steelyard.core.checks import UniqueIds, content_id
from steelyard.core.types import Case, JsonObject
from steelyard.curation.format_support import count_lost
from steelyard.plugins.formats._pairs import rank_of, tiers_of
from steelyard.plugins.formats._rows import OTHER_SHAPE, form_of, other_meta
from steelyard.plugins.formats._turns import answer_or_none, as_turns

FORM = "oasst"
"""Both kinds read each other's form, so that messages can be written as trees, and trees as messages."""
MESSAGE_KEYS = ("message_id", "parent_id", "text", "role", "lang", "rank", "model_name", "message_tree_id")
INNER_KEYS = ("parent_id", "message_tree_id", "replies")
"""Keys that the messages inside a tree repeat, or omit."""
TREE_KEYS = ("prompt", "replies")
OPTIONAL_KEYS = ("parent_id", "lang", "rank", "model_name", "message_tree_id")
PROMPTER_KEYS = ("rank", "model_name")
_ROLES = {"user": "prompter", "assistant": "assistant"}
TREE = "tree"
"""The key of the prompt's ``meta`` for the fields of the tree itself."""
_DEEPEST = 200
"""The most turns of a case: JSON that is nested deeper is read by few programs."""


class _MessageRow(NamedTuple):
    """A message to write: its id and its parent's, its fields, what it has inside a tree, and the keys it lacks."""

    name: str
    parent: str | None
    fields: JsonObject
    inner: JsonObject
    absent: frozenset[str]

    def row(self, place: JsonObject) -> JsonObject:
        """Return the fields with those of its place in the tree; keys that it lacked stay away where they are null."""
        row = {"message_id": self.name, **place, **self.fields}
        return {key: value for key, value in row.items() if key not in self.absent or value is not None}


class _PlacedCase(NamedTuple):
    """A case and the ids of the messages above it."""

    case: Case
    path: Sequence[str]

    @property
    def root(self) -> str:
        """Return the id of the first message of its tree."""
        return self.path[0] if self.path else self.case.prompt.id


class _GrowingTree:
    """A tree as it is put together from its cases."""

    def __init__(self, taken: UniqueIds, reserved: Sequence[str], dropped: Counter[str]) -> None:
        self._taken, self._reserved, self._dropped = taken, reserved, dropped
        self._names: dict[str, str] = {}
        self._messages: dict[str, _MessageRow] = {}
        self._below: defaultdict[str | None, list[str]] = defaultdict(list)
        self.name = ""
        self.fields: JsonObject = {}

    def put(self, group: Sequence[_PlacedCase]) -> None:
        """Put the cases of the tree into it, in their order."""
        ids = [(self._free(placed.case.prompt.id), self._responses(placed.case)) for placed in group]
        for placed, (name, responses) in zip(group, ids, strict=True):
            self._put_earlier(placed)
            form, parent = form_of(placed.case, FORM), self._names[placed.path[-1]] if placed.path else None
            places = [(name, parent), *((response, name) for response in responses)]
            for index, fields in enumerate(_messages_of(placed.case, form, self._reserved, self._dropped)):
                self._add(places[index], fields, form, index)
        self._check_texts(group)
        root, form = group[0].root, form_of(group[0].case, FORM)
        is_renamed = self._names[root] != root
        self.name = self._names[root] if is_renamed else form.get("tree") or root
        if not group[0].path and form.get("tree_fields"):
            self.fields = (group[0].case.prompt.meta or {}).get(TREE) or {}

    def depth_first(self) -> Iterator[_MessageRow]:
        """Yield the messages, each before those below it."""
        waiting = self._below[None][::-1]
        while waiting:
            name = waiting.pop()
            yield self._messages[name]
            waiting.extend(reversed(self._below[name]))

    def nested(self) -> JsonObject:
        """Return the first message with all below it as its replies."""
        nodes: dict[str | None, JsonObject] = {}
        for message in self.depth_first():
            nodes[message.name] = message.row(message.inner)
            if message.parent is not None:
                nodes[message.parent].setdefault("replies", []).append(nodes[message.name])
        return nodes[self._below[None][0]]

    def _free(self, name: str) -> str:
        free = self._taken.take(name)
        self._dropped["repeated message ids"] += free != name
        self._names.setdefault(name, free)
        return free

    def _responses(self, case: Case) -> list[str]:
        return [self._free(response.id) for response in case.responses]

    def _put_earlier(self, placed: _PlacedCase) -> None:
        """Add the messages above the case that no case of the group has."""
        parent = None
        for name, turn in zip(placed.path, placed.case.prompt.messages, strict=False):
            if name not in self._names:
                fields = {"text": turn.content, "role": _ROLES[turn.role]}
                self._dropped["details of earlier turns without a case"] += bool(form_of(placed.case, FORM))
                self._add((self._free(name), parent), fields, {}, 0)
            parent = self._names[name]

    def _add(self, place: tuple[str, str | None], fields: JsonObject, form: JsonObject, index: int) -> None:
        """Add a message under its id and its parent's; ``index`` is its position in the form of its case."""
        name, parent = place
        inner = form.get("inner") or ()
        absent = frozenset(key for key, places in form.get("absent", {}).items() if index in places)
        if index > 0 and "lang" in absent:
            fields = {**fields, "lang": None}
        self._messages[name] = _MessageRow(name, parent, fields, inner[index] if index < len(inner) else {}, absent)
        self._below[parent].append(name)

    def _check_texts(self, group: Sequence[_PlacedCase]) -> None:
        for placed in group:
            for name, turn in zip(placed.path, placed.case.prompt.messages, strict=False):
                is_other = self._messages[self._names[name]].fields["text"] != turn.content
                self._dropped["earlier turns with another text than their own case"] += is_other


def message_rows(cases: Iterable[Case], supports: frozenset[str], dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for each message; what does not fit is counted."""
    for tree in _trees(cases, supports, MESSAGE_KEYS, dropped):
        for message in tree.depth_first():
            row = message.row({"parent_id": message.parent})
            of_tree = {} if "message_tree_id" in message.absent else {"message_tree_id": tree.name}
            yield {**tree.fields, **row, **of_tree}


def tree_rows(cases: Iterable[Case], supports: frozenset[str], dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for each tree; what does not fit is counted."""
    for tree in _trees(cases, supports, (*MESSAGE_KEYS, *TREE_KEYS), dropped):
        prompt = tree.nested()
        state = {"tree_state": prompt["tree_state"]} if prompt.get("tree_state") and not tree.fields else {}
        yield {"message_tree_id": tree.name, **state, **tree.fields, "prompt": prompt}


def _trees(
    cases: Iterable[Case], supports: frozenset[str], reserved: Sequence[str], dropped: Counter[str]
) -> Iterator[_GrowingTree]:
    """Yield a tree for each run of cases with the same first message."""
    taken = UniqueIds()
    for group in _groups(cases, supports, dropped):
        tree = _GrowingTree(taken, reserved, dropped)
        tree.put(group)
        yield tree


def _groups(cases: Iterable[Case], supports: frozenset[str], dropped: Counter[str]) -> Iterator[list[_PlacedCase]]:
    group: list[_PlacedCase] = []
    ids: set[str] = set()
    for case in cases:
        if not _fits(case):
            dropped[OTHER_SHAPE] += 1
            continue
        count_lost(case, dropped, supports)
        placed = _PlacedCase(case, _path(case))
        if group and (placed.root != group[0].root or case.prompt.id in ids):
            yield group
            group, ids = [], set()
        group.append(placed)
        ids.add(case.prompt.id)
    if group:
        yield group


def _fits(case: Case) -> bool:
    """Return whether user and assistant take turns, the user first and last, and every response is one text."""
    roles = [turn.role for turn in case.prompt.messages]
    takes_turns = roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    return takes_turns and len(roles) <= _DEEPEST and None not in map(answer_or_none, case.responses)


def _path(case: Case) -> Sequence[str]:
    turns = case.prompt.messages[:-1]
    path = form_of(case, FORM).get("path", ())
    if len(path) == len(turns):
        return path
    return [content_id({"turns": as_turns(turns[: number + 1])}) for number in range(len(turns))]


def _messages_of(case: Case, form: JsonObject, reserved: Sequence[str], dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield the fields of the prompt's message, and those of the responses."""
    prompt, prompter = case.prompt, form.get("prompter") or {}
    meta = {key: value for key, value in (prompt.meta or {}).items() if key != TREE or not form.get("tree_fields")}
    yield {
        "text": prompt.messages[-1].content,
        "role": "prompter",
        "lang": prompt.language,
        **{key: prompter.get(key) for key in PROMPTER_KEYS},
        **other_meta(meta, reserved, dropped, of="prompt"),
    }
    ranks = _ranks(case, form)
    for response in case.responses:
        meta = response.meta or {}
        has_language = "lang" in meta and (meta["lang"] is None or isinstance(meta["lang"], str))
        others = {key: value for key, value in meta.items() if not (key == "lang" and has_language)}
        yield {
            "text": answer_or_none(response),
            "role": "assistant",
            "lang": meta["lang"] if has_language else prompt.language,
            "rank": ranks.get(response.id),
            "model_name": response.author,
            **other_meta(others, reserved, dropped),
        }


def _ranks(case: Case, form: JsonObject) -> JsonObject:
    """Return the ranks as they were read where the tiers are still the same, else the numbers of the tiers from 0."""
    ranks = rank_of(case.ranking or (), first=0)
    ranked = [response.id for response in case.responses if response.id in ranks]
    read = dict(zip(ranked, form.get("ranks", ()), strict=False))
    return read if read.keys() == ranks.keys() and tiers_of(read) == tuple(case.ranking or ()) else ranks
