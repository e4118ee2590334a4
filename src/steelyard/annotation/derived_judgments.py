"""Judgments derived from ratings: the response that one rater rated higher on one scale, marked as derived."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Judgment, Kind, Meta, Rating, Verdict

_BETTER = "better"
LOWER_IS_BETTER: Meta = {_BETTER: "lower"}
NEITHER_IS_BETTER: Meta = {_BETTER: "neither"}
"""The ``meta`` of ratings whose low end is the good one, and of those that only describe; else higher is better."""


class RaterScale(NamedTuple):
    """The scale of comparable ratings: one rater, one dimension with its range, and the better end."""

    rater: str
    kind: Kind
    dimension: str
    range: tuple[float, float] | None
    better: str


def rating_scale(rating: Rating) -> RaterScale:
    """Return the scale of a rating."""
    better = str((rating.meta or {}).get(_BETTER, "higher"))
    return RaterScale(rating.rater, rating.kind, rating.dimension, rating.range, better)


def judgments_from_ratings(case: Case) -> tuple[Judgment, ...]:
    """Return a judgment for every two responses that one rater rated differently on one scale.

    Equal ratings give none: two answers on one step of a scale need not be equally good. A response with several values
    of one dimension from one rater is left out. The order is that of the scales' first ratings, then of the responses.
    ``shown`` is null, the judge is the rater, ``meta`` marks the judgment as derived.
    """
    places = {response.id: place for place, response in enumerate(case.responses)}
    # Sets of values, so that a repeated equal rating is one and contradicting ones are found.
    scales: dict[RaterScale, dict[str, set[float]]] = {}
    for rating in case.ratings:
        scales.setdefault(rating_scale(rating), {}).setdefault(rating.response, set()).add(rating.value)
    return tuple(
        judgment
        for scale, values in scales.items()
        if scale.better in ("higher", "lower")
        for judgment in _judgments(scale, {name: values[name] for name in sorted(values, key=places.__getitem__)})
    )


def with_derived(case: Case) -> Case:
    """Return the case with the judgments from its ratings; those that it has already are not added again."""
    new = tuple(judgment for judgment in judgments_from_ratings(case) if judgment not in case.judgments)
    return replace(case, judgments=case.judgments + new)


def _judgments(scale: RaterScale, values: dict[str, set[float]]) -> Iterator[Judgment]:
    single = [(name, *ratings) for name, ratings in values.items() if len(ratings) == 1]
    for (left, left_value), (right, right_value) in combinations(single, 2):
        if left_value == right_value:
            continue
        verdict: Verdict = "left" if (left_value > right_value) == (scale.better == "higher") else "right"
        yield Judgment(
            left=left,
            right=right,
            verdict=verdict,
            judge=scale.rater,
            kind=scale.kind,
            meta={"derived": "ratings", "dimension": scale.dimension},
        )
