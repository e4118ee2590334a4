"""Ratings of rows: a format's number as a rating on its scale, and the ratings that a format can write."""

from collections import Counter
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Kind, Rating


class RatingScale(NamedTuple):
    """The meaning of a format's number. ``rater`` is null where the rows name the rater."""

    dimension: str
    range: tuple[float, float] | None
    rater: str | None
    kind: Kind


def rating_of(response: str, value: float, scale: RatingScale, warnings: Counter[str], **fields: Any) -> Rating:
    """Return the number as a rating, unchanged; a number outside the scale is counted."""
    if scale.range is not None and not scale.range[0] <= value <= scale.range[1]:
        warnings[f"ratings outside their scale ({scale.dimension})"] += 1
    return Rating(response=response, value=value, **(scale._asdict() | fields))


def take_ratings(case: Case, scale: RatingScale, dropped: Counter[str]) -> tuple[dict[str, float], Case]:
    """Return the number of each response on the scale, and the case with only the other ratings.

    The first rating of a response counts. Details that a format of numbers cannot write are counted here; those of the
    other ratings are left to ``count_lost``.
    """
    numbers: dict[str, float] = {}
    others: list[Rating] = []
    for rating in case.ratings:
        if (rating.dimension, rating.range) != (scale.dimension, scale.range) or rating.response in numbers:
            others.append(rating)
            continue
        numbers[rating.response] = rating.value
        dropped["raters"] += (rating.rater, rating.kind) != (scale.rater, scale.kind)
        has_details = any(value is not None for value in (rating.id, rating.task, rating.spans))
        dropped["rating details"] += has_details or bool(rating.meta)
    return numbers, replace(case, ratings=tuple(others))
