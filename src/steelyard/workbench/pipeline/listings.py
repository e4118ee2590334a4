"""Long lists, a page at a time: items, people, answers and events.

A page begins after the last number of the page before it (keyset paging): the hundredth page of 100,000 rows costs what
the first one costs, and a row that is added meanwhile moves no other to another page.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy import Select, SQLColumnExpression, Subquery, case, exists, null, select
from sqlalchemy.orm import Session, aliased

from steelyard.core.types import JsonObject
from steelyard.workbench.pipeline.planted_reviews import ShownTable
from steelyard.workbench.pipeline.question_words import category_spellings
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredEvent,
    StoredItem,
    StoredPerson,
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
    """An item without its texts, which the export has. ``prompt``: the id of the prompt; null for people who review."""

    id: int
    prompt: str | None
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
    planted: ShownTable | None = None,
) -> ListPage[ItemNote]:
    """Return items of a project in the order of their numbers.

    ``planted``: the planted reviews that the reader sees; these items are listed as they are shown. Ids of prompts are
    left out then: they are the same wherever an item is shown. Raises RefusedError where items are chosen by one.
    """
    item = StoredItem
    columns: dict[str, SQLColumnExpression[Any]] = {field.name: getattr(item, field.name) for field in fields(ItemNote)}
    if planted is not None and wanted.prompt:
        problem, do = (
            "people who review are not shown the ids of prompts",
            "choose by state, batch or category",
        )
        raise RefusedError(problem, words="prompt ids", where="prompt", do=do)
    if planted is not None:
        columns["prompt"] = null()
    ordinary = select(*columns.values())
    wanted_values = {
        "batch": (wanted.batch,),
        "state": (wanted.state,),
        "category": category_spellings(wanted.category),
        "prompt": (wanted.prompt,),
    }

    def chosen(statement: Select, columns: Mapping[str, SQLColumnExpression[Any]]) -> Select:
        statement = statement.where(item.project_id == project, columns["id"] > after)
        for name, values in wanted_values.items():
            if any(values):
                statement = statement.where(columns[name].in_(values))
        return statement.order_by(columns["id"])

    if planted is None:
        return _page(session, chosen(ordinary, columns), ItemNote, size)
    page = _page(session, chosen(ordinary.where(~planted.is_of_item), columns), ItemNote, size)
    shown_as = columns | {
        "id": planted.columns.number,
        "batch": planted.columns.batch,
        "state": planted.columns.state,
        "round": planted.columns.round,
        "agreement": case((planted.columns.state != "annotating", item.agreement)),
        "changed_at": planted.columns.since,
    }
    as_shown = select(*shown_as.values()).join(item, planted.columns.item_id == item.id)
    shown = _page(session, chosen(as_shown, shown_as), ItemNote, size)
    merged = sorted([*page.rows, *shown.rows], key=lambda row: row.id)
    size = max(1, min(size, LARGEST_PAGE))
    is_last = page.following is None and shown.following is None and len(merged) <= size
    return ListPage(merged[:size], None if is_last else merged[size - 1].id)


def answer_page(
    session: Session,
    project: int,
    *,
    after: int = 0,
    size: int = PAGE_SIZE,
    only_finished: bool = False,
) -> ListPage[AnswerNote]:
    """Return the answers of a project, the earliest first. Retired tasks and rounds that were rejected are included.

    ``only_finished``: those to finished items, as the export has them.
    """
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
        .where(StoredTask.project_id == project, StoredAnswer.id > after)
    )
    if only_finished:
        statement = statement.where(StoredItem.state == "finished")
    return _page(session, statement.order_by(StoredAnswer.id), AnswerNote, size)


def latest_answers_of(project: int, most: int) -> Subquery:
    """Select number, task, person and content of the latest ``most`` answers of people to ordinary tasks of a project.

    Readers have to put them into an order again.
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
