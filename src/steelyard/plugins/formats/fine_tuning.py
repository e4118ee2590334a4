"""Training files of single answers: the best response of a case to imitate, or an answer and its label.

Supervised fine-tuning (SFT): `best_response` chooses the answer. A case without a best response is left out and
counted. Reading is the reverse: the answer is the only response of the case, and alone in the first tier.

KTO: the labels are those of ``trl_unpaired``, under LLaMA-Factory's key ``kto_tag``.

Written from TRL's page of dataset formats, and from ``data/README.md``, ``converter.py`` and ``processor/feedback.py``
of LLaMA-Factory. It skips a conversation whose turns do not alternate, and reads an empty good answer as a bad one:
both are left out here and counted.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from steelyard.core.config import Config
from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Message
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._row_format import OTHER_SHAPE, TEXT_ROWS, TRL_COLUMNS, CaseReader, RowFormat
from steelyard.plugins.formats._turns import answer_of, answer_turns, as_turns, field_turns, is_text
from steelyard.plugins.formats.conversation_pairs import (
    INSTRUCTION_KEYS,
    SKIPPED,
    alternates,
    instruction_row,
    instruction_turns,
    sharegpt_conversation,
    sharegpt_turns,
)
from steelyard.plugins.formats.labelled_answers import AnswerLabelsConfig, label_answers, labelled_case
from steelyard.ranking.pairs import best_response

Turns = tuple[Message, ...]
Read = Callable[[Row], tuple[Turns, Turns, JsonObject]]
"""Reads the prompt and the answer of a row, and the facts of its form."""
Write = Callable[[Turns, Turns, JsonObject, Counter[str]], JsonObject | None]
"""Returns a prompt and an answer as a row; null where the trainer would not take it, which it counts."""
_TAG = "kto_tag"
_OTHER_ROWS = ("prompt", "completion", "messages", "conversations", "text", "chosen", "rejected")
"""The keys by which TRL tells the types of its rows."""
_CONVERSATION = ("system turns", "earlier turns", "prompt meta")


def _cut_answer(row: Row, turns: Turns, key: str) -> tuple[Turns, Turns]:
    """Return the turns before the last one, and the last. Raises RecordError unless it answers something."""
    if len(turns) < 2 or turns[-1].role not in ("assistant", "function"):
        problem = f"{key} does not end with an answer to something"
        raise RecordError(problem, where=row.at(key), allowed="turns that end with the assistant's")
    return turns[:-1], turns[-1:]


def _best_answers(
    kind: str,
    keys: tuple[str, ...],
    layout: tuple[Read, Write],
    *parts: str,
    required: str | None = None,
    reserved_keys: tuple[str, ...] = (),
) -> RowFormat:
    """Return the format of the best response of each case."""
    read, write = layout
    supports = carrying(*_CONVERSATION, *parts)

    def parse(reader: CaseReader) -> Case:
        prompt, answer, form = read(reader.row)
        responses = reader.responses([answer])
        return Case(
            prompt=reader.prompt(prompt),
            responses=responses,
            ranking=((responses[0].id,),),
            meta=reader.meta(**form),
        )

    def rows_of(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        count_lost(case, dropped, supports)
        best = best_response(case)
        if best is None:
            dropped["cases without a best response"] += 1
            return
        dropped["responses other than the best"] += len(case.responses) - 1
        row = write(case.prompt.messages, answer_turns(best), form, dropped) if case.prompt.messages else None
        if row is None:
            dropped[OTHER_SHAPE] += 1
            return
        yield row

    return RowFormat(
        kind, keys, supports, lambda row: False, parse, rows_of, required=required, reserved_keys=reserved_keys
    )


def _labelled(kind: str, key: str, keys: tuple[str, ...], layout: tuple[Read, Write], *, balanced: bool) -> RowFormat:
    """Return the format of one answer a row and its label; ``key`` marks the rows of the layout."""
    read, write = layout
    supports = carrying(*_CONVERSATION)

    def parse(reader: CaseReader) -> Case:
        prompt, answer, form = read(reader.row)
        return labelled_case(reader, reader.prompt(prompt), answer, _TAG, **form)

    def rows_of(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        for response, label in label_answers(case, dropped, supports, balanced=balanced):
            answer = answer_turns(response)
            if not answer[-1].content:
                dropped["empty answers, which LLaMA-Factory labels wrongly"] += 1
                continue
            row = write(case.prompt.messages, answer, form, dropped)
            if row is None:
                dropped[OTHER_SHAPE] += 1
                continue
            yield row | {_TAG: label}

    def matches(row: JsonObject) -> bool:
        return isinstance(row.get(_TAG), bool) and key in row

    return RowFormat(kind, (*keys, _TAG), supports, matches, parse, rows_of)


class TrlSftConfig(Config, frozen=True):
    """The form of the rows."""

    messages: bool = False
    """Write prompt and answer as one conversation under messages: TRL then trains on the prompt, too."""
    texts: bool = False
    """Write texts, not lists of turns: TRL then trains without the chat template."""


def _trl_sft(config: TrlSftConfig) -> RowFormat:
    """Build the format of TRL's rows for SFT. Raises ConfigError for texts of whole conversations."""
    if config.messages and config.texts:
        raise ConfigError("a conversation under messages that is a text", where="texts", do="leave one of both away")

    def read(row: Row) -> tuple[Turns, Turns, JsonObject]:
        if "messages" in row.value:
            return *_cut_answer(row, field_turns(row, "messages", role="user"), "messages"), {}
        return field_turns(row, "prompt", role="user"), field_turns(row, "completion", role="assistant"), {}

    def write(prompt: Turns, answer: Turns, form: JsonObject, dropped: Counter[str]) -> JsonObject | None:
        if config.messages:
            return {"messages": as_turns(prompt + answer)}
        if not config.texts:
            return {"prompt": as_turns(prompt), "completion": as_turns(answer)}
        if not (is_text(prompt, "user") and is_text(answer, "assistant")):
            return None
        return {"prompt": prompt[0].content, "completion": answer[0].content}

    keys = ("messages",) if config.messages else ("prompt", "completion")
    parts = () if config.messages else ("answers of several turns",)
    return _best_answers(
        "trl_sft",
        keys,
        (read, write),
        *parts,
        required=TEXT_ROWS if config.texts else None,
        # Beside a text of another column, the completion would lack its end mark.
        reserved_keys=(*TRL_COLUMNS, *_OTHER_ROWS),
    )


