"""TRL's labelled rows: one completion with a label, or an answer in steps with a label for each.

Written from the dataset-formats page of TRL's documentation.

Unpaired preference (for KTO): the label is a rating of the dimension ``label``, 1 for true and 0 for false. It is an
opinion of one answer, not of a pair, so nothing is ranked. A case of several labelled answers becomes a row for each.

Stepwise supervision (for process reward models): the steps are one answer, joined by line breaks as the trainer joins
them by default; each label is a rating of the dimension ``step``, 1 for true and 0 for false, whose span is the place
of the step in the answer. So the steps come back as they were, also with line breaks inside them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from steelyard.core.errors import RecordError
from steelyard.core.plugins import without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Rating, Response
from steelyard.curation.format_support import UNKNOWN, carrying, count_lost
from steelyard.plugins.formats._ratings import RatingScale, rating_of, take_ratings
from steelyard.plugins.formats._rows import (
    OTHER_SHAPE,
    PromptIds,
    RowFormat,
    answer_ids,
    answer_of,
    answer_turns,
    as_read,
    count_other_keys,
    field_turns,
    is_text,
    make_prompt,
    only_question,
    question_prompt,
    responses_of,
    text_or_list,
    turn_keys,
)

_STEP_KEYS = ("prompt", "completions", "labels")
_BETWEEN = "\n"
_DIMENSION = "step"
_RANGE = (0, 1)
_TURNS = ("prompt", "completion")
_LABEL_KEYS = (*_TURNS, "label")
_LABEL_SCALE = RatingScale("label", (0, 1), UNKNOWN, "human")


def _parse_steps(row: Row, ids: PromptIds, warnings: Counter[str]) -> Case:
    question, steps, labels = row.text("prompt"), row.items("completions"), row.items("labels")
    if not _are_steps(steps, labels):
        raise RecordError(
            "completions and labels are not steps with a truth for each",
            where=row.place,
            allowed='as many of both, one or more: completions: ["…"], labels: [true]',
        )
    answers = [answer_of(_BETWEEN.join(steps))]
    names = answer_ids(answers, warnings)
    return Case(
        prompt=question_prompt(question, id=ids.take(row), meta=row.others(_STEP_KEYS)),
        responses=responses_of(names, answers),
        ratings=_ratings(names[0], steps, labels),
    )


def _step_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row per answer whose ratings cover it in steps; other answers are left out and counted."""
    steps = {item.id: _steps(item, case.ratings) for item in case.responses}
    taken = [rating for ratings in steps.values() for rating in ratings]
    others = tuple(item for item in case.ratings if item not in taken)
    count_lost(replace(case, ratings=others), dropped, _STEPWISE.supports)
    question = only_question(case.prompt.messages)
    if question is None:
        dropped[OTHER_SHAPE] += 1
        return
    written = [item for item in case.responses if steps[item.id]]
    dropped["answers without a label for each step"] += len(steps) - len(written)
    dropped["cases cut into a row for each answer"] += len(written) > 1
    for rating in taken:
        dropped["raters"] += (rating.rater, rating.kind) != (UNKNOWN, "human")
        dropped["rating details"] += any((rating.id, rating.task, rating.meta))
    for response in written:
        pairs = [(_step(response, rating), rating.value == 1) for rating in steps[response.id]]
        texts, labels = zip(*pairs, strict=True)
        yield {"prompt": question, "completions": list(texts), "labels": list(labels)}


_STEPWISE = RowFormat(
    kind="trl_stepwise",
    keys=_STEP_KEYS,
    supports=carrying("prompt meta"),
    matches=lambda row: isinstance(row.get("prompt"), str) and _are_steps(row.get("completions"), row.get("labels")),
    parse=_parse_steps,
    rows_of=_step_rows,
)
"""One row per answer in steps."""


