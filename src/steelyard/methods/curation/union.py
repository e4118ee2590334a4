"""The union of two cases with one key: evidence is joined, and what contradicts is refused or counted, never chosen."""

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from steelyard.core.errors import RecordError
from steelyard.core.types import Case, Judgment, Pair, Rating, Response

Evidence = TypeVar("Evidence", Judgment, Rating)


def union(first: Case, second: Case, noted: Counter[str]) -> Case:
    """Both cases in one: the responses, judgments, ratings and pairs of either, in order of first appearance.

    Evidence with an id is one where the ids are equal; without an id, where the content is equal, as often as it stands
    in the case that has it more often. Rankings that differ leave none, counted in ``noted``. Raises RecordError when
    the prompts' turns, or the texts of one response id, differ.
    """
    if first.prompt.messages != second.prompt.messages:
        raise RecordError(f"prompt {first.prompt.id!r} has two different texts", allowed="one text for one key")
    return msgspec.structs.replace(
        first,
        responses=_responses(first, second),
        judgments=_evidence(first.judgments, second.judgments),
        ratings=_evidence(first.ratings, second.ratings),
        ranking=_ranking(first, second, noted),
        pairs=_pairs(first, second),
        meta={**second.meta, **first.meta},
    )


def _responses(first: Case, second: Case) -> tuple[Response, ...]:
    known = {response.id: response for response in first.responses}
    for response in second.responses:
        own = known.setdefault(response.id, response)
        if (own.text, own.messages) != (response.text, response.messages):
            raise RecordError(
                f"response {response.id!r} of prompt {first.prompt.id!r} has two different texts",
                allowed="one text for one response id",
            )
    return tuple(known.values())


def _evidence(first: Sequence[Evidence], second: Sequence[Evidence]) -> tuple[Evidence, ...]:
    ids = {one.id for one in first if one.id is not None}
    left = Counter(_content(one) for one in first if one.id is None)
    added: list[Evidence] = []
    for one in second:
        if one.id is not None:
            if one.id not in ids:
                added.append(one)
        elif left[_content(one)] > 0:
            left[_content(one)] -= 1
        else:
            added.append(one)
    return (*first, *added)


def _content(one: Judgment | Rating) -> bytes:
    return msgspec.json.encode(one, order="deterministic")


def _ranking(first: Case, second: Case, noted: Counter[str]) -> tuple[tuple[str, ...], ...] | None:
    if first.ranking is None or second.ranking is None:
        return first.ranking if second.ranking is None else second.ranking
    if [set(tier) for tier in first.ranking] == [set(tier) for tier in second.ranking]:
        return first.ranking
    noted["rankings that differ"] += 1
    return None


def _pairs(first: Case, second: Case) -> tuple[Pair, ...] | None:
    if first.pairs is None or second.pairs is None:
        return first.pairs if second.pairs is None else second.pairs
    return tuple(dict.fromkeys((*first.pairs, *second.pairs)))
