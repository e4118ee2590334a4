"""LLaMA-Factory's older ranking data: ``output`` holds all answers, best first, beside ``history``.

Written from the public data in LLaMA-Factory's repository of 2023 (``data/README.md``); K answers a row.
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
    answer_ids,
    as_read,
    form_of,
    list_field,
    response_of,
    rest,
    with_prompt,
)
from steelyard.plugins.formats._instruction import INSTRUCTION_KEYS, instruction_row, instruction_turns
from steelyard.plugins.formats._pairwise import answer_text
from steelyard.plugins.formats._parts import carrying, count_lost

_KIND = "llamafactory_ranked"


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Ranked:
    """One row a prompt; a response's place in ``output`` is its tier."""

    keys = (*INSTRUCTION_KEYS, "output")
    carries = carrying("system turns", "earlier turns", "prompt meta", "rankings", "more than two responses")

    def recognises(self, row: dict[str, Any]) -> bool:
        """An instruction with a list of outputs."""
        return "instruction" in row and isinstance(row.get("output"), list)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with one response a tier."""
        ids = PromptIds(noted)
        for row in rows:
            output = list_field(row, "output")
            if not all(isinstance(text, str) for text in output):
                raise RecordError("an answer that is no text", where=row.place._replace(path="output"))
            turns = [(Message(role="assistant", content=text),) for text in output]
            names = answer_ids(turns, noted)
            messages, kept = instruction_turns(row)
            meta = rest(row, self.keys)
            yield Case(
                prompt=with_prompt(messages, id=ids.made(row), meta=meta),
                responses=tuple(response_of(name, one) for name, one in zip(names, turns, strict=True)),
                ranking=tuple((name,) for name in names) or None,
                meta=as_read(_KIND, **kept),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a prompt; ties become an order, and unranked responses are left out: both are counted."""
        for case in cases:
            count_lost(case, lost, self.carries)
            ranked = [name for tier in case.ranking or () for name in tier]
            lost["unranked responses"] += len(case.responses) - len(ranked)
            by_id = {response.id: response for response in case.responses}
            answers = {"output": [answer_text(by_id[name], lost) for name in ranked]}
            yield instruction_row(case, lost, form=form_of(case, _KIND), answers=answers)


def build(config: Config) -> Ranked:
    """The format."""
    return Ranked()
