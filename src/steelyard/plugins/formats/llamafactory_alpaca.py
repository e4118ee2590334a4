"""LLaMA-Factory's alpaca ranking data: instruction, input, ``chosen`` and ``rejected`` texts.

Written from the public format description in LLaMA-Factory's ``data/README.md``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import (
    PromptIds,
    as_read,
    form_of,
    rest,
    text_field,
    with_prompt,
)
from steelyard.plugins.formats._instruction import INSTRUCTION_KEYS, instruction_row, instruction_turns
from steelyard.plugins.formats._pairwise import answer_text, pair_case, pair_rows
from steelyard.plugins.formats._parts import carrying_pairs

_KIND = "llamafactory_alpaca"


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Alpaca:
    """One row a pair."""

    keys = (*INSTRUCTION_KEYS, "chosen", "rejected")
    carries = carrying_pairs()

    def recognises(self, row: dict[str, Any]) -> bool:
        """An instruction with two textual answers."""
        return "instruction" in row and isinstance(row.get("chosen"), str) and isinstance(row.get("rejected"), str)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers."""
        ids = PromptIds(noted)
        for row in rows:
            answers = tuple(
                (Message(role="assistant", content=text_field(row, key)),) for key in ("chosen", "rejected")
            )
            messages, kept = instruction_turns(row)
            prompt = with_prompt(messages, id=ids.made(row), meta=rest(row, self.keys))
            yield pair_case(prompt, answers, noted, meta=as_read(_KIND, **kept))

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair."""
        for case in cases:
            form = form_of(case, _KIND)
            for better, worse, _ in pair_rows(case, lost, self.carries):
                answers = {"chosen": answer_text(better, lost), "rejected": answer_text(worse, lost)}
                yield instruction_row(case, lost, form=form, answers=answers)


def build(config: Config) -> Alpaca:
    """The format."""
    return Alpaca()
