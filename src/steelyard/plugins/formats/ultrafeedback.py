"""UltraFeedback: a prompt, the completions of several models, and GPT-4's ratings of each of them.

Written from the README of OpenBMB/UltraFeedback, its annotation prompts (aspects from 1 to 5, the overall score from
1 to 10) and the fields of the data set of that name. Four aspects, ``overall_score`` and ``fine-grained_score``
become ratings by ``gpt-4``, with the rationale and type beside a rating in its ``meta``. Principle, system prompt and
critique belong to one completion and are in its response's ``meta``.

In revisions before 40b4365 a score of 1 was read as 10. Such completions are counted and marked in ``meta`` under
``flagged``, and never corrected: the mark is not written back, the number is. Take the repaired revision.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Message, Rating, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    PromptIds,
    answer_ids,
    answer_text,
    as_read,
    form_of,
    only_question,
    response_of,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._ratings import RatingScale, Taken, rating_of, take_ratings

ASPECTS = ("instruction_following", "honesty", "truthfulness", "helpfulness")
SCORES = ("overall_score", "fine-grained_score")
_JUDGE = "gpt-4"
SCALES: Mapping[str, RatingScale] = {
    **{aspect: RatingScale(aspect, (1, 5), _JUDGE, "llm") for aspect in ASPECTS},
    "overall_score": RatingScale("overall_score", (1, 10), _JUDGE, "llm"),
    "fine-grained_score": RatingScale("fine-grained_score", (1, 5), _JUDGE, "llm"),
}
FLAG = "flagged"
TEN_FOR_ONE = "overall_score 10 beside a mean aspect rating of at most 2: a 1 in revisions before 40b4365"
"""What ``meta`` says of a response whose score of 10 the authors' own repair turns into a 1."""
_OWN = ("model", "response", "annotations", *SCORES)


class Completion(NamedTuple):
    """The parts of a completion, before its response has an id."""

    turns: tuple[Message, ...]
    author: str | None
    meta: JsonObject
    values: dict[str, float]
    details: dict[str, JsonObject]


_KIND = "ultrafeedback"
_MEASURED = ("source", "instruction", "models", "completions")
_ANSWERS = ("correct_answers", "incorrect_answers")
_NO_ANSWER = ["None"]


