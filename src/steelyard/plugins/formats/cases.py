"""Our own record, so that a conversion can also only change the file: JSON lines to Parquet and back."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.files.cases import decode_case


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Cases:
    """Case files. Nothing is lost either way."""

    def recognises(self, row: dict[str, Any]) -> bool:
        """A prompt that is an object, beside a list of responses."""
        return isinstance(row.get("prompt"), dict) and isinstance(row.get("responses"), list)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """The rows as checked cases."""
        for row in rows:
            yield decode_case(msgspec.json.encode(row.value), row.place)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """The cases as they are."""
        for case in cases:
            yield msgspec.to_builtins(case)


def build(config: Config) -> Cases:
    """The format."""
    return Cases()
