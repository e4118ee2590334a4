"""UltraFeedback binarised: whole conversations, the prompt as a text with its hash, and GPT-4's score of both answers.

Written from the card of the data set HuggingFaceH4/ultrafeedback_binarized: ``score_chosen`` and ``score_rejected``
are UltraFeedback's ``overall_score``, from 1 to 10 as its annotation prompt says. They are kept as ratings; the four
aspects are not in the rows, so a 10 that stands for a 1 (see ``ultrafeedback``) cannot be told here. ``messages``
repeats the chosen conversation and is written again; where it differs it is kept as it is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.identity import UniqueIds
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import (
    answer_turns,
    as_read,
    count_other_keys,
    form_of,
    rest,
    text_field,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._implicit import SIDES, Parts, is_found_again, shared_turns, whole_turns
from steelyard.plugins.formats._pairwise import pair_case, pair_rows
from steelyard.plugins.formats._parts import carrying_pairs
from steelyard.plugins.formats._ratings import Scale, number_field, scored, take_ratings

_KIND = "ultrafeedback_binarized"
_SCORES = ("score_chosen", "score_rejected")
_KEYS = ("prompt", "prompt_id", *SIDES, "messages", *_SCORES)
_SCALE = Scale("overall_score", (1, 10), "gpt-4", "llm")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class UltraFeedbackBinarized:
    """One row a pair, with both overall scores."""

    keys = _KEYS
    carries = carrying_pairs("prompt ids", "answers of several turns")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Two lists of turns with a prompt's text, its id, and both scores."""
        return all(isinstance(row.get(key), list) for key in SIDES) and {"prompt", "prompt_id", *_SCORES} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers; a prompt's id that stands already gets ``~2`` and is counted."""
        ids = UniqueIds()
        for row in rows:
            parts = shared_turns(row, SIDES)
            for key in SIDES:
                count_other_keys(row.value.get(key), ("role", "content"), noted)
            title, given = text_field(row, "prompt"), text_field(row, "prompt_id")
            scores = tuple(number_field(row, key) for key in _SCORES)
            name = ids.take(given)
            noted["repeated prompt ids"] += name != given
            has_messages = "messages" in row.value
            meta = as_read(
                _KIND,
                title=None if title == _title(parts.prompt) else title,
                id=None if name == given else given,
                without_messages=not has_messages,
                messages=[row.value["messages"]]
                if has_messages and row.value["messages"] != row.value["chosen"]
                else [],
                absent=[key for key in _SCORES if key not in row.value],
            )
            prompt = with_prompt(parts.prompt, id=name, meta=rest(row, _KEYS))
            case = pair_case(prompt, (parts.chosen, parts.rejected), noted, meta=meta)
            yield replace(case, ratings=scored(case, scores, _SCALE, noted))

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair; the rows of one prompt share its id, as their hash of the prompt would."""
        for case in cases:
            form = form_of(case, _KIND)
            taken = take_ratings(case, (_SCALE,), lost)
            for number, (better, worse, _) in enumerate(pair_rows(taken.rest, lost, self.carries)):
                parts = Parts(case.prompt.messages, answer_turns(better), answer_turns(worse))
                lost["prompts inside the answers"] += not is_found_again(parts)
                lost["prompt ids"] += number > 0
                values = (taken.value(response.id, _SCALE.dimension) for response in (better, worse))
                scores: dict[str, float | None] = dict(zip(_SCORES, values, strict=True))
                yield with_meta(_row(case, parts, form) | _said(scores, form), case, _KEYS, lost)


def build(config: Config) -> UltraFeedbackBinarized:
    """The format."""
    return UltraFeedbackBinarized()


def _title(turns: Iterable[Message]) -> str:
    """The first question, which is what the data set calls the prompt."""
    return next((turn.content for turn in turns if turn.role == "user"), "")


def _row(case: Case, parts: Parts, form: dict[str, Any]) -> dict[str, Any]:
    sides = whole_turns(parts)
    (messages,) = form.get("messages") or [sides["chosen"]]
    return {
        "prompt": form.get("title", _title(parts.prompt)),
        "prompt_id": form.get("id", case.prompt.id),
        **sides,
        **({} if form.get("without_messages", False) else {"messages": messages}),
    }


def _said(scores: Mapping[str, Any], form: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in scores.items() if value is not None or key not in form.get("absent", ())}
