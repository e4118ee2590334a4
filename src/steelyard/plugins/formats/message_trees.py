"""OpenAssistant's message trees (oasst1, oasst2), as a message a row or as a whole tree a row.

Written from the cards of the data sets OpenAssistant/oasst1 and OpenAssistant/oasst2. A message of a ``prompter`` is
the prompt of a case, after the turns that lead to it. The ``assistant`` messages that reply to it are the responses,
and their ``rank`` (0 is best, aggregated from several people) gives the tiers; a message without a rank is in none.
A message of a prompter to which nobody replied is a prompt without responses.

Deleted messages and those that the reviewers rejected, or did not review, are left out with all below them, and
counted. So are messages whose parent the file does not have, as in an extract of one language.

Rows of one tree are consecutive, as in the published files: memory holds one tree.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message, Meta, Prompt, Response
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._pairs import tiers_of
from steelyard.plugins.formats._row_format import (
    PromptIds,
)

_SUPPORTS = carrying(
    "earlier turns", "language", "prompt meta", "prompt ids", "response ids", "authors", "response meta", "rankings",
    "ties", "more than two responses",
)  # fmt: skip
_ROLES = {"prompter": "user", "assistant": "assistant"}
_REVIEW = ("deleted", "review_result")
_LEFT_OUT = "messages left out: "
MESSAGE_KEYS = ("message_id", "parent_id", "text", "role", "lang", "rank", "model_name", "message_tree_id")
INNER_KEYS = ("parent_id", "message_tree_id", "replies")
TREE_KEYS = ("prompt", "replies")


class _Node(NamedTuple):
    """A message of a tree: its row, its id, and the id of its parent."""

    row: Row
    name: str
    parent: str | None

    @property
    def is_prompt(self) -> bool:
        """Return whether the message is a prompter's."""
        return self.row.value["role"] == "prompter"


class _Tree(NamedTuple):
    """The messages of one tree by their parents, in the order of the file.

    ``fields`` are those of the tree itself; null where each message is a row.
    """

    name: str | None
    nodes: Sequence[_Node]
    children: dict[str | None, list[_Node]]
    fields: JsonObject | None = None

    @property
    def is_nested(self) -> bool:
        """Return whether the tree was one row."""
        return self.fields is not None


class OasstMessages:
    """A message a row."""

    keys = MESSAGE_KEYS
    has_evidence_rows = False
    is_written = False
    supports = _SUPPORTS

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row is a message of a tree."""
        return all(isinstance(row.get(key), str) for key in ("message_id", "text")) and row.get("role") in _ROLES

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases of every tree, depth first."""
        ids = PromptIds(warnings)
        for group in _trees_of(rows):
            yield from _cases(_tree([_node(row) for row in group]), ids, warnings)


class OasstTrees:
    """A tree a row: ``prompt`` is its first message, whose ``replies`` are messages with replies of their own."""

    keys = (*MESSAGE_KEYS, *TREE_KEYS)
    has_evidence_rows = False
    is_written = False
    supports = _SUPPORTS

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row is a tree of messages."""
        root = row.get("prompt")
        return isinstance(row.get("message_tree_id"), str) and isinstance(root, dict) and "message_id" in root

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield the cases of every tree, depth first."""
        ids = PromptIds(warnings)
        for row in rows:
            name, nodes = row.text("message_tree_id"), _nodes_below(row)
            fields = row.others(("message_tree_id", "prompt")) or {}
            yield from _cases(_tree(nodes)._replace(name=name, fields=fields), ids, warnings)


# From rows to trees


