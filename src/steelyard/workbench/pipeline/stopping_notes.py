"""What the rule of stopping left out: in the exported meta of an item, and in the figures of progress."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.core.types import JsonObject
from steelyard.workbench.storage.figure_tables import StoredEarlyStop
from steelyard.workbench.storage.tables import StoredItem


class SavedAnswers(NamedTuple):
    """The rounds of items that needed fewer people, and the answers that were not asked for."""

    num_rounds: int
    num_answers: int


def stopping_notes(session: Session, items: Sequence[StoredItem]) -> dict[int, JsonObject]:
    """Return by item the ``stopping`` of an exported case's ``meta``; nothing where the present round did not stop."""
    rounds = {item.id: item.round for item in items}
    rows = session.scalars(select(StoredEarlyStop).where(StoredEarlyStop.item_id.in_(rounds))).all()
    return {
        row.item_id: {"sureness": row.sureness, "answers": row.num_answers, "saved": row.num_saved, "fit": row.fit_id}
        for row in rows
        if row.round == rounds[row.item_id]
    }


def saved_answers(session: Session, project: int) -> SavedAnswers:
    """Return what stopping early saved a project."""
    stop = StoredEarlyStop
    counts = select(func.count(), func.sum(stop.num_saved)).where(stop.project_id == project)
    number, saved = session.execute(counts).one()
    return SavedAnswers(number, int(saved or 0))
