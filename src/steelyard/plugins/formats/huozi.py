"""Huozi's preference data of HIT-SCIR: a Chinese prompt, the answer that people chose, and the one they rejected.

Written from the README of the repository HIT-SCIR/huozi (16.9 thousand prompts, labelled by people, answered by its
own model) and from public code that reads its ``huozi_rlhf_data.csv`` by the columns ``prompt``, ``chosen`` and
``reject``; the file itself could not be read. The JSON array that the community made of it has the same keys.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._fields import PromptIds, with_meta
from steelyard.plugins.formats._parts import carrying
from steelyard.plugins.formats._plain import Names, plain_case, plain_rows

_KEYS = Names("prompt", "chosen", "reject")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Huozi:
    """One row a pair of texts."""

    keys = _KEYS
    carries = carrying("prompt meta", "rankings", "listed pairs")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Three texts, the worse answer under ``reject``; RMB's rows of that name hold objects."""
        return all(isinstance(row.get(key), str) for key in _KEYS)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers."""
        ids = PromptIds(noted)
        for row in rows:
            yield plain_case(row, _KEYS, ids, noted, known=_KEYS)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair of a case of one question and answers of one turn."""
        for case in cases:
            for row in plain_rows(case, _KEYS, lost, self.carries):
                yield with_meta(row.values, case, _KEYS, lost)


def build(config: Config) -> Huozi:
    """The format."""
    return Huozi()
