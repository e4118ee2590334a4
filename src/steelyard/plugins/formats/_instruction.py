"""Prompts as LLaMA-Factory writes them: instruction, input, history of exchanges, system."""

from collections import Counter
from typing import Any

from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import list_field, nulls_of, text_field, with_meta, with_nulls
from steelyard.plugins.formats._pairwise import conversation_of

INSTRUCTION_KEYS = ("instruction", "input", "history", "system")


def instruction_turns(row: Row) -> tuple[tuple[Message, ...], dict[str, Any]]:
    """The conversation of a row, and what its turns do not say of its form: where the input began, absent keys."""
    instruction = text_field(row, "instruction")
    extra = text_field(row, "input", default="")
    system = text_field(row, "system", default="")
    turns: list[Message] = [Message(role="system", content=system)] if system else []
    for exchange in list_field(row, "history", default=()):
        if not isinstance(exchange, list) or len(exchange) != 2 or not all(isinstance(text, str) for text in exchange):
            raise RecordError("an exchange that is no pair of texts", where=row.place._replace(path="history"))
        turns += [Message(role="user", content=exchange[0]), Message(role="assistant", content=exchange[1])]
    turns.append(Message(role="user", content="\n".join(text for text in (instruction, extra) if text)))
    kept: dict[str, Any] = {"input": extra} if extra else {}
    absent = [key for key in INSTRUCTION_KEYS[1:] if key not in row.value]
    facts = {"absent": absent, "null": nulls_of(row, INSTRUCTION_KEYS[1:])}
    return tuple(turns), kept | {name: keys for name, keys in facts.items() if keys}


def instruction_row(case: Case, lost: Counter[str], *, form: dict[str, Any], answers: dict[str, Any]) -> dict[str, Any]:
    """The conversation as a row with these answers and the prompt's ``meta``; ``form`` is what was kept of its form."""
    said = conversation_of(case.prompt.messages, lost)
    extra = form.get("input", "")
    question = said.question
    if extra and f"\n{question}".endswith(f"\n{extra}"):
        # An instruction that is empty leaves no line break before the input.
        question = question[: -len(extra)].removesuffix("\n")
    else:
        extra = ""
    row = {
        "instruction": question,
        "input": extra,
        "history": [list(exchange) for exchange in said.history],
        "system": said.system or "",
    }
    absent = form.get("absent", ())
    row = {key: value for key, value in row.items() if value or key not in absent} | answers
    return with_meta(with_nulls(row, form), case, INSTRUCTION_KEYS, lost)
