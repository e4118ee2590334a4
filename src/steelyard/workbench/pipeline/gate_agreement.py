"""The agreement that the gate decides by: of an item, of its batch, or of the pairs of people who answered it.

With a gate over batches, or over pairs of people, the agreement is that of all complete items of the unit so far. Those
of a batch are summed from what each had at the gate: a batch of thousands of items is not read again for each of them.
"""

import msgspec
from sqlalchemy import Select, bindparam, func, or_, select
from sqlalchemy.orm import Session, aliased

from steelyard.annotation.agreement import DoubleAnswer, PairCounts, gate_counts
from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import GateUnit
from steelyard.workbench.storage.figure_tables import StoredGateResult
from steelyard.workbench.storage.tables import StoredAnswer, StoredItem, StoredTask

# Every last answer of an item asks these: building a statement takes longer than running it.
_OF_BATCH = (
    select(func.sum(StoredGateResult.num_same), func.sum(StoredGateResult.num_judged))
    .join(
        StoredItem,
        (StoredGateResult.item_id == StoredItem.id) & (StoredGateResult.round == StoredItem.round),
    )
    .where(
        StoredItem.project_id == bindparam("project"),
        StoredItem.batch == bindparam("batch"),
        StoredItem.id != bindparam("item"),
        StoredItem.state.not_in(("annotating", "dropped")),
    )
)
_FIRST, _SECOND = aliased(StoredAnswer), aliased(StoredAnswer)
_DOUBLES = (
    select(
        StoredItem.id,
        StoredItem.batch,
        StoredTask.responses,
        StoredTask.kind,
        _FIRST.person_id,
        _SECOND.person_id,
        _FIRST.content,
        _SECOND.content,
    )
    .join(StoredTask, StoredTask.item_id == StoredItem.id)
    .join(_FIRST, _FIRST.task_id == StoredTask.id)
    .join(_SECOND, _SECOND.task_id == StoredTask.id)
    .where(
        StoredTask.round == StoredItem.round,
        StoredTask.is_retired.is_(False),
        StoredTask.is_gold.is_(False),
        _FIRST.stage == "annotation",
        _SECOND.stage == "annotation",
    )
)
_OF_ITEM = _DOUBLES.where(StoredItem.id == bindparam("item"), _FIRST.id < _SECOND.id)
_OF_PAIR = _DOUBLES.where(
    StoredItem.project_id == bindparam("project"),
    _FIRST.person_id == bindparam("first"),
    _SECOND.person_id == bindparam("second"),
    # Of an item under way only some tasks have all answers.
    or_(StoredItem.id == bindparam("item"), StoredItem.state != "annotating"),
)


class UnitCounts:
    """Agreement of the complete items of each unit, within one transaction that takes many items to the gate."""

    def __init__(self) -> None:
        self._counts: dict[object, PairCounts] = {}

    def at_gate(self, session: Session, item: StoredItem, gate: GateUnit) -> tuple[PairCounts, PairCounts]:
        """Return the counts of an item that is complete, and those of the unit that the gate decides by."""
        doubles = _doubles(session, _OF_ITEM, item=item.id)
        (of_item,) = gate_counts(doubles, "item").values() or [PairCounts()]
        if gate == "item":
            return of_item, of_item
        total = PairCounts()
        added = {item.batch: of_item} if gate == "batch" else gate_counts(doubles, gate)
        for key, counts in added.items():
            if key in self._counts:
                self._counts[key] = self._counts[key].plus(counts)
            else:
                read = _of_batch(session, item) if gate == "batch" else _of_pair(session, item, key)
                self._counts[key] = read.plus(counts) if gate == "batch" else read
            total = total.plus(self._counts[key])
        return of_item, total


def _of_batch(session: Session, item: StoredItem) -> PairCounts:
    """Return the sum of the other items of a batch, each as it came to the gate of its present round."""
    wanted = {"project": item.project_id, "batch": item.batch, "item": item.id}
    num_same, num_judged = session.execute(_OF_BATCH, wanted).one()
    return PairCounts(int(num_same or 0), int(num_judged or 0))


def _of_pair(session: Session, item: StoredItem, pair: object) -> PairCounts:
    """Return the counts of the tasks that two people have both answered, those of the item with them."""
    assert isinstance(pair, tuple)
    first, second = pair
    doubles = _doubles(session, _OF_PAIR, project=item.project_id, item=item.id, first=first, second=second)
    return gate_counts(doubles, "pair of people").get(pair, PairCounts())


def _doubles(session: Session, statement: Select, **wanted: int) -> list[DoubleAnswer]:
    """Return the answers of every two people to the same task, as a statement chooses them."""
    return [
        DoubleAnswer(
            item=item,
            batch=batch,
            people=(first, second),
            responses=responses,
            answers=(msgspec.convert(content, TaskAnswer), msgspec.convert(second_content, TaskAnswer)),
            kind=kind,
        )
        for item, batch, responses, kind, first, second, content, second_content in session.execute(statement, wanted)
    ]
