"""Prompts without answers to compare: rows of prompts, instructions, and conversations up to an open question.

A row of instruction tuning has one answer, as its ``output`` or as its last turn. One answer cannot be compared with
another: it becomes the prompt's ``reference``, and is counted. Instructions are LLaMA-Factory's alpaca rows
(``instruction``, ``input``, ``output``, ``system``, ``history``), written from its public format description;
conversations are ``messages`` of role and content, or ShareGPT's ``conversations`` of ``{from, value}``.

A row of answers to compare must never be taken for a prompt: rows are recognised only where every other field is one
of those below, a number, a truth value or null. Rows with further texts need ``--from``, and keep them in ``meta``.
"""

from collections.abc import Collection

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.types import Case, JsonObject, Message
from steelyard.curation.format_support import carrying_prompts
from steelyard.plugins.formats._column_values import PromptColumns
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats.conversation_pairs import (
    INSTRUCTION_KEYS,
    instruction_turns,
    sharegpt_message,
)

_COLUMNS = PromptColumns(id="id", language="language", category="category")
_TEXT_KEYS = ("source", "subset")
_COMMON_KEYS = (*_COLUMNS.names(), *_TEXT_KEYS)
_OTHER_KEYS = ("prompt_id", "split", "license", "licence", "difficulty", "scenario")
"""Fields whose texts say nothing about answers: rows with them are recognised, and keep them in ``meta``."""
_ANSWER_LABEL = "kto_tag"
_REFERENCE = "answers read as references"
_SUPPORTS = carrying_prompts(
    "system turns", "earlier turns", "language", "category", "source", "subset", "reference", "prompt meta",
    "prompt ids",
)  # fmt: skip


def _has_no_answers(row: JsonObject, keys: Collection[str]) -> bool:
    """Return whether no field of the row, beyond those that are known, could hold an answer."""
    known = {*keys, *_COMMON_KEYS, *_OTHER_KEYS}
    are_known = all(key in known or value is None or isinstance(value, int | float) for key, value in row.items())
    return are_known and _ANSWER_LABEL not in row


def _are_texts(row: JsonObject, keys: Collection[str]) -> bool:
    return all(row.get(key) is None or isinstance(row[key], str) for key in keys)


def _case(reader: CaseReader, turns: tuple[Message, ...], reference: str | None) -> Case:
    """Return the case of a row: its turns up to the question, its reference, and the columns of every kind."""
    row, fields = reader.row, _COLUMNS.fields(reader.row)
    if not any(turn.role != "system" for turn in turns):
        raise RecordError("the row has no question", where=row.place, allowed="a turn of the user")
    texts = {key: row.optional_text(key) for key in _TEXT_KEYS}
    name = _COLUMNS.prompt_id(row)
    prompt_id = reader.ids.take(row, name, language=fields.get("language"))
    prompt = reader.prompt(turns, id=prompt_id, reference=reference, **fields, **texts)
    return Case(prompt=prompt, responses=())


# A prompt as a text or as turns


def _parse_prompt(reader: CaseReader) -> Case:
    row = reader.row
    system = row.optional_text("system")
    turns = (Message(role="system", content=system),) if system else ()
    turns += reader.turns("prompt", "user")
    return _case(reader, turns, row.optional_text("reference") or None)


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
    turn_keys=("prompt",),
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
        return Case(prompt=prompt, responses=())

    return RowFormat(
        kind="columns",
        keys=(column, *columns.names()),
        supports=supports,
        matches=lambda row: False,
        parse=parse,
        turn_keys=(column,),
    )


# Instructions


def _parse_instruction(reader: CaseReader) -> Case:
    messages, _ = instruction_turns(reader.row)
    output = reader.row.optional_text("output") or None
    reader.warnings[_REFERENCE] += output is not None
    return _case(reader, messages, output)


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
    return _case(reader, question, reference or None)


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
