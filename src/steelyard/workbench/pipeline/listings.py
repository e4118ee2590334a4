"""Long lists, a page at a time: items, people, answers and events.

A page begins after the last number of the page before it (keyset paging): the hundredth page of 100,000 rows costs what
the first one costs, and a row that is added meanwhile moves no other to another page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from sqlalchemy import Select, Subquery, exists, select
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.pipeline import LAYERS
from steelyard.core.types import JsonObject
from steelyard.workbench.pipeline.planted_reviews import (
    NOTHING_PLANTED,
    SHOWN_BATCH,
    SHOWN_NUMBER,
    ShownReview,
)
from steelyard.workbench.pipeline.question_words import category_spellings
from steelyard.workbench.pipeline.review_placement import ROLE_OF, STATE_OF
from steelyard.workbench.pipeline.review_preparation import answers_shown
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredEvent,
    StoredItem,
    StoredPerson,
    StoredPlantedReview,
    StoredTask,
)

PAGE_SIZE = 50
LARGEST_PAGE = 1000
RowT = TypeVar("RowT")


class ListPage(NamedTuple, Generic[RowT]):
    """Rows of a list. ``following``: the number after which the next page begins; null on the last page."""

    rows: list[RowT]
    following: int | None


@dataclass(frozen=True)
class ItemNote:
    """An item without its texts, which the export has."""

    id: int
    prompt: str
    language: str
    category: str
    batch: str
    state: str
    round: int
    agreement: float | None
    changed_at: float


@dataclass(frozen=True)
class AnswerNote:
    """An answer, signed by a pseudonym. ``item`` is the number of the item, ``task`` that of the task within it.

    ``gold``: the task checks people; ``retired``: it was taken back, or its truth was.
    """

    id: int
    item: int
    prompt: str
    language: str
    round: int
    task: int
    kind: str
    responses: list[str]
    gold: bool
    retired: bool
    person: str
    stage: str
    content: JsonObject
    seconds: float
    guideline: int | None
    at: float


class ListedEvent(NamedTuple):
    """An event of the audit log with the name of who did it, null for the program."""

    id: int
    at: float
    person: int | None
    name: str | None
    action: str
    subject: str
    subject_id: int | None
    detail: Any


class ItemSelection(NamedTuple):
    """Which items a list has; empty texts leave nothing out."""

    state: str = ""
    batch: str = ""
    category: str = ""
    prompt: str = ""


class EventSelection(NamedTuple):
    """Which events a list has; empty texts and null leave nothing out."""

    action: str = ""
    subject: str = ""
    subject_id: int | None = None
    person: int | None = None


def item_page(
    session: Session,
    project: int,
    wanted: ItemSelection,
    *,
    after: int = 0,
    size: int = PAGE_SIZE,
    planted: Mapping[int, ShownReview] = NOTHING_PLANTED,
) -> ListPage[ItemNote]:
    """Return items of a project in the order of the import.

    ``planted``: the planted reviews that the reader sees, by item; these items are listed as they are shown.
    """
    size = max(1, min(size, LARGEST_PAGE))

    def selected(number: Any, batch: Any) -> Select:
        columns = {field.name: getattr(StoredItem, field.name) for field in fields(ItemNote)}
        columns |= {"id": number, "batch": batch}
        statement = select(*columns.values()).where(StoredItem.project_id == project, number > after)
        chosen = {"batch": (wanted.batch,), "category": category_spellings(wanted.category), "prompt": (wanted.prompt,)}
        for name, values in chosen.items():
            if any(values):
                statement = statement.where(columns[name].in_(values))
        return statement.order_by(number)

    ordinary = selected(StoredItem.id, StoredItem.batch)
    if wanted.state:
        ordinary = ordinary.where(StoredItem.state == wanted.state)
    if not planted:
        return _page(session, ordinary, ItemNote, size)
    page = _page(session, ordinary.where(~is_among(StoredItem.id, planted)), ItemNote, size)
    reviews = {each.number: each for each in planted.values() if wanted.state in ("", each.state)}
    rows = (each.planted.id for each in reviews.values())
    as_shown = selected(SHOWN_NUMBER, SHOWN_BATCH).join(
        StoredPlantedReview, StoredPlantedReview.item_id == StoredItem.id
    )
    shown = _page(session, as_shown.where(is_among(StoredPlantedReview.id, rows)), ItemNote, size)
    of_planted = [
        replace(
            row,
            state=review.state,
            round=review.round,
            agreement=None if review.is_sent_back else row.agreement,
            changed_at=review.since,
        )
        for row in shown.rows
        for review in [reviews[row.id]]
    ]
    merged = sorted([*page.rows, *of_planted], key=lambda row: row.id)
    is_last = page.following is None and shown.following is None and len(merged) <= size
    return ListPage(merged[:size], None if is_last else merged[size - 1].id)


def answer_page(
    session: Session,
    project: int,
    *,
    after: int = 0,
    size: int = PAGE_SIZE,
    role: str = "",
    planted: Mapping[int, ShownReview] = NOTHING_PLANTED,
) -> ListPage[AnswerNote]:
    """Return the answers of a project, the earliest first. Retired tasks and rounds that were rejected are included.

    Left out are those to items that wait for the review of a reader with a ``role``, ``planted`` ones with the others:
    a list that had them would tell which of the answers to be reviewed were changed. Those to a planted item on which
    the reader's layer has decided are the answers that it showed, and its gold tasks are left out.
    """
    waiting = [STATE_OF[layer] for layer in LAYERS if ROLE_OF[layer] == role]
    hidden = (item for item, review in planted.items() if review.state in waiting)
    columns = (
        StoredAnswer.id,
        StoredItem.id,
        StoredItem.prompt,
        StoredItem.language,
        StoredTask.round,
        StoredTask.number,
        StoredTask.kind,
        StoredTask.responses,
        StoredTask.is_gold,
        StoredTask.is_retired,
        StoredPerson.pseudonym,
        StoredAnswer.stage,
        StoredAnswer.content,
        StoredAnswer.seconds,
        StoredAnswer.guideline_id,
        StoredAnswer.at,
    )
    statement = (
        select(*columns)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .join(StoredPerson, StoredAnswer.person_id == StoredPerson.id)
        .where(
            StoredTask.project_id == project,
            StoredAnswer.id > after,
            StoredItem.state.not_in(waiting),
        )
    )
    if planted:
        statement = statement.where(
            ~is_among(StoredItem.id, hidden), ~(StoredTask.is_gold & is_among(StoredItem.id, planted))
        )
    page = _page(session, statement.order_by(StoredAnswer.id), AnswerNote, size)
    reviews = [planted[row.item].planted.id for row in page.rows if row.item in planted]
    if not reviews:
        return page
    stored = session.scalars(select(StoredPlantedReview).where(is_among(StoredPlantedReview.id, reviews)))
    changed = {key: msgspec.to_builtins(answer) for review in stored for key, answer in answers_shown(review).items()}
    page = page._replace(
        rows=[replace(row, item=planted[row.item].number) if row.item in planted else row for row in page.rows]
    )
    keys = select(StoredAnswer.id, StoredAnswer.task_id, StoredAnswer.stage, StoredAnswer.person_id).where(
        StoredAnswer.id.in_([row.id for row in page.rows])
    )
    contents: dict[int, Any] = {}
    for answer, task, stage, person in session.execute(keys):
        key = (task, stage, person) if stage in ("annotation", "proposal") else (task, "settled", None)
        if key in changed:
            contents[answer] = changed[key]
    return page._replace(rows=[replace(row, content=contents.get(row.id, row.content)) for row in page.rows])


def latest_answers_of(project: int, most: int) -> Subquery:
    """Select number, task, person and content of the latest ``most`` answers of people to ordinary tasks of a project.

    Whoever reads them has to put them into an order again.
    """
    task = aliased(StoredTask)
    # Not a join: SQLite, which knows nothing of the sizes of tables, would read all answers of the project, and sort.
    is_ordinary = exists().where(task.id == StoredAnswer.task_id, task.project_id == project, task.is_gold.is_(False))
    answer = StoredAnswer
    latest = select(answer.id, answer.task_id, answer.person_id, answer.content).where(is_ordinary)
    return latest.where(answer.stage == "annotation").order_by(answer.id.desc()).limit(most).subquery()


def people_page(session: Session, *, after: int = 0, size: int = PAGE_SIZE) -> ListPage[StoredPerson]:
    """Return accounts in the order in which they were made; those of erased people have their pseudonyms."""
    statement = select(StoredPerson).where(StoredPerson.id > after).order_by(StoredPerson.id).limit(size + 1)
    rows = list(session.scalars(statement))
    return ListPage(rows[:size], rows[size - 1].id if len(rows) > size else None)


def event_page(
    session: Session, wanted: EventSelection, *, before: int | None = None, size: int = PAGE_SIZE
) -> ListPage[ListedEvent]:
    """Return events of the audit log, the latest first."""
    columns = (
        StoredEvent.id,
        StoredEvent.at,
        StoredEvent.person_id,
        StoredPerson.display_name,
        StoredEvent.action,
        StoredEvent.subject,
        StoredEvent.subject_id,
        StoredEvent.detail,
    )
    statement = select(*columns).outerjoin(StoredPerson, StoredEvent.person_id == StoredPerson.id)
    if before is not None:
        statement = statement.where(StoredEvent.id < before)
    for column, value in (
        (StoredEvent.action, wanted.action or None),
        (StoredEvent.subject, wanted.subject or None),
        (StoredEvent.subject_id, wanted.subject_id),
        (StoredEvent.person_id, wanted.person),
    ):
        if value is not None:
            statement = statement.where(column == value)
    return _page(session, statement.order_by(StoredEvent.id.desc()), ListedEvent, size)


def _page(session: Session, statement: Select, kind: type[RowT], size: int) -> ListPage[RowT]:
    size = max(1, min(size, LARGEST_PAGE))
    fetched = session.execute(statement.limit(size + 1)).all()
    rows = [kind(*row) for row in fetched[:size]]
    return ListPage(rows, fetched[size - 1][0] if len(fetched) > size else None)
