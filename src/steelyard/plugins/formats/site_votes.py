"""Votes of a web site's visitors: Chatbot Arena's on two models, Stack Exchange's on any number of answers.

Chatbot Arena is written from the card of the data set lmsys/chatbot_arena_conversations (``question_id``, ``model_a``,
``model_b``, ``winner``, ``judge``, ``conversation_a``, ``conversation_b``, ``turn``, ``anony``, ``language``,
``tstamp``, moderation tags) and from public code that reads lmarena-ai/arena-human-preference-100k (``judge_hash`` in
place of ``judge``) and -140k (``id``, turns as lists of ``{type, text}``, ``both_bad``); the cards of those two could
not be read.

The prompt is the turns that both conversations share; from where they part, both are answers, of several turns where
the conversation went on. A vote that both are bad is a tie that its ``meta`` marks. A vote without a winner has no
verdict and is counted. ``turn`` is the answer that was voted on. Keys that are not of the vote, such as ``tstamp``, go
into the prompt's ``meta``.

Stack Exchange is written from the card of the data set HuggingFaceH4/stack-exchange-preferences and the features that
its copies list: ``pm_score`` is log2(1 + upvotes), rounded, plus 1 for an accepted answer, and -1 where votes are
negative. It is a rating by the site's readers without an upper end; that an answer is ``selected`` is a rating by the
asker. Texts are HTML and stay so. Ids are unique within one site: in a file of several sites a repeated one gets
``~2``.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from steelyard.core.checks import UniqueIds
from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Rating, Response
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying
from steelyard.curation.verdict_labels import LABELS, label_word
from steelyard.plugins.formats._languages import is_unknown_language, language_code
from steelyard.plugins.formats._pairs import shared_turns
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
    are_objects,
    without_keys,
)
from steelyard.plugins.formats._turns import count_other_keys

_SIDES = ("conversation_a", "conversation_b")
_MODELS = ("model_a", "model_b")
_IDS = ("question_id", "id")
_JUDGES = ("judge", "judge_hash")
_NO_WINNER = "no winner"
_KEYS = (*_IDS, *_SIDES, *_MODELS, "winner", *_JUDGES, "language", "turn")


def _parse_arena(reader: CaseReader) -> Case:
    row = _voted_turns(reader.row)
    turns = shared_turns(Row(row.place, {key: _plain_turns(row, key, reader.warnings) for key in _SIDES}), _SIDES)
    id_key, judge_key = (next((key for key in keys if key in row.value), None) for keys in (_IDS, _JUDGES))
    row_id = row.value[id_key] if id_key else None
    language = row.optional_text("language")
    judge = row.optional_text(judge_key) if judge_key else None
    name = None if row_id is None else str(row_id)
    code, messages = language_code(language), turns.prompt
    reader.warnings["names of no known language"] += bool(language and not code and not is_unknown_language(language))
    # One question of MT-Bench has the votes of many people on many models.
    prompt_id = reader.ids.take(row, name, language=code, messages=messages) if name else text_id(messages)
    prompt = reader.prompt(messages, id=prompt_id, language=code)
    authors = [row.optional_text(key) for key in _MODELS]
    responses = reader.responses(turns[1:], authors=authors)
    winner = row.value.get("winner")
    is_absent = winner is None or (isinstance(winner, str) and not winner.strip())
    verdict = "none" if is_absent else LABELS.get(label_word(winner)) if isinstance(winner, str) else None
    if verdict is None:
        allowed = "model_a, model_b, tie, tie (bothbad), both_bad"
        raise RecordError(f"unknown winner {winner!r}", where=row.at("winner"), allowed=allowed)
    reader.warnings["votes without a winner"] += is_absent
    meta = None if is_absent or winner in (*_MODELS, "tie") else {"winner": winner}
    left, right = [response.id for response in responses]
    # Beside people, MT-Bench has the votes of `gpt4_pair`.
    kind = "llm" if (judge or "").startswith("gpt") else "human"
    judgment = Judgment(
        left=left,
        right=right,
        verdict=verdict,
        judge=judge or UNKNOWN_JUDGE,
        kind=kind,
        reason=_NO_WINNER if is_absent else None,
        meta=meta,
    )
    return Case(prompt=prompt, responses=responses, judgments=(judgment,))


def _voted_turns(row: Row) -> Row:
    """Cut the conversations after the answer that was voted on: MT-Bench's votes on the first have both."""
    turn, sides = row.value.get("turn"), {key: row.value.get(key) for key in _SIDES}
    # In a CSV file the number is a text.
    turn = int(turn) if isinstance(turn, str) and turn.isdecimal() else turn
    if not isinstance(turn, int) or isinstance(turn, bool) or turn < 1:
        return row
    until: JsonObject = {}
    later: JsonObject = {}
    for key, side in sides.items():
        turns = side if isinstance(side, list) else []
        ends = [
            place
            for place, each in enumerate(turns, 1)
            if are_objects([each], ("role",)) and each["role"] == "assistant"
        ]
        end = ends[turn - 1] if turn <= len(ends) else len(turns)
        until[key], later[key] = turns[:end], turns[end:]
    return Row(row.place, row.value | until) if all(later.values()) else row


