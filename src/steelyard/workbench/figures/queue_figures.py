"""How far a queue by priority is: items by decile of their priority, and agreement over those that came by chance.

Agreement over all items of such a project is not that of its data: what models disagree on, people disagree on too.
The items that came by chance are a random sample, and are given beside it.
"""

from collections import defaultdict
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import RatioSums
from steelyard.workbench.storage.figure_tables import StoredGateResult
from steelyard.workbench.storage.queue_tables import StoredQueue, StoredQueuePlace
from steelyard.workbench.storage.tables import StoredItem

_MOST_ORDERINGS = 20
"""A program may order a queue after every answer."""


class DecileProgress(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A tenth of the items by priority, 1 the highest, 0 without a priority.

    ``annotated``: items past annotation or dropped; ``by_chance`` and ``by_chance_annotated``: those of the random
    share among all and among the annotated.
    """

    decile: int
    items: int
    annotated: int
    finished: int
    by_chance: int
    by_chance_annotated: int


class QueueNote(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One ordering: when, the share by chance, the names of models and judges, and the items that have their place."""

    at: float
    random_share: float
    sources: tuple[str, ...]
    items: int


class QueueFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The queue of a project. ``orderings``: the latest 20. ``agreement``: equal verdicts at the gate by priority."""

    orderings: tuple[QueueNote, ...]
    deciles: tuple[DecileProgress, ...]
    items: int
    annotated: int
    by_chance: int
    by_chance_annotated: int
    agreement: Estimate
    agreement_by_chance: Estimate


def queue_figures(session: Session, project: int) -> QueueFigures | None:
    """Return how far the queue of a project is; null for a project whose items come in the order of their import."""
    orderings = _orderings(session, project)
    if not orderings:
        return None
    deciles = _deciles(session, project)
    return QueueFigures(
        orderings=orderings,
        deciles=deciles,
        items=sum(each.items for each in deciles),
        annotated=sum(each.annotated for each in deciles),
        by_chance=sum(each.by_chance for each in deciles),
        by_chance_annotated=sum(each.by_chance_annotated for each in deciles),
        agreement=_agreement(session, project, is_random=False),
        agreement_by_chance=_agreement(session, project, is_random=True),
    )


def _orderings(session: Session, project: int) -> tuple[QueueNote, ...]:
    number = func.count(StoredQueuePlace.id)
    rows = session.execute(
        select(StoredQueue, number)
        .outerjoin(StoredQueuePlace, StoredQueuePlace.queue_id == StoredQueue.id)
        .where(StoredQueue.project_id == project)
        .group_by(StoredQueue.id)
        .order_by(StoredQueue.id.desc())
        .limit(_MOST_ORDERINGS)
    )
    return tuple(
        QueueNote(
            at=queue.at,
            random_share=queue.random_share,
            sources=tuple(str(source["name"]) for source in queue.sources),
            items=items,
        )
        for queue, items in rows
    )


def _deciles(session: Session, project: int) -> tuple[DecileProgress, ...]:
    place = StoredQueuePlace
    rows = session.execute(
        select(place.decile, place.is_random, StoredItem.state, StoredItem.round, func.count())
        .join(StoredItem, place.item_id == StoredItem.id)
        .where(place.project_id == project)
        .group_by(place.decile, place.is_random, StoredItem.state, StoredItem.round)
    ).all()
    groups: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    # Those without a priority come after the others.
    return tuple(_decile(number, groups[number]) for number in sorted(groups, key=lambda each: (each == 0, each)))


def _decile(number: int, rows: list[Any]) -> DecileProgress:
    def count(*, by_chance: bool = False, annotated: bool = False, state: str = "") -> int:
        return sum(
            size
            for _, is_random, of_row, round_number, size in rows
            if (is_random or not by_chance)
            and (of_row != "annotating" or round_number > 1 or not annotated)
            and state in ("", of_row)
        )

    return DecileProgress(
        decile=number,
        items=count(),
        annotated=count(annotated=True),
        finished=count(state="finished"),
        by_chance=count(by_chance=True),
        by_chance_annotated=count(by_chance=True, annotated=True),
    )


def _agreement(session: Session, project: int, *, is_random: bool) -> Estimate:
    """Return the share of equal verdicts at the gate, with the item as the unit."""
    gate = StoredGateResult
    same, judged = gate.num_same, gate.num_judged
    sums = (same, judged, same * same, same * judged, judged * judged)
    row = session.execute(
        select(func.count(), *map(func.sum, sums))
        .join(StoredQueuePlace, StoredQueuePlace.item_id == gate.item_id)
        .where(gate.project_id == project, gate.num_compared > 0, StoredQueuePlace.is_random.is_(is_random))
    ).one()
    return RatioSums(*(int(value or 0) for value in row)).estimate()
