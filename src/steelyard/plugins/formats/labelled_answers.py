"""Labels of answers: TRL's rows of one answer or its steps, and PKU-SafeRLHF's verdicts and labels of two answers.

TRL's rows are written from the dataset-formats page of its documentation.

Unpaired preference (for KTO): the label is a rating of the dimension ``label``, 1 for true and 0 for false. It is an
opinion of one answer, not of a pair, so nothing is ranked. A case of several labelled answers becomes a row for each;
without labels, the answers that win all of their pairs are true, and those that lose all of them false.

Stepwise supervision (for process reward models): the steps are one answer, joined by line breaks as the trainer joins
them by default; each label is a rating of the dimension ``step``, 1 for true and 0 for false, whose span is the place
of the step in the answer.

PKU-SafeRLHF is written from the card of the data set PKU-Alignment/PKU-SafeRLHF and public code that lists its columns.
Both verdicts are judgments of their own (``helpfulness`` and ``harmlessness`` in their ``meta``): they contradict each
other freely. A row without ``safer_response_id``, as in the single-dimension set, has one judgment of no dimension. The
severity level, 0 (safe) to 3 (severe), is a rating in which lower is better, as its ``meta`` records; whether an answer
is safe, its harm categories and its hash stay with it. The card calls the labels joint work of people and models; they
are read as human.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from steelyard.annotation.derived_judgments import LOWER_IS_BETTER
from steelyard.core.config import Config
from steelyard.core.errors import RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import UNKNOWN_JUDGE, Case, JsonObject, Judgment, Message, Prompt, Rating, Response
from steelyard.curation.format_support import carrying, count_lost
from steelyard.plugins.formats._rating_scales import RatingScale, rating_of, take_ratings
from steelyard.plugins.formats._row_format import (
    OTHER_SHAPE,
    TEXT_ROWS,
    TRL_COLUMNS,
    CaseReader,
    RowFormat,
)
from steelyard.plugins.formats._turns import answer_turns, as_turns, is_text
from steelyard.ranking.pairs import pairs_of

_STEP_KEYS = ("prompt", "completions", "labels")
_BETWEEN = "\n"
_DIMENSION = "step"
_RANGE = (0, 1)
_TURNS = ("prompt", "completion")
_LABEL_KEYS = (*_TURNS, "label")
_LABEL_SCALE = RatingScale("label", (0, 1), UNKNOWN_JUDGE, "human")


def _parse_steps(reader: CaseReader) -> Case:
    row = reader.row
    question, steps, labels = row.text("prompt"), row.items("completions"), row.items("labels")
    if not _are_steps(steps, labels):
        raise RecordError(
            "completions and labels are not steps with a truth for each",
            where=row.place,
            allowed='as many of both, one or more: completions: ["…"], labels: [true]',
        )
    responses = reader.responses([_BETWEEN.join(steps)])
    ratings: list[Rating] = []
    start = 0
    for step, label in zip(steps, labels, strict=True):
        # The place of the step in the joined text.
        span = (start, start + len(step), _DIMENSION, None)
        ratings.append(
            Rating(
                response=responses[0].id, rater=UNKNOWN_JUDGE, kind="human", dimension=_DIMENSION, value=float(label),
                range=_RANGE, spans=(span,),
            )
        )  # fmt: skip
        start += len(step) + len(_BETWEEN)
    return Case(prompt=reader.prompt(question), responses=responses, ratings=tuple(ratings))


_STEPWISE = RowFormat(
    kind="trl_stepwise",
    keys=_STEP_KEYS,
    supports=carrying("prompt meta"),
    matches=lambda row: isinstance(row.get("prompt"), str) and _are_steps(row.get("completions"), row.get("labels")),
    parse=_parse_steps,
)
"""One row per answer in steps."""


def labelled_case(reader: CaseReader, prompt: Prompt, answer: Sequence[Message], key: str, **form: Any) -> Case:
    """Return the case of one answer and its label under the key. Raises RecordError for any other label."""
    label = reader.row.value.get(key)
    if not isinstance(label, bool):
        where = reader.row.at(key)
        raise RecordError("a label that is neither true nor false", where=where, allowed="true or false")
    responses = reader.responses([answer])
    rating = rating_of(responses[0].id, float(label), _LABEL_SCALE, reader.warnings)
    return Case(prompt=prompt, responses=responses, ratings=(rating,), meta=reader.meta(**form))


def _parse_label(reader: CaseReader) -> Case:
    prompt, answer = reader.turns("prompt", "user"), reader.turns("completion", "assistant")
    return labelled_case(reader, reader.prompt(prompt), answer, "label")


class AnswerLabelsConfig(Config, frozen=True):
    """The share of the labels."""

    balanced: bool = False
    """Write a case with as many bad as good answers: its best and its worst."""


class TrlUnpairedConfig(AnswerLabelsConfig, frozen=True):
    """The form of the rows, and the share of the labels."""

    texts: bool = False
    """Write texts, not lists of turns: TRL then trains without the chat template."""


def label_answers(
    case: Case, dropped: Counter[str], supports: Collection[str], *, balanced: bool
) -> list[tuple[Response, bool]]:
    """Return the answers with their labels; answers without a label are left out and counted.

    Without ratings of the dimension ``label`` the pairs of the case decide: an answer that is the better one of each of
    its pairs is good, and the worse one of each is bad.
    """
    numbers, rest = take_ratings(case, _LABEL_SCALE, dropped)
    count_lost(rest, dropped, supports)
    values = {item.id: numbers.get(item.id) for item in case.responses}
    labels = {name: value == 1 for name, value in values.items() if value in (0, 1)}
    if not numbers:
        pairs = [(case.responses[pair.better].id, case.responses[pair.worse].id) for pair in pairs_of(case)]
        better, worse = (dict.fromkeys(side) for side in zip(*pairs, strict=True)) if pairs else ({}, {})
        # In the order of the pairs, which is that of the ranking: the best first, the worst last.
        labels = {name: name in better for name in (*better, *worse) if (name in better) != (name in worse)}
    dropped["answers without a label of 0 or 1"] += len(values) - len(labels)
    good, bad = ([name for name, label in labels.items() if label is side] for side in (True, False))
    if balanced:
        number = min(len(good), len(bad))
        dropped["answers left out for as many good as bad ones"] += len(labels) - 2 * number
        labels = dict.fromkeys(good[:number], True) | dict.fromkeys(bad[len(bad) - number :], False)
    dropped["cases cut into a row for each answer"] += len(labels) > 1
    return [(item, labels[item.id]) for item in case.responses if item.id in labels]


def _unpaired(config: TrlUnpairedConfig) -> RowFormat:
    """Build the format of one row per answer: of turns, or by the settings of texts."""
    supports = carrying("system turns", "earlier turns", "prompt meta", "answers of several turns")

    def rows_of(case: Case, form: JsonObject, dropped: Counter[str]) -> Iterator[JsonObject]:
        """Yield a row per labelled answer."""
        labels = label_answers(case, dropped, supports, balanced=config.balanced)
        labelled = [(answer_turns(item), label) for item, label in labels]
        prompt = case.prompt.messages
        are_texts = is_text(prompt, "user") and all(is_text(answer, "assistant") for answer, _ in labelled)
        if not prompt or (config.texts and not are_texts):
            dropped[OTHER_SHAPE] += 1
            return
        for answer, label in labelled:
            parts = (prompt[0].content, answer[0].content) if config.texts else (as_turns(prompt), as_turns(answer))
            yield {"prompt": parts[0], "completion": parts[1], "label": label}

    return RowFormat(
        kind="trl_unpaired",
        keys=_LABEL_KEYS,
        supports=supports,
        matches=lambda row: set(_TURNS) <= row.keys() and isinstance(row.get("label"), bool),
        parse=_parse_label,
        rows_of=rows_of,
        turn_keys=_TURNS,
        required=TEXT_ROWS if config.texts else None,
        # Of rows with a pair, TRL would train on the pair.
        reserved_keys=(*TRL_COLUMNS, "chosen", "rejected", "messages"),
    )


def _are_steps(steps: Any, labels: Any) -> bool:
    return (
        isinstance(steps, list)
        and isinstance(labels, list)
        and 0 < len(steps) == len(labels)
        and all(isinstance(step, str) for step in steps)
        and all(isinstance(label, bool) for label in labels)
    )


# PKU-SafeRLHF

_SIDES = ("response_0", "response_1")
_LABELS = {"is_safe": "is_{}_safe", "harm_category": "{}_harm_category", "sha256": "{}_sha256"}
_VERDICTS = {"better_response_id": "helpfulness", "safer_response_id": "harmlessness"}
_SEVERITY, _AUTHOR = "{}_severity_level", "{}_source"
_PKU_KEYS = (
    "prompt", *_SIDES, "prompt_source", *_VERDICTS,
    *(key.format(side) for key in (*_LABELS.values(), _SEVERITY, _AUTHOR) for side in _SIDES),
)  # fmt: skip
_SEVERITY_SCALE = RatingScale("severity_level", (0, 3), UNKNOWN_JUDGE, "human")


def _parse_verdicts(reader: CaseReader) -> Case:
    row = reader.row
    source, levels = row.optional_text("prompt_source"), [row.number(_SEVERITY.format(side)) for side in _SIDES]
    return Case(
        prompt=reader.prompt(row.text("prompt"), source=source),
        responses=tuple(_response(row, side) for side in _SIDES),
        judgments=tuple(_judgments(row)),
        ratings=tuple(
            rating_of(side, level, _SEVERITY_SCALE, reader.warnings, meta=LOWER_IS_BETTER)
            for side, level in zip(_SIDES, levels, strict=True)
            if level is not None
        ),
    )


def _response(row: Row, side: str) -> Response:
    labels = {label: row.value[key.format(side)] for label, key in _LABELS.items() if key.format(side) in row.value}
    author = row.optional_text(_AUTHOR.format(side))
    return Response(id=side, text=row.text(side), author=author, meta=labels or None)


def _judgments(row: Row) -> Iterator[Judgment]:
    is_dual = "safer_response_id" in row.value
    for key, dimension in _VERDICTS.items():
        chosen = row.value.get(key)
        if chosen is None:
            continue
        if isinstance(chosen, bool) or chosen not in (0, 1):
            where = row.at(key)
            raise RecordError(f"no response has the number {chosen!r}", where=where, allowed="0 or 1")
        yield Judgment(
            left=_SIDES[0],
            right=_SIDES[1],
            verdict="right" if chosen else "left",
            judge=UNKNOWN_JUDGE,
            kind="human",
            meta={"dimension": dimension} if is_dual else None,
        )


_PKU_SAFERLHF = RowFormat(
    kind="pku_saferlhf",
    keys=_PKU_KEYS,
    supports=carrying("source", "prompt meta", "authors", "judgments"),
    matches=lambda row: {"prompt", *_SIDES, "better_response_id"} <= row.keys(),
    parse=_parse_verdicts,
)

KINDS = {
    "pku_saferlhf": without_settings(
        _PKU_SAFERLHF,
        "PKU-SafeRLHF: two answers to one prompt, verdicts on helpfulness and harmlessness, and how harmful each is.",
    ),
    "trl_stepwise": without_settings(
        _STEPWISE, "TRL's stepwise supervision: a prompt, the steps of one answer, and whether each step is right."
    ),
    "trl_unpaired": Plugin(
        TrlUnpairedConfig,
        _unpaired,
        "TRL's unpaired preference rows: a prompt, one completion, and whether it is a good one.",
    ),
}