def _plain_turns(row: Row, key: str, warnings: Counter[str]) -> Any:
    """Return the turns of a conversation with text alone; any other value as it is."""
    turns = row.value.get(key)
    count_other_keys(turns, warnings)
    return [_plain(turn, warnings) for turn in turns] if isinstance(turns, list) else turns


def _plain(turn: Any, warnings: Counter[str]) -> Any:
    """Return the turn with its text parts as one text; parts that are not text (images) are left out and counted."""
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(content, list):
        return turn
    count_other_keys(content, warnings, ("type", "text"))
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    warnings["parts of turns that are not text, left out"] += len(content) - len(texts)
    warnings["turns whose parts are joined"] += len(texts) > 1
    return {"role": turn.get("role"), "content": "\n".join(texts)}


_CHATBOT_ARENA = RowFormat(
    kind="chatbot_arena",
    keys=_KEYS,
    supports=carrying(
        "system turns", "earlier turns", "language", "prompt meta", "prompt ids", "authors",
        "answers of several turns", "judgments",
    ),
    matches=lambda row: (
        all(isinstance(row.get(key), list) for key in _SIDES) and {*_MODELS, "winner"} <= row.keys()
    ),
    parse=_parse_arena,
    has_evidence_rows=True,
)  # fmt: skip
"""One row per vote on two conversations."""


# Stack Exchange

_SCORE = RatingScale("pm_score", None, "stackexchange", "human")
_SELECTED = RatingScale("selected", (0, 1), "asker", "human")
_OPTIONAL = ("author", "pm_score", "selected")
_ANSWER_KEYS = ("answer_id", "text", *_OPTIONAL)


def _parse_question(reader: CaseReader) -> Case:
    row = reader.row
    question, row_id = row.text("question"), row.value.get("qid")
    if not _is_id(row_id):
        raise RecordError("a question without an id", where=row.at("qid"), allowed="a number")
    items = row.items("answers")
    for place, item in enumerate(items):
        where = row.at(f"answers[{place}]")
        if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not _is_id(item.get("answer_id")):
            raise RecordError("an answer without id and text", where=where, allowed='{"answer_id": …, "text": …, …}')
        if item.get("pm_score") is not None and not is_number(item["pm_score"]):
            raise RecordError("a pm_score that is not a number", where=where, allowed="a number, or null")
        if not isinstance(item.get("selected"), bool | None):
            raise RecordError("'selected' is neither true nor false", where=where, allowed="true, false or null")
        if not isinstance(item.get("author"), str | None):
            raise RecordError("an author that is not a name", where=where, allowed="author: a text, or null")
    names = UniqueIds().take_all(str(item["answer_id"]) for item in items)
    answers = list(zip(names, items, strict=True))
    return Case(
        prompt=reader.prompt(question, id=reader.ids.take_shared(str(row_id))),
        responses=tuple(
            Response(id=name, text=item["text"], author=item.get("author"), meta=without_keys(item, _ANSWER_KEYS))
            for name, item in answers
        ),
        ratings=tuple(rating for answer in answers for rating in _ratings(*answer, reader.warnings)),
    )


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _ratings(name: str, item: JsonObject, warnings: Counter[str]) -> Iterator[Rating]:
    if item.get("pm_score") is not None:
        yield rating_of(name, item["pm_score"], _SCORE, warnings)
    if item.get("selected") is not None:
        yield rating_of(name, float(item["selected"]), _SELECTED, warnings)


_STACK_EXCHANGE = RowFormat(
    kind="stackexchange",
    keys=("qid", "question", "answers"),
    supports=carrying(
        "prompt meta", "prompt ids", "response ids", "authors", "response meta", "more than two responses"
    ),
    matches=lambda row: (
        {"qid", "question"} <= row.keys()
        and bool(row.get("answers"))
        and are_objects(row["answers"], ("answer_id", "pm_score"))
    ),
    parse=_parse_question,
)
"""One row per question, with all its answers."""

KINDS = {
    "chatbot_arena": without_settings(
        _CHATBOT_ARENA,
        "Chatbot Arena: one question to two unnamed models, both conversations, and the vote of the person who asked.",
    ),
    "stackexchange": without_settings(
        _STACK_EXCHANGE,
        "Stack Exchange preferences: a question with its answers, their scores, and which one the asker accepted.",
    ),
}
