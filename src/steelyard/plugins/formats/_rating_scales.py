"""Ratings of rows: a format's number as a rating on its scale, and the ratings that a format can write."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.types import Case, Kind, Rating


class RatingScale(NamedTuple):
    """The meaning of a format's number. ``rater`` is null where the rows name the rater."""

    dimension: str
    range: tuple[float, float] | None
    rater: str | None
    kind: Kind


class TakenRatings(NamedTuple):
    """The ratings that a format can write, by response and dimension, and the case with only the others."""

    ratings: Mapping[tuple[str, str], Rating]
    rest: Case

    def value(self, response: str, dimension: str) -> float | None:
        """Return the number for the response, null where there is none."""
        rating = self.ratings.get((response, dimension))
        return None if rating is None else rating.value


def rating_of(response: str, value: float, scale: RatingScale, warnings: Counter[str], **fields: Any) -> Rating:
    """Return the number as a rating, unchanged; a number outside the scale is counted."""
    if scale.range is not None and not scale.range[0] <= value <= scale.range[1]:
        warnings[f"ratings outside their scale ({scale.dimension})"] += 1
    defaults = {"rater": scale.rater, "kind": scale.kind, "dimension": scale.dimension, "range": scale.range}
    return Rating(response=response, value=value, **(defaults | fields))


def take_ratings(
    case: Case, scales: Iterable[RatingScale], dropped: Counter[str], *, keeps_meta: bool = False
) -> TakenRatings:
    """Take one rating for each response and scale: the first of that dimension and range.

    Details of a taken rating that the format cannot write are counted here; the others are left to ``count_lost``.
    """
    by_dimension = {scale.dimension: scale for scale in scales}
    taken: dict[tuple[str, str], Rating] = {}
    others: list[Rating] = []
    for rating in case.ratings:
        scale = by_dimension.get(rating.dimension)
        key = (rating.response, rating.dimension)
        if scale is None or scale.range != rating.range or key in taken:
            others.append(rating)
            continue
        taken[key] = rating
        dropped["raters"] += (rating.rater if scale.rater is not None else None, rating.kind) != (
            scale.rater,
            scale.kind,
        )
        has_details = any(value is not None for value in (rating.id, rating.task, rating.spans))
        dropped["rating details"] += has_details or bool(rating.meta and not keeps_meta)
    return TakenRatings(taken, replace(case, ratings=tuple(others)))
