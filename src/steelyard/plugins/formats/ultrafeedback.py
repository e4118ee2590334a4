"""UltraFeedback and distilabel's version of it: a prompt, completions of several models, and a judge's ratings of each.

UltraFeedback is written from the README of OpenBMB/UltraFeedback, its annotation prompts (aspects from 1 to 5, the
overall score from 1 to 10) and the fields of the data set of that name. Four aspects, ``overall_score`` and
``fine-grained_score`` become ratings by ``gpt-4``, with the rationale and type of a rating in its ``meta``. Principle,
system prompt and critique belong to one completion and are in its response's ``meta``. In revisions before 40b4365 a
score of 1 was read as 10. Such completions are counted and marked in ``meta`` under ``flagged``, and never corrected.
Take the repaired revision.

distilabel's rows are written from the UltraFeedback task of its documentation (``steps/tasks/ultrafeedback.py``):
ratings go from 1 to 5, and are null where the judge's answer could not be read. The rows do not name the rated aspect,
so a rating's dimension is ``rating``. The judge is the row's ``ultrafeedback_model`` or ``model_name``, which stay keys
of the row. The models of the generations are under ``generation_models``, or ``model_names`` in later versions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Rating
from steelyard.curation.format_support import carrying
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of
from steelyard.plugins.formats._row_format import (
    CaseReader,
    PromptIds,
    RowFormat,
    are_objects,
)

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
"""The mark in the ``meta`` of a response whose score of 10 the authors' own repair turns into a 1."""
_COMPLETION_KEYS = ("model", "response", "annotations", *SCORES)
_ROW_KEYS = ("source", "instruction", "models", "completions")
_ANSWERS = ("correct_answers", "incorrect_answers")
_NO_ANSWER = ["None"]

_GENERATION_KEYS = ("instruction", "generations", "generation_models", "ratings", "rationales")
_JUDGES = ("ultrafeedback_model", "model_name")


class Completion(NamedTuple):
    """The parts of a completion, before its response has an id."""

    text: str
    author: str | None
    meta: JsonObject
    values: dict[str, float]
    details: dict[str, JsonObject]


