"""Chatbot Arena: one question put to two unnamed models, both conversations, and the vote of the one who asked.

Written from the card of the data set lmsys/chatbot_arena_conversations (``question_id``, ``model_a``, ``model_b``,
``winner``, ``judge``, ``conversation_a``, ``conversation_b``, ``turn``, ``anony``, ``language``, ``tstamp``, moderation
tags) and from public code that reads lmarena-ai/arena-human-preference-100k (``judge_hash`` in place of ``judge``) and
-140k (``id``, turns as lists of ``{type, text}``, ``both_bad``); the cards of those two could not be read.

The prompt is the turns that both conversations share; from where they part, both are answers, of several turns where
the conversation went on. A vote that both are bad is a tie whose ``meta`` says so. Keys that are not of the vote, such
as ``turn`` and ``tstamp``, go into the prompt's ``meta``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Judgment, Verdict
from steelyard.plugins.formats._arena import Turns, both_turns, language_in, said_language, said_turns
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_turns,
    as_read,
    form_of,
    nulls_of,
    optional_text,
    response_of,
    rest,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._implicit import Parts, is_found_again
from steelyard.plugins.formats._parts import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._sides import OTHER_SHAPE

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


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class ChatbotArena:
    """One row a vote on two conversations."""

    keys = _KEYS
    carries = carrying(
        "system turns", "earlier turns", "language", "prompt meta", "prompt ids", "authors",
        "answers of several turns", "judgments",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """Two lists of turns with their models and a winner."""
        return all(isinstance(row.get(key), list) for key in _SIDES) and {*_MODELS, "winner"} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two responses and one judgment."""
        ids = PromptIds(noted)
        for row in rows:
            turns = both_turns(row, _SIDES, noted)
            id_key, judge_key = (next((key for key in keys if key in row.value), None) for keys in (_IDS, _JUDGES))
            given = row.value[id_key] if id_key else None
            language = optional_text(row, "language")
            judge = optional_text(row, judge_key) if judge_key else None
            meta = as_read(
                _KIND,
                id=given if not isinstance(given, str) else None,
                id_key=id_key or "",
                judge_key=judge_key or "",
                language=language if said_language(language_in(language)) != language else None,
                blocks=turns.blocks,
                null=nulls_of(row, (*_IDS, *_JUDGES, "language")),
            )
            prompt = with_prompt(
                turns.parts.prompt,
                id=ids.made(row) if given is None else ids.given(str(given), row),
                language=language_in(language),
                meta=rest(row, _KEYS),
            )
            yield Case(prompt=prompt, responses=_responses(row, turns), judgments=(_judgment(row, judge),), meta=meta)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a case of two responses and a verdict; others are counted and not written."""
        for case in cases:
            judgment = next((one for one in case.judgments if one.verdict in _WINNERS), None)
            parts = _parts(case)
            if judgment is None or parts is None:
                lost[OTHER_SHAPE] += 1
                continue
            lost["judgments beyond one a row"] += len(case.judgments) - 1
            count_lost(_without_own_judge(case, judgment), lost, self.carries)
            yield with_meta(_row(case, parts, judgment), case, _KEYS, lost)


def build(config: Config) -> ChatbotArena:
    """The format."""
    return ChatbotArena()


def _responses(row: Row, turns: Turns) -> tuple[Any, ...]:
    sides = zip("ab", _MODELS, turns.parts[1:], strict=True)
    return tuple(response_of(name, said, author=optional_text(row, key)) for name, key, said in sides)


def _judgment(row: Row, judge: str | None) -> Judgment:
    winner = row.value.get("winner")
    if not isinstance(winner, str) or winner not in _VERDICTS:
        allowed = ", ".join(_VERDICTS)
        raise RecordError(f"unknown winner {winner!r}", where=row.place._replace(path="winner"), allowed=allowed)
    verdict = _VERDICTS[winner]
    meta = {"winner": winner} if _WINNERS[verdict] != winner else None
    return Judgment(left="a", right="b", verdict=verdict, judge=judge or UNKNOWN, kind="human", meta=meta)


def _parts(case: Case) -> Parts | None:
    """The prompt and both answers; null for other numbers of them, or where they would not be found again."""
    if len(case.responses) != 2 or not case.prompt.messages:
        return None
    parts = Parts(case.prompt.messages, *map(answer_turns, case.responses))
    return parts if is_found_again(parts) else None


def _without_own_judge(case: Case, written: Judgment) -> Case:
    """The case without what the row says of its judge."""
    own = replace(written, judge=UNKNOWN if written.kind == "human" else written.judge)
    return replace(case, judgments=tuple(own if one is written else one for one in case.judgments))


def _row(case: Case, parts: Parts, judgment: Judgment) -> dict[str, Any]:
    form, first = form_of(case, _KIND), case.responses[0].id
    winner = _WINNERS[judgment.verdict]
    if judgment.verdict != "tie" and judgment.left != first:
        winner = _WINNERS["right" if judgment.verdict == "left" else "left"]
    said, read_language = (judgment.meta or {}).get("winner"), form.get("language")
    is_same = read_language is not None and language_in(read_language) == case.prompt.language
    own = {
        form.get("id_key", "question_id"): form.get("id", case.prompt.id),
        **dict(zip(_MODELS, (response.author for response in case.responses), strict=True)),
        "winner": said if _VERDICTS.get(str(said)) == judgment.verdict == "tie" else winner,
        form.get("judge_key", "judge"): None if judgment.judge == UNKNOWN else judgment.judge,
        **said_turns(parts, _SIDES, form.get("blocks")),
        "language": read_language if is_same else said_language(case.prompt.language),
    }
    silent = ["", *(key for key in ("judge", "judge_hash", "language") if key in own and own[key] is None)]
    return with_nulls({key: value for key, value in own.items() if key not in silent}, form)
