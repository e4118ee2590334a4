"""LLaMA-Factory's ranking data: instructions with two or with several answers, and ShareGPT conversations.

Written from the public format description in LLaMA-Factory's ``data/README.md``. The older ranking data are those of
its repository of 2023.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message
from steelyard.curation.format_support import carrying, carrying_pairs, count_lost
from steelyard.plugins.formats._conversations import conversation_of
from steelyard.plugins.formats._pairs import SIDES, PairFormat, PairTurns, ParsedPair
from steelyard.plugins.formats._rows import (
    PromptIds,
    RowFormat,
    answer_ids,
    answer_of,
    answer_text,
    as_read,
    make_prompt,
    responses_of,
)

_INSTRUCTION_KEYS = ("instruction", "input", "history", "system")
_OPTIONAL_KEYS = _INSTRUCTION_KEYS[1:]


def instruction_turns(row: Row) -> tuple[tuple[Message, ...], JsonObject]:
    """Read the conversation of a row, and the facts of its form: where the input began, absent and null keys."""
    instruction = row.text("instruction")
    extra = row.text("input", default="")
    system = row.text("system", default="")
    turns: list[Message] = [Message(role="system", content=system)] if system else []
    for exchange in row.items("history", default=()):
        if not isinstance(exchange, list) or len(exchange) != 2 or not all(isinstance(text, str) for text in exchange):
            raise RecordError("an exchange that is not a pair of texts", where=row.at("history"))
        turns += [Message(role="user", content=exchange[0]), Message(role="assistant", content=exchange[1])]
    turns.append(Message(role="user", content="\n".join(text for text in (instruction, extra) if text)))
    facts = {"input": extra, "absent": row.absent(_OPTIONAL_KEYS), "null": row.nulls(_OPTIONAL_KEYS)}
    return tuple(turns), {name: value for name, value in facts.items() if value}


def instruction_row(messages: tuple[Message, ...], form: JsonObject, dropped: Counter[str]) -> JsonObject:
    """Return the conversation as instruction, input, history and system, in the form that was read."""
    conversation = conversation_of(messages, dropped)
    instruction, extra = conversation.question_apart(form.get("input", ""))
    row = {
        "instruction": instruction,
        "input": extra,
        "history": [list(exchange) for exchange in conversation.history],
        "system": conversation.system or "",
    }
    return {key: value for key, value in row.items() if value or key not in form.get("absent", ())}


def _parse_alpaca(row: Row, warnings: Counter[str]) -> ParsedPair:
    answers = [answer_of(row.text(key)) for key in SIDES]
    messages, form = instruction_turns(row)
    return ParsedPair(PairTurns(messages, *answers), form)


def _alpaca_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    answers = {key: _last_turn(answer, dropped).content for key, answer in zip(SIDES, turns[1:], strict=True)}
    return instruction_row(turns.prompt, form, dropped) | answers


_ALPACA = PairFormat(
    kind="llamafactory_alpaca",
    keys=(*_INSTRUCTION_KEYS, *SIDES),
    supports=carrying_pairs(),
    matches=lambda row: "instruction" in row and all(isinstance(row.get(key), str) for key in SIDES),
    parse=_parse_alpaca,
    row_of=_alpaca_row,
    null_keys=_OPTIONAL_KEYS,
)


def _last_turn(turns: Sequence[Message], dropped: Counter[str]) -> Message:
    """Return the last turn of an answer, for formats with one; the others are counted."""
    dropped["earlier turns of an answer"] += len(turns) - 1
    return turns[-1]


def _parse_ranked(row: Row, ids: PromptIds, warnings: Counter[str]) -> Case:
    output = row.items("output")
    if not all(isinstance(text, str) for text in output):
        raise RecordError("an answer that is not a text", where=row.at("output"))
    answers = [answer_of(text) for text in output]
    names = answer_ids(answers, warnings)
    messages, form = instruction_turns(row)
    return Case(
        prompt=make_prompt(messages, id=ids.take(row), meta=row.others(_RANKED.keys)),
        responses=responses_of(names, answers),
        ranking=tuple((name,) for name in names) or None,
        meta=as_read(_RANKED.kind, **form),
    )


def _ranked_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row; ties become an order, and unranked responses are left out: both are counted."""
    count_lost(case, dropped, _RANKED.supports)
    ranked = [name for tier in case.ranking or () for name in tier]
    dropped["unranked responses"] += len(case.responses) - len(ranked)
    by_id = {response.id: response for response in case.responses}
    output = {"output": [answer_text(by_id[name], dropped) for name in ranked]}
    yield instruction_row(case.prompt.messages, form, dropped) | output


