"""UltraFeedback: a prompt, the completions of several models, and GPT-4's ratings of each of them.

Written from the README of OpenBMB/UltraFeedback, its annotation prompts (aspects from 1 to 5, the overall score from
1 to 10) and the fields of the data set of that name. Four aspects, ``overall_score`` and ``fine-grained_score``
become ratings by ``gpt-4``, with the rationale and type beside a rating in its ``meta``. Principle, system prompt and
critique belong to one completion and stand in its response's ``meta``.

In revisions before 40b4365 a score of 1 was read as 10. Such completions are counted and marked in ``meta`` under
``flagged``, and never corrected: the mark is not written back, the number is. Take the repaired revision.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    as_read,
    form_of,
    list_field,
    nulls_of,
    only_question,
    optional_text,
    rest,
    text_field,
    with_meta,
    with_nulls,
    with_prompt,
)
from steelyard.plugins.formats._parts import carrying, count_lost
from steelyard.plugins.formats._ratings import take_ratings
from steelyard.plugins.formats._ultrafeedback import (
    SCALES,
    completion_of,
    completion_row,
    models_of,
    response_and_ratings,
)

_KIND = "ultrafeedback"
_MEASURED = ("source", "instruction", "models", "completions")
_ANSWERS = ("correct_answers", "incorrect_answers")
_NO_ANSWER = ["None"]


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class UltraFeedback:
    """One row a prompt, with all its completions."""

    keys = (*_MEASURED, *_ANSWERS)
    carries = carrying("source", "prompt meta", "authors", "response meta", "more than two responses")

    def recognises(self, row: dict[str, Any]) -> bool:
        """An instruction with completions that have annotations."""
        items = row.get("completions")
        return (
            isinstance(row.get("instruction"), str)
            and isinstance(items, list)
            and all(isinstance(item, dict) and {"response", "annotations"} <= item.keys() for item in items)
        )

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with a rating for each aspect and score of each completion."""
        ids = PromptIds(noted)
        for row in rows:
            question = Message(role="user", content=text_field(row, "instruction"))
            items = list_field(row, "completions")
            places = [row.place._replace(path=f"completions[{place}]") for place in range(len(items))]
            said = [completion_of(item, place, noted) for item, place in zip(items, places, strict=True)]
            models = row.value.get("models")
            if models is not None and not isinstance(models, list):
                raise RecordError("models that are no list", where=row.place._replace(path="models"))
            names = answer_ids([one.turns for one in said], noted)
            read = [response_and_ratings(name, one, noted) for name, one in zip(names, said, strict=True)]
            meta = {key: value for key, value in row.value.items() if key in _ANSWERS and value != _NO_ANSWER}
            form = {
                "models": [models] if models is not None and models != models_of(items) else None,
                "absent": [key for key in ("models", *_ANSWERS) if key not in row.value],
                "null": nulls_of(row, ("source", "models")),
            }
            yield Case(
                prompt=with_prompt(
                    (question,),
                    id=ids.made(row),
                    source=optional_text(row, "source"),
                    meta=meta | (rest(row, self.keys) or {}),
                ),
                responses=tuple(response for response, _ in read),
                ratings=tuple(rating for _, ratings in read for rating in ratings),
                meta=as_read(_KIND, **form),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a prompt. A case whose prompt is not one question is counted and not written."""
        for case in cases:
            taken = take_ratings(case, SCALES.values(), lost, keeps_meta=True)
            count_lost(taken.rest, lost, self.carries)
            question = only_question(case.prompt.messages)
            if question is None:
                lost["cases of another shape"] += 1
                continue
            form = form_of(case, _KIND)
            items = [completion_row(response, taken, lost) for response in case.responses]
            row = {
                **({"source": case.prompt.source} if case.prompt.source is not None else {}),
                "instruction": question,
                **_models(items, form),
                "completions": items,
            }
            row = with_meta(with_nulls(row, form), case, _MEASURED, lost)
            missing = [key for key in _ANSWERS if key not in row and key not in form.get("absent", ())]
            yield row | {key: list(_NO_ANSWER) for key in missing}


def build(config: Config) -> UltraFeedback:
    """The format."""
    return UltraFeedback()


def _models(items: list[dict[str, Any]], form: dict[str, Any]) -> dict[str, Any]:
    """The list of models: as it was read, or those of the completions; absent or null where it was so."""
    if "models" in (*form.get("absent", ()), *form.get("null", ())):
        return {}
    (models,) = form.get("models") or [models_of(items)]
    return {"models": models}
