"""Tasks as the annotator's page gets them: safe HTML, letters in place of ids, what was entered before, and progress.

Nothing in a view tells a task whose answer is known from any other, or whose response it shows.
"""

from typing import Literal, NamedTuple

import msgspec
from sqlalchemy import exists, func, select
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.agreement import PairCounts, count_agreement
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.text import answer_language, hidden_spans
from steelyard.core.types import Case, Record
from steelyard.workbench.pipeline.projects import ProjectSettings, case_of
from steelyard.workbench.pipeline.question_words import QuestionWords, catalogues_of, category_name, question_in_words
from steelyard.workbench.pipeline.queues import Membership, may_work, responses_shown
from steelyard.workbench.pipeline.submissions import guideline_of
from steelyard.workbench.pipeline.waiting import num_to_align
from steelyard.workbench.pipeline.work_limits import closed_categories, is_day_full
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredGuideline,
    StoredItem,
    StoredReview,
    StoredTask,
)
from steelyard.workbench.views.blinding import BlindTask, blind_task
from steelyard.workbench.views.pages import shown_text

_LONG_PROMPT = 1500
"""Characters from which a prompt is folded."""
_MOST_COMPARED = 200
"""The latest answers of a person whose agreement with others is counted."""
Reason = Literal["no tasks", "all taken", "other skills", "all had", "not qualified", "paused", "day full", "record"]
"""Why a person has no task: the project has none, others have them all, the open ones ask for another skill, this
person has had them, has to pass the qualification first, has given all the answers of a day, or gets none of the
categories that are left because of the record there."""


class TurnView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A turn of the prompt."""

    role: str
    html: str


class ResponseView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A response: its letter, its text as HTML, and the raw text in which spans are marked.

    ``hidden``: where the raw text has characters that hide or reorder others, in code points.
    """

    id: str
    html: str
    raw: str
    hidden: tuple[tuple[int, int], ...]


class TaskView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A task of one person. ``draft`` is what was entered so far, ``guideline`` a key of the guidelines.

    ``questions`` are what a person enters, in words; empty for triples, which have an order of their own.
    ``prompt_text`` is the last turn as it was written, where a question asks for a text.
    ``category`` is its name in the language of the page, ``answer_language`` the language of the responses.
    ``until``: when the task goes to another person, in seconds since 1970.
    ``sent_back``: why a review sent the item back; empty in the first round.
    """

    assignment: int
    until: float
    kind: str
    language: str
    answer_language: str
    category: str
    prompt: tuple[TurnView, ...]
    prompt_text: str
    is_long: bool
    responses: tuple[ResponseView, ...]
    questions: tuple[QuestionWords, ...]
    has_discards: bool
    draft: TaskAnswer | None
    guideline: int | None
    sent_back: str


class GuidelineView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A version of a guideline as HTML."""

    version: int
    html: str


