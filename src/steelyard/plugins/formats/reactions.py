"""compar:IA's reactions: a thumb up or down on one message of one of two conversations with unnamed models.

Written from the export of the table ``reactions`` in the repository betagouv/ComparIA (``utils/schemas``,
``utils/export_dataset.py``): ``conversation_a`` and ``conversation_b`` are lists of turns, ``model_pos`` is the side,
``msg_index`` the place of the message in it, ``liked`` and ``disliked`` the thumbs, ``visitor_id`` the person.

A reaction is an opinion of one answer, not of a pair: a rating of 1 or -1. The prompt is the turns above the message.
A conversion joins the answers to one prompt, which are ranked by the mean of their ratings. A row without a thumb, or
with both, is an answer without a rating, and is counted. Qualities (``useful``, ``incorrect`` …) and comments stay with
the row, as do the two conversations.
"""

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import parse_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, Message
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._column_values import is_true
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats._table_values import decoded_list
from steelyard.plugins.formats._turns import count_other_keys, turns_of

_THUMB = RatingScale("thumb", (-1, 1), None, "human")
_THUMBS = {"liked": 1, "disliked": -1}


def _parse(reader: CaseReader) -> Case:
    row, warnings = reader.row, reader.warnings
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
    above = before + turns[: int(place)]
    (response,) = reader.responses([(turns[int(place)],)], authors=[row.optional_text("refers_to_model")])
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
    )


_REACTIONS = RowFormat(
    kind="comparia_reactions",
    keys=(
        "conversation_a", "conversation_b", "model_pos", "msg_index", "refers_to_model", "system_prompt", *_THUMBS,
        "visitor_id", "timestamp",
    ),
    supports=carrying("system turns", "earlier turns", "prompt meta", "authors"),
    matches=lambda row: {"conversation_a", "model_pos", "msg_index", *_THUMBS} <= row.keys(),
    parse=_parse,
    has_evidence_rows=True,
)  # fmt: skip
"""One row per reaction."""

KINDS = {
    "comparia_reactions": without_settings(
        _REACTIONS, "compar:IA's reactions: two conversations, and a thumb up or down on one message of one of them."
    )
}
