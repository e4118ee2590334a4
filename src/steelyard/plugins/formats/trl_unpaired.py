"""TRL's unpaired preference rows: a prompt, one completion, and whether it is a good one.

Written from the dataset-formats page of TRL's documentation (unpaired preference, for KTO). The label is a rating of
the dimension ``label``, 1 for true and 0 for false: an opinion of one answer, not of a pair, so nothing is ranked. A
case of several labelled answers becomes a row for each.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    answer_turns,
    as_read,
    as_turns,
    count_other_keys,
    form_of,
    response_of,
    rest,
    turn_keys,
    turns_of,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._implicit import is_text
from steelyard.plugins.formats._parts import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._ratings import Scale, rating_of, take_ratings

_KIND = "trl_unpaired"
_TURNS = ("prompt", "completion")
_KEYS = (*_TURNS, "label")
_SCALE = Scale("label", (0, 1), UNKNOWN, "human")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class TrlUnpaired:
    """One row an answer."""

    keys = _KEYS
    carries = carrying("system turns", "earlier turns", "prompt meta", "answers of several turns")

    def recognises(self, row: dict[str, Any]) -> bool:
        """A prompt and a completion with a label of true or false."""
        return set(_TURNS) <= row.keys() and isinstance(row.get("label"), bool)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of one response with one rating."""
        ids = PromptIds(noted)
        for row in rows:
            prompt = turns_of(row.value.get("prompt"), row.place, "prompt", role="user")
            answer = turns_of(row.value.get("completion"), row.place, "completion", role="assistant")
            label = row.value.get("label")
            if not isinstance(label, bool):
                raise RecordError(
                    "a label that is no truth", where=row.place._replace(path="label"), allowed="true or false"
                )
            for key in _TURNS:
                count_other_keys(row.value.get(key), ("role", "content"), noted)
            (name,) = answer_ids([answer], noted)
            yield Case(
                prompt=with_prompt(prompt, id=ids.made(row), meta=rest(row, _KEYS)),
                responses=(response_of(name, answer),),
                ratings=(rating_of(name, float(label), _SCALE, noted),),
                meta=as_read(_KIND, turns=turn_keys(row, _TURNS)),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a labelled answer; answers without a label are left out and counted."""
        for case in cases:
            taken = take_ratings(case, (_SCALE,), lost)
            count_lost(taken.rest, lost, self.carries)
            labels = [(one, taken.value(one.id, _SCALE.dimension)) for one in case.responses]
            rows = [_row(case, one, bool(value)) for one, value in labels if value in (0, 1)]
            lost["answers without a label of 0 or 1"] += len(labels) - len(rows)
            lost["cases cut into a row for each answer"] += len(rows) > 1
            yield from (with_meta(row, case, _KEYS, lost) for row in rows)


def build(config: Config) -> TrlUnpaired:
    """The format."""
    return TrlUnpaired()


def _row(case: Case, response: Response, label: bool) -> dict[str, Any]:  # noqa: FBT001  it is the value written
    """Texts where the prompt is one user turn and the answer one text, else turns; each as it was read."""
    values = {"prompt": case.prompt.messages, "completion": answer_turns(response)}
    roles = {"prompt": "user", "completion": "assistant"}
    can_be_text = {key: is_text(turns, roles[key]) for key, turns in values.items()}
    as_lists = form_of(case, _KIND).get("turns") or (() if all(can_be_text.values()) else _TURNS)
    said = {
        key: turns[0].content if can_be_text[key] and key not in as_lists else as_turns(turns)
        for key, turns in values.items()
    }
    return said | {"label": label}
