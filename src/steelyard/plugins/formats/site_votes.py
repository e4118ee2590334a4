"""Votes of a web site's visitors: Chatbot Arena's on two models, Stack Exchange's on any number of answers.

Chatbot Arena is written from the card of the data set lmsys/chatbot_arena_conversations (``question_id``, ``model_a``,
``model_b``, ``winner``, ``judge``, ``conversation_a``, ``conversation_b``, ``turn``, ``anony``, ``language``,
``tstamp``, moderation tags) and from public code that reads lmarena-ai/arena-human-preference-100k (``judge_hash`` in
place of ``judge``) and -140k (``id``, turns as lists of ``{type, text}``, ``both_bad``); the cards of those two could
not be read.

The prompt is the turns that both conversations share; from where they part, both are answers, of several turns where
the conversation went on. A vote that both are bad is a tie that its ``meta`` marks. ``turn`` is the answer that was
voted on. Keys that are not of the vote, such as ``tstamp``, go into the prompt's ``meta``.

Stack Exchange is written from the card of the data set HuggingFaceH4/stack-exchange-preferences and the features that
its copies list: ``pm_score`` is log2(1 + upvotes), rounded, plus 1 for an accepted answer, and -1 where votes are
negative. It is a rating by the site's readers without an upper end; that an answer is ``selected`` is a rating by the
asker. Texts are HTML and stay so. Ids are unique within one site: in a file of several sites a repeated one gets
``~2``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.checks import UniqueIds
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Kind, Rating, Response
from steelyard.curation.evidence_rows import text_id
from steelyard.curation.format_support import carrying, count_lost
from steelyard.curation.verdict_labels import LABELS, label_word
from steelyard.plugins.formats._languages import is_unknown_language, language_code, language_name
from steelyard.plugins.formats._pairs import PairTurns, plain_texts, shared_turns, whole_turns
from steelyard.plugins.formats._rows import (
    OTHER_SHAPE,
    CaseReader,
    RatingScale,
    RowFormat,
    TakenRatings,
    are_objects,
    other_meta,
    present,
    rating_of,
    take_ratings,
    verdict_from,
    with_each,
    without_keys,
)
from steelyard.plugins.formats._turns import answer_turns, count_other_keys


class ArenaTurns(NamedTuple):
    """The shared turns of both conversations and the rest of each; ``blocks``: the form of a text part, or null."""

    parts: PairTurns
    blocks: JsonObject | None


_SIDES = ("conversation_a", "conversation_b")
_MODELS = ("model_a", "model_b")
_IDS = ("question_id", "id")
_JUDGES = ("judge", "judge_hash")
_KEYS = (*_IDS, *_SIDES, *_MODELS, "winner", *_JUDGES, "language", "turn")
_WINNERS = {"left": "model_a", "right": "model_b", "tie": "tie"}


def _parse_arena(reader: CaseReader) -> Case:
    row, later = _voted_turns(reader.row)
    turns = both_turns(row, _SIDES, reader.warnings)
    id_key, judge_key = (next((key for key in keys if key in row.value), None) for keys in (_IDS, _JUDGES))
    row_id = row.value[id_key] if id_key else None
    language = row.optional_text("language")
    judge = row.optional_text(judge_key) if judge_key else None
    meta = reader.meta(
        id=row_id if not isinstance(row_id, str) else None,
        id_key=id_key or "",
        judge_key=judge_key or "",
        language=language if language_name(language_code(language)) != language else None,
        blocks=turns.blocks,
        turn=row.value.get("turn"),
        later=later,
    )
    name = None if row_id is None else str(row_id)
    code, messages = language_code(language), turns.parts.prompt
    reader.warnings["names of no known language"] += bool(language and not code and not is_unknown_language(language))
    # One question of MT-Bench has the votes of many people on many models.
    prompt_id = reader.ids.take(row, name, language=code, messages=messages) if name else text_id(messages)
    prompt = reader.prompt(messages, id=prompt_id, language=code)
    authors = [row.optional_text(key) for key in _MODELS]
    responses = reader.responses(turns.parts[1:], authors=authors)
    judgment = _judgment(row, judge, [response.id for response in responses])
    return Case(prompt=prompt, responses=responses, judgments=(judgment,), meta=meta)


def _voted_turns(row: Row) -> tuple[Row, JsonObject | None]:
    """Cut the conversations after the answer that was voted on: MT-Bench's votes on the first have both.

    Returns the row, and the turns that were cut.
    """
    turn, sides = row.value.get("turn"), {key: row.value.get(key) for key in _SIDES}
    # In a CSV file the number is a text.
    turn = int(turn) if isinstance(turn, str) and turn.isdecimal() else turn
    if not isinstance(turn, int) or isinstance(turn, bool) or turn < 1:
        return row, None
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
    return (Row(row.place, row.value | until), later) if all(later.values()) else (row, None)


def _judgment(row: Row, judge: str | None, names: Sequence[str]) -> Judgment:
    winner = row.value.get("winner")
    verdict = LABELS.get(label_word(winner)) if isinstance(winner, str) else None
    if verdict is None:
        allowed = "model_a, model_b, tie, tie (bothbad), both_bad"
        raise RecordError(f"unknown winner {winner!r}", where=row.at("winner"), allowed=allowed)
    meta = {"winner": winner} if _WINNERS[verdict] != winner else None
    left, right = names
    return Judgment(
        left=left, right=right, verdict=verdict, judge=judge or UNKNOWN_JUDGE, kind=_kind_of(judge), meta=meta
    )


def _kind_of(judge: str | None) -> Kind:
    """Return the kind of a judge: beside people, MT-Bench has the votes of ``gpt4_pair``."""
    return "llm" if (judge or "").startswith("gpt") else "human"


def _parts(case: Case) -> PairTurns | None:
    """Return the prompt and both answers; null for other numbers, or where a reader would cut them elsewhere."""
    if len(case.responses) != 2 or not case.prompt.messages:
        return None
    parts = PairTurns(case.prompt.messages, *map(answer_turns, case.responses))
    return parts if parts.is_separable() else None


def _arena_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for a case of two responses and a verdict; others are counted and not written."""
    judgment = next((vote for vote in case.judgments if vote.verdict in _WINNERS), None)
    parts = _parts(case)
    if judgment is None or parts is None:
        dropped[OTHER_SHAPE] += 1
        return
    dropped["judgments beyond one per row"] += len(case.judgments) - 1
    # The row names the judge: only a kind that its name does not tell is dropped.
    is_told = judgment.kind == _kind_of(judgment.judge)
    unnamed = replace(judgment, judge=UNKNOWN_JUDGE, kind="human") if is_told else judgment
    rest = with_each(case, judgment=lambda vote: unnamed if vote is judgment else vote)
    count_lost(rest, dropped, _CHATBOT_ARENA.supports)
    verdict = verdict_from(case.responses[0].id, judgment)
    exact_winner, read_language = str((judgment.meta or {}).get("winner")), form.get("language")
    is_same = read_language is not None and language_code(read_language) == case.prompt.language
    fields = {
        form.get("id_key", "question_id"): form.get("id", case.prompt.id),
        **dict(zip(_MODELS, (response.author for response in case.responses), strict=True)),
        "winner": exact_winner if LABELS.get(label_word(exact_winner)) == verdict else _WINNERS[verdict],
        form.get("judge_key", "judge"): None if judgment.judge == UNKNOWN_JUDGE else judgment.judge,
        **written_turns(parts, _SIDES, form.get("blocks")),
        "language": read_language if is_same else language_name(case.prompt.language),
    }
    if "turn" in form:
        # The answer that was voted on is the last one before those that came later.
        fields["turn"] = sum(turn["role"] == "assistant" for turn in fields[_SIDES[0]])
    for key, turns in (form.get("later") or {}).items():
        fields[key] = [*fields[key], *turns]
    silent = ["", *(key for key in (*_JUDGES, "language") if key in fields and fields[key] is None)]
    yield {key: value for key, value in fields.items() if key not in silent}


