"""The sums behind the figures, kept up to date in the transaction of the answer that changes them.

A sum is added to by the database (an insert that adds to the row where there is one), so that two answers at the same
time both count. `recount` makes all sums of what is stored: for a database that had none, and to check them.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import msgspec
from sqlalchemy import Insert, UniqueConstraint, bindparam, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from steelyard.annotation.agreement import PairCounts, count_agreement
from steelyard.annotation.answer_counts import (
    AnswerFacts,
    count_answer,
    count_two_answers,
    gold_share,
    turned,
)
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.task_kinds import kind_named
from steelyard.core.text import num_characters
from steelyard.workbench.pipeline.projects import case_of
from steelyard.workbench.storage.figure_tables import (
    StoredGateResult,
    StoredGoldResult,
    StoredPairAgreement,
    StoredWorkDay,
)
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredItem,
    StoredTask,
    WorkbenchTable,
)

DAY = 24 * 3600.0
GATE_EVENTS = ("agreed", "disagreed", "uncompared")
"""The consequence of an item's last answer."""
_BLOCK = 500
_PAIR_SUMS = tuple(
    column.name for column in StoredPairAgreement.__table__.columns
    if column.name not in ("id", "project_id", "kind", "category", "first_id", "second_id")
)  # fmt: skip

# The answers to a task before one: built once, since every answer asks for them.
_OTHERS = (
    select(StoredAnswer.person_id, StoredAnswer.content)
    .where(
        StoredAnswer.task_id == bindparam("task"),
        StoredAnswer.stage == "annotation",
        StoredAnswer.id < bindparam("answer"),
    )
    .order_by(StoredAnswer.person_id)
)

# What a round of an item asked for and got: built once, since every item at the gate asks for them.
_OF_ROUND = (
    StoredTask.item_id == bindparam("item"),
    StoredTask.round == bindparam("round"),
    StoredTask.is_gold.is_(False),
)
_NUM_ANSWERS = (
    select(func.count())
    .select_from(StoredAnswer)
    .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
    .where(*_OF_ROUND, StoredAnswer.stage == "annotation")
)
_ANSWERS_THAT_COUNT = (
    select(StoredTask.id, StoredTask.responses, StoredAnswer.content, StoredTask.kind)
    .join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
    .where(*_OF_ROUND, StoredTask.is_retired.is_(False), StoredAnswer.stage == "annotation")
    .order_by(StoredTask.id, StoredAnswer.id)
)
_NUM_WANTED = select(func.sum(StoredTask.num_wanted)).where(*_OF_ROUND, StoredTask.is_retired.is_(False))
_NUM_COMPARED = (
    select(func.count())
    .select_from(StoredTask)
    .where(*_OF_ROUND, StoredTask.is_retired.is_(False), StoredTask.num_answered > 1)
)


