"""What the rule of stopping left out: in the exported meta of an item, and in the figures of progress."""

from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.core.types import JsonObject
from steelyard.workbench.figure_tables import StoredEarlyStop
from steelyard.workbench.tables import StoredItem


class SavedAnswers(NamedTuple):
    """The rounds of items that needed fewer people, and the answers that were not asked for."""

    num_rounds: int
    num_answers: int


def stopping_note(session: Session, item: StoredItem) -> JsonObject:
    """Return ``stopping`` for the exported meta of an item whose present round stopped early; else nothing."""
    stop = StoredEarlyStop
    row = session.scalar(select(stop).where(stop.item_id == item.id, stop.round == item.round))
    if row is None:
        return {}
    return {
        "stopping": {"sureness": row.sureness, "answers": row.num_answers, "saved": row.num_saved, "fit": row.fit_id}
    }


def saved_answers(session: Session, project: int) -> SavedAnswers:
    """Return what stopping early saved a project."""
    stop = StoredEarlyStop
    counts = select(func.count(), func.sum(stop.num_saved)).where(stop.project_id == project)
    number, saved = session.execute(counts).one()
    return SavedAnswers(number, int(saved or 0))
