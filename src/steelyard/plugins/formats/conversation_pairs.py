"""Preference rows of trainers: RLHFlow, ms-swift, UltraFeedback binarised, and LLaMA-Factory's ranking data."""

from collections import Counter
from collections.abc import Mapping, Sequence

from steelyard.core.config import Config
from steelyard.core.errors import RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Kind, Message
from steelyard.curation.format_support import carrying, carrying_pairs
from steelyard.curation.uniform_columns import MARGIN
from steelyard.plugins.formats._pairs import (
    NOT_SEPARABLE,
    SIDES,
    PairFormat,
    PairScores,
    PairTurns,
    ParsedPair,
    shared_turns,
    whole_turns,
)
from steelyard.plugins.formats._rating_scales import RatingScale
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats._turns import SENDER_ROLES, answer_of, conversation_of, earlier_turns, field_turns


class RlhFlowConfig(Config, frozen=True):
    """Source of the scores: a name, and ``human``, ``llm`` or ``model``."""

    rater: str = UNKNOWN_JUDGE
    """The name of the rater of the scores."""
    rater_kind: Kind = "human"
    """The kind of that rater: human, llm or model."""


def _rlhflow(config: RlhFlowConfig) -> RowFormat:
    """Build the format of RLHFlow's standard preference sets.

    Written from ``bradley-terry-rm/README.md`` of RLHFlow/RLHF-Reward-Modeling and the fields of the standard sets that
    it links (``chosen``, ``rejected``, ``chosen_score``, ``rejected_score``). They keep the numbers of their sources: a
    rating model's, a person's, a count of votes. So a score is a rating without a scale, by ``unknown``; ``rater`` and
    ``rater_kind`` name its source where it is known. Nothing is derived from the scores, and a pair whose scores do not
    agree with its order is counted. Rows without scores are TRL's.
    """
    scores = PairScores(("chosen_score", "rejected_score"), RatingScale("score", None, config.rater, config.rater_kind))
    return PairFormat(
        kind="rlhflow",
        keys=(*SIDES, *scores.keys),
        supports=carrying_pairs("answers of several turns"),
        matches=lambda row: _are_lists(row) and set(scores.keys) <= row.keys(),
        parse=lambda row, warnings: ParsedPair(shared_turns(row), {}),
        turn_keys=SIDES,
        scores=scores,
    ).format()


def _are_lists(row: JsonObject) -> bool:
    return all(isinstance(row.get(key), list) for key in SIDES)


_REJECTED = ("rejected_response", "rejected_messages")
_CONVERSATIONS = ("messages", "rejected_messages")


_SWIFT_ROLES = {"tool_call": "function", "tool_response": "tool"}
_SWIFT_NAMES = {role: name for name, role in _SWIFT_ROLES.items()}
_KNOWN_TO_SWIFT = {"system", "user", "assistant", "tool", *_SWIFT_ROLES}


def _parse_ms_swift(row: Row, warnings: Counter[str]) -> ParsedPair:
    turns, form = _swift_pair(row)
    return ParsedPair(PairTurns(*(_renamed(part, _SWIFT_ROLES) for part in turns)), form)


def _renamed(turns: Sequence[Message], names: Mapping[str, str]) -> tuple[Message, ...]:
    return tuple(Message(role=names.get(turn.role, turn.role), content=turn.content) for turn in turns)


def _swift_pair(row: Row) -> ParsedPair:
    present = [key for key in _REJECTED if row.value.get(key) is not None]
    if len(present) != 1:
        problem = f"the row has {' and '.join(present) or 'neither rejected_response nor rejected_messages'}"
        raise RecordError(problem, where=row.place, allowed=f"messages, and one of {' and '.join(_REJECTED)}")
    if present == ["rejected_messages"]:
        return ParsedPair(shared_turns(row, _CONVERSATIONS), {})
    turns = field_turns(row, "messages", role="user")
    if len(turns) < 2 or turns[-1].role != "assistant":
        problem = "messages do not end with an answer to something"
        raise RecordError(problem, where=row.at("messages"), allowed="turns that end with the assistant's")
    return ParsedPair(PairTurns(turns[:-1], turns[-1:], answer_of(row.text("rejected_response"))), {})


