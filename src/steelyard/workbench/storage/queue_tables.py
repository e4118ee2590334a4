"""The tables of a queue by priority: each ordering with its sources, and the place of each item with its reason.

What people answered can only be read rightly with how it was chosen: an item keeps the row of the ordering under which
it was begun. Items without a row came in the order of their import.
"""

from collections.abc import Sequence

from sqlalchemy import JSON, ForeignKey, Index, UniqueConstraint, select
from sqlalchemy.orm import Mapped, Session, mapped_column

from steelyard.core.types import JsonObject
from steelyard.workbench.storage.tables import StoredItem, WorkbenchTable


class StoredQueue(WorkbenchTable):
    """One ordering of a project's open items: by whom, when, from which files, and with which share by chance.

    ``sources`` has a record for each member of the committee: its name, its file with the SHA-256, the labelled pairs
    that it was fitted to, and what was fitted (`task_ordering.QueueSource`).
    """

    __tablename__ = "queues"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"), index=True)
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    at: Mapped[float]
    random_share: Mapped[float]
    sources: Mapped[list[JsonObject]] = mapped_column(JSON)


class StoredQueuePlace(WorkbenchTable):
    """The place of an item in the latest queue that ordered it. ``place`` counts from 1.

    ``priority``, ``uncertainty`` and ``disagreement`` are bits, null where no source says anything about the item;
    a priority that a program sent (`external_priorities`) has the unit of that program.
    ``decile`` is 1 for the tenth of the highest priority, 0 without one. ``is_random``: the place is by chance.
    """

    __tablename__ = "queue_places"
    __table_args__ = (
        UniqueConstraint("item_id"),
        Index("ix_queue_places_figures", "project_id", "decile", "is_random"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    queue_id: Mapped[int] = mapped_column(ForeignKey("queues.id"), index=True)
    place: Mapped[int]
    priority: Mapped[float | None]
    uncertainty: Mapped[float | None]
    disagreement: Mapped[float | None]
    decile: Mapped[int]
    is_random: Mapped[bool]


def queue_notes(session: Session, items: Sequence[StoredItem]) -> dict[int, JsonObject]:
    """Return by item how it was chosen, as the ``queue`` of an exported case's ``meta``; nothing for other items."""
    rows = session.execute(
        select(StoredQueuePlace, StoredQueue)
        .join(StoredQueue, StoredQueuePlace.queue_id == StoredQueue.id)
        .where(StoredQueuePlace.item_id.in_([item.id for item in items]))
    ).all()
    return {
        place.item_id: {
            "queue": queue.id,
            "place": place.place,
            "priority": place.priority,
            "uncertainty": place.uncertainty,
            "disagreement": place.disagreement,
            "random": place.is_random,
            "random_share": queue.random_share,
            "sources": [
                {"name": source["name"], "file": source["file"], "sha256": source["sha256"]} for source in queue.sources
            ],
        }
        for place, queue in rows
    }
