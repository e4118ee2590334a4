"""Ratings inside the object of an answer: a number, numbers by annotator or by aspect, or a list of annotations."""

from typing import Any, NamedTuple

from steelyard.core.protocols import is_number, parse_number
from steelyard.core.types import JsonObject, Meta
from steelyard.curation.column_names import ANNOTATORS, ASPECTS

RATING_KEYS = ("score", "rating", "reward", "grade", "rank")
_OF_SEVERAL = {
    "ratings": "rating",
    "scores": "score",
    "annotations": "rating",
    "evaluations": "rating",
    "grades": "grade",
}
"""Fields with the ratings of several people or aspects, and the dimension of those without a name."""
_RATERS = (*ANNOTATORS, "user", "user_id", "username", "name", "by")


class NestedRating(NamedTuple):
    """A number for an answer, with other fields of its annotation; null as its rater stands for that of the row."""

    value: float
    dimension: str
    rater: str | None = None
    meta: Meta | None = None


class NestedRatings(NamedTuple):
    """The ratings of an answer's object, and the field that holds them and nothing else."""

    ratings: tuple[NestedRating, ...] = ()
    field: str | None = None


def nested_ratings(fields: JsonObject) -> NestedRatings:
    """Return the ratings of the first field that has any; a lower rank is better."""
    for name in RATING_KEYS:
        if (number := _number(fields.get(name))) is not None:
            return NestedRatings((NestedRating(_signed(number, name), name),), name)
    for name, dimension in _OF_SEVERAL.items():
        value = fields.get(name)
        entries = list(value.items()) if isinstance(value, dict) else value if isinstance(value, list) else []
        read = [_by_name(value, *entry) if isinstance(value, dict) else _annotation(entry) for entry in entries]
        if any(read):
            is_whole = all(rating or _is_empty(entry) for rating, entry in zip(read, entries, strict=True))
            ratings = (rating for rating in read if rating is not None)
            complete = (rating if rating.dimension else rating._replace(dimension=dimension) for rating in ratings)
            return NestedRatings(tuple(complete), name if is_whole else None)
    return NestedRatings()


def _by_name(numbers: JsonObject, name: str, value: Any) -> NestedRating | None:
    """Return a number by an annotator's name, or of an aspect where the names are those of aspects."""
    number = _number(value)
    are_aspects = any(ASPECTS.search(other.casefold()) for other in numbers)
    if number is None:
        return None
    return NestedRating(number, name) if are_aspects else NestedRating(number, "", name)


def _annotation(item: Any) -> NestedRating | None:
    """Return the number of an annotation that names its annotator; null for any other."""
    entry = item if isinstance(item, dict) else {}
    key = next((name for name in (*RATING_KEYS, "value") if _number(entry.get(name)) is not None), None)
    rater = next((name for name in _RATERS if isinstance(entry.get(name), str | int)), None)
    number = _number(entry.get(key)) if key else None
    if key is None or rater is None or number is None:
        return None
    meta = {name: value for name, value in entry.items() if name not in (key, rater) and value is not None}
    return NestedRating(_signed(number, key), "" if key == "value" else key, str(entry[rater]), meta or None)


def _is_empty(entry: Any) -> bool:
    """Return whether an annotator gave nothing: a null under a name, or an annotation whose other fields are null."""
    values = entry[1:] if isinstance(entry, tuple) else [entry]
    if isinstance(entry, dict):
        values = [value for name, value in entry.items() if name not in _RATERS]
    return all(value is None for value in values)


def _number(value: Any) -> float | None:
    """Return the number of a value, also of one that is written as a text."""
    if isinstance(value, str):
        return parse_number(value)
    return float(value) if is_number(value) else None


def _signed(number: float, key: str) -> float:
    return 0.0 - number if key == "rank" else number