def _ms_swift_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    dropped[NOT_SEPARABLE] += not turns.is_separable()
    renamed = PairTurns(*(_renamed(part, _SWIFT_NAMES) for part in turns))
    roles = {turn.role for part in renamed for turn in part}
    dropped["rows that ms-swift deletes, for it does not know a role"] += not roles <= _KNOWN_TO_SWIFT
    return whole_turns(renamed, _CONVERSATIONS)


_MS_SWIFT = PairFormat(
    kind="ms_swift",
    keys=("messages", *_REJECTED, MARGIN),
    supports=carrying_pairs("margins", "answers of several turns"),
    matches=lambda row: (
        isinstance(row.get("messages"), list)
        and (isinstance(row.get(_REJECTED[0]), str | list) or isinstance(row.get(_REJECTED[1]), list))
    ),
    parse=_parse_ms_swift,
    worse_keys=_REJECTED,
    row_of=_ms_swift_row,
    turn_keys=_CONVERSATIONS,
    null_keys=(MARGIN,),
    has_margin=True,
).format()
"""One whole conversation, and the answer or the conversation that was rejected.

Written from the page ``Customization/Custom-dataset`` of ms-swift's documentation (section RLHF, DPO and RM): the last
assistant turn of ``messages`` is the chosen answer; ``rejected_response`` is the other one as a text, and
``rejected_messages`` is the other conversation whole. The latter is written: ms-swift deletes the rows of a file in
which some have the one and some the other. ``margin`` is read for reward models. Images, tools and the like
are other keys of the row here, and pass through unread.
"""


_BINARIZED_SCORES = PairScores(
    ("score_chosen", "score_rejected"), RatingScale("overall_score", (1, 10), "gpt-4", "llm")
)


def _parse_binarized(row: Row, warnings: Counter[str]) -> ParsedPair:
    row.text("prompt")
    return ParsedPair(shared_turns(row), {})


_BINARIZED = PairFormat(
    kind="ultrafeedback_binarized",
    keys=("prompt", "prompt_id", *SIDES, "messages", *_BINARIZED_SCORES.keys),
    supports=carrying_pairs("prompt ids", "answers of several turns"),
    matches=lambda row: _are_lists(row) and {"prompt", "prompt_id", *_BINARIZED_SCORES.keys} <= row.keys(),
    parse=_parse_binarized,
    turn_keys=SIDES,
    scores=_BINARIZED_SCORES,
    id_key="prompt_id",
).format()
"""Written from the card of the data set HuggingFaceH4/ultrafeedback_binarized.

``score_chosen`` and ``score_rejected`` are UltraFeedback's ``overall_score``, from 1 to 10 as in its annotation prompt.
They are kept as ratings; the four aspects are not in the rows, so a 10 that was a 1 (see ``ultrafeedback``)
cannot be detected here. ``messages`` repeats the chosen conversation.
The rows of one prompt share its id, a hash of the prompt.
"""


# LLaMA-Factory: written from the public format description in its ``data/README.md``; the older ranking data are those
# of its repository of 2023

INSTRUCTION_KEYS = ("instruction", "input", "history", "system")
_OPTIONAL_KEYS = INSTRUCTION_KEYS[1:]


def instruction_turns(row: Row) -> tuple[tuple[Message, ...], JsonObject]:
    """Read the conversation of a row, and the facts of its form: where the input began, absent and null keys."""
    instruction = row.text("instruction")
    extra = row.text("input", default="")
    system = row.text("system", default="")
    turns: list[Message] = [Message(role="system", content=system)] if system else []
    turns += earlier_turns(row.value.get("history"), row.place, "history")
    turns.append(Message(role="user", content="\n".join(text for text in (instruction, extra) if text)))
    facts = {"input": extra, "absent": row.absent(_OPTIONAL_KEYS), "null": row.nulls(_OPTIONAL_KEYS)}
    return tuple(turns), {name: value for name, value in facts.items() if value}


