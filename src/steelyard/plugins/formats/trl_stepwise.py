"""TRL's stepwise supervision: a prompt, the steps of one answer, and whether each step is right.

Written from the dataset-formats page of TRL's documentation (stepwise supervision, for process reward models). The
steps are one answer, joined by line breaks as the trainer joins them by default; each label is a rating of the
dimension ``step``, 1 for true and 0 for false, whose span says where the step stands in the answer. So the steps come
back as they were, line breaks inside them too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Rating, Response
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_ids,
    list_field,
    only_question,
    response_of,
    rest,
    text_field,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._parts import UNKNOWN, carrying, count_lost

_KEYS = ("prompt", "completions", "labels")
_BETWEEN = "\n"
_DIMENSION = "step"
_RANGE = (0, 1)


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class TrlStepwise:
    """One row an answer in steps."""

    keys = _KEYS
    carries = carrying("prompt meta")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Texts beside as many labels of true or false."""
        return isinstance(row.get("prompt"), str) and _are_steps(row.get("completions"), row.get("labels"))

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of one response with a rating for each step."""
        ids = PromptIds(noted)
        for row in rows:
            question = text_field(row, "prompt")
            steps, labels = list_field(row, "completions"), list_field(row, "labels")
            if not _are_steps(steps, labels):
                raise RecordError(
                    "completions and labels are not steps with a truth for each",
                    where=row.place,
                    allowed='as many of both, one or more: completions: ["…"], labels: [true]',
                )
            turn = Message(role="assistant", content=_BETWEEN.join(steps))
            (name,) = answer_ids([(turn,)], noted)
            yield Case(
                prompt=with_prompt((Message(role="user", content=question),), id=ids.made(row), meta=rest(row, _KEYS)),
                responses=(response_of(name, (turn,)),),
                ratings=_ratings(name, steps, labels),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row an answer whose ratings cover it in steps; other answers are left out and counted."""
        for case in cases:
            steps = {one.id: _steps(one, case.ratings) for one in case.responses}
            taken = [rating for found in steps.values() for rating in found]
            count_lost(
                replace(case, ratings=tuple(one for one in case.ratings if one not in taken)), lost, self.carries
            )
            question = only_question(case.prompt.messages)
            if question is None:
                lost["cases of another shape"] += 1
                continue
            written = [one for one in case.responses if steps[one.id]]
            lost["answers without a label for each step"] += len(steps) - len(written)
            lost["cases cut into a row for each answer"] += len(written) > 1
            for rating in taken:
                lost["raters"] += (rating.rater, rating.kind) != (UNKNOWN, "human")
                lost["rating details"] += any((rating.id, rating.task, rating.meta))
            for response in written:
                row = {"prompt": question, **_said(response, steps[response.id])}
                yield with_meta(row, case, _KEYS, lost)


def build(config: Config) -> TrlStepwise:
    """The format."""
    return TrlStepwise()


def _are_steps(steps: Any, labels: Any) -> bool:
    return (
        isinstance(steps, list)
        and isinstance(labels, list)
        and 0 < len(steps) == len(labels)
        and all(isinstance(step, str) for step in steps)
        and all(isinstance(label, bool) for label in labels)
    )


def _ratings(response: str, steps: Sequence[str], labels: Sequence[bool]) -> tuple[Rating, ...]:
    """One for each step, with the step's place in the joined text."""
    ratings: list[Rating] = []
    start = 0
    for step, label in zip(steps, labels, strict=True):
        span = (start, start + len(step), _DIMENSION, None)
        ratings.append(
            Rating(
                response=response, rater=UNKNOWN, kind="human", dimension=_DIMENSION, value=float(label), range=_RANGE,
                spans=(span,),
            )
        )  # fmt: skip
        start += len(step) + len(_BETWEEN)
    return tuple(ratings)


def _steps(response: Response, ratings: Iterable[Rating]) -> list[Rating]:
    """The response's ratings of steps, in order; none where they do not cover its text."""
    found = [
        rating
        for rating in ratings
        if (rating.response, rating.dimension, rating.range) == (response.id, _DIMENSION, _RANGE)
        and rating.value in _RANGE
        and rating.spans is not None
        and [span[2:] for span in rating.spans] == [(_DIMENSION, None)]
    ]
    ordered = sorted(found, key=_place)
    covered = _BETWEEN.join(_step(response, rating) for rating in ordered)
    return ordered if response.text is not None and covered == response.text else []


def _place(rating: Rating) -> tuple[int, int]:
    ((start, end, _, _),) = rating.spans or ((0, 0, "", None),)
    return start, end


def _step(response: Response, rating: Rating) -> str:
    start, end = _place(rating)
    return (response.text or "")[start:end]


def _said(response: Response, ratings: Iterable[Rating]) -> dict[str, Any]:
    pairs = [(_step(response, rating), rating.value == 1) for rating in ratings]
    return {"completions": [step for step, _ in pairs], "labels": [label for _, label in pairs]}
