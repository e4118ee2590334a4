"""Rows of two whole conversations, the better and the worse one: RLHFlow, ms-swift, UltraFeedback binarised."""

from collections import Counter
from collections.abc import Iterable

from steelyard.core.config import Config
from steelyard.core.errors import RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import JsonObject, Kind, Message
from steelyard.curation.format_support import UNKNOWN, carrying_pairs
from steelyard.plugins.formats._pairs import (
    MARGIN,
    NOT_SEPARABLE,
    SIDES,
    PairFormat,
    PairScores,
    PairTurns,
    ParsedPair,
    shared_turns,
    whole_turns,
)
from steelyard.plugins.formats._ratings import RatingScale
from steelyard.plugins.formats._rows import (
    answer_of,
    as_turns,
    field_turns,
    is_text,
    without_keys,
)


class RlhFlowConfig(Config, frozen=True):
    """Who gave the scores: a name, and ``human``, ``llm`` or ``model``."""

    rater: str = UNKNOWN
    """The name of the rater of the scores."""
    rater_kind: Kind = "human"
    """The kind of that rater: human, llm or model."""


def _rlhflow(config: RlhFlowConfig) -> PairFormat:
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
        row_of=_whole_row,
        turn_keys=SIDES,
        scores=scores,
    )


def _are_lists(row: JsonObject) -> bool:
    return all(isinstance(row.get(key), list) for key in SIDES)


def _whole_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    dropped[NOT_SEPARABLE] += not turns.is_separable()
    return whole_turns(turns)


_REJECTED = ("rejected_response", "rejected_messages")
_CONVERSATIONS = ("messages", "rejected_messages")


def _parse_ms_swift(row: Row, warnings: Counter[str]) -> ParsedPair:
    present = [key for key in _REJECTED if row.value.get(key) is not None]
    if len(present) != 1:
        problem = f"the row has {' and '.join(present) or 'neither rejected_response nor rejected_messages'}"
        raise RecordError(problem, where=row.place, allowed=f"messages, and one of {' and '.join(_REJECTED)}")
    is_whole = present == ["rejected_messages"]
    turns = shared_turns(row, _CONVERSATIONS) if is_whole else _last_turn_apart(row)
    return ParsedPair(turns, {"whole": is_whole})


def _last_turn_apart(row: Row) -> PairTurns:
    turns = field_turns(row, "messages", role="user")
    if len(turns) < 2 or turns[-1].role != "assistant":
        problem = "messages do not end with an answer to something"
        raise RecordError(problem, where=row.at("messages"), allowed="turns that end with the assistant's")
    return PairTurns(turns[:-1], turns[-1:], answer_of(row.text("rejected_response")))


def _ms_swift_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    messages: JsonObject = {"messages": as_turns(turns.prompt + turns.chosen)}
    are_texts = is_text(turns.chosen, "assistant") and is_text(turns.rejected, "assistant")
    if are_texts and not form.get("whole", False):
        return messages | {"rejected_response": turns.rejected[0].content}
    dropped[NOT_SEPARABLE] += not turns.is_separable()
    return messages | {"rejected_messages": as_turns(turns.prompt + turns.rejected)}


_MS_SWIFT = PairFormat(
    kind="ms_swift",
    keys=("messages", *_REJECTED, MARGIN),
    supports=carrying_pairs("margins", "answers of several turns"),
    matches=lambda row: (
        isinstance(row.get("messages"), list)
        and (isinstance(row.get(_REJECTED[0]), str) or isinstance(row.get(_REJECTED[1]), list))
    ),
    parse=_parse_ms_swift,
    row_of=_ms_swift_row,
    turn_keys=_CONVERSATIONS,
    null_keys=("messages", *_REJECTED, MARGIN),
    has_margin=True,
)
"""One whole conversation, and the answer or the conversation that was rejected.

Written from the page ``Customization/Custom-dataset`` of ms-swift's documentation (section RLHF, DPO and RM): the last
assistant turn of ``messages`` is the chosen answer; ``rejected_response`` is the other one as a text, and
``rejected_messages`` is the other conversation whole. ``margin`` is read for reward models. Images, tools and the like
are other keys of the row here, and pass through unread.
"""


_BINARIZED_SCORES = PairScores(
    ("score_chosen", "score_rejected"), RatingScale("overall_score", (1, 10), "gpt-4", "llm")
)


def _parse_binarized(row: Row, warnings: Counter[str]) -> ParsedPair:
    turns, title = shared_turns(row), row.text("prompt")
    has_messages = "messages" in row.value
    is_copy = has_messages and row.value["messages"] == row.value["chosen"]
    form = {
        "title": None if title == _title(turns.prompt) else title,
        "id": None,
        "without_messages": not has_messages,
        "messages": [row.value["messages"]] if has_messages and not is_copy else [],
    }
    return ParsedPair(turns, form)


def _title(turns: Iterable[Message]) -> str:
    """Return the first question, the data set's ``prompt``."""
    return next((turn.content for turn in turns if turn.role == "user"), "")


def _binarized_row(turns: PairTurns, form: JsonObject, dropped: Counter[str]) -> JsonObject:
    sides = _whole_row(turns, form, dropped)
    (messages,) = form.get("messages") or [sides["chosen"]]
    row = {"prompt": form.get("title", _title(turns.prompt)), "prompt_id": None, **sides, "messages": messages}
    return without_keys(row, ("messages",) if form.get("without_messages", False) else ()) or {}


_BINARIZED = PairFormat(
    kind="ultrafeedback_binarized",
    keys=("prompt", "prompt_id", *SIDES, "messages", *_BINARIZED_SCORES.keys),
    supports=carrying_pairs("prompt ids", "answers of several turns"),
    matches=lambda row: _are_lists(row) and {"prompt", "prompt_id", *_BINARIZED_SCORES.keys} <= row.keys(),
    parse=_parse_binarized,
    row_of=_binarized_row,
    turn_keys=SIDES,
    scores=_BINARIZED_SCORES,
    id_key="prompt_id",
)
"""Written from the card of the data set HuggingFaceH4/ultrafeedback_binarized.

``score_chosen`` and ``score_rejected`` are UltraFeedback's ``overall_score``, from 1 to 10 as in its annotation prompt.
They are kept as ratings; the four aspects are not in the rows, so a 10 that stands for a 1 (see ``ultrafeedback``)
cannot be detected here. ``messages`` repeats the chosen conversation and is written again; where it differs it is kept
as it is. The rows of one prompt share its id, a hash of the prompt.
"""

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
}