def _read_alpaca(row: Row) -> tuple[Turns, Turns, JsonObject]:
    prompt, form = instruction_turns(row)
    return prompt, answer_of(row.text("output")), form


def _write_alpaca(prompt: Turns, answer: Turns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    """Return the row; the earlier turns of an answer go into the history."""
    return instruction_row(prompt + answer[:-1], form, dropped) | {"output": answer[-1].content}


def _read_sharegpt(row: Row) -> tuple[Turns, Turns, JsonObject]:
    turns, form = sharegpt_turns(row)
    return *_cut_answer(row, turns, "conversations"), form


def _write_sharegpt(prompt: Turns, answer: Turns, form: JsonObject, dropped: Counter[str]) -> JsonObject | None:
    if not alternates(prompt + answer):
        dropped[SKIPPED] += 1
        return None
    return sharegpt_conversation(prompt + answer, form)


_ALPACA_KEYS, _ALPACA = (*INSTRUCTION_KEYS, "output"), (_read_alpaca, _write_alpaca)
_SHAREGPT_KEYS, _SHAREGPT = ("conversations", "system"), (_read_sharegpt, _write_sharegpt)

KINDS = {
    "trl_sft": Plugin(
        TrlSftConfig, _trl_sft, "TRL's rows for supervised fine-tuning: a prompt and its best response as completion."
    ),
    "llamafactory_alpaca_sft": without_settings(
        _best_answers("llamafactory_alpaca_sft", _ALPACA_KEYS, _ALPACA),
        "LLaMA-Factory's alpaca rows for supervised fine-tuning: ``output`` is the best response.",
    ),
    "llamafactory_sharegpt_sft": without_settings(
        _best_answers("llamafactory_sharegpt_sft", _SHAREGPT_KEYS, _SHAREGPT),
        "LLaMA-Factory's ShareGPT rows for supervised fine-tuning: conversations that end with the best response.",
    ),
    "llamafactory_alpaca_kto": Plugin(
        AnswerLabelsConfig,
        lambda config: _labelled(
            "llamafactory_alpaca_kto", "instruction", _ALPACA_KEYS, _ALPACA, balanced=config.balanced
        ),
        "LLaMA-Factory's alpaca rows for KTO: an ``output`` with ``kto_tag``, true for a good one.",
    ),
    "llamafactory_sharegpt_kto": Plugin(
        AnswerLabelsConfig,
        lambda config: _labelled(
            "llamafactory_sharegpt_kto", "conversations", _SHAREGPT_KEYS, _SHAREGPT, balanced=config.balanced
        ),
        "LLaMA-Factory's ShareGPT rows for KTO: a conversation with ``kto_tag``, true for a good last answer.",
    ),
}