def count_stored_answer(
    session: Session, answer: StoredAnswer, shown: list[str], task: StoredTask, item: StoredItem
) -> None:
    """Add an answer of the stage ``annotation`` to the sums, right after it was stored."""
    content = msgspec.convert(answer.content, TaskAnswer)
    kind = kind_named(task.kind)
    # A person reads the prompt and the responses shown.
    case = case_of(item)
    num_read = sum(len(turn.content) for turn in case.prompt.messages)
    num_read += sum(num_characters(response) for response in case.responses if response.id in shown)
    facts = AnswerFacts(
        shown=shown,
        num_characters=num_read,
        seconds=answer.seconds,
        has_scores=not kind.questions(task.responses, {}),
        is_gold=task.is_gold,
        round=task.round,
    )
    key = {"project_id": task.project_id, "person_id": answer.person_id, "day": int(answer.at // DAY)}
    _add_up(session, StoredWorkDay, key, count_answer(content, facts))
    if task.is_gold:
        _count_gold(session, answer, content, task)
        return
    if task.num_answered == 1:
        # This one: there is nothing to compare it with.
        return
    # In the order of the people: every transaction that adds to several rows takes them in the same order.
    for person, other in session.execute(_OTHERS, {"task": task.id, "answer": answer.id}).all():
        counts = count_two_answers(task.responses, (content, msgspec.convert(other, TaskAnswer)), kind)
        first, second = answer.person_id, person
        if first > second:
            first, second = second, first
            counts = turned(dict.fromkeys(_PAIR_SUMS, 0) | counts)
        key = {"project_id": task.project_id, "kind": task.kind, "category": task.category}
        _add_up(session, StoredPairAgreement, {**key, "first_id": first, "second_id": second}, counts)


def void_gold(session: Session, items: Sequence[int]) -> None:
    """Withdraw the answers to the gold tasks of items whose truth was rejected."""
    tasks = select(StoredTask.id).where(StoredTask.item_id.in_(items), StoredTask.is_gold.is_(True))
    session.execute(update(StoredGoldResult).where(StoredGoldResult.task_id.in_(tasks)).values(is_void=True))


def count_what_is_stored(session: Session) -> None:
    """Make the sums of a database that has answers and no sums: it comes from an earlier version."""
    has_answers = session.scalar(select(StoredAnswer.id).where(StoredAnswer.stage == "annotation").limit(1))
    if has_answers is not None and session.scalar(select(StoredWorkDay.id).limit(1)) is None:
        recount(session)


def recount(session: Session) -> None:
    """Make all sums again from the answers and the audit log."""
    for table in (StoredWorkDay, StoredPairAgreement, StoredGateResult, StoredGoldResult):
        session.execute(delete(table))
    after = 0
    answers = (
        select(StoredAnswer, StoredAssignment.shown, StoredTask, StoredItem)
        .join(StoredTask, StoredAnswer.task_id == StoredTask.id)
        .join(StoredItem, StoredTask.item_id == StoredItem.id)
        .outerjoin(StoredAssignment, StoredAnswer.assignment_id == StoredAssignment.id)
        .where(StoredAnswer.stage == "annotation")
        .order_by(StoredAnswer.id)
        .limit(_BLOCK)
    )
    while rows := session.execute(answers.where(StoredAnswer.id > after)).all():
        for answer, shown, task, item in rows:
            count_stored_answer(session, answer, shown or task.responses, task, item)
        after = rows[-1][0].id
        session.flush()
        session.expunge_all()
    _recount_gates(session)


def _recount_gates(session: Session) -> None:
    """Make the results of the gate again: when and whether from the log, the verdicts from the tasks that remain."""
    passed = select(StoredEvent).where(StoredEvent.subject == "item", StoredEvent.action.in_(GATE_EVENTS))
    for event in session.scalars(passed.order_by(StoredEvent.id)).all():
        item, number = session.get_one(StoredItem, event.subject_id), int(event.detail["round"])
        counts = _counts_of(session, item, number)
        count_stored_gate(session, item, number, counts, is_passed=event.action == "agreed", at=event.at)


def count_stored_gate(
    session: Session, item: StoredItem, number: int, counts: PairCounts, *, is_passed: bool, at: float
) -> None:
    """Keep the result of an item at the gate of a round by its number; an earlier one of the same round is replaced."""
    key = {"item": item.id, "round": number}
    session.execute(
        delete(StoredGateResult).where(StoredGateResult.item_id == item.id, StoredGateResult.round == number)
    )
    session.add(
        StoredGateResult(
            project_id=item.project_id,
            item_id=item.id,
            round=number,
            category=item.category,
            at=at,
            is_passed=is_passed,
            num_same=counts.num_same,
            num_judged=counts.num_judged,
            num_answers=session.scalar(_NUM_ANSWERS, key) or 0,
            num_wanted=int(session.scalar(_NUM_WANTED, key) or 0),
            num_compared=session.scalar(_NUM_COMPARED, key) or 0,
        )
    )
    session.flush()


def _counts_of(session: Session, item: StoredItem, number: int) -> PairCounts:
    rows = session.execute(_ANSWERS_THAT_COUNT, {"item": item.id, "round": number}).all()
    counts = PairCounts()
    earlier: dict[int, list[TaskAnswer]] = {}
    for task, responses, content, kind in rows:
        answer = msgspec.convert(content, TaskAnswer)
        for other in earlier.setdefault(task, []):
            counts = counts.plus(count_agreement(responses, (other, answer), kind_named(kind)))
        earlier[task].append(answer)
    return counts


def _count_gold(session: Session, answer: StoredAnswer, content: TaskAnswer, task: StoredTask) -> None:
    num_same, num_judged = gold_share(
        task.responses, content, msgspec.convert(task.gold, TaskAnswer), kind_named(task.kind)
    )
    session.add(
        StoredGoldResult(
            project_id=task.project_id,
            person_id=answer.person_id,
            task_id=task.id,
            at=answer.at,
            num_same=num_same,
            num_judged=num_judged,
            is_void=task.is_retired,
        )
    )


def _add_up(
    session: Session, table: type[WorkbenchTable], key: Mapping[str, object], amounts: Mapping[str, float]
) -> None:
    """Add amounts to the row of a key, which is made where there is none."""
    names, statement = _adding(table, session.get_bind().dialect.name)
    session.execute(statement, {**dict.fromkeys(names, 0), **key, **amounts})


@cache
def _adding(table: type[WorkbenchTable], dialect: str) -> tuple[tuple[str, ...], Insert]:
    """Return the columns that are summed, and the statement that adds to all of them.

    Every answer runs it: building one takes longer than running it.
    """
    target = table.metadata.tables[table.__tablename__]
    key = next(each.columns.keys() for each in target.constraints if isinstance(each, UniqueConstraint))
    names = tuple(column.name for column in target.columns if column.name not in ("id", *key))
    insert = (postgresql if dialect == "postgresql" else sqlite).insert(target)
    sums = {name: target.c[name] + insert.excluded[name] for name in names}
    return names, insert.on_conflict_do_update(index_elements=key, set_=sums)
