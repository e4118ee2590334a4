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
    """Hands out ids; an id seen before gets ``~2``, ``~3``, and is counted in ``num_repeated``.

    No id is handed out twice, whatever is wanted: where ``x~2`` was wanted itself, the second ``x`` is ``x~3``.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._times: Counter[str] = Counter()
        self.num_repeated = 0

    def take(self, wanted: str) -> str:
        """The wanted id, or its next free variant."""
        found = wanted
        self._times[wanted] += 1
        if wanted in self._taken:
            self.num_repeated += 1
            self._times[wanted] = max(2, self._times[wanted])
            while (found := f"{wanted}~{self._times[wanted]}") in self._taken:
                self._times[wanted] += 1
        self._taken.add(found)
        return found

    def take_all(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """One id for each wanted one, in order."""
        return tuple(self.take(name) for name in wanted)
