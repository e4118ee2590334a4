"""Prompts without answers to compare: rows of prompts, instructions, and conversations up to an open question.

A row of instruction tuning has one answer, as its ``output`` or as its last turn. One answer cannot be compared with
another: it becomes the prompt's ``reference``, and is counted. Instructions are LLaMA-Factory's alpaca rows
(``instruction``, ``input``, ``output``, ``system``, ``history``), written from its public format description;
conversations are ``messages`` of role and content, or ShareGPT's ``conversations`` of ``{from, value}``.

A row of answers to compare must never be taken for a prompt: rows are recognised only where every other field is one
of those below, a number, a truth value or null. Rows with further texts need ``--from``, and keep them in ``meta``.
"""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.types import Case, JsonObject, Message
from steelyard.curation.format_support import carrying_prompts, count_lost
from steelyard.plugins.formats._column_values import PromptColumns
from steelyard.plugins.formats._rows import OTHER_SHAPE, CaseReader, RowFormat, present
from steelyard.plugins.formats._turns import as_turns, text_or_list
from steelyard.plugins.formats.conversation_pairs import (
    INSTRUCTION_KEYS,
    instruction_row,
    instruction_turns,
    sharegpt_message,
    sharegpt_turn,
)

_COLUMNS = PromptColumns(id="id", language="language", category="category")
_TEXT_KEYS = ("source", "subset")
_COMMON_KEYS = (*_COLUMNS.names(), *_TEXT_KEYS)
_OTHER_KEYS = ("prompt_id", "split", "license", "licence", "difficulty", "scenario")
"""Fields whose texts say nothing about answers: rows with them are recognised, and keep them in ``meta``."""
_REFERENCE = "answers read as references"
_SUPPORTS = carrying_prompts(
    "system turns", "earlier turns", "language", "category", "source", "subset", "reference", "prompt meta",
    "prompt ids",
)  # fmt: skip


def _has_no_answers(row: JsonObject, keys: Collection[str]) -> bool:
    """Return whether no field of the row, beyond those that are known, could hold an answer."""
    known = {*keys, *_COMMON_KEYS, *_OTHER_KEYS}
    return all(key in known or value is None or isinstance(value, int | float) for key, value in row.items())


def _are_texts(row: JsonObject, keys: Collection[str]) -> bool:
    return all(row.get(key) is None or isinstance(row[key], str) for key in keys)


def _case(reader: CaseReader, turns: tuple[Message, ...], reference: str | None, **form: Any) -> Case:
    """Return the case of a row: its turns up to the question, its reference, and the columns of every kind."""
    row, fields = reader.row, _COLUMNS.fields(reader.row)
    if not any(turn.role != "system" for turn in turns):
        raise RecordError("the row has no question", where=row.place, allowed="a turn of the user")
    texts = {key: row.optional_text(key) for key in _TEXT_KEYS}
    name = _COLUMNS.prompt_id(row)
    prompt_id = reader.ids.take(row, name, language=fields.get("language"))
    prompt = reader.prompt(turns, id=prompt_id, reference=reference, **fields, **texts)
    empty = [key for key in reader.keys if row.value.get(key) == ""]
    return Case(prompt=prompt, responses=(), meta=reader.meta(cells=_COLUMNS.values(row) or None, empty=empty, **form))


def _row(case: Case, form: JsonObject, content: JsonObject) -> JsonObject:
    """Return the row of a prompt's content, with its columns; texts that were empty are empty again."""
    row = present(
        {**content, **_COLUMNS.written(case.prompt, form), **{key: getattr(case.prompt, key) for key in _TEXT_KEYS}}
    )
    return row | {key: "" for key in form.get("empty", ()) if key not in row}


# A prompt as a text or as turns


def _parse_prompt(reader: CaseReader) -> Case:
    row = reader.row
    system = row.optional_text("system")
    turns = (Message(role="system", content=system),) if system else ()
    turns += reader.turns("prompt", "user")
    return _case(reader, turns, row.optional_text("reference") or None, apart=bool(system))


def _prompt_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    count_lost(case, dropped, _SUPPORTS)
    prompt = case.prompt
    has_system = bool(prompt.messages) and prompt.messages[0].role == "system"
    # A system text has a field of its own where it was read so, and in new rows of a single question.
    is_apart = has_system and (form["apart"] if "apart" in form else not form and len(prompt.messages) == 2)
    turns = prompt.messages[1:] if is_apart else prompt.messages
    content = {
        "prompt": text_or_list(turns, "user", as_list="prompt" in form.get("turns", ())),
        "system": prompt.messages[0].content if is_apart else None,
        "reference": prompt.reference,
    }
    yield _row(case, form, content)


_PROMPT_KEYS = ("prompt", "system", "reference", *_COMMON_KEYS)
_PROMPTS = RowFormat(
    kind="prompts",
    keys=_PROMPT_KEYS,
    supports=_SUPPORTS,
    matches=lambda row: (
        (isinstance(row.get("prompt"), str) or _ends_in_question(row.get("prompt"), "role"))
        and _are_texts(row, ("system", "reference", *_TEXT_KEYS))
        and _has_no_answers(row, _PROMPT_KEYS)
    ),
    parse=_parse_prompt,
    rows_of=_prompt_rows,
    null_keys=_PROMPT_KEYS[1:],
    absent_keys=_PROMPT_KEYS[1:],
    made_keys=("id",),
    list_keys=("prompt",),
)


def _ends_in_question(turns: object, role_key: str) -> bool:
    return isinstance(turns, list) and bool(turns) and isinstance(turns[-1], dict) and turns[-1].get(role_key) == "user"


# A user's table of prompts