class TasksView(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Open tasks of a person, the oldest first, their guidelines, and the reason where there are none."""

    tasks: tuple[TaskView, ...]
    guidelines: dict[int, GuidelineView]
    reason: Reason | None


class OwnProgress(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A person's own figures: answers of the day and all, and the share of verdicts that others shared.

    ``agreement`` counts items behind the gate alone, so that it tells nothing about an open one; null without any.
    ``to_align``: items of all projects that wait for the person at Align.
    """

    today: int
    total: int
    agreement: float | None
    to_align: int


def view_tasks(
    session: Session, membership: Membership, assignments: list[StoredAssignment], *, at: float
) -> TasksView:
    """Return the view of a person's open assignments."""
    guidelines: dict[int, GuidelineView] = {}
    views = []
    for assignment in assignments:
        task = session.get_one(StoredTask, assignment.task_id)
        guideline = guideline_of(session, membership.project.id, task.category, membership.person.language)
        if guideline is not None and guideline.id not in guidelines:
            guidelines[guideline.id] = view_guideline(guideline, membership.person.language)
        shown = TaskOnPage(
            number=assignment.id,
            until=assignment.expires_at,
            kind=task.kind,
            case=case_of(session.get_one(StoredItem, task.item_id)),
            blind=blind_task_of(session, assignment),
            draft=None if assignment.draft is None else msgspec.convert(assignment.draft, TaskAnswer),
            guideline=None if guideline is None else guideline.id,
            sent_back=_why_sent_back(session, task) if task.round > 1 else "",
        )
        views.append(view_task(shown, membership.settings, membership.person.language))
    return TasksView(
        tasks=tuple(views), guidelines=guidelines, reason=None if views else _why_none(session, membership, at)
    )


def view_guideline(guideline: StoredGuideline, language: str) -> GuidelineView:
    """Return the view of a version of a guideline on a page in a language."""
    return GuidelineView(version=guideline.version, html=str(shown_text(guideline.text, language)))


def blind_task_of(session: Session, assignment: StoredAssignment) -> BlindTask:
    """Return the responses of an assignment as its page knows them."""
    return blind_task(responses_shown(session, assignment))


def own_progress(session: Session, membership: Membership, *, since: float) -> OwnProgress:
    """Return a person's own figures in a project; ``since`` is when the person's day began."""
    mine = (
        select(func.count())
        .select_from(StoredAnswer)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .where(
            StoredAnswer.person_id == membership.person.id,
            StoredAnswer.stage == "annotation",
            StoredTask.project_id == membership.project.id,
        )
    )
    return OwnProgress(
        today=session.scalar(mine.where(StoredAnswer.at >= since)) or 0,
        total=session.scalar(mine) or 0,
        agreement=_agreement(session, membership).share,
        to_align=num_to_align(session, membership.person.id),
    )


class TaskOnPage(NamedTuple):
    """A task as a page shows it. ``number`` is what the page calls it by; ``draft`` has ids of responses."""

    number: int
    until: float
    kind: str
    case: Case
    blind: BlindTask
    draft: TaskAnswer | None
    guideline: int | None
    sent_back: str = ""


def view_task(shown: TaskOnPage, settings: ProjectSettings, language: str) -> TaskView:
    """Return the view of a task in a language of the pages."""
    kind, turns, blind = kind_named(shown.kind), shown.case.prompt.messages, shown.blind
    questions = kind.questions(tuple(blind.texts), catalogues_of(settings))
    # A case of translations that names one language names theirs: that of its source is not known.
    is_of_translation = shown.kind == "translation_quality" and "answer_language" not in (shown.case.prompt.meta or {})
    # Where tasks are filed under a language, the page names that beside the texts.
    category = (*(shown.case.prompt.category or ()), "")[0]
    return TaskView(
        assignment=shown.number,
        until=shown.until,
        kind=shown.kind,
        language="" if is_of_translation else shown.case.prompt.language or "",
        answer_language=answer_language(shown.case.prompt) or "",
        category=category_name(category, language),
        # A text that is entered begins as the last turn: only then is it needed as it was written.
        prompt_text=turns[-1].content if turns and any(each.input == "text" for each in questions) else "",
        prompt=tuple(TurnView(role=turn.role, html=str(shown_text(turn.content, language))) for turn in turns),
        is_long=sum(len(turn.content) for turn in turns) > _LONG_PROMPT,
        responses=tuple(
            ResponseView(
                id=letter,
                html=str(shown_text(text.shown, language)),
                raw=text.shown,
                hidden=tuple(hidden_spans(text.shown)),
            )
            for letter, text in blind.texts.items()
        ),
        questions=tuple(question_in_words(question, language) for question in questions),
        has_discards=kind.has_discards,
        draft=None if shown.draft is None else blind.shown(shown.draft),
        guideline=shown.guideline,
        sent_back=shown.sent_back,
    )


def _why_sent_back(session: Session, task: StoredTask) -> str:
    """Return the reason of the review that began the round of a task. Gold tasks show it, too, as all others do."""
    rejected = select(StoredReview.reason).where(
        StoredReview.item_id == task.item_id,
        StoredReview.round < task.round,
        StoredReview.decision == "rejected",
    )
    return session.scalar(rejected.order_by(StoredReview.round.desc(), StoredReview.id.desc()).limit(1)) or ""


def _why_none(session: Session, membership: Membership, at: float) -> Reason:
    project, person, limits = membership.project.id, membership.person.id, membership.settings.limits
    if limits.is_paused:
        return "paused"
    if not may_work(session, membership.settings, project=project, person=person):
        return "not qualified"
    if is_day_full(session, limits, project=project, person=person, at=at):
        return "day full"
    return _why_no_task(session, membership)


def _why_no_task(session: Session, membership: Membership) -> Reason:
    """Return why none of the tasks of a project is for a person who may have more of them."""
    project, person, limits = membership.project.id, membership.person.id, membership.settings.limits
    ordinary = select(StoredTask.id).where(
        StoredTask.project_id == membership.project.id, StoredTask.is_gold.is_(False)
    )
    if session.scalar(ordinary.limit(1)) is None:
        return "no tasks"
    free = ordinary.where(StoredTask.is_open.is_(True))
    if session.scalar(free.limit(1)) is None:
        return "all taken"
    of_person = StoredAssignment.person_id == membership.person.id, StoredAssignment.task_id == StoredTask.id
    had = exists().where(*of_person, StoredAssignment.state != "unseen")
    if session.scalar(free.where(~had).limit(1)) is None:
        return "all had"
    closed = set(closed_categories(session, limits, project=project, person=person).get(person, ()))
    closed &= set(membership.person.skills or closed)
    left = free.where(~had, StoredTask.category.in_(closed))
    return "record" if session.scalar(left.limit(1)) is not None else "other skills"


def _agreement(session: Session, membership: Membership) -> PairCounts:
    """Count the shared verdicts of a person's latest answers with those of others, in items behind the gate."""
    mine, other = aliased(StoredAnswer), aliased(StoredAnswer)
    rows = session.execute(
        select(StoredTask.responses, mine.content, other.content, StoredTask.kind)
        .join(mine, mine.task_id == StoredTask.id)
        .join(other, (other.task_id == StoredTask.id) & (other.person_id != mine.person_id))
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .where(
            mine.person_id == membership.person.id,
            mine.stage == "annotation",
            other.stage == "annotation",
            StoredTask.project_id == membership.project.id,
            StoredTask.is_gold.is_(False),
            StoredItem.agreement.is_not(None),
            StoredItem.state != "annotating",
        )
        .order_by(mine.id.desc())
        .limit(_MOST_COMPARED)
    )
    counts = PairCounts()
    for responses, first, second, kind in rows:
        answers = (msgspec.convert(first, TaskAnswer), msgspec.convert(second, TaskAnswer))
        counts = counts.plus(count_agreement(responses, answers, kind_named(kind)))
    return counts
