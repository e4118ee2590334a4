"""One completion of UltraFeedback as a response with its ratings, and back; scores of 10 that may stand for a 1."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.types import Message, Rating, Response
from steelyard.plugins.formats._fields import is_number, response_of
from steelyard.plugins.formats._pairwise import answer_text
from steelyard.plugins.formats._ratings import Scale, Taken, rating_of

ASPECTS = ("instruction_following", "honesty", "truthfulness", "helpfulness")
SCORES = ("overall_score", "fine-grained_score")
_JUDGE = "gpt-4"
SCALES: Mapping[str, Scale] = {
    **{aspect: Scale(aspect, (1, 5), _JUDGE, "llm") for aspect in ASPECTS},
    "overall_score": Scale("overall_score", (1, 10), _JUDGE, "llm"),
    "fine-grained_score": Scale("fine-grained_score", (1, 5), _JUDGE, "llm"),
}
FLAG = "flagged"
TEN_FOR_ONE = "overall_score 10 beside a mean aspect rating of at most 2: a 1 in revisions before 40b4365"
"""What ``meta`` says of a response whose score of 10 the authors' own repair turns into a 1."""
_OWN = ("model", "response", "annotations", *SCORES)


class Completion(NamedTuple):
    """The parts of a completion, before its response has an id."""

    turns: tuple[Message, ...]
    author: str | None
    meta: dict[str, Any]
    values: dict[str, float]
    details: dict[str, dict[str, Any]]


def completion_of(item: Any, place: Place, noted: Counter[str]) -> Completion:
    """A completion's text, model, ratings, and all else for ``meta``. Raises RecordError for what is none."""
    if not isinstance(item, dict) or not isinstance(item.get("response"), str):
        raise RecordError("a completion without its response", where=place, allowed='{"response": "…", …}')
    author = item.get("model")
    if author is not None and not isinstance(author, str):
        raise RecordError("a model that is no text", where=place, allowed="model: a text")
    meta = {key: value for key, value in item.items() if key not in _OWN or value is None}
    values, details = _aspects(item, place, meta)
    for key in SCORES:
        given = item.get(key)
        if given is None:
            continue
        if not is_number(given):
            raise RecordError(f"{key!r} is no number", where=place, allowed="a number, or null")
        values[key] = given
    if is_ten_for_one(values, noted):
        meta[FLAG] = TEN_FOR_ONE
    turn = Message(role="assistant", content=item["response"])
    return Completion((turn,), author, meta, values, details)


def is_ten_for_one(values: Mapping[str, float], noted: Counter[str]) -> bool:
    """Whether an overall score of 10 stands beside a mean aspect rating of at most 2; up to 4 is only counted.

    Source: ``src/data_annotation/fix_overall_score_issue.py`` of OpenBMB/UltraFeedback, whose repair turns the first
    kind into 1 and asks GPT-4 again for the second.
    """
    rated = [values[aspect] for aspect in ASPECTS if aspect in values]
    if values.get("overall_score") != 10 or not rated:
        return False
    mean = sum(rated) / len(rated)
    noted["overall scores of 10 that stand for a 1 (revisions before 40b4365)"] += mean <= 2
    noted["overall scores of 10 beside middling aspect ratings"] += 2 < mean <= 4
    return mean <= 2


def response_and_ratings(name: str, one: Completion, noted: Counter[str]) -> tuple[Response, tuple[Rating, ...]]:
    """The response under its id, and a rating for each number."""
    response = response_of(name, one.turns, author=one.author, meta=one.meta or None)
    return response, tuple(
        rating_of(name, value, SCALES[dimension], noted, meta=one.details.get(dimension) or None)
        for dimension, value in one.values.items()
    )


def completion_row(response: Response, taken: Taken, lost: Counter[str]) -> dict[str, Any]:
    """The completion as the data set writes it: aspect ratings as texts, scores as numbers."""
    meta = {key: value for key, value in (response.meta or {}).items() if (key, value) != (FLAG, TEN_FOR_ONE)}
    ratings = {key: taken.ratings[response.id, key] for key in SCALES if (response.id, key) in taken.ratings}
    aspects = {key: _annotation(rating) for key, rating in ratings.items() if key in ASPECTS}
    unrated = meta.get("annotations")
    own: dict[str, Any] = {"response": answer_text(response, lost)}
    own |= {"model": response.author} if response.author is not None else {}
    if isinstance(unrated, dict):
        own["annotations"] = {**meta.pop("annotations"), **aspects}
    elif aspects:
        own["annotations"] = aspects
    own |= {key: ratings[key].value for key in SCORES if key in ratings}
    clashing = {key for key in meta.keys() & set(_OWN) if meta[key] is not None}
    if clashing:
        lost["response meta under the format's own names"] += len(clashing)
    lost["rating details"] += sum(bool(ratings[key].meta) for key in SCORES if key in ratings)
    return {**{key: value for key, value in meta.items() if key not in clashing}, **own}


def _aspects(
    item: dict[str, Any], place: Place, meta: dict[str, Any]
) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Each aspect's rating and what else its annotation says; an annotation without a number goes into ``meta``."""
    annotations = item.get("annotations")
    if annotations is not None and not isinstance(annotations, dict):
        raise RecordError("annotations that are no object", where=place, allowed='{"honesty": {"Rating": "3", …}, …}')
    values: dict[str, float] = {}
    details: dict[str, dict[str, Any]] = {}
    for key, annotation in (annotations or {}).items():
        rating = _rating(annotation) if key in ASPECTS else None
        if rating is None:
            meta.setdefault("annotations", {})[key] = annotation
            continue
        values[key] = rating
        details[key] = {name: value for name, value in annotation.items() if name != "Rating"}
    if annotations == {}:
        meta["annotations"] = {}
    return values, details


def _rating(annotation: Any) -> float | None:
    """The number of an annotation, which is a text there; null for ``N/A`` and for any other form."""
    said = annotation.get("Rating") if isinstance(annotation, dict) else None
    value = float(said) if isinstance(said, str) and re.fullmatch(r"\d{1,3}(\.\d+)?", said, re.ASCII) else None
    return value if value is not None and _text(value) == said else None


def _annotation(rating: Rating) -> dict[str, Any]:
    return {**(rating.meta or {}), "Rating": _text(rating.value)}


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def models_of(items: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The models of the completions, as the row lists them beside."""
    return [item.get("model") for item in items]
