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

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.checks import UniqueIds
from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.text import is_blank, response_text
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Message, Rating, Response, Verdict
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._rows import (
    CaseReader,
    RatingScale,
    RowFormat,
    present,
    rating_of,
    take_ratings,
    with_each,
)
from steelyard.plugins.formats._turns import answer_text, count_other_keys, response_of, system_text, turns_of

_THUMB = RatingScale("thumb", (-1, 1), None, "human")
_VERDICTS: Mapping[str, Verdict] = {"1": "left", "-1": "right"}
_VOTES = {verdict: int(vote) for vote, verdict in _VERDICTS.items()}
_TURN_KEYS = ("id", "parentId", "childrenIds", "role", "content")
_TREE = "snapshot.chat.chat.history.messages"


class _Vote(NamedTuple):
    """One person's vote on an answer, up or down (1, -1), or none, against the others."""

    judge: str
    answer: str
    others: tuple[str, ...] = ()
    rating: int | None = None


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
        meta=reader.meta(
            id=row.value.get("id"),
            above=above,
            data=data,
            meta={key: value for key, value in meta.items() if key != "message_id"},
        ),
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
    if not isinstance(history, dict) or not isinstance(history.get("messages"), dict):
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


def _rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for each vote; a case without one is a row without a vote."""
    thumbs = take_ratings(case, (_THUMB,), dropped, keeps_meta=True)
    votes = [*_votes(case.judgments, dropped)]
    for (answer, _), rating in thumbs.ratings.items():
        votes += [_Vote(rating.rater, answer, (), int(rating.value))] if rating.value in _VOTES.values() else ()
        dropped["ratings that are neither up nor down"] += rating.value not in _VOTES.values()
    names = {name for vote in votes for name in (vote.answer, *vote.others)}
    answers = [response for response in case.responses if not names or response.id in names]
    dropped["responses in no vote"] += len(case.responses) - len(answers)
    rest = replace(thumbs.rest, responses=tuple(answers[:2]) if votes else case.responses)
    count_lost(with_each(rest, judgment=lambda item: _uncarried(item, form)), dropped, _OPEN_WEBUI.supports)
    if answers and not votes:
        votes = [_Vote(UNKNOWN_JUDGE, answers[0].id, tuple(response.id for response in answers[1:]))]
    for vote in votes:
        yield _row(case, vote, form, dropped)


def _votes(judgments: Sequence[Judgment], dropped: Counter[str]) -> Iterator[_Vote]:
    """Yield the judgments as votes: those of one judge on one answer with one verdict are a vote against several."""
    groups: defaultdict[tuple[str, str, int], dict[str, None]] = defaultdict(dict)
    for item in judgments:
        if item.verdict in _VOTES:
            others = groups[item.judge, item.left, _VOTES[item.verdict]]
            dropped["repeated judgments"] += item.right in others
            others[item.right] = None
        else:
            dropped["judgments that are neither up nor down"] += 1
    for (judge, answer, rating), others in groups.items():
        yield _Vote(judge, answer, tuple(others), rating)


def _uncarried(judgment: Judgment, form: JsonObject) -> Judgment:
    """Return the judgment without what a row holds of it: a person's id, and the details in the form of its row."""
    without_judge = replace(judgment, judge=UNKNOWN_JUDGE) if judgment.kind == "human" else judgment
    return replace(without_judge, reason=None, meta=None) if "data" in form else without_judge


def _row(case: Case, vote: _Vote, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    system = system_text(case.prompt.messages, dropped)
    turns = [turn for turn in case.prompt.messages if turn.role != "system"]
    by_id = {response.id: response for response in case.responses}
    answers = [by_id[name] for name in (vote.answer, *vote.others)]
    names = form.get("above", [f"turn-{number}" for number in range(1, len(turns) + 1)])
    above = UniqueIds().take_all([*by_id, *names])[len(by_id) :]
    below = [*([name] for name in above[1:]), [answer.id for answer in answers]]
    tree = {
        name: _message(name, parent, children, turn.role, turn.content)
        for name, parent, children, turn in zip(above, (None, *above), below, turns, strict=False)
    }
    for answer in answers:
        message = _message(answer.id, above[-1], [], "assistant", answer_text(answer, dropped))
        tree[answer.id] = message | ({"model": answer.author} if answer.author else {})
    data = form.get("data", {"model_id": answers[0].author, "sibling_model_ids": [each.author for each in answers[1:]]})
    # The number may have been a text.
    rating = {} if str(data.get("rating")) == str(vote.rating) else {"rating": vote.rating}
    chat = {"history": {"messages": tree, "currentId": vote.answer}} | (
        {"params": {"system": system}} if system else {}
    )
    fields = {"id": form.get("id"), "user_id": None if vote.judge == UNKNOWN_JUDGE else vote.judge}
    return present(fields) | {
        "type": "rating",
        "data": data | rating,
        "meta": {"message_id": vote.answer, **form.get("meta", {})},
        "snapshot": {"chat": {"chat": chat}},
    }


def _message(name: str, parent: str | None, children: Sequence[str], role: str, content: str) -> JsonObject:
    return {"id": name, "parentId": parent, "childrenIds": [*children], "role": role, "content": content}


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
    rows_of=_rows,
    has_evidence_rows=True,
)
"""One row per vote on an answer."""

KINDS = {
    "open_webui": without_settings(
        _OPEN_WEBUI, "Open WebUI feedback: an answer of a chat with a vote up or down, and the answers beside it."
    )
}
