"""Alignment: people whose answers differ settle their tasks together; what they cannot settle climbs the layers.

Both see each other's answers without names, discuss, and propose. A task is settled when the latest proposals of all
its people agree on every point. Either may say that they cannot settle it: then delivery decides, or passes it on to
operations, and these to the developers.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Select, and_, bindparam, exists, literal, or_, select, tuple_
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import REVIEWED_BY, SETTLED_BY, Layer, TransitionRefused
from steelyard.core.text import response_text
from steelyard.workbench.pipeline.discards import remove_discarded
from steelyard.workbench.pipeline.disputes import TaskEvidence, are_alike, evidence_of, finish_if_settled, letters_of
from steelyard.workbench.pipeline.item_states import lock_item, move
from steelyard.workbench.pipeline.projects import case_of, settings_of
from steelyard.workbench.pipeline.question_words import category_spellings
from steelyard.workbench.pipeline.submissions import check_answer, check_discards, filed_guideline
from steelyard.workbench.storage.audit_log import AuditEvent, answer_detail, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredRemark,
    StoredTask,
)

SelectT = TypeVar("SelectT", bound=Select)
MOST_CHARACTERS = 5000
"""The longest remark or reason."""
PAGE_LENGTH = 200
"""Items on a page of a queue."""
_ANNOTATORS = ("annotation", "proposal", "alignment")
_LAYERS = ("delivery", "operations", "research")
_STATE_OF: dict[Layer, str] = {layer: state for state, layer in SETTLED_BY.items()}
_ALIGNING = select(StoredItem).where(
    StoredItem.state == "aligning",
    exists().where(
        StoredAnswer.task_id == StoredTask.id,
        StoredAnswer.person_id == bindparam("person"),
        StoredAnswer.stage == "annotation",
        StoredTask.item_id == StoredItem.id,
        StoredTask.round == StoredItem.round,
    ),
)


class ItemToAlign(NamedTuple):
    """An item in a person's queue, and how many of its tasks wait for a proposal of this person."""

    item: StoredItem
    num_waiting: int
    num_open: int


class QueuePage(NamedTuple):
    """Which items of a queue a page has; empty texts leave nothing out. ``after``: the end of the page before it."""

    batch: str = ""
    category: str = ""
    language: str = ""
    after: str = ""

    def following(self, items: Sequence[StoredItem]) -> str:
        """Return the ``after`` of the page behind these items; empty on the last page."""
        return f"{items[-1].changed_at!r}:{items[-1].id}" if len(items) == PAGE_LENGTH else ""


FIRST_PAGE = QueuePage()


class QueuePlace(NamedTuple):
    """The columns that give an entry its place in a queue, with the batch by which it is chosen."""

    moment: Any
    number: Any = StoredItem.id
    batch: Any = StoredItem.batch


class AlignmentPage(NamedTuple):
    """A page of a person's queue of alignment. ``following``: the ``after`` of the next page, empty on the last."""

    entries: tuple[ItemToAlign, ...]
    following: str


def items_to_align(session: Session, person: int, wanted: QueuePage = FIRST_PAGE) -> AlignmentPage:
    """Return a page of the items that a person has to align with others, those that wait longest on the first page.

    Within a page those come first that wait for this person. Raises RefusedError for an ``after`` that no page has.
    """
    items = _on_page(session, _ALIGNING, wanted, person)
    evidence = evidence_of(session, items)
    queue: list[ItemToAlign] = []
    for item in items:
        of_person = [each for each in evidence[item.id] if each.is_open and person in each.answers]
        if of_person:
            queue.append(ItemToAlign(item, sum(_is_waiting(each, person) for each in of_person), len(of_person)))
    return AlignmentPage(tuple(sorted(queue, key=lambda entry: entry.num_waiting == 0)), wanted.following(items))


def all_items_to_align(session: Session, person: int) -> list[ItemToAlign]:
    """Return the items of all pages of a person's queue of alignment."""
    queue, wanted = [], FIRST_PAGE
    while True:
        entries, following = items_to_align(session, person, wanted)
        queue += entries
        if not following:
            return queue
        wanted = wanted._replace(after=following)


def tasks_to_align(session: Session, item: int, person: int) -> list[TaskEvidence] | None:
    """Return the disputed tasks of an item that a person has answered, settled ones too; null where there are none.

    Null also for an item that is not in alignment: to others it does not exist.
    """
    stored = session.get(StoredItem, item)
    if stored is None or stored.state != "aligning":
        return None
    tasks = [each for each in evidence_of(session, [stored])[item] if each.is_disputed and person in each.answers]
    return tasks or None


