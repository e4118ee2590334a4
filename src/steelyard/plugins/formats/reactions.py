"""compar:IA's reactions: a thumb up or down on one message of one of two conversations with unnamed models.

Written from the export of the table ``reactions`` in the repository betagouv/ComparIA (``utils/schemas``,
``utils/export_dataset.py``): ``conversation_a`` and ``conversation_b`` are lists of turns, ``model_pos`` is the side,
``msg_index`` the place of the message in it, ``liked`` and ``disliked`` the thumbs, ``visitor_id`` the person.

A reaction is an opinion of one answer, not of a pair: a rating of 1 or -1. The prompt is the turns above the message.
A conversion joins the answers to one prompt, which are ranked by the mean of their ratings. A row without a thumb, or
with both, is an answer without a rating, and is counted. Qualities (``useful``, ``incorrect`` …) and comments stay with
the row, as do the two conversations.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Message
from steelyard.curation.evidence_rows import ranking_by_mean, text_id
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._column_values import is_true
from steelyard.plugins.formats._pairs import parse_number
from steelyard.plugins.formats._rows import OTHER_SHAPE, CaseReader, RatingScale, RowFormat, rating_of
from steelyard.plugins.formats._table_values import decoded_list
from steelyard.plugins.formats._turns import answer_turns, as_turns, count_other_keys, is_text, turns_of

_THUMB = RatingScale("thumb", (-1, 1), None, "human")
_THUMBS = {"liked": 1, "disliked": -1}


class _RatedMessage(NamedTuple):
    """The message of a reaction, and the turns above it."""

    above: tuple[Message, ...]
    turn: Message


def _message(row: Row, warnings: Counter[str]) -> _RatedMessage:
    """Return the message. Raises RecordError where no message of the assistant is at the place."""
    side = row.value.get("model_pos")
    if side not in ("a", "b"):
        raise RecordError(f"{side!r} is not a side", where=row.at("model_pos"), allowed="a, b")
    key = f"conversation_{side}"
    conversation = decoded_list(row.value.get(key))
    count_other_keys(conversation, warnings)
    turns = turns_of(conversation if isinstance(conversation, list) else None, row.place, key, role="user")
    # In a CSV file the place is a text.
    place = parse_number(str(row.value.get("msg_index")))
    if place is None or place not in range(1, len(turns)) or turns[int(place)].role != "assistant":
        problem = f"no answer is at place {row.value.get('msg_index')!r} of {key}"
        raise RecordError(problem, where=row.at("msg_index"), allowed="the place of an assistant's turn, from 0")
    system = row.optional_text("system_prompt")
    has_system = not system or turns[0].role == "system"
    before = () if has_system else (Message(role="system", content=system or ""),)
    return _RatedMessage(before + turns[: int(place)], turns[int(place)])


def _parse(reader: CaseReader) -> Case:
    row, warnings = reader.row, reader.warnings
    above, turn = _message(row, warnings)
    (response,) = reader.responses([(turn,)], authors=[row.optional_text("refers_to_model")])
    thumbs = [value for key, value in _THUMBS.items() if is_true(row, key)]
    warnings["reactions with both thumbs"] += len(thumbs) > 1
    warnings["reactions without a thumb"] += not thumbs
    rater, time = row.optional_text("visitor_id") or UNKNOWN_JUDGE, row.value.get("timestamp")
    meta = None if time is None else {"time": str(time)}
    ratings = [rating_of(response.id, value, _THUMB, warnings, rater=rater, meta=meta) for value in thumbs]
    return Case(
        prompt=reader.prompt(above, id=text_id(above)),
        responses=(response,),
        ratings=tuple(ratings) if len(ratings) == 1 else (),
        meta=reader.meta(cells={key: row.value[key] for key in _REACTIONS.keys if key in row.value}),
    )


def _rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for each rating, and for each answer without one."""
    taken = [rating for rating in case.ratings if (rating.dimension, rating.range) == _THUMB[:2]]
    for rating in taken:
        dropped["raters"] += rating.kind != "human"
        further = (rating.meta or {}).keys() - {"time"}
        dropped["rating details"] += bool(rating.id or rating.task or rating.spans or further)
    others = tuple(rating for rating in case.ratings if rating not in taken)
    # The ranking by the mean of the ratings is read again.
    ranking = None if case.ranking == ranking_by_mean(taken) else case.ranking
    count_lost(replace(case, ratings=others, ranking=ranking), dropped, _REACTIONS.supports)
    cells: JsonObject = form.get("cells", {})
    for response in case.responses:
        turns = answer_turns(response)
        if not case.prompt.messages or not is_text(turns, "assistant"):
            dropped[OTHER_SHAPE] += 1
            continue
        for rating in [rating for rating in taken if rating.response == response.id] or [None]:
            row = {
                "conversation_a": as_turns((*case.prompt.messages, *turns)),
                "model_pos": "a",
                "msg_index": len(case.prompt.messages),
                "refers_to_model": response.author,
                "visitor_id": None if rating is None or rating.rater == UNKNOWN_JUDGE else rating.rater,
                "timestamp": None if rating is None else (rating.meta or {}).get("time"),
                **{key: rating is not None and rating.value == value for key, value in _THUMBS.items()},
            }
            yield cells if _is_same(cells, row) else {key: value for key, value in row.items() if value is not None}


def _is_same(first: JsonObject, second: JsonObject) -> bool:
    """Return whether two rows hold one reaction; a person without a thumb is not in a case."""
    if not first:
        return False
    values = []
    for row in (Row(Place("the row to write"), fields) for fields in (first, second)):
        thumbs = [is_true(row, key) for key in _THUMBS]
        visitor = (row.value.get("visitor_id") or None) if sum(thumbs) == 1 else None
        values.append((_message(row, Counter()), row.value.get("refers_to_model") or None, visitor, thumbs))
    return values[0] == values[1]


_REACTIONS = RowFormat(
    kind="comparia_reactions",
    keys=(
        "conversation_a", "conversation_b", "model_pos", "msg_index", "refers_to_model", "system_prompt", *_THUMBS,
        "visitor_id", "timestamp",
    ),
    supports=carrying("system turns", "earlier turns", "prompt meta", "authors"),
    matches=lambda row: {"conversation_a", "model_pos", "msg_index", *_THUMBS} <= row.keys(),
    parse=_parse,
    rows_of=_rows,
    has_evidence_rows=True,
)  # fmt: skip
"""One row per reaction."""

KINDS = {
    "comparia_reactions": without_settings(
        _REACTIONS, "compar:IA's reactions: two conversations, and a thumb up or down on one message of one of them."
    )
}
