"""Judgments derived from ratings: whom one rater rated higher on one scale, marked as derived and shown to nobody."""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Judgment, Kind, Meta, Rating, Verdict

_BETTER = "better"
LOWER_IS_BETTER: Meta = {_BETTER: "lower"}
NEITHER_IS_BETTER: Meta = {_BETTER: "neither"}
"""The ``meta`` of ratings whose low end is the good one, and of those that only describe; else higher is better."""


class Scale(NamedTuple):
    """On what two ratings can be compared: the rater, the dimension with its range, and which end is the better."""

    rater: str
    kind: Kind
    dimension: str
    range: tuple[float, float] | None
    better: str


def judgments_from_ratings(case: Case) -> tuple[Judgment, ...]:
    """A verdict for every two responses that one rater rated differently on one scale.

    Equal ratings give none: that two answers share a step of a scale does not say that they are equally good. A rater
    who gave one response several values of one dimension gives none on it. The order is that of the scales' first
    ratings, then of the responses. ``shown`` is null, the judge is the rater, ``meta`` says that it is derived.
    """
    places = {response.id: place for place, response in enumerate(case.responses)}
    scales: dict[Scale, dict[str, set[float]]] = {}
    for rating in case.ratings:
        scales.setdefault(_scale(rating), {}).setdefault(rating.response, set()).add(rating.value)
    return tuple(
        judgment
        for scale, values in scales.items()
        if scale.better in ("higher", "lower")
        for judgment in _judgments(scale, {name: values[name] for name in sorted(values, key=places.__getitem__)})
    )


def with_derived(case: Case) -> Case:
    """The case with the judgments that its ratings give; those that it has already are not added again."""
    new = tuple(one for one in judgments_from_ratings(case) if one not in case.judgments)
    return replace(case, judgments=case.judgments + new)


def _scale(rating: Rating) -> Scale:
    better = str((rating.meta or {}).get(_BETTER, "higher"))
    return Scale(rating.rater, rating.kind, rating.dimension, rating.range, better)


def _judgments(scale: Scale, values: dict[str, set[float]]) -> Iterator[Judgment]:
    single = [(name, *given) for name, given in values.items() if len(given) == 1]
    for (left, one), (right, other) in combinations(single, 2):
        if one == other:
            continue
        verdict: Verdict = "left" if (one > other) == (scale.better == "higher") else "right"
        yield Judgment(
            left=left,
            right=right,
            verdict=verdict,
            judge=scale.rater,
            kind=scale.kind,
            meta={"derived": "ratings", "dimension": scale.dimension},
        )