class UltraFeedback:
    """One row per prompt, with all its completions."""

    _kind = "ultrafeedback"
    keys = (*_ROW_KEYS, *_ANSWERS)
    has_evidence_rows = False
    is_written = False
    supports = carrying("source", "prompt meta", "authors", "response meta", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has an instruction with completions that have annotations."""
        has_completions = are_objects(row.get("completions"), ("response", "annotations"))
        return isinstance(row.get("instruction"), str) and has_completions

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with a rating for each aspect and score of each completion."""
        ids = PromptIds(warnings)
        for row in rows:
            reader = CaseReader(self._kind, self.keys, [row], ids, warnings)
            question, items = row.text("instruction"), row.items("completions")
            places = [row.at(f"completions[{place}]") for place in range(len(items))]
            completions = [_completion(item, place, warnings) for item, place in zip(items, places, strict=True)]
            models = row.value.get("models")
            if models is not None and not isinstance(models, list):
                raise RecordError("models that are not a list", where=row.at("models"))
            responses = reader.responses(
                [completion.text for completion in completions],
                authors=[completion.author for completion in completions],
                metas=[completion.meta or None for completion in completions],
            )
            ratings = [
                rating_of(answer.id, value, SCALES[dimension], warnings, meta=completion.details.get(dimension) or None)
                for answer, completion in zip(responses, completions, strict=True)
                for dimension, value in completion.values.items()
            ]
            meta = {key: value for key, value in row.value.items() if key in _ANSWERS and value != _NO_ANSWER}
            meta |= row.others(self.keys) or {}
            yield Case(
                prompt=reader.prompt(question, source=row.optional_text("source"), meta=meta),
                responses=responses,
                ratings=tuple(ratings),
            )


def _completion(item: Any, place: Place, warnings: Counter[str]) -> Completion:
    """Return a completion's text, model and ratings, and the rest for ``meta``. Raises RecordError for other values."""
    if not isinstance(item, dict) or not isinstance(item.get("response"), str):
        raise RecordError("a completion without its response", where=place, allowed='{"response": "…", …}')
    author = item.get("model")
    if author is not None and not isinstance(author, str):
        raise RecordError("a model that is not a text", where=place, allowed="model: a text")
    meta = {key: value for key, value in item.items() if key not in _COMPLETION_KEYS or value is None}
    values, details = _aspects(item, place, meta)
    for key in SCORES:
        score = item.get(key)
        if score is None:
            continue
        if not is_number(score):
            raise RecordError(f"{key!r} is not a number", where=place, allowed="a number, or null")
        values[key] = score
    if _is_ten_for_one(values, warnings):
        meta[FLAG] = TEN_FOR_ONE
    return Completion(item["response"], author, meta, values, details)


def _is_ten_for_one(values: Mapping[str, float], warnings: Counter[str]) -> bool:
    """Return whether an overall score of 10 comes with a mean aspect rating of at most 2; a mean up to 4 is counted.

    Source: ``src/data_annotation/fix_overall_score_issue.py`` of OpenBMB/UltraFeedback, whose repair turns the first
    kind into 1 and asks GPT-4 again for the second.
    """
    rated = [values[aspect] for aspect in ASPECTS if aspect in values]
    if values.get("overall_score") != 10 or not rated:
        return False
    mean = sum(rated) / len(rated)
    warnings["overall scores of 10 that stand for a 1 (revisions before 40b4365)"] += mean <= 2
    warnings["overall scores of 10 with middling aspect ratings"] += 2 < mean <= 4
    return mean <= 2


def _aspects(item: JsonObject, place: Place, meta: JsonObject) -> tuple[dict[str, float], dict[str, JsonObject]]:
    """Return each aspect's rating and the rest of its annotation; one without a number goes into ``meta``."""
    annotations = item.get("annotations")
    if annotations is not None and not isinstance(annotations, dict):
        raise RecordError(
            "annotations that are not an object", where=place, allowed='{"honesty": {"Rating": "3", …}, …}'
        )
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
    number = None if value is None else str(int(value)) if value == int(value) else str(value)
    return value if number == text else None


def _parse_generations(reader: CaseReader) -> Case:
    row = reader.row
    is_later = "generation_models" not in row.value and isinstance(row.value.get("model_names"), list)
    keys = (*_GENERATION_KEYS[:2], "model_names", *_GENERATION_KEYS[3:]) if is_later else _GENERATION_KEYS
    question = row.text("instruction")
    entries = _generations(row, keys)
    generations = [entry for entry in entries if entry[0] is not None]
    reader.warnings["generations that are null"] += len(entries) - len(generations)
    responses = reader.responses(
        [text for text, *_ in generations], authors=[author for _, author, _, _ in generations]
    )
    judges = [row.value[key] for key in _JUDGES if isinstance(row.value.get(key), str)]
    scale = RatingScale("rating", (1, 5), judges[0] if judges else UNKNOWN_JUDGE, "llm")
    ratings: list[Rating] = []
    for response, (_, _, number, rationale) in zip(responses, generations, strict=True):
        if number is not None:
            meta = None if rationale is None else {"rationale": rationale}
            ratings.append(rating_of(response.id, number, scale, reader.warnings, meta=meta))
    return Case(
        prompt=reader.prompt(question, meta=row.others(keys)),
        responses=responses,
        ratings=tuple(ratings),
    )


def _generations(row: Row, keys: Sequence[str]) -> list[tuple[Any, ...]]:
    """Return text, model, rating and rationale of each generation. Raises RecordError for a value of another type."""
    generations = row.items("generations")
    columns: list[Sequence[Any]] = [generations]
    for key in keys[2:]:
        column = row.items(key, default=[None] * len(generations))
        if len(column) != len(generations):
            problem = f"{len(column)} values for {len(generations)} generations"
            raise RecordError(problem, where=row.at(key), allowed="one for each, or null")
        columns.append(column)
    for key, column in zip(keys[1:], columns, strict=True):
        for place, value in enumerate(column):
            is_right = is_number(value) if key == "ratings" else isinstance(value, str)
            if value is not None and not is_right:
                allowed = "a number or null" if key == "ratings" else "a text or null"
                where = row.at(f"{key}[{place}]")
                raise RecordError(f"a value that is {type(value).__name__}", where=where, allowed=allowed)
    return list(zip(*columns, strict=True))


_DISTILABEL = RowFormat(
    kind="distilabel",
    keys=_GENERATION_KEYS,
    supports=carrying("prompt meta", "authors", "more than two responses"),
    matches=lambda row: (
        isinstance(row.get("instruction"), str)
        and all(isinstance(row.get(key), list) for key in ("generations", "ratings"))
    ),
    parse=_parse_generations,
)

KINDS = {
    "ultrafeedback": without_settings(
        UltraFeedback(),
        "UltraFeedback: a prompt, the completions of several models, and GPT-4's ratings of each of them.",
    ),
    "distilabel": without_settings(
        _DISTILABEL,
        "distilabel's UltraFeedback rows: an instruction, generations, and a rating with its rationale for each of"
        " them.",
    ),
}
