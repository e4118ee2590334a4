"""Chatbot Arena: one question to two unnamed models, both conversations, and the vote of the person who asked.

Written from the card of the data set lmsys/chatbot_arena_conversations (``question_id``, ``model_a``, ``model_b``,
``winner``, ``judge``, ``conversation_a``, ``conversation_b``, ``turn``, ``anony``, ``language``, ``tstamp``, moderation
tags) and from public code that reads lmarena-ai/arena-human-preference-100k (``judge_hash`` in place of ``judge``) and
-140k (``id``, turns as lists of ``{type, text}``, ``both_bad``); the cards of those two could not be read.

The prompt is the turns that both conversations share; from where they part, both are answers, of several turns where
the conversation went on. A vote that both are bad is a tie that its ``meta`` marks. Keys that are not of the vote, such
as ``turn`` and ``tstamp``, go into the prompt's ``meta``.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Judgment, Verdict
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._pairs import PairTurns, shared_turns, whole_turns
from steelyard.plugins.formats._rows import (
    OTHER_SHAPE,
    PromptIds,
    RowFormat,
    answer_turns,
    as_read,
    count_other_keys,
    language_code,
    language_name,
    make_prompt,
    responses_of,
)


class ArenaTurns(NamedTuple):
    """The shared turns of both conversations and the rest of each; ``blocks``: the form of a text part, or null."""

    parts: PairTurns
    blocks: JsonObject | None


_KIND = "chatbot_arena"
_SIDES = ("conversation_a", "conversation_b")
_MODELS = ("model_a", "model_b")
_IDS = ("question_id", "id")
_JUDGES = ("judge", "judge_hash")
_KEYS = (*_IDS, *_SIDES, *_MODELS, "winner", *_JUDGES, "language")
_VERDICTS: dict[str, Verdict] = {
    "model_a": "left", "model_b": "right", "tie": "tie", "tie (bothbad)": "tie", "both_bad": "tie",
}  # fmt: skip
_WINNERS = {"left": "model_a", "right": "model_b", "tie": "tie"}


def _parse(row: Row, ids: PromptIds, warnings: Counter[str]) -> Case:
    turns = both_turns(row, _SIDES, warnings)
    id_key, judge_key = (next((key for key in keys if key in row.value), None) for keys in (_IDS, _JUDGES))
    row_id = row.value[id_key] if id_key else None
    language = row.optional_text("language")
    judge = row.optional_text(judge_key) if judge_key else None
    meta = as_read(
        _KIND,
        id=row_id if not isinstance(row_id, str) else None,
        id_key=id_key or "",
        judge_key=judge_key or "",
        language=language if language_name(language_code(language)) != language else None,
        blocks=turns.blocks,
        null=row.nulls((*_IDS, *_JUDGES, "language")),
    )
    prompt = make_prompt(
        turns.parts.prompt,
        id=ids.take(row, None if row_id is None else str(row_id)),
        language=language_code(language),
        meta=row.others(_KEYS),
    )
    responses = responses_of("ab", turns.parts[1:], authors=[row.optional_text(key) for key in _MODELS])
    return Case(prompt=prompt, responses=responses, judgments=(_judgment(row, judge),), meta=meta)


def _judgment(row: Row, judge: str | None) -> Judgment:
    winner = row.value.get("winner")
    if not isinstance(winner, str) or winner not in _VERDICTS:
        allowed = ", ".join(_VERDICTS)
        raise RecordError(f"unknown winner {winner!r}", where=row.at("winner"), allowed=allowed)
    verdict = _VERDICTS[winner]
    meta = {"winner": winner} if _WINNERS[verdict] != winner else None
    return Judgment(left="a", right="b", verdict=verdict, judge=judge or UNKNOWN, kind="human", meta=meta)


def _parts(case: Case) -> PairTurns | None:
    """Return the prompt and both answers; null for other numbers, or where a reader would cut them elsewhere."""
    if len(case.responses) != 2 or not case.prompt.messages:
        return None
    parts = PairTurns(case.prompt.messages, *map(answer_turns, case.responses))
    return parts if parts.is_separable() else None


def _rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row for a case of two responses and a verdict; others are counted and not written."""
    judgment = next((vote for vote in case.judgments if vote.verdict in _WINNERS), None)
    parts = _parts(case)
    if judgment is None or parts is None:
        dropped[OTHER_SHAPE] += 1
        return
    dropped["judgments beyond one per row"] += len(case.judgments) - 1
    count_lost(_without_judge(case, judgment), dropped, _CHATBOT_ARENA.supports)
    winner, first = _WINNERS[judgment.verdict], case.responses[0].id
    if judgment.verdict != "tie" and judgment.left != first:
        winner = _WINNERS["right" if judgment.verdict == "left" else "left"]
    exact_winner, read_language = (judgment.meta or {}).get("winner"), form.get("language")
    is_same = read_language is not None and language_code(read_language) == case.prompt.language
    fields = {
        form.get("id_key", "question_id"): form.get("id", case.prompt.id),
        **dict(zip(_MODELS, (response.author for response in case.responses), strict=True)),
        "winner": exact_winner if _VERDICTS.get(str(exact_winner)) == judgment.verdict == "tie" else winner,
        form.get("judge_key", "judge"): None if judgment.judge == UNKNOWN else judgment.judge,
        **written_turns(parts, _SIDES, form.get("blocks")),
        "language": read_language if is_same else language_name(case.prompt.language),
    }
    silent = ["", *(key for key in (*_JUDGES, "language") if key in fields and fields[key] is None)]
    yield {key: value for key, value in fields.items() if key not in silent}


def _without_judge(case: Case, written: Judgment) -> Case:
    """Return the case without the judge that the row names."""
    unnamed = replace(written, judge=UNKNOWN if written.kind == "human" else written.judge)
    return replace(case, judgments=tuple(unnamed if judgment is written else judgment for judgment in case.judgments))


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
    kind=_KIND,
    keys=_KEYS,
    supports=carrying(
        "system turns", "earlier turns", "language", "prompt meta", "prompt ids", "authors",
        "answers of several turns", "judgments",
    ),
    matches=lambda row: (
        all(isinstance(row.get(key), list) for key in _SIDES) and {*_MODELS, "winner"} <= row.keys()
    ),
    parse=_parse,
    rows_of=_rows,
)  # fmt: skip
"""One row per vote on two conversations."""

KINDS = {"chatbot_arena": without_settings(_CHATBOT_ARENA, __doc__)}