def instruction_row(messages: tuple[Message, ...], form: JsonObject, dropped: Counter[str]) -> JsonObject:
    """Return the conversation as instruction, input, history and system."""
    system, history, question = conversation_of(messages, dropped)
    # The known input is the end of the question; an empty instruction leaves no line break before it.
    extra = form.get("input", "")
    has_input = bool(extra) and f"\n{question}".endswith(f"\n{extra}")
    instruction = question[: -len(extra)].removesuffix("\n") if has_input else question
    return {
        "instruction": instruction,
        "input": extra if has_input else "",
        "history": [list(exchange) for exchange in history],
        "system": system or "",
    }


def _parse_alpaca(row: Row, warnings: Counter[str]) -> ParsedPair:
    answers = [answer_of(row.text(key)) for key in SIDES]
    messages, form = instruction_turns(row)
    return ParsedPair(PairTurns(messages, *answers), form)


def _alpaca_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    answers = {key: _last_turn(answer, dropped).content for key, answer in zip(SIDES, turns[1:], strict=True)}
    return instruction_row(turns.prompt, form, dropped) | answers


_ALPACA = PairFormat(
    kind="llamafactory_alpaca",
    keys=(*INSTRUCTION_KEYS, *SIDES),
    supports=carrying_pairs(),
    matches=lambda row: "instruction" in row and all(isinstance(row.get(key), str) for key in SIDES),
    parse=_parse_alpaca,
    row_of=_alpaca_row,
    null_keys=_OPTIONAL_KEYS,
).format()


def _last_turn(turns: Sequence[Message], dropped: Counter[str]) -> Message:
    """Return the last turn of an answer, for formats with one; the others are counted."""
    dropped["earlier turns of an answer"] += len(turns) - 1
    return turns[-1]


def _parse_ranked(reader: CaseReader) -> Case:
    row, output = reader.row, reader.row.items("output")
    if not all(isinstance(text, str) for text in output):
        raise RecordError("an answer that is not a text", where=row.at("output"))
    responses = reader.responses(output)
    ranking = tuple((response.id,) for response in responses) or None
    return Case(prompt=reader.prompt(instruction_turns(row)[0]), responses=responses, ranking=ranking)


_RANKED = RowFormat(
    kind="llamafactory_ranked",
    keys=(*INSTRUCTION_KEYS, "output"),
    supports=carrying("system turns", "earlier turns", "prompt meta", "rankings", "more than two responses"),
    matches=lambda row: "instruction" in row and isinstance(row.get("output"), list),
    parse=_parse_ranked,
)
"""One row per prompt; a response's place in ``output`` is its tier."""


SKIPPED = "conversations that LLaMA-Factory skips: their turns do not alternate"
"""The counter of conversations that it reads, reports in its log and does not train on."""
_SENDERS = {SENDER_ROLES[sender]: sender for sender in ("human", "gpt", "observation", "function_call")}


def sharegpt_turns(row: Row) -> tuple[tuple[Message, ...], JsonObject]:
    """Read the turns of a row, and the fact of its form: where its system text is."""
    turns = [sharegpt_message(row, turn, "conversations") for turn in row.items("conversations")]
    system = row.text("system", default="")
    turns = ([Message(role="system", content=system)] if system else []) + turns
    # A system text has two places in this format: the key ``system``, and the turns.
    return tuple(turns), {"system": system != "" or row.value.get("system")}


def sharegpt_conversation(turns: Sequence[Message], form: JsonObject) -> JsonObject:
    """Return the turns under ``conversations``, and a system text where it was read."""
    is_apart = form.get("system") is True and turns and turns[0].role == "system"
    system = {"system": turns[0].content} if is_apart else {}
    system |= {"system": ""} if form.get("system") == "" else {}
    return {"conversations": [sharegpt_turn(turn) for turn in (turns[1:] if is_apart else turns)], **system}


