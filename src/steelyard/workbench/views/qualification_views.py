"""A round of qualification as the annotator's page gets it: tasks, how far it is, and what was right after each."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.qualification import scored_points
from steelyard.annotation.questions import Point
from steelyard.annotation.task_kinds import TaskKind, category_of_tasks, kind_named
from steelyard.core.numerics import generator
from steelyard.core.text import name_hidden, response_text
from steelyard.core.types import Case, Record
from steelyard.workbench.pipeline.question_words import choice_label, label_of
from steelyard.workbench.pipeline.queues import Membership
from steelyard.workbench.pipeline.submissions import guideline_of
from steelyard.workbench.qualification.rounds import MarkedAnswer, RoundProgress, Standing, progress_of
from steelyard.workbench.storage.qualification_tables import StoredQualificationTask
from steelyard.workbench.views.blinding import BlindTask, blind_task
from steelyard.workbench.views.task_views import GuidelineView, TaskOnPage, TaskView, view_guideline, view_task

_SIGNS = {"left": ">", "right": "<", "tie": "="}


class RoundView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Progress of a round: the standing of the person, tasks done and in all, the accuracy so far, and the threshold.

    ``low`` and ``high`` are the ends of the interval of the accuracy; null without tasks done.
    """

    standing: Standing
    num_done: int
    num_tasks: int
    accuracy: float | None
    low: float | None
    high: float | None
    least_accuracy: float


class RoundTasksView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The next tasks of a round and their guidelines. ``reason``: the standing of a person who has no task."""

    tasks: tuple[TaskView, ...]
    guidelines: dict[int, GuidelineView]
    reason: Standing | None
    round: RoundView


class PointFeedback(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A point of the reference: what it is about, what the person said, what the reference says."""

    label: str
    answer: str
    reference: str
    is_same: bool


class Feedback(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The right points of an answer, one by one, and why the reference is as it is."""

    points: tuple[PointFeedback, ...]
    num_same: int
    reason: str
    round: RoundView


def view_round_tasks(
    session: Session, membership: Membership, tasks: Sequence[StoredQualificationTask]
) -> RoundTasksView:
    """Return the view of a person's next tasks. They are numbered below 0, for drafts are kept by number."""
    views, guidelines = [], {}
    for task in tasks:
        case = msgspec.json.decode(task.case_json, type=Case)
        category = category_of_tasks(case, membership.settings.tasks)
        guideline = guideline_of(session, membership.project.id, category, membership.person.language)
        if guideline is not None:
            guidelines[guideline.id] = view_guideline(guideline, membership.person.language)
        shown = TaskOnPage(
            number=-task.id,
            until=0.0,
            kind=task.kind,
            case=case,
            blind=blind_round_task(membership, task),
            draft=None,
            guideline=None if guideline is None else guideline.id,
        )
        views.append(view_task(shown, membership.settings, membership.person.language))
    progress = progress_of(session, membership.project, membership.person.id)
    reason = None if views else progress.standing
    return RoundTasksView(
        tasks=tuple(views), guidelines=guidelines, reason=reason, round=_view_round(membership, progress)
    )


def blind_round_task(membership: Membership, task: StoredQualificationTask) -> BlindTask:
    """Return the responses of a task of a round as its page knows them, in the person's own order."""
    case = msgspec.json.decode(task.case_json, type=Case)
    texts = {response.id: response_text(response) for response in case.responses}
    order: Sequence[int] = range(len(task.responses))
    if kind_named(task.kind).is_shuffled:
        key = (membership.settings.seed, "qualification order", membership.person.id, task.id)
        order = generator(*key).permutation(len(task.responses)).tolist()
    return blind_task({task.responses[place]: texts[task.responses[place]] for place in order})


def view_feedback(
    session: Session, membership: Membership, marked: MarkedAnswer, words: Mapping[str, str], language: str
) -> Feedback:
    """Return what was right in an answer, in the words of a page."""
    task, kind = marked.task, kind_named(marked.task.kind)
    blind, reference = blind_round_task(membership, task), msgspec.convert(task.reference, TaskAnswer)
    described = _PointsInWords(kind, blind, words, language)
    actual = {} if marked.answer.cannot_judge is not None else kind.points(marked.answer, task.responses)
    points = [
        PointFeedback(
            label=described.label(point),
            answer=described.value(point, actual[point]) if point in actual else "–",
            reference=described.value(point, value),
            is_same=point in actual and kind.is_same(point, actual[point], value),
        )
        for point, value in sorted(
            scored_points(kind, task.responses, reference).items(), key=lambda entry: described.order(entry[0])
        )
    ]
    progress = progress_of(session, membership.project, membership.person.id)
    return Feedback(
        points=tuple(points), num_same=marked.num_same, reason=task.reason, round=_view_round(membership, progress)
    )


class _PointsInWords:
    """Points in the words of a page, with the letters that the person saw."""

    def __init__(self, kind: TaskKind, blind: BlindTask, words: Mapping[str, str], language: str) -> None:
        self._blind, self._words, self._language = blind, words, language
        self._letters = {response: letter for letter, response in blind.ids.items()}
        questions = kind.questions(tuple(blind.ids.values()), {})
        self._names: dict[str, str] = {each.input: each.name for each in questions}

    def order(self, point: Point) -> list[str]:
        """Return a sort key: pairs of letters in their order, all else as the kind has it."""
        return self._ordered(point[1:]) if point[0] == "order" else []

    def label(self, point: Point) -> str:
        sort, *about = point
        if sort == "entry":
            return label_of(about[0], self._language)
        letters = " – ".join(self._ordered(about))
        name = self._names.get({"score": "number", "marks": "marks"}.get(sort, ""))
        return f"{label_of(name, self._language)} {letters}" if name else letters

    def value(self, point: Point, value: Any) -> str:
        sort, *about = point
        if sort == "entry":
            return choice_label(about[0], value, self._language)
        if sort == "marks":
            return self._marks(about[0], value)
        if sort == "score":
            return str(value)
        if value not in _SIGNS:
            return self._words["adjudicate_discarded"]
        first, second = (self._letters[response] for response in about)
        sign = _SIGNS[value]
        if first > second:
            first, second, sign = second, first, {">": "<", "<": ">", "=": "="}[sign]
        return f"{first} {sign} {second}"

    def _ordered(self, responses: Sequence[str]) -> list[str]:
        return sorted(self._letters[response] for response in responses)

    def _marks(self, response: str, spans: Sequence[tuple[int, int, str, str | None]]) -> str:
        text = self._blind.texts[self._letters[response]]
        quotes = []
        for start, end, kind, severity in spans:
            first, last = text.shown_span(start, end)
            kinds = [choice_label(self._names["marks"], each, self._language) for each in (kind, severity) if each]
            quotes.append(f"“{name_hidden(text.shown[first:last])}” ({', '.join(kinds)})")
        return "; ".join(quotes) or self._words["qualification_no_marks"]


def _view_round(membership: Membership, progress: RoundProgress) -> RoundView:
    return RoundView(
        standing=progress.standing,
        num_done=progress.num_done,
        num_tasks=progress.num_tasks,
        accuracy=progress.accuracy.value,
        low=progress.accuracy.low,
        high=progress.accuracy.high,
        least_accuracy=membership.settings.qualification.least_accuracy,
    )
