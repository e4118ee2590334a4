"""Generated ids: hashes of content, so that equal data get equal ids on every machine and in every run."""

import hashlib
from collections import Counter
from collections.abc import Iterable

import msgspec

from steelyard.core.types import JsonObject

_canonical = msgspec.json.Encoder(order="deterministic")


def content_id(content: str | JsonObject) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a text, or of a row encoded with sorted keys."""
    encoded = content.encode() if isinstance(content, str) else _canonical.encode(content)
    return hashlib.sha256(encoded).hexdigest()[:16]


class UniqueIds:
    """Make ids unique: a repeated id gets ``~2``, ``~3``, and is counted in ``num_repeated``.

    No id is returned twice: after a literal ``x~2``, the second ``x`` becomes ``x~3``.
    """

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._times: Counter[str] = Counter()
        self.num_repeated = 0

    def take(self, wanted: str) -> str:
        """Return the wanted id, or its next free variant."""
        unique = wanted
        self._times[wanted] += 1
        if wanted in self._taken:
            self.num_repeated += 1
            self._times[wanted] = max(2, self._times[wanted])
            while (unique := f"{wanted}~{self._times[wanted]}") in self._taken:
                self._times[wanted] += 1
        self._taken.add(unique)
        return unique

    def take_all(self, wanted: Iterable[str]) -> tuple[str, ...]:
        """Return a unique id for each wanted id, in order."""
        return tuple(self.take(name) for name in wanted)