def both_turns(row: Row, sides: Sequence[str], warnings: Counter[str]) -> ArenaTurns:
    """Return the turns of both conversations. Raises RecordError for other values, and where they share no turn."""
    blocks: JsonObject | None = None
    read: JsonObject = {}
    for key in sides:
        turns = row.value.get(key)
        count_other_keys(turns, warnings)
        read[key] = [_plain(turn, warnings) for turn in turns] if isinstance(turns, list) else turns
        for turn in turns if isinstance(turns, list) else ():
            content = turn.get("content") if isinstance(turn, dict) else None
            for part in content if isinstance(content, list) else ():
                block = (
                    {name: value for name, value in part.items() if name != "text"} if isinstance(part, dict) else {}
                )
                blocks = block if blocks is None else blocks
                warnings["other keys of turns, left out"] += block != blocks
    return ArenaTurns(shared_turns(Row(row.place, read), sides), blocks)


def _plain(turn: Any, warnings: Counter[str]) -> Any:
    """Return the turn with its text parts as one text; parts that are not text (images) are left out and counted."""
    content = turn.get("content") if isinstance(turn, dict) else None
    if not isinstance(content, list):
        return turn
    texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    warnings["parts of turns that are not text, left out"] += len(content) - len(texts)
    warnings["turns whose parts are joined"] += len(texts) > 1
    return {"role": turn.get("role"), "content": "\n".join(texts)}


