"""The forms of alignment and review: fields for an answer to a task, and the answer of what was sent.

Triples have a score and a place for each response. All other kinds have a field for each of their questions. Marks in
a text are not drawn anew here: a field takes them over from those who answered, all together, or those that overlap.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from steelyard.annotation.answers import (
    HIGHEST_SCORE,
    LOWEST_SCORE,
    BucketComparison,
    Choice,
    Span,
    TaskAnswer,
)
from steelyard.annotation.questions import TaskQuestion, applies
from steelyard.core.types import Ranking
from steelyard.workbench.storage.refusals import RefusedError

ORDERS = ("first", "same", "second")
"""Answers that a comparison of two responses allows."""


class EnteredForm(NamedTuple):
    """A form as it was sent: the values of each field, in their order."""

    fields: Mapping[str, Sequence[str]]

    def values(self, name: str) -> Sequence[str]:
        """Return all values of a field."""
        return self.fields.get(name, ())

    def value(self, name: str) -> str:
        """Return the one value of a field; empty where there is none."""
        return next(iter(self.values(name)), "")


class QuestionField(NamedTuple):
    """A field of the form: the question that it answers, its name in the form, and the value that it begins with."""

    question: TaskQuestion
    name: str
    value: str


def question_fields(questions: Sequence[TaskQuestion], answer: TaskAnswer) -> tuple[QuestionField, ...]:
    """Return a field for each question, filled in with an answer."""
    return tuple(
        QuestionField(question, _field_name(place), _text_of(question, answer))
        for place, question in enumerate(questions)
    )


def answer_of_questions(
    questions: Sequence[TaskQuestion], responses: Sequence[str], form: EnteredForm, marks: Sequence[TaskAnswer]
) -> TaskAnswer:
    """Return the answer of a form with a field for each question; ``marks`` are the answers whose marks it may take.

    Fields of questions that do not apply are left out. Raises RefusedError for values that no page sends.
    """
    discards = _discards(responses, form)
    ranking: Ranking = ()
    scores: dict[str, int] = {}
    entries: dict[str, str] = {}
    spans: dict[str, tuple[Span, ...]] = {}
    for place, question in enumerate(questions):
        text = form.value(_field_name(place))
        if not applies(question, TaskAnswer(entries=entries, discarded=discards)) or not text.strip():
            continue
        if question.input == "comparison":
            first, second = question.responses
            orders: dict[str, Ranking] = {
                "first": ((first,), (second,)),
                "same": ((first, second),),
                "second": ((second,), (first,)),
            }
            if text not in orders:
                raise RefusedError(f"{text[:20]!r}", words="misfit", where=question.name, allowed=", ".join(ORDERS))
            ranking = orders[text]
        elif question.input == "number":
            low, high = question.range or (0, 0)
            scores[question.responses[0]] = whole_number(text, low, high, where=question.name)
        elif question.input == "marks":
            spans[question.responses[0]] = _marks(question.responses[0], text, marks)
        else:
            entries[question.name] = text.replace("\r\n", "\n")
    return TaskAnswer(
        ranking=ranking,
        scores=scores,
        entries=entries,
        spans={response: each for response, each in spans.items() if each},
        discarded=discards,
        remark=form.value("remark").strip() or None,
    )


def ranked_answer(responses: Sequence[str], form: EnteredForm, marks: Sequence[TaskAnswer] = ()) -> TaskAnswer:
    """Return the answer of the form of a triple. Equal places are ties, from which comparisons of equal scores follow.

    People settle the order alone: what any of the answers ``marks`` marked in a response that is judged stays marked.
    Raises RefusedError for a form that no page sends, or that was not filled in.
    """
    scores, places, discards = (form.values(name) for name in ("score", "place", "discard"))
    if not len(responses) == len(scores) == len(places) == len(discards):
        problem = "the form has not one entry for each response"
        raise RefusedError(problem, words="misfit", where="answer", do="reload the page")
    judged = [number for number, reason in enumerate(discards) if not reason]
    points = {
        responses[number]: whole_number(scores[number], LOWEST_SCORE, HIGHEST_SCORE, where="score") for number in judged
    }
    place_of = {responses[number]: whole_number(places[number], 1, len(responses), where="place") for number in judged}
    tiers = [
        tuple(response for response in place_of if place_of[response] == place)
        for place in sorted(set(place_of.values()))
    ]
    return TaskAnswer(
        scores=points,
        comparisons=tuple(
            BucketComparison(first=first, second=second, choice=_choice(place_of[first], place_of[second]))
            for first, second in combinations(points, 2)
            if points[first] == points[second]
        ),
        ranking=tuple(tiers),
        spans={response: all_marks for response in points if (all_marks := _marks(response, "all", marks))},
        discarded=_discards(responses, form),
        remark=form.value("remark").strip() or None,
    )


def whole_number(text: str, lowest: int, highest: int, *, where: str) -> int:
    """Return the whole number of a text, in the digits of any script. Raises RefusedError out of the range."""
    if text.removeprefix("-").isdecimal() and lowest <= int(text[:10]) <= highest and len(text) <= 10:
        return int(text)
    raise RefusedError(
        f"{text[:20]!r}",
        words="number",
        values={"low": str(lowest), "high": str(highest)},
        where=where,
        allowed=f"{lowest} to {highest}",
        do="fill in every response",
    )


def _field_name(place: int) -> str:
    return f"question-{place}"


def _discards(responses: Sequence[str], form: EnteredForm) -> dict[str, str]:
    return {response: reason for response, reason in zip(responses, form.values("discard"), strict=False) if reason}


def _choice(first: int, second: int) -> Choice:
    return "same" if first == second else "better" if first < second else "worse"


def _marks(response: str, text: str, answers: Sequence[TaskAnswer]) -> tuple[Span, ...]:
    """Return the marks that a field takes over: ``all``, those in ``common``, ``none``, or those of a number."""
    marks = [answer.spans.get(response, ()) for answer in answers]
    if text == "all":
        return tuple(sorted({span for spans in marks for span in spans}, key=_by_place))
    if text == "common":
        first, *others = marks or [()]
        return tuple(span for span in first if all(_overlaps(span, spans) for spans in others))
    if text == "none":
        return ()
    return marks[whole_number(text, 0, len(marks) - 1, where="marks")]


def _overlaps(span: Span, others: Sequence[Span]) -> bool:
    return any(span[0] < other[1] and other[0] < span[1] for other in others)


def _by_place(span: Span) -> tuple[int, int, str, str]:
    start, end, label, remark = span
    return start, end, label, remark or ""


def _text_of(question: TaskQuestion, answer: TaskAnswer) -> str:
    """Return the value of a field that says what an answer says."""
    if question.input == "comparison":
        tier_of = {response: place for place, tier in enumerate(answer.ranking) for response in tier}
        if not set(question.responses) <= tier_of.keys():
            return ""
        first, second = (tier_of[response] for response in question.responses)
        return "same" if first == second else "first" if first < second else "second"
    if question.input == "number":
        return str(answer.scores.get(question.responses[0], ""))
    return "" if question.input == "marks" else answer.entries.get(question.name, "")