def _trees_of(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the consecutive rows of each tree. Without ``message_tree_id`` a tree begins where a row has no parent."""
    group: list[Row] = []
    begun: dict[str, Place] = {}
    for row in rows:
        name = row.optional_text("message_tree_id")
        is_next = row.value.get("parent_id") is None
        if group and name is not None:
            is_next = name != group[0].value.get("message_tree_id")
        if group and is_next:
            yield group
            group = []
        if not group and name is not None and begun.setdefault(name, row.place) is not row.place:
            raise RecordError(
                f"tree {name!r} goes on after another one; it began at {begun[name]}",
                where=row.place,
                allowed="the messages of a tree in consecutive rows",
                do="sort the rows by message_tree_id",
            )
        group.append(row)
    if group:
        yield group


def _node(row: Row) -> _Node:
    """Check the fields of a message that are read."""
    name, role = row.text("message_id"), row.text("role")
    row.text("text")
    row.number("rank")
    for key in ("lang", "model_name"):
        row.optional_text(key)
    if role not in _ROLES:
        raise RecordError(f"unknown role {role!r}", where=row.at("role"), allowed=", ".join(_ROLES))
    for key in _REVIEW:
        if not (row.value.get(key) is None or isinstance(row.value[key], bool)):
            raise RecordError("a value that is not true or false", where=row.at(key), allowed="true, false, or null")
    return _Node(row, name, row.optional_text("parent_id"))


def _nodes_below(tree: Row) -> list[_Node]:
    """Return the messages of a tree, depth first. Raises RecordError where a parent named is another."""
    nodes: list[_Node] = []
    waiting: list[tuple[Any, str, str | None]] = [(tree.value.get("prompt"), "prompt", None)]
    while waiting:
        fields, path, parent = waiting.pop()
        if not isinstance(fields, dict):
            allowed = f'{path.partition(".")[0]}: {{"message_id": …, "text": …, "role": …, "replies": […]}}'
            raise RecordError(f"no message under {path!r}", where=tree.at(path), allowed=allowed)
        node = _node(Row(tree.at(path), fields))
        if node.parent not in (None, parent):
            raise RecordError(f"parent_id {node.parent!r} is not the message above it", where=tree.at(path))
        nodes.append(node._replace(parent=parent))
        replies = node.row.items("replies", default=())
        below = [(reply, f"{path}.replies[{place}]", node.name) for place, reply in enumerate(replies)]
        waiting.extend(reversed(below))
    return nodes


def _tree(nodes: Sequence[_Node]) -> _Tree:
    """Return the messages by their parents. Raises RecordError for repeated ids, two roots, cycles, and wrong roles."""
    by_name: dict[str, _Node] = {}
    children: dict[str | None, list[_Node]] = {}
    for node in nodes:
        if by_name.setdefault(node.name, node) is not node:
            problem = f"message_id {node.name!r} is already used at {by_name[node.name].row.place}"
            raise RecordError(problem, where=node.row.place, allowed="unique ids")
        children.setdefault(node.parent, []).append(node)
    if len(roots := children.get(None, [])) > 1:
        problem = f"a second message without a parent in one tree; the first is at {roots[0].row.place}"
        raise RecordError(problem, where=roots[1].row.place, allowed="one message with parent_id null in a tree")
    tops = [node for node in nodes if node.parent not in by_name]
    reached = {node.name for node in _below(tops, children)}
    for node in nodes:
        if node.name not in reached:
            problem = f"message {node.name!r} is its own ancestor"
            raise RecordError(problem, where=node.row.place, allowed="parent_id: a message above it in the tree")
        above = by_name.get(node.parent) if node.parent is not None else None
        if (node.parent is None and not node.is_prompt) or (above is not None and above.is_prompt == node.is_prompt):
            problem = f"a message of the {node.row.value['role']} where one of the other role belongs"
            allowed = "a tree that begins with the prompter, and replies in turn"
            raise RecordError(problem, where=node.row.at("role"), allowed=allowed)
    return _Tree(nodes[0].row.value.get("message_tree_id"), nodes, children)


def _below(tops: Iterable[_Node], children: dict[str | None, list[_Node]]) -> Iterator[_Node]:
    """Yield the messages and all below them, depth first."""
    waiting = list(reversed(list(tops)))
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(children.get(node.name, ())))


# From trees to cases


def _cases(tree: _Tree, ids: PromptIds, warnings: Counter[str]) -> Iterator[Case]:
    """Yield a case for each message of a prompter, depth first."""
    has_results = any("review_result" in node.row.value for node in tree.nodes)
    faults = {node.name: fault for node in tree.nodes if (fault := _fault(node, has_results=has_results))}
    num_visited = 0
    waiting: list[tuple[_Node, ...]] = [(node,) for node in tree.children.get(None, ())]
    while waiting:
        path = waiting.pop()
        node = path[-1]
        num_visited += 1
        if node.name in faults:
            warnings[_LEFT_OUT + faults[node.name]] += 1
            continue
        replies = tree.children.get(node.name, [])
        if node.is_prompt:
            answers = [reply for reply in replies if reply.name not in faults]
            warnings["prompts without a reply"] += not answers
            yield _case(tree, path, answers, ids)
        waiting.extend((*path, reply) for reply in reversed(replies))
    # Orphans: a parent, or a parent of a parent, is not in the tree.
    names = {node.name for node in tree.nodes}
    tops = [node for node in tree.nodes if node.parent is not None and node.parent not in names]
    num_orphans = sum(1 for _ in _below(tops, tree.children))
    warnings[_LEFT_OUT + "their parent is not in the file"] += num_orphans
    warnings[_LEFT_OUT + "below one that is left out"] += len(tree.nodes) - num_visited - num_orphans


def _fault(node: _Node, *, has_results: bool) -> str | None:
    """Return why a message is left out; null for one that stays.

    Some files omit nulls: where the tree has results, a message with a count of reviews and no result has none yet.
    """
    fields = node.row.value
    if fields.get("deleted"):
        return "deleted"
    if fields.get("review_result") is False:
        return "rejected in review"
    is_open = fields["review_result"] is None if "review_result" in fields else has_results and "review_count" in fields
    return "not reviewed" if is_open else None


def _case(tree: _Tree, path: Sequence[_Node], answers: Sequence[_Node], ids: PromptIds) -> Case:
    row = path[-1].row
    language = row.optional_text("lang") or None
    tree_fields = {"tree": tree.fields} if tree.fields and len(path) == 1 else {}
    ranks = {answer.name: rank for answer in answers if (rank := answer.row.number("rank")) is not None}
    prompt = Prompt(
        id=ids.take(row, path[-1].name, language=language),
        messages=tuple(Message(role=_ROLES[node.row.value["role"]], content=node.row.value["text"]) for node in path),
        language=language,
        meta={**_others(row, tree), **tree_fields} or None,
    )
    return Case(
        prompt=prompt,
        responses=tuple(_response(answer, tree, language) for answer in answers),
        ranking=tiers_of(ranks) or None,
    )


def _response(node: _Node, tree: _Tree, language: str | None) -> Response:
    row, meta = node.row, _others(node.row, tree)
    if "lang" in row.value and row.value["lang"] != language:
        meta = {"lang": row.value["lang"], **meta}
    return Response(id=node.name, text=row.text("text"), author=row.optional_text("model_name"), meta=meta or None)


def _others(row: Row, tree: _Tree) -> Meta:
    return row.others((*MESSAGE_KEYS, *INNER_KEYS) if tree.is_nested else MESSAGE_KEYS) or {}


KINDS = {
    "oasst_messages": without_settings(
        OasstMessages(), "OpenAssistant (oasst1, oasst2), a message a row: `message_id`, `parent_id`, `role`, `rank`."
    ),
    "oasst_trees": without_settings(
        OasstTrees(), "OpenAssistant (oasst1, oasst2), a tree of messages a row: `prompt` with its `replies`."
    ),
}