def written_turns(parts: PairTurns, sides: Sequence[str], blocks: JsonObject | None) -> JsonObject:
    """Return both conversations as lists of turns, of text or of one text part each."""
    whole = zip(sides, whole_turns(parts).values(), strict=True)
    if blocks is None:
        return dict(whole)
    return {key: [turn | {"content": [blocks | {"text": turn["content"]}]} for turn in turns] for key, turns in whole}


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
    rows_of=_arena_rows,
    null_keys=(*_IDS, *_JUDGES, "language"),
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
        _check(item, row.at(f"answers[{place}]"))
    names = UniqueIds().take_all(str(item["answer_id"]) for item in items)
    name = reader.ids.take_shared(str(row_id))
    answers = list(zip(names, items, strict=True))
    other_ids = {str(place): item["answer_id"] for place, (name, item) in enumerate(answers) if _is_other(name, item)}
    forms = [dict.fromkeys(key for key in _OPTIONAL if item.get(key, ...) is None) for item in items]
    return Case(
        prompt=reader.prompt(question, id=name),
        responses=tuple(_response(*answer) for answer in answers),
        ratings=tuple(rating for answer in answers for rating in _ratings(*answer, reader.warnings)),
        meta=reader.meta(
            qid=row_id if _written_id(name) != row_id else None,
            ids=other_ids or None,
            forms=forms if any(forms) else [],
        ),
    )


def _question_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for a case of one question and answers of one turn."""
    plain = plain_texts(case, dropped)
    if plain is None:
        return
    taken = take_ratings(case, (_SCORE, _SELECTED), dropped)
    count_lost(taken.rest, dropped, _STACK_EXCHANGE.supports)
    answers = [
        _answer(response, plain.texts[response.id], taken, dropped) | _read_form(place, form)
        for place, response in enumerate(case.responses)
    ]
    yield {"qid": form.get("qid", _written_id(case.prompt.id)), "question": plain.question, "answers": answers}


def _is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _written_id(name: str) -> int | str:
    """Return an id of digits as the number that it is."""
    return int(name) if name.isascii() and name.isdigit() and str(int(name)) == name else name


def _is_other(name: str, item: JsonObject) -> bool:
    """Return whether the id would be written otherwise than it was read."""
    answer_id, wanted = item["answer_id"], _written_id(name)
    return answer_id != wanted or isinstance(answer_id, int) != isinstance(wanted, int)


def _check(item: Any, where: Place) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str) or not _is_id(item.get("answer_id")):
        raise RecordError("an answer without id and text", where=where, allowed='{"answer_id": …, "text": …, …}')
    if item.get("pm_score") is not None and not is_number(item["pm_score"]):
        raise RecordError("a pm_score that is not a number", where=where, allowed="a number, or null")
    if not isinstance(item.get("selected"), bool | None):
        raise RecordError("'selected' is neither true nor false", where=where, allowed="true, false or null")
    if not isinstance(item.get("author"), str | None):
        raise RecordError("an author that is not a name", where=where, allowed="author: a text, or null")


def _response(name: str, item: JsonObject) -> Response:
    return Response(id=name, text=item["text"], author=item.get("author"), meta=without_keys(item, _ANSWER_KEYS))


def _ratings(name: str, item: JsonObject, warnings: Counter[str]) -> Iterator[Rating]:
    if item.get("pm_score") is not None:
        yield rating_of(name, item["pm_score"], _SCORE, warnings)
    if item.get("selected") is not None:
        yield rating_of(name, float(item["selected"]), _SELECTED, warnings)


def _answer(response: Response, text: str, taken: TakenRatings, dropped: Counter[str]) -> JsonObject:
    score, selected = (taken.value(response.id, scale.dimension) for scale in (_SCORE, _SELECTED))
    dropped["values of 'selected' between 0 and 1"] += selected not in (None, 0, 1)
    is_selected = bool(selected) if selected in (0, 1) else None
    fields = {"answer_id": _written_id(response.id), "text": text, "author": response.author}
    fields = present(fields | {"pm_score": score, "selected": is_selected})
    return fields | other_meta(response.meta, _ANSWER_KEYS, dropped)


def _read_form(place: int, form: JsonObject) -> JsonObject:
    """Return the fields of an answer that the case does not hold: its exact id, and keys that are null."""
    forms: Sequence[JsonObject] = form.get("forms") or ()
    ids = form.get("ids", {})
    fields = {"answer_id": ids[str(place)]} if str(place) in ids else {}
    return fields | (forms[place] if place < len(forms) else {})


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
    rows_of=_question_rows,
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