def has_moved_on(session: Session, item: int, person: int) -> bool:
    """Tell whether an item that a person worked on has left alignment: it was settled, or passed on."""
    moved = select(StoredItem.id).where(StoredItem.id == item, StoredItem.state != "aligning", has_worked_on(person))
    return session.scalar(moved) is not None


def items_to_adjudicate(
    session: Session, layer: Layer, person: int, wanted: QueuePage = FIRST_PAGE
) -> list[StoredItem]:
    """Return the items that wait for the decision of a layer, oldest first, but none that the person annotated."""
    return waiting_items(session, _STATE_OF[layer], person, wanted)


def waiting_items(session: Session, state: str, person: int, wanted: QueuePage) -> list[StoredItem]:
    """Return a page of the items in a state that the person may decide on, those that wait longest first.

    Raises RefusedError for an ``after`` that no page has.
    """
    return _on_page(
        session, select(StoredItem).where(StoredItem.state == state, ~has_worked_on(person)), wanted, person
    )


def _on_page(session: Session, statement: Select[StoredItem], wanted: QueuePage, person: int) -> list[StoredItem]:
    page = page_of(statement, wanted, QueuePlace(StoredItem.changed_at))
    return list(session.scalars(page, {"person": person}))


def page_of(statement: SelectT, wanted: QueuePage, at: QueuePlace) -> SelectT:
    """Return the statement for a page of a queue of items, each at its moment, the earliest first.

    Raises RefusedError for an ``after`` that no page has.
    """
    for column, values in (
        (at.batch, (wanted.batch,)),
        (StoredItem.category, category_spellings(wanted.category)),
        (StoredItem.language, (wanted.language,)),
    ):
        if any(values):
            statement = statement.where(column.in_(values))
    if wanted.after:
        begun, _, number = wanted.after.partition(":")
        try:
            place = float(begun), int(number)
        except ValueError:
            problem = f"{wanted.after[:50]!r} is not a place in a queue"
            raise RefusedError(problem, words="queue place", where="after", do="open it anew") from None
        statement = statement.where(tuple_(at.moment, at.number) > tuple_(*map(literal, place)))
    return statement.order_by(at.moment, at.number).limit(PAGE_LENGTH)


@lru_cache(maxsize=10_000)
def has_worked_on(person: int) -> ColumnElement[bool]:
    """Return the condition that a person annotated or aligned the item of a statement, in any round.

    In a review also that the person settled it in this round, as long as a colleague who did neither can review it.
    """
    colleague = aliased(StoredPerson)
    can_another = exists().where(
        colleague.role == select(StoredPerson.role).where(StoredPerson.id == person).scalar_subquery(),
        colleague.is_active.is_(True),
        colleague.id != person,
        ~_answered_by(colleague.id, _ANNOTATORS),
        ~_answered_by(colleague.id, _LAYERS),
    )
    is_own_adjudication = and_(StoredItem.state.in_(REVIEWED_BY), _answered_by(person, _LAYERS), can_another)
    return or_(_answered_by(person, _ANNOTATORS), is_own_adjudication)