class UltraFeedback:
    """One row a prompt, with all its completions."""

    keys = (*_MEASURED, *_ANSWERS)
    supports = carrying("source", "prompt meta", "authors", "response meta", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has an instruction with completions that have annotations."""
        items = row.get("completions")
        return (
            isinstance(row.get("instruction"), str)
            and isinstance(items, list)
            and all(isinstance(item, dict) and {"response", "annotations"} <= item.keys() for item in items)
        )

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with a rating for each aspect and score of each completion."""
        ids = PromptIds(warnings)
        for row in rows:
            question = Message(role="user", content=row.text("instruction"))
            items = row.items("completions")
            places = [row.at(f"completions[{place}]") for place in range(len(items))]
            completions = [completion_of(item, place, warnings) for item, place in zip(items, places, strict=True)]
            models = row.value.get("models")
            if models is not None and not isinstance(models, list):
                raise RecordError("models that are no list", where=row.at("models"))
            names = answer_ids([completion.turns for completion in completions], warnings)
            read = [
                response_and_ratings(name, completion, warnings)
                for name, completion in zip(names, completions, strict=True)
            ]
            meta = {key: value for key, value in row.value.items() if key in _ANSWERS and value != _NO_ANSWER}
            form = {
                "models": [models] if models is not None and models != models_of(items) else None,
                "absent": [key for key in ("models", *_ANSWERS) if key not in row.value],
                "null": row.nulls(("source", "models")),
            }
            yield Case(
                prompt=with_prompt(
                    (question,),
                    id=ids.take(row),
                    source=row.optional_text("source"),
                    meta=meta | (row.others(self.keys) or {}),
                ),
                responses=tuple(response for response, _ in read),
                ratings=tuple(rating for _, ratings in read for rating in ratings),
                meta=as_read(_KIND, **form),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a prompt. A case whose prompt is not one question is counted and not written."""
        for case in cases:
            taken = take_ratings(case, SCALES.values(), dropped, keeps_meta=True)
            count_lost(taken.rest, dropped, self.supports)
            question = only_question(case.prompt.messages)
            if question is None:
                dropped[OTHER_SHAPE] += 1
                continue
            form = form_of(case, _KIND)
            items = [completion_row(response, taken, dropped) for response in case.responses]
            row = {
                **({"source": case.prompt.source} if case.prompt.source is not None else {}),
                "instruction": question,
                **_models(items, form),
                "completions": items,
            }
            row = with_meta(with_nulls(row, form), case, _MEASURED, dropped)
            missing = [key for key in _ANSWERS if key not in row and key not in form.get("absent", ())]
            yield row | {key: list(_NO_ANSWER) for key in missing}


def _models(items: list[JsonObject], form: JsonObject) -> JsonObject:
    """Return the list of models: as it was read, or those of the completions; absent or null where it was so."""
    if "models" in (*form.get("absent", ()), *form.get("null", ())):
        return {}
    (models,) = form.get("models") or [models_of(items)]
    return {"models": models}


def completion_of(item: Any, place: Place, warnings: Counter[str]) -> Completion:
    """Return a completion's text, model, ratings, and all else for ``meta``. Raises RecordError for what is none."""
    if not isinstance(item, dict) or not isinstance(item.get("response"), str):
        raise RecordError("a completion without its response", where=place, allowed='{"response": "…", …}')
    author = item.get("model")
    if author is not None and not isinstance(author, str):
        raise RecordError("a model that is not a text", where=place, allowed="model: a text")
    meta = {key: value for key, value in item.items() if key not in _OWN or value is None}
    values, details = _aspects(item, place, meta)
    for key in SCORES:
        score = item.get(key)
        if score is None:
            continue
        if not is_number(score):
            raise RecordError(f"{key!r} is no number", where=place, allowed="a number, or null")
        values[key] = score
    if is_ten_for_one(values, warnings):
        meta[FLAG] = TEN_FOR_ONE
    turn = Message(role="assistant", content=item["response"])
    return Completion((turn,), author, meta, values, details)


def is_ten_for_one(values: Mapping[str, float], warnings: Counter[str]) -> bool:
    """Return whether an overall score of 10 comes with a mean aspect rating of at most 2; one up to 4 is counted.

    Source: ``src/data_annotation/fix_overall_score_issue.py`` of OpenBMB/UltraFeedback, whose repair turns the first
    kind into 1 and asks GPT-4 again for the second.
    """
    rated = [values[aspect] for aspect in ASPECTS if aspect in values]
    if values.get("overall_score") != 10 or not rated:
        return False
    mean = sum(rated) / len(rated)
    warnings["overall scores of 10 that stand for a 1 (revisions before 40b4365)"] += mean <= 2
    warnings["overall scores of 10 beside middling aspect ratings"] += 2 < mean <= 4
    return mean <= 2


def response_and_ratings(
    name: str, completion: Completion, warnings: Counter[str]
) -> tuple[Response, tuple[Rating, ...]]:
    """Return the response under its id, and a rating for each number."""
    response = response_of(name, completion.turns, author=completion.author, meta=completion.meta or None)
    return response, tuple(
        rating_of(name, value, SCALES[dimension], warnings, meta=completion.details.get(dimension) or None)
        for dimension, value in completion.values.items()
    )


def completion_row(response: Response, taken: Taken, dropped: Counter[str]) -> JsonObject:
    """Return the completion as the data set writes it: aspect ratings as texts, scores as numbers."""
    meta = {key: value for key, value in (response.meta or {}).items() if (key, value) != (FLAG, TEN_FOR_ONE)}
    ratings = {key: taken.ratings[response.id, key] for key in SCALES if (response.id, key) in taken.ratings}
    aspects = {key: _annotation(rating) for key, rating in ratings.items() if key in ASPECTS}
    unrated = meta.get("annotations")
    fields: JsonObject = {"response": answer_text(response, dropped)}
    fields |= {"model": response.author} if response.author is not None else {}
    if isinstance(unrated, dict):
        fields["annotations"] = {**meta.pop("annotations"), **aspects}
    elif aspects:
        fields["annotations"] = aspects
    fields |= {key: ratings[key].value for key in SCORES if key in ratings}
    clashing = {key for key in meta.keys() & set(_OWN) if meta[key] is not None}
    if clashing:
        dropped["response meta under the format's own names"] += len(clashing)
    dropped["rating details"] += sum(bool(ratings[key].meta) for key in SCORES if key in ratings)
    return {**{key: value for key, value in meta.items() if key not in clashing}, **fields}


def _aspects(item: JsonObject, place: Place, meta: JsonObject) -> tuple[dict[str, float], dict[str, JsonObject]]:
    """Return each aspect's rating and the rest of its annotation; one without a number goes into ``meta``."""
    annotations = item.get("annotations")
    if annotations is not None and not isinstance(annotations, dict):
        raise RecordError("annotations that are no object", where=place, allowed='{"honesty": {"Rating": "3", …}, …}')
    values: dict[str, float] = {}
    details: dict[str, JsonObject] = {}
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
    """Return the number of an annotation, which is a text there; null for ``N/A`` and for any other form."""
    text = annotation.get("Rating") if isinstance(annotation, dict) else None
    value = float(text) if isinstance(text, str) and re.fullmatch(r"\d{1,3}(\.\d+)?", text, re.ASCII) else None
    return value if value is not None and _text(value) == text else None


def _annotation(rating: Rating) -> JsonObject:
    return {**(rating.meta or {}), "Rating": _text(rating.value)}


def _text(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


def models_of(items: Iterable[JsonObject]) -> list[Any]:
    """Return the models of the completions, as the row lists them beside."""
    return [item.get("model") for item in items]


KINDS = {"ultrafeedback": without_settings(UltraFeedback(), __doc__)}