def prompt_table(columns: PromptColumns, column: str, answers: Collection[str]) -> RowFormat:
    """Return the format of a user's table of prompts under ``column``. A row may have no field named in ``answers``."""
    supports = carrying_prompts("system turns", "earlier turns", "prompt meta", *columns.parts())

    def parse(reader: CaseReader) -> Case:
        row, fields = reader.row, columns.fields(reader.row)
        if present_answers := row.value.keys() & set(answers):
            problem = f"an answer under {min(present_answers)!r}, where the first row has none"
            raise RecordError(problem, where=row.place, do="convert prompts and pairs from files of their own")
        prompt_id = reader.ids.take(row, columns.prompt_id(row), language=fields.get("language"))
        prompt = reader.prompt(reader.turns(column, "user"), id=prompt_id, **fields)
        return Case(prompt=prompt, responses=(), meta=reader.meta(cells=columns.values(row) or None))

    def rows_of(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        count_lost(case, dropped, supports)
        turns = text_or_list(case.prompt.messages, "user", as_list=column in form.get("turns", ()))
        yield {column: turns} | columns.written(case.prompt, form)

    return RowFormat(
        kind="columns",
        keys=(column, *columns.names()),
        supports=supports,
        matches=lambda row: False,
        parse=parse,
        rows_of=rows_of,
        list_keys=(column,),
    )


# Instructions


def _parse_instruction(reader: CaseReader) -> Case:
    messages, facts = instruction_turns(reader.row)
    output = reader.row.optional_text("output") or None
    reader.warnings[_REFERENCE] += output is not None
    return _case(reader, messages, output, input=facts.get("input"))


def _instruction_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    count_lost(case, dropped, _SUPPORTS)
    content = instruction_row(case.prompt.messages, form, dropped)
    yield _row(case, form, content | {"output": case.prompt.reference})


_ALPACA_KEYS = (*INSTRUCTION_KEYS, "output", *_COMMON_KEYS)
_INSTRUCTIONS = RowFormat(
    kind="instructions",
    keys=_ALPACA_KEYS,
    supports=_SUPPORTS,
    matches=lambda row: (
        isinstance(row.get("instruction"), str)
        and _are_texts(row, ("input", "system", "output", *_TEXT_KEYS))
        and _has_no_answers(row, _ALPACA_KEYS)
    ),
    parse=_parse_instruction,
    rows_of=_instruction_rows,
    null_keys=_ALPACA_KEYS[1:],
    absent_keys=_ALPACA_KEYS[1:],
    made_keys=("id",),
)


# Conversations


def _parse_conversation(reader: CaseReader) -> Case:
    row = reader.row
    is_sharegpt = "messages" not in row.value and "conversations" in row.value
    if is_sharegpt:
        turns = tuple(sharegpt_message(row, turn, "conversations") for turn in row.items("conversations"))
    else:
        turns = reader.turns("messages", "user")
    system = row.optional_text("system")
    if system:
        turns = (Message(role="system", content=system), *turns)
    reference = turns[-1].content if turns and turns[-1].role == "assistant" else None
    reader.warnings[_REFERENCE] += reference is not None
    question = turns if reference is None else turns[:-1]
    # An empty last turn is no reference, and is written again.
    is_ended = reference == ""
    return _case(reader, question, reference or None, sharegpt=is_sharegpt, apart=bool(system), ended=is_ended)


def _conversation_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row; a prompt that ends in an answer is left out and counted: it would be read as a reference."""
    count_lost(case, dropped, _SUPPORTS)
    turns, reference = case.prompt.messages, case.prompt.reference
    if not turns or (turns[-1].role == "assistant" and reference is None):
        dropped[OTHER_SHAPE] += 1
        return
    is_apart = form.get("apart", False) and turns[0].role == "system"
    answer = reference or ("" if form.get("ended", False) else None)
    written = (*turns[is_apart:], *(() if answer is None else (Message(role="assistant", content=answer),)))
    key = "conversations" if form.get("sharegpt", False) else "messages"
    content = {key: list(map(sharegpt_turn, written)) if key == "conversations" else as_turns(written)}
    yield _row(case, form, content | {"system": turns[0].content if is_apart else None})


def _is_conversation(row: JsonObject) -> bool:
    turns, role_key = (row["messages"], "role") if "messages" in row else (row.get("conversations"), "from")
    return (
        isinstance(turns, list) and bool(turns) and all(isinstance(turn, dict) and role_key in turn for turn in turns)
    )


_CONVERSATION_KEYS = ("messages", "conversations", "system", *_COMMON_KEYS)
_CONVERSATIONS = RowFormat(
    kind="conversations",
    keys=_CONVERSATION_KEYS,
    supports=_SUPPORTS,
    matches=lambda row: (
        _is_conversation(row)
        and not {"messages", "conversations"} <= row.keys()
        and _are_texts(row, ("system", *_TEXT_KEYS))
        and _has_no_answers(row, _CONVERSATION_KEYS)
    ),
    parse=_parse_conversation,
    rows_of=_conversation_rows,
    null_keys=_CONVERSATION_KEYS[2:],
    absent_keys=_CONVERSATION_KEYS[2:],
    made_keys=("id",),
    turn_keys=("messages",),
)

KINDS = {
    "prompts": without_settings(_PROMPTS, "Prompts alone: a text or turns under ``prompt``, and what is known of it."),
    "instructions": without_settings(
        _INSTRUCTIONS, "Instructions: ``instruction``, ``input`` and ``history``; an ``output`` becomes the reference."
    ),
    "conversations": without_settings(
        _CONVERSATIONS, "Conversations: ``messages`` or ``conversations``; a last answer becomes the reference."
    ),
}