_RANKED = RowFormat(
    kind="llamafactory_ranked",
    keys=(*_INSTRUCTION_KEYS, "output"),
    supports=carrying("system turns", "earlier turns", "prompt meta", "rankings", "more than two responses"),
    matches=lambda row: "instruction" in row and isinstance(row.get("output"), list),
    parse=_parse_ranked,
    rows_of=_ranked_rows,
)
"""One row per prompt; a response's place in ``output`` is its tier."""


_ROLES = {"human": "user", "gpt": "assistant", "system": "system", "observation": "tool", "function_call": "function"}
_SENDERS = {role: sender for sender, role in _ROLES.items()}


def _parse_sharegpt(row: Row, warnings: Counter[str]) -> ParsedPair:
    turns = [_turn(row, turn, "conversations") for turn in row.items("conversations")]
    system = row.text("system", default="")
    answers = [(_turn(row, row.value.get(key), key),) for key in SIDES]
    turns = ([Message(role="system", content=system)] if system else []) + turns
    # A system text has two places in this format: the key ``system``, and the turns.
    return ParsedPair(PairTurns(tuple(turns), *answers), {"system": system != "" or row.value.get("system")})


def _turn(row: Row, turn: Any, key: str) -> Message:
    if not isinstance(turn, dict) or not isinstance(turn.get("value"), str) or not isinstance(turn.get("from"), str):
        problem = f"a turn of {key!r} without 'from' and 'value'"
        raise RecordError(problem, where=row.at(key), allowed='{"from": "human", "value": "…"}')
    sender = str(turn["from"])
    return Message(role=_ROLES.get(sender, sender), content=turn["value"])


def _sharegpt_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    prompt = turns.prompt
    is_apart = form.get("system") is True and prompt and prompt[0].role == "system"
    system = {"system": prompt[0].content} if is_apart else {}
    system |= {"system": ""} if form.get("system") == "" else {}
    return {
        "conversations": [_sharegpt_turn(turn) for turn in (prompt[1:] if is_apart else prompt)],
        **{key: _sharegpt_turn(_last_turn(answer, dropped)) for key, answer in zip(SIDES, turns[1:], strict=True)},
        **system,
    }


def _sharegpt_turn(turn: Message) -> JsonObject:
    return {"from": _SENDERS.get(turn.role, turn.role), "value": turn.content}


_SHAREGPT = PairFormat(
    kind="llamafactory_sharegpt",
    keys=("conversations", *SIDES, "system"),
    supports=carrying_pairs(),
    matches=lambda row: isinstance(row.get("conversations"), list) and set(SIDES) <= row.keys(),
    parse=_parse_sharegpt,
    row_of=_sharegpt_row,
    turn_keys=("conversations", *SIDES),
    turn_fields=("from", "value"),
    null_keys=("system",),
)

KINDS = {
    "llamafactory_alpaca": without_settings(
        _ALPACA, "LLaMA-Factory's alpaca ranking data: instruction, input, ``chosen`` and ``rejected`` texts."
    ),
    "llamafactory_ranked": without_settings(
        _RANKED,
        "LLaMA-Factory's older ranking data: ``output`` holds all answers, best first, next to ``history``.",
    ),
    "llamafactory_sharegpt": without_settings(
        _SHAREGPT,
        "LLaMA-Factory's ShareGPT ranking data: ``conversations`` of ``{from, value}``, one chosen and one rejected"
        " turn.",
    ),
}
