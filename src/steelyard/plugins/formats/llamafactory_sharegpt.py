"""LLaMA-Factory's ShareGPT ranking data: ``conversations`` of ``{from, value}``, one chosen and one rejected turn.

Written from the public format description in LLaMA-Factory's ``data/README.md``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    count_other_keys,
    form_of,
    list_field,
    nulls_of,
    rest,
    text_field,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._pairwise import answer_text, pair_case, pair_rows
from steelyard.plugins.formats._parts import carrying_pairs

_KIND = "llamafactory_sharegpt"
_KEYS = ("conversations", "chosen", "rejected", "system")
_ROLES = {"human": "user", "gpt": "assistant", "system": "system", "observation": "tool", "function_call": "function"}
_NAMES = {role: name for name, role in _ROLES.items()}


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class ShareGpt:
    """One row a pair."""

    keys = _KEYS
    carries = carrying_pairs()

    def recognises(self, row: dict[str, Any]) -> bool:
        """Conversations with a chosen and a rejected turn."""
        return isinstance(row.get("conversations"), list) and {"chosen", "rejected"} <= row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers."""
        ids = PromptIds(noted)
        for row in rows:
            turns = [_turn(row, turn, "conversations") for turn in list_field(row, "conversations")]
            system = text_field(row, "system", default="")
            for value in (row.value["conversations"], row.value.get("chosen"), row.value.get("rejected")):
                count_other_keys(value, ("from", "value"), noted)
            answers = tuple((_turn(row, row.value.get(key), key),) for key in ("chosen", "rejected"))
            turns = ([Message(role="system", content=system)] if system else []) + turns
            prompt = with_prompt(turns, id=ids.made(row), meta=rest(row, _KEYS))
            # A system text has two places in this format: one of its own, and among the turns.
            meta = as_read(_KIND, system=system != "" or row.value.get("system"), null=nulls_of(row, ("system",)))
            yield pair_case(prompt, answers, noted, meta=meta)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair."""
        for case in cases:
            turns = list(case.prompt.messages)
            form = form_of(case, _KIND)
            is_apart = form.get("system") is True and turns and turns[0].role == "system"
            system = {"system": turns.pop(0).content} if is_apart else {}
            system |= {"system": ""} if form.get("system") == "" else {}
            for better, worse, _ in pair_rows(case, lost, self.carries):
                row = {
                    "conversations": [_written(turn.role, turn.content) for turn in turns],
                    "chosen": _answer(better, lost),
                    "rejected": _answer(worse, lost),
                    **system,
                }
                yield with_meta(with_nulls(row, form), case, _KEYS, lost)


def build(config: Config) -> ShareGpt:
    """The format."""
    return ShareGpt()


def _turn(row: Row, turn: Any, key: str) -> Message:
    if not isinstance(turn, dict) or not isinstance(turn.get("value"), str) or not isinstance(turn.get("from"), str):
        found = f"a turn of {key!r} without 'from' and 'value'"
        raise RecordError(found, where=row.place._replace(path=key), allowed='{"from": "human", "value": "…"}')
    name = str(turn["from"])
    return Message(role=_ROLES.get(name, name), content=turn["value"])


def _written(role: str, content: str) -> dict[str, str]:
    return {"from": _NAMES.get(role, role), "value": content}


def _answer(response: Any, lost: Counter[str]) -> dict[str, str]:
    turns = response.messages
    role = turns[-1].role if turns else "assistant"
    return _written(role, answer_text(response, lost))