def _parse_label(row: Row, ids: PromptIds, warnings: Counter[str]) -> Case:
    prompt = field_turns(row, "prompt", role="user")
    answer = field_turns(row, "completion", role="assistant")
    label = row.value.get("label")
    if not isinstance(label, bool):
        raise RecordError("a label that is neither true nor false", where=row.at("label"), allowed="true or false")
    for key in _TURNS:
        count_other_keys(row.value.get(key), warnings)
    names = answer_ids([answer], warnings)
    return Case(
        prompt=make_prompt(prompt, id=ids.take(row), meta=row.others(_LABEL_KEYS)),
        responses=responses_of(names, [answer]),
        ratings=(rating_of(names[0], float(label), _LABEL_SCALE, warnings),),
        meta=as_read(_UNPAIRED.kind, turns=turn_keys(row, _TURNS)),
    )


def _label_rows(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
    """Yield a row per labelled answer; answers without a label are left out and counted."""
    taken = take_ratings(case, (_LABEL_SCALE,), dropped)
    count_lost(taken.rest, dropped, _UNPAIRED.supports)
    labels = [(item, taken.value(item.id, _LABEL_SCALE.dimension)) for item in case.responses]
    rows = [_label_row(case, item, form, label=bool(value)) for item, value in labels if value in (0, 1)]
    dropped["answers without a label of 0 or 1"] += len(labels) - len(rows)
    dropped["cases cut into a row for each answer"] += len(rows) > 1
    yield from rows


def _label_row(case: Case, response: Response, form: JsonObject, *, label: bool) -> JsonObject:
    """Return texts where the prompt is one user turn and the answer one text, else turns; each as it was read."""
    values = {"prompt": case.prompt.messages, "completion": answer_turns(response)}
    roles = {"prompt": "user", "completion": "assistant"}
    can_be_text = {key: is_text(turns, roles[key]) for key, turns in values.items()}
    as_lists = form.get("turns") or (() if all(can_be_text.values()) else _TURNS)
    fields = {key: text_or_list(turns, roles[key], as_list=key in as_lists) for key, turns in values.items()}
    return fields | {"label": label}


_UNPAIRED = RowFormat(
    kind="trl_unpaired",
    keys=_LABEL_KEYS,
    supports=carrying("system turns", "earlier turns", "prompt meta", "answers of several turns"),
    matches=lambda row: set(_TURNS) <= row.keys() and isinstance(row.get("label"), bool),
    parse=_parse_label,
    rows_of=_label_rows,
)
"""One row per answer."""


def _are_steps(steps: Any, labels: Any) -> bool:
    return (
        isinstance(steps, list)
        and isinstance(labels, list)
        and 0 < len(steps) == len(labels)
        and all(isinstance(step, str) for step in steps)
        and all(isinstance(label, bool) for label in labels)
    )


def _ratings(response: str, steps: Sequence[str], labels: Sequence[bool]) -> tuple[Rating, ...]:
    """Return one for each step, with the step's place in the joined text."""
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
    """Return the response's ratings of steps, in order; none where they do not cover its text."""
    step_ratings = [
        rating
        for rating in ratings
        if (rating.response, rating.dimension, rating.range) == (response.id, _DIMENSION, _RANGE)
        and rating.value in _RANGE
        and rating.spans is not None
        and [span[2:] for span in rating.spans] == [(_DIMENSION, None)]
    ]
    ordered = sorted(step_ratings, key=_place)
    covered = _BETWEEN.join(_step(response, rating) for rating in ordered)
    return ordered if response.text is not None and covered == response.text else []


def _place(rating: Rating) -> tuple[int, int]:
    ((start, end, _, _),) = rating.spans or ((0, 0, "", None),)
    return start, end


def _step(response: Response, rating: Rating) -> str:
    start, end = _place(rating)
    return (response.text or "")[start:end]


KINDS = {
    "trl_stepwise": without_settings(
        _STEPWISE, "TRL's stepwise supervision: a prompt, the steps of one answer, and whether each step is right."
    ),
    "trl_unpaired": without_settings(
        _UNPAIRED, "TRL's unpaired preference rows: a prompt, one completion, and whether it is a good one."
    ),
}
