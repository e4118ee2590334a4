"""Ids that we make: hashes of content, so that the same data get the same ids on every machine and in every run."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_canonical = msgspec.json.Encoder(order="deterministic")


def content_id(content: str | Mapping[str, Any]) -> str:
    """The first 16 hexadecimal digits of the SHA-256 of a text, or of a row written with sorted keys."""
    encoded = content.encode() if isinstance(content, str) else _canonical.encode(content)
    return hashlib.sha256(encoded).hexdigest()[:16]


class UniqueIds:
    """Hands out ids; an id seen before gets ``~2``, ``~3``, and is counted in ``num_repeated``."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self.num_repeated = 0

    def take(self, wanted: str) -> str:
        """The wanted id, or its next free variant."""
        self._seen[wanted] += 1
        times = self._seen[wanted]
        if times == 1:
            return wanted
        self.num_repeated += 1
        return f"{wanted}~{times}"

    def take_all(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """One id for each wanted one, in order."""
        return tuple(self.take(name) for name in wanted)