def _answered_by(person: int | InstrumentedAttribute[int], stages: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that a person answered a task of the item: as annotator in any round, as layer in this."""
    task, answer = aliased(StoredTask), aliased(StoredAnswer)
    of_round = [] if stages == _ANNOTATORS else [task.round == StoredItem.round]
    return (
        select(answer.id)
        .join(task, answer.task_id == task.id)
        .where(answer.person_id == person, answer.stage.in_(stages), task.item_id == StoredItem.id, *of_round)
        .correlate_except(task, answer)
        .exists()
    )


def propose(
    session: Session, item: int, task: int, answer: TaskAnswer, *, person: int, at: float, seconds: float = 0.0
) -> bool:
    """Store a person's proposal for a task. Returns whether it settles the task: all its people agree on every point.

    Raises TransitionRefused where the task is settled already or the item has moved on, and RefusedError for an answer
    that contradicts itself, or that gives up.
    """
    locked, evidence = _open_task(session, item, task, state="aligning")
    if person not in evidence.answers:
        raise TransitionRefused("the task is not of this person")
    _check(session, locked, evidence, answer)
    evidence.proposals[person] = answer
    stored = _store(session, evidence, answer, stage="proposal", person=person, at=at, seconds=seconds)
    record(session, AuditEvent("proposed", "task", task, person, answer_detail(stored)), at=at)
    if evidence.proposals.keys() < evidence.answers.keys():
        return False
    if not are_alike(evidence.task, list(evidence.proposals.values())):
        return False
    _store_settled(session, locked, evidence, answer, stage="alignment", person=person, at=at)
    return True


def adjudicate(
    session: Session,
    item: int,
    task: int,
    answer: TaskAnswer,
    *,
    layer: Layer,
    person: int,
    at: float,
    seconds: float = 0.0,
) -> None:
    """Store the decision of a layer on a task. Raises as `propose`."""
    locked, evidence = _open_task(session, item, task, state=_STATE_OF[layer])
    _check(session, locked, evidence, answer)
    _store_settled(session, locked, evidence, answer, stage=layer, person=person, at=at, seconds=seconds)


def pass_on(session: Session, item: int, reason: str, *, state: str, person: int, at: float) -> None:
    """Pass an item that cannot be settled in its state to the next layer, with the reason as a remark.

    Raises TransitionRefused where the item is in another state by now, or with the last layer.
    """
    text = checked_text(reason, "reason")
    locked = lock_item(session, item)
    if locked.state != state:
        raise TransitionRefused(f"the item is {locked.state!r} by now")
    session.add(StoredRemark(item_id=item, person_id=person, text=text, at=at))
    move(session, locked, "unresolved", person=person, at=at, reason=text)


def add_remark(session: Session, item: StoredItem, text: str, *, person: int, at: float) -> None:
    """Keep a remark of the discussion of an item. Raises RefusedError for an empty or overlong one.

    The latest remark sent once more, by a second click or a connection that broke, is the same remark.
    """
    checked = checked_text(text, "remark")
    latest = session.scalar(
        select(StoredRemark).where(StoredRemark.item_id == item.id).order_by(StoredRemark.id.desc()).limit(1)
    )
    if latest is not None and (latest.person_id, latest.text) == (person, checked):
        return
    session.add(StoredRemark(item_id=item.id, person_id=person, text=checked, at=at))
    record(session, AuditEvent("remarked", "item", item.id, person, {}), at=at)


def _is_waiting(evidence: TaskEvidence, person: int) -> bool:
    """Tell whether the person has not proposed, or another one has proposed something else."""
    proposal = evidence.proposals.get(person)
    others = [other for key, other in evidence.proposals.items() if key != person]
    return proposal is None or not are_alike(evidence.task, [proposal, *others])


def _open_task(session: Session, item: int, task: int, *, state: str) -> tuple[StoredItem, TaskEvidence]:
    locked = lock_item(session, item)
    if locked.state != state:
        raise TransitionRefused(f"the item is {locked.state!r} by now")
    for evidence in evidence_of(session, [locked])[item]:
        if evidence.task.id == task and evidence.is_open:
            return locked, evidence
    raise TransitionRefused("the task is settled, or not shown any more")


def _check(session: Session, item: StoredItem, evidence: TaskEvidence, answer: TaskAnswer) -> None:
    case = case_of(item)
    texts = {response.id: response_text(response) for response in case.responses}
    shown = {response: texts[response] for response in evidence.task.responses}
    if answer.cannot_judge is not None:
        problem = "the answer gives no verdict"
        raise RefusedError(problem, words="no verdict", where="answer", do="say that you cannot settle the item")
    settings = settings_of(session.get_one(StoredProject, item.project_id))
    check_answer(evidence.task.kind, answer, shown, settings, letters_of(item.id, case))
    check_discards(answer, settings.discard_reasons)


def _store_settled(
    session: Session,
    item: StoredItem,
    evidence: TaskEvidence,
    answer: TaskAnswer,
    *,
    stage: str,
    person: int,
    at: float,
    seconds: float = 0.0,
) -> None:
    stored = _store(session, evidence, answer, stage=stage, person=person, at=at, seconds=seconds)
    record(
        session,
        AuditEvent("task settled", "task", evidence.task.id, person, {"stage": stage, **answer_detail(stored)}),
        at=at,
    )
    settings = settings_of(session.get_one(StoredProject, item.project_id))
    remove_discarded(session, item, settings, person=person, at=at)
    finish_if_settled(session, item, person=person, at=at)


def _store(
    session: Session, evidence: TaskEvidence, answer: TaskAnswer, *, stage: str, person: int, at: float, seconds: float
) -> StoredAnswer:
    stored = StoredAnswer(
        task_id=evidence.task.id,
        person_id=person,
        stage=stage,
        content=msgspec.to_builtins(answer),
        seconds=seconds,
        guideline_id=filed_guideline(session, evidence.task, person),
        at=at,
    )
    session.add(stored)
    session.flush()
    return stored


def checked_text(text: str, where: str) -> str:
    """Return a remark or a reason without white space at its ends. Raises RefusedError for an empty or overlong one."""
    stripped = text.strip()
    if not stripped or len(stripped) > MOST_CHARACTERS:
        raise RefusedError(
            f"{len(stripped)} characters",
            words="remark",
            values={"limit": f"{MOST_CHARACTERS:,}"},
            where=where,
            allowed=f"1 to {MOST_CHARACTERS}",
            do="say it in words",
        )
    return stripped
