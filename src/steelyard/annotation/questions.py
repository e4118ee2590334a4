"""Entries of a person about a task: its questions, which of them are open, and what an answer says in points.

A point is one thing on which two people can agree: the order of two responses, an entry, a score, or the marks in a
response. Agreement, alignment and review of every kind of task count points and nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Literal

from steelyard.annotation.answers import Inconsistency, Outcome, Span, TaskAnswer, outcome_of
from steelyard.core.types import Record

Input = Literal["comparison", "choice", "number", "text", "marks"]
Point = tuple[str, ...]
"""``("order", left, right)``, ``("entry", name)``, ``("score", response)`` or ``("marks", response)``."""
PointValue = Outcome | str | int | tuple[Span, ...]
LONGEST_TEXT = 50_000
"""The most characters of an entry that is a text."""
FEWEST_SHARED = 0.5
"""The overlap of two people's marks in a response, 0 to 1, from which they agree."""


class TaskQuestion(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One thing to enter. ``name`` is the key of its words, ``responses`` are those that it is about.

    ``comparison``: the order of two responses. ``choice``: one of ``choices``, by one of ``keys``. ``number``: within
    ``range``. ``text``: any. ``marks``: spans with one of ``choices`` as the kind and one of ``severities``; none is an
    answer, too. ``condition``: another question and the value of it at which this one is to be answered;
    ``exception``: the one at which it is not.
    """

    name: str
    input: Input
    responses: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    range: tuple[int, int] | None = None
    severities: tuple[str, ...] = ()
    condition: tuple[str, str] | None = None
    exception: tuple[str, str] | None = None


def applies(question: TaskQuestion, answer: TaskAnswer) -> bool:
    """Tell whether a question is to be answered: its responses stay, and its condition holds."""
    if answer.discarded.keys() & set(question.responses):
        return False
    if question.exception is not None and answer.entries.get(question.exception[0]) == question.exception[1]:
        return False
    return question.condition is None or answer.entries.get(question.condition[0]) == question.condition[1]


def is_answered(question: TaskQuestion, answer: TaskAnswer) -> bool:
    """Tell whether an answer has what the question is about."""
    if question.input == "comparison":
        return set(question.responses) <= {response for tier in answer.ranking for response in tier}
    if question.input == "number":
        return question.responses[0] in answer.scores
    return question.input == "marks" or bool(answer.entries.get(question.name, "").strip())


def open_questions(answer: TaskAnswer, questions: Sequence[TaskQuestion]) -> tuple[Inconsistency, ...]:
    """Return the questions that are still to be answered, in their order; none where the person cannot judge."""
    if answer.cannot_judge is not None:
        return ()
    return tuple(
        Inconsistency("missing entry", (question.name, *question.responses))
        for question in questions
        if applies(question, answer) and not is_answered(question, answer)
    )


def question_misfits(
    answer: TaskAnswer, questions: Sequence[TaskQuestion], shown: Mapping[str, str]
) -> tuple[str, ...]:
    """Return what no page of ours would send, in words. ``shown`` has the texts by response id."""
    return tuple(_misfits(answer, questions, shown))


def _misfits(answer: TaskAnswer, questions: Sequence[TaskQuestion], shown: Mapping[str, str]) -> Iterator[str]:
    live = [question for question in questions if applies(question, answer)]
    ranked = [response for tier in answer.ranking for response in tier]
    expected = {response for question in live if question.input == "comparison" for response in question.responses}
    if len(ranked) != len(set(ranked)) or not set(ranked) <= expected:
        yield "a ranking of responses that are not to be compared"
    if answer.comparisons:
        yield "comparisons, which are part of a ranking here"
    numbers = {question.responses[0]: question.range for question in live if question.input == "number"}
    for response, score in answer.scores.items():
        low, high = numbers.get(response) or (0, -1)
        if not low <= score <= high:
            yield f"the score {score} of {response!r}"
    entries = {question.name: question for question in live if question.input in ("choice", "text")}
    for name, value in answer.entries.items():
        question = entries.get(name)
        if question is None:
            yield f"an entry {name[:50]!r}, for which nobody asks"
        elif question.input == "choice" and value not in question.choices:
            yield f"{value[:50]!r} as the {name}"
        elif len(value) > LONGEST_TEXT:
            yield f"a text of {len(value)} characters, with at most {LONGEST_TEXT} allowed"
    yield from _mark_misfits(answer, questions, shown)


def _mark_misfits(answer: TaskAnswer, questions: Sequence[TaskQuestion], shown: Mapping[str, str]) -> Iterator[str]:
    marks = {question.responses[0]: question for question in questions if question.input == "marks"}
    for response, spans in answer.spans.items():
        for start, end, label, remark in spans:
            if not 0 <= start < end <= len(shown.get(response, "")):
                yield f"a span {start} to {end} in {response!r}"
            question = marks.get(response)
            if question is None:
                continue
            if label not in question.choices:
                yield f"{label[:50]!r} as the kind of a problem"
            elif question.severities and remark not in question.severities:
                yield f"{(remark or '')[:50]!r} as a severity"


def points_of(answer: TaskAnswer, questions: Sequence[TaskQuestion]) -> dict[Point, PointValue]:
    """Return what an answer says, by point; nothing where the person could not judge.

    A text counts as its words: line breaks and repeated spaces do not matter.
    """
    points: dict[Point, PointValue] = {}
    if answer.cannot_judge is not None:
        return points
    for question in questions:
        is_out = bool(answer.discarded.keys() & set(question.responses))
        if question.input == "comparison" and (is_out or is_answered(question, answer)):
            points |= order_points(answer, question.responses)
        elif is_out or not applies(question, answer) or not is_answered(question, answer):
            continue
        elif question.input == "number":
            points["score", question.responses[0]] = answer.scores[question.responses[0]]
        elif question.input == "marks":
            points["marks", question.responses[0]] = answer.spans.get(question.responses[0], ())
        else:
            points["entry", question.name] = " ".join(answer.entries[question.name].split())
    return points


def order_points(answer: TaskAnswer, responses: Sequence[str]) -> dict[Point, PointValue]:
    """Return the verdict on every pair of responses, in their order."""
    return {
        ("order", *pair): outcome
        for pair in combinations(responses, 2)
        if (outcome := outcome_of(answer, *pair)) is not None
    }


def shared_marks(first: Sequence[Span], second: Sequence[Span], *, with_severity: bool) -> float:
    """Return how far two people's marks in one text overlap: twice the shared characters over those of both (Dice).

    A character is shared if both marked it, ``with_severity`` as equally severe; the kinds of the problem do not count.
    Marks of neither are full agreement, 1.
    """
    marked = [
        {
            (place, severity if with_severity else None)
            for start, end, _, severity in spans
            for place in range(start, end)
        }
        for spans in (first, second)
    ]
    total = len(marked[0]) + len(marked[1])
    return 2 * len(marked[0] & marked[1]) / total if total else 1.0
