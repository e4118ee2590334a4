"""Open WebUI: feedback on an answer of a chat, up or down, also in its arena of unnamed models.

Written from ``models/feedbacks.py`` and the function ``feedbackHandler`` of ``ResponseMessage.svelte`` in the
repository open-webui/open-webui: a row is ``{id, user_id, type, data: {rating: 1 or -1, …}, meta: {message_id, …},
snapshot}``, and ``snapshot.chat.chat.history.messages`` is the tree of the chat: ``{id: {role, content, model,
parentId, childrenIds}}``.

The prompt is the branch of the tree above the answer, after the system prompt of the chat. The answers beside it (of
other models, or generated again) are those that it was compared with, as on Open WebUI's own leaderboard: a vote up is
a judgment for the answer against each of them, a vote down one against it. Without another answer the vote is a rating.
A comment is the ``reason`` of a judgment. Other branches of the chat are left out and counted.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.text import is_blank, response_text
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Message, Rating, Response, Verdict
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats._turns import count_other_keys, response_of, turns_of

_THUMB = RatingScale("thumb", (-1, 1), None, "human")
_VERDICTS: Mapping[str, Verdict] = {"1": "left", "-1": "right"}
_VOTES = {verdict: int(vote) for vote, verdict in _VERDICTS.items()}
_TURN_KEYS = ("id", "parentId", "childrenIds", "role", "content")
_TREE = "snapshot.chat.chat.history.messages"


def _parse(reader: CaseReader) -> Case:
    row, warnings = reader.row, reader.warnings
    data, meta = (_object(row, key) for key in ("data", "meta"))
    chat = _chat(row)
    tree: JsonObject = chat["history"]["messages"]
    above = _above(row, tree, meta.get("message_id"))
    responses = _answers(row, tree, meta["message_id"], above, warnings)
    count_other_keys([tree[key] for key in above], warnings, _TURN_KEYS)
    warnings["other messages of the chat, left out"] += len(tree) - len(above) - len(responses)
    params = chat.get("params")
    system = params.get("system") if isinstance(params, dict) else None
    messages = (Message(role="system", content=system),) if isinstance(system, str) and system else ()
    messages += tuple(turn for key in above for turn in _turns(row, tree, key))
    verdict = None if isinstance(data.get("rating"), bool) else _VERDICTS.get(str(data.get("rating")))
    warnings["feedback without a vote"] += verdict is None
    first, *others = (response.id for response in responses)
    judge, comment, time = (
        row.optional_text("user_id") or UNKNOWN_JUDGE,
        data.get("comment"),
        row.value.get("created_at"),
    )
    details = None if time is None else {"time": time}
    judgments: list[Judgment] = []
    ratings: list[Rating] = []
    if verdict is not None and others:
        reason = comment if isinstance(comment, str) and comment else None
        fields: JsonObject = {"verdict": verdict, "judge": judge, "kind": "human", "reason": reason, "meta": details}
        judgments = [Judgment(left=first, right=other, **fields) for other in others]
    elif verdict is not None:
        ratings = [rating_of(first, _VOTES[verdict], _THUMB, warnings, rater=judge, meta=details)]
    return Case(
        prompt=reader.prompt(messages, id=text_id(messages)),
        responses=responses,
        judgments=tuple(judgments),
        ratings=tuple(ratings),
    )


def _object(row: Row, key: str) -> JsonObject:
    value = row.value.get(key)
    if not isinstance(value, dict):
        raise RecordError(f"the feedback has no {key!r}", where=row.place, allowed=f"{key}: an object")
    return value


def _chat(row: Row) -> JsonObject:
    """Return the chat of the snapshot, whose content is under ``chat`` once more."""
    chat: Any = row.value.get("snapshot")
    for _ in range(2):
        chat = chat.get("chat") if isinstance(chat, dict) else None
    history = chat.get("history") if isinstance(chat, dict) else None
    if not isinstance(chat, dict) or not isinstance(history, dict) or not isinstance(history.get("messages"), dict):
        do = "export the feedback with its chats: Admin Panel, Evaluations, Feedbacks, Export"
        raise RecordError("the feedback has no messages of its chat", where=row.place, allowed=_TREE, do=do)
    return chat


def _above(row: Row, tree: JsonObject, name: Any) -> list[str]:
    """Return the ids of the messages above an answer, first to last."""
    branch: list[str] = []
    while name is not None:
        turn = tree.get(name) if isinstance(name, str) else None
        if not isinstance(turn, dict) or name in branch:
            problem = f"the chat has no message {name!r}" if turn is None else f"message {name!r} is above itself"
            raise RecordError(problem, where=row.at(_TREE), allowed="a tree of messages")
        branch.append(name)
        name = turn.get("parentId")
    if len(branch) < 2:
        raise RecordError("the feedback is on a message without a question", where=row.at("meta.message_id"))
    return branch[:0:-1]


def _answers(
    row: Row, tree: JsonObject, name: str, above: Sequence[str], warnings: Counter[str]
) -> tuple[Response, ...]:
    """Return the answer and then those beside it, without the ones that failed and are blank."""
    siblings = [
        key
        for key, turn in tree.items()
        if key != name
        and isinstance(turn, dict)
        and (turn.get("parentId"), turn.get("role")) == (above[-1], "assistant")
    ]
    responses: list[Response] = []
    for key in (name, *siblings):
        # In the arena the model is unnamed while the vote is given.
        author = tree[key].get("selectedModelId") or tree[key].get("model")
        response = response_of(key, _turns(row, tree, key), author=author if isinstance(author, str) else None)
        if key != name and is_blank(response_text(response)):
            warnings["blank answers beside the one with a vote, left out"] += 1
            continue
        count_other_keys(tree[key], warnings, (*_TURN_KEYS, "model", "selectedModelId"))
        responses.append(response)
    return tuple(responses)


def _turns(row: Row, tree: JsonObject, key: str) -> tuple[Message, ...]:
    return turns_of([tree[key]], row.place, f"{_TREE}.{key}", role="user")


_OPEN_WEBUI = RowFormat(
    kind="open_webui",
    keys=("id", "user_id", "type", "data", "meta", "snapshot"),
    supports=carrying("system turns", "earlier turns", "prompt meta", "response ids", "authors", "judgments"),
    matches=lambda row: (
        row.get("type") == "rating"
        and isinstance(row.get("data"), dict)
        and isinstance(row.get("meta"), dict)
        and "message_id" in row["meta"]
    ),
    parse=_parse,
    has_evidence_rows=True,
)
"""One row per vote on an answer."""

KINDS = {
    "open_webui": without_settings(
        _OPEN_WEBUI, "Open WebUI feedback: an answer of a chat with a vote up or down, and the answers beside it."
    )
}
