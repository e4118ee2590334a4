"""distilabel's UltraFeedback rows: an instruction, generations, and a rating with its rationale for each of them.

Written from the UltraFeedback task of distilabel's documentation (``steps/tasks/ultrafeedback.py``): ratings go from
1 to 5, and are null where the judge's answer could not be read. The rows do not say which aspect was asked for, so a
rating's dimension is ``rating``. The judge is the row's ``ultrafeedback_model`` or ``model_name``, which stay keys of
its own. The models of the generations stand under ``generation_models``, or ``model_names`` in later versions.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row, is_number
from steelyard.core.types import Case, JsonObject, Message, Rating
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._fields import (
    OTHER_SHAPE,
    PromptIds,
    answer_ids,
    answer_of,
    answer_text,
    as_read,
    form_of,
    only_question,
    response_of,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._ratings import RatingScale, Taken, rating_of, take_ratings

_KIND = "distilabel"
_LISTS = ("generation_models", "ratings", "rationales")
_KEYS = ("instruction", "generations", *_LISTS)
_JUDGES = ("ultrafeedback_model", "model_name")


class Generation(NamedTuple):
    """What a row says of one generation."""

    text: str | None
    model: str | None
    rating: float | None
    rationale: str | None


class Distilabel:
    """One row a prompt, with all its generations."""

    keys = _KEYS
    supports = carrying("prompt meta", "authors", "more than two responses")

    def matches(self, row: JsonObject) -> bool:
        """Return whether the row has an instruction with lists of generations and ratings."""
        return isinstance(row.get("instruction"), str) and all(
            isinstance(row.get(key), list) for key in ("generations", "ratings")
        )

    def read(self, rows: Iterable[Row], warnings: Counter[str]) -> Iterator[Case]:
        """Yield cases with a rating for each generation that has one."""
        ids = PromptIds(warnings)
        for row in rows:
            question = Message(role="user", content=row.text("instruction"))
            keys = _keys(row.value)
            entries = _entries(row, keys)
            generations = [entry for entry in entries if entry.text is not None]
            warnings["generations that are null"] += len(entries) - len(generations)
            turns = [answer_of(entry.text or "") for entry in generations]
            names = answer_ids(turns, warnings)
            scale = _scale(row.value)
            form = {
                "models": keys[2] if keys != _KEYS else None,
                "absent": [key for key in keys[2:] if key not in row.value],
                "null": [key for key in keys[2:] if key in row.value and row.value[key] is None],
                # A generation without a text cannot be a response: what the row says of it stands here.
                "empty": [[place, *entry[1:]] for place, entry in enumerate(entries) if entry.text is None],
                "unrated": [
                    [name, entry.rationale]
                    for name, entry in zip(names, generations, strict=True)
                    if entry.rating is None and entry.rationale is not None
                ],
            }
            yield Case(
                prompt=with_prompt((question,), id=ids.take(row), meta=row.others(keys)),
                responses=tuple(
                    response_of(name, answer, author=entry.model)
                    for name, answer, entry in zip(names, turns, generations, strict=True)
                ),
                ratings=tuple(
                    rating_of(name, entry.rating, scale, warnings, meta=_rationale(entry))
                    for name, entry in zip(names, generations, strict=True)
                    if entry.rating is not None
                ),
                meta=as_read(_KIND, **form),
            )

    def write(self, cases: Iterable[Case], dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row a prompt. A case whose prompt is not one question is counted and not written."""
        for case in cases:
            taken = take_ratings(case, (_scale(case.prompt.meta or {}),), dropped, keeps_meta=True)
            count_lost(taken.rest, dropped, self.supports)
            question = only_question(case.prompt.messages)
            if question is None:
                dropped[OTHER_SHAPE] += 1
                continue
            form = form_of(case, _KIND)
            keys = (*_KEYS[:2], form.get("models", _KEYS[2]), *_KEYS[3:])
            lists = _lists(_written(case, taken, form, dropped), keys, form)
            yield with_meta({"instruction": question, **lists}, case, keys, dropped)


KINDS = {"distilabel": without_settings(Distilabel(), __doc__)}


def _keys(row: JsonObject) -> tuple[str, ...]:
    """Return the row's own keys; later versions call the models ``model_names``."""
    is_later = "generation_models" not in row and isinstance(row.get("model_names"), list)
    return (*_KEYS[:2], "model_names", *_KEYS[3:]) if is_later else _KEYS


def _scale(fields: JsonObject) -> RatingScale:
    judges = [fields[key] for key in _JUDGES if isinstance(fields.get(key), str)]
    return RatingScale("rating", (1, 5), judges[0] if judges else UNKNOWN, "llm")


def _entries(row: Row, keys: Sequence[str]) -> list[Generation]:
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
    return [Generation(*values) for values in zip(*columns, strict=True)]


def _rationale(entry: Generation) -> JsonObject | None:
    return None if entry.rationale is None else {"rationale": entry.rationale}


def _written(case: Case, taken: Taken, form: JsonObject, dropped: Counter[str]) -> list[Generation]:
    unrated = dict(form.get("unrated", ()))
    entries: list[Generation] = []
    for response in case.responses:
        rating: Rating | None = taken.ratings.get((response.id, "rating"))
        meta = (rating.meta or {}) if rating else {"rationale": unrated.get(response.id)}
        dropped["rating details"] += bool(meta.keys() - {"rationale"})
        value = None if rating is None else rating.value
        entries.append(Generation(answer_text(response, dropped), response.author, value, meta.get("rationale")))
    for place, *other in form.get("empty", ()):
        entries.insert(place, Generation(None, *other))
    return entries


def _lists(entries: Sequence[Generation], keys: Sequence[str], form: JsonObject) -> JsonObject:
    """Return a list for each key; a column that was null or absent, and still says nothing, is so again."""
    row: JsonObject = {}
    for place, key in enumerate(keys[1:]):
        column = [entry[place] for entry in entries]
        says_nothing = all(value is None for value in column)
        if not (says_nothing and key in form.get("absent", ())):
            row[key] = None if says_nothing and key in form.get("null", ()) else column
    return row