def _parse_sharegpt(row: Row, warnings: Counter[str]) -> ParsedPair:
    turns, form = sharegpt_turns(row)
    are_texts = all(isinstance(row.value.get(key), str) for key in SIDES)
    answers = [
        answer_of(row.text(key)) if are_texts else (sharegpt_message(row, row.value.get(key), key),) for key in SIDES
    ]
    return ParsedPair(PairTurns(turns, *answers), form | {"texts": are_texts})


def sharegpt_message(row: Row, turn: object, key: str) -> Message:
    """Read a turn of ``from`` and ``value``. Raises RecordError for anything else."""
    if not isinstance(turn, dict) or not isinstance(turn.get("value"), str) or not isinstance(turn.get("from"), str):
        problem = f"a turn of {key!r} without 'from' and 'value'"
        raise RecordError(problem, where=row.at(key), allowed='{"from": "human", "value": "…"}')
    sender = str(turn["from"])
    return Message(role=SENDER_ROLES.get(sender, sender), content=turn["value"])


def _sharegpt_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    last = {key: _last_turn(answer, dropped) for key, answer in zip(SIDES, turns[1:], strict=True)}
    dropped[SKIPPED] += not all(alternates((*turns.prompt, turn)) for turn in last.values())
    # Texts, as in MedicalGPT's files, where they were read so and still can be.
    are_texts = form.get("texts", False) and all(turn.role == "assistant" for turn in last.values())
    answers = {key: turn.content if are_texts else sharegpt_turn(turn) for key, turn in last.items()}
    return sharegpt_conversation(turns.prompt, form) | answers


def sharegpt_turn(turn: Message) -> JsonObject:
    """Return the turn as ``from`` and ``value``."""
    return {"from": _SENDERS.get(turn.role, turn.role), "value": turn.content}


def alternates(turns: Sequence[Message]) -> bool:
    """Return whether LLaMA-Factory takes the conversation: after a system turn, questions and answers in turn.

    A tool's result counts as a question, and a call of a tool as an answer. The last turn is an answer.
    """
    rest = turns[1:] if turns and turns[0].role == "system" else turns
    allowed = (("user", "tool"), ("assistant", "function"))
    return len(rest) % 2 == 0 and all(turn.role in allowed[place % 2] for place, turn in enumerate(rest))


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
).format()

_V1_SIDES = ("chosen_messages", "rejected_messages")


_V1 = PairFormat(
    kind="llamafactory_v1",
    keys=_V1_SIDES,
    supports=carrying_pairs("answers of several turns"),
    matches=lambda row: all(isinstance(row.get(key), list) for key in _V1_SIDES),
    parse=lambda row, warnings: ParsedPair(shared_turns(row, _V1_SIDES), {}),
    turn_keys=_V1_SIDES,
    turn_fields=("role", "content", "loss_weight"),
).format()
"""Written from ``data/v1_dpo_demo.jsonl`` of LLaMA-Factory: two whole conversations, contents as blocks."""

KINDS = {
    "rlhflow": Plugin(
        RlhFlowConfig,
        _rlhflow,
        "RLHFlow's standard preference rows: two whole conversations that share their prompt, each with a score or"
        " null.",
    ),
    "ms_swift": without_settings(
        _MS_SWIFT,
        "ms-swift's preference rows: one whole conversation, and the answer or conversation that was rejected.",
    ),
    "ultrafeedback_binarized": without_settings(
        _BINARIZED,
        "UltraFeedback binarised: whole conversations, the prompt as a text with its hash, and GPT-4's score of both"
        " answers.",
    ),
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
        " turn, or text (MedicalGPT).",
    ),
    "llamafactory_v1": without_settings(
        _V1, "LLaMA-Factory's v1 pairs: ``chosen_messages`` and ``rejected_messages``, contents as blocks."
    ),
}
