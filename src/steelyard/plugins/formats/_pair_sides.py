"""Benchmarks of better against worse answers in one row: reading either side, and finding both in a case."""

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from steelyard.core.errors import RecordError
from steelyard.core.identity import UniqueIds
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Response
from steelyard.plugins.formats._fields import OTHER_SHAPE


class RankedSides(NamedTuple):
    """The responses of a case's two tiers."""

    better: tuple[Response, ...]
    worse: tuple[Response, ...]


def sides_of(
    case: Case, dropped: Counter[str], *, num_better: int | None = None, num_worse: int | None = None
) -> RankedSides:
    """Return the two tiers of a ranking over all responses; otherwise two empty sides, and the case is counted.

    ``num_better`` and ``num_worse`` are the sizes that a side must have, null for any size.
    """
    tiers = case.ranking or ()
    sizes = [len(tier) for tier in tiers]
    fits = (
        len(tiers) == 2
        and sum(sizes) == len(case.responses)
        and all(wanted in (None, size) for wanted, size in zip((num_better, num_worse), sizes, strict=True))
    )
    if not fits:
        dropped[OTHER_SHAPE] += 1
        return RankedSides((), ())
    by_id = {response.id: response for response in case.responses}
    return RankedSides(*(tuple(by_id[name] for name in tier) for tier in tiers))


def texts_field(row: Row, key: str) -> tuple[str, ...]:
    """Return the texts listed under the key, one or more. Raises RecordError for anything else."""
    texts = row.items(key)
    if not texts or not are_texts(texts):
        problem = f"{key!r} holds no answer" if not texts else f"{key!r} holds an answer that is not a text"
        raise RecordError(problem, where=row.at(key), allowed=f"{key}: one text or more")
    return tuple(texts)


def are_texts(value: Any) -> bool:
    """Return whether the value is a list of one text or more."""
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


class SubsetIds:
    """The ids of written rows, unique within a subset."""

    def __init__(self, dropped: Counter[str]) -> None:
        self._lost = dropped
        self._taken: defaultdict[tuple[str | None, ...], UniqueIds] = defaultdict(UniqueIds)

    def take(self, wanted: Any, *subset: str | None) -> Any:
        """Return the wanted id, or a text with ``~2`` where the subset has it already, which is counted."""
        free = self._taken[subset].take(str(wanted))
        if free != str(wanted):
            self._lost["ids that stand already"] += 1
            return free
        return wanted
