"""Kyara's preference data: a prompt in Traditional Chinese, and two models' answers as language models judged them.

Written from the README of the repository zake7749/kyara and the card of its data set
zake7749/kyara-chinese-preference-dpo-s0-30K, which say how the pairs were made: one prompt to several models, and
models asked which answer is better. The columns could not be read (access is on request): ``prompt``, ``chosen`` and
``rejected`` are taken to be texts, as its training code needs them. Such rows look like TRL's.
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

_KEYS = Names("prompt", "chosen", "rejected")


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Kyara:
    """One row a pair of texts."""

    keys = _KEYS
    carries = carrying("prompt meta", "rankings", "listed pairs")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Never: nothing tells these rows from TRL's."""
        return False

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


def build(config: Config) -> Kyara:
    """The format."""
    return Kyara()
