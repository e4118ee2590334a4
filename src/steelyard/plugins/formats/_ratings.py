"""Numbers that a format gives to single answers: reading them as ratings, and which of a case's ratings it can say."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Kind, Meta, Rating
from steelyard.plugins.formats._fields import is_number


class Scale(NamedTuple):
    """What a number of a format means. ``rater`` null: the rows say who it was."""

    dimension: str
    range: tuple[float, float] | None
    rater: str | None
    kind: Kind


class Taken(NamedTuple):
    """The ratings that a format can say, by response and dimension, and the case with only the others."""

    ratings: Mapping[tuple[str, str], Rating]
    rest: Case

    def value(self, response: str, dimension: str) -> float | None:
        """The number for the response; null where there is none."""
        rating = self.ratings.get((response, dimension))
        return None if rating is None else rating.value


def number_field(row: Row, key: str) -> float | None:
    """The number under the key, null where there is none. Raises RecordError for anything else."""
    value = row.value.get(key)
    if value is not None and not is_number(value):
        raise RecordError("a score that is no number", where=row.place._replace(path=key), allowed="a number, or null")
    return value


def rating_of(response: str, value: float, scale: Scale, noted: Counter[str], **fields: Any) -> Rating:
    """The number as a rating, as it is; one outside the scale is counted, not corrected."""
    if scale.range is not None and not scale.range[0] <= value <= scale.range[1]:
        noted[f"ratings outside their scale ({scale.dimension})"] += 1
    said = {"rater": scale.rater, "kind": scale.kind, "dimension": scale.dimension, "range": scale.range}
    return Rating(response=response, value=value, **(said | fields))


def take_ratings(case: Case, scales: Iterable[Scale], lost: Counter[str], *, keeps_meta: bool = False) -> Taken:
    """One rating for each response and scale: the first of that dimension and range.

    What else a taken rating says, and the format does not, is counted here; the others are left to ``count_lost``.
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
        lost["raters"] += (rating.rater if scale.rater is not None else None, rating.kind) != (scale.rater, scale.kind)
        lost["rating details"] += _has_details(rating, keeps_meta=keeps_meta)
    return Taken(taken, replace(case, ratings=tuple(others)))


def _has_details(rating: Rating, *, keeps_meta: bool) -> bool:
    meta: Meta | None = None if keeps_meta else rating.meta
    return any(value is not None for value in (rating.id, rating.task, rating.spans)) or bool(meta)


def scored(case: Case, scores: Iterable[float | None], scale: Scale, noted: Counter[str]) -> tuple[Rating, ...]:
    """The ratings of a pair's two responses; that the chosen one is not rated higher is counted, not corrected."""
    chosen, rejected = values = tuple(scores)
    if chosen is not None and rejected is not None and chosen <= rejected:
        noted["pairs whose scores do not say their order"] += 1
    by_response = zip(case.responses, values, strict=True)
    return tuple(rating_of(one.id, value, scale, noted) for one, value in by_response if value is not None)
