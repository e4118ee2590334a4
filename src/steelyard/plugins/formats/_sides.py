"""Benchmarks of better answers against worse ones in one row: reading either side, and finding both in a case."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from steelyard.core.errors import RecordError
from steelyard.core.identity import UniqueIds
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import list_field

OTHER_SHAPE = "cases of another shape"
"""The name under which a row of a fixed shape counts the cases that do not fit it; they are not written."""
SIDES = ("chosen", "rejected")


class Sides(NamedTuple):
    """The responses of a case's two tiers."""

    better: tuple[Response, ...]
    worse: tuple[Response, ...]


def sides_of(case: Case, lost: Counter[str], *, num_better: int | None = None, num_worse: int | None = None) -> Sides:
    """The two tiers of a ranking over all responses; of anything else two empty sides, and the case is counted.

    ``num_better`` and ``num_worse`` are how many a side must have, null where any number will do.
    """
    tiers = case.ranking or ()
    sizes = [len(tier) for tier in tiers]
    fits = (
        len(tiers) == 2
        and sum(sizes) == len(case.responses)
        and all(wanted in (None, size) for wanted, size in zip((num_better, num_worse), sizes, strict=True))
    )
    if not fits:
        lost[OTHER_SHAPE] += 1
        return Sides((), ())
    by_id = {response.id: response for response in case.responses}
    return Sides(*(tuple(by_id[name] for name in tier) for tier in tiers))


def texts_field(row: Row, key: str) -> tuple[str, ...]:
    """The texts listed under the key, one or more. Raises RecordError for anything else."""
    texts = list_field(row, key)
    if not texts or not all(isinstance(text, str) for text in texts):
        found = f"{key!r} holds no answer" if not texts else f"{key!r} holds an answer that is no text"
        raise RecordError(found, where=row.place._replace(path=key), allowed=f"{key}: one text or more")
    return tuple(texts)


def absent_keys(row: Row, keys: Iterable[str]) -> list[str]:
    """Those of the optional keys that the row does not have."""
    return [key for key in keys if key not in row.value]


class SubsetIds:
    """The ids of written rows, unique within a subset."""

    def __init__(self, lost: Counter[str]) -> None:
        self._lost = lost
        self._taken: defaultdict[str | None, UniqueIds] = defaultdict(UniqueIds)

    def take(self, wanted: Any, subset: str | None) -> Any:
        """The wanted id as it is, or as text with ``~2`` where it stands already in the subset, which is counted."""
        free = self._taken[subset].take(str(wanted))
        if free != str(wanted):
            self._lost["ids that stand already"] += 1
            return free
        return wanted
