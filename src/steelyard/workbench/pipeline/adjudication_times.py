"""The active time that people spend on alignment, settlement and review."""

from typing import Any, Literal

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import Layer
from steelyard.workbench.storage.tables import StoredAdjudicationTime, StoredItem, StoredPlantedReview

AdjudicationStage = Literal["alignment"] | Layer
_LONGEST = 1800.0
"""The most seconds that count for one form, also where its page reports more."""


def count_adjudication(
    session: Session, item: StoredItem, *, stage: AdjudicationStage, person: int, reported: float, at: float
) -> float:
    """Keep the seconds that the page of an item reports with a form, and return how many of them count.

    Those of all forms of a person together never exceed the time that the server saw pass: since the item came into its
    state, and since the person's form before.
    """
    seconds = active_seconds(session, person, since=item.changed_at, reported=reported, at=at)
    if seconds:
        session.add(
            StoredAdjudicationTime(
                project_id=item.project_id, item_id=item.id, person_id=person, stage=stage, seconds=seconds, at=at
            )
        )
    return seconds


def active_seconds(session: Session, person: int, *, since: float, reported: float, at: float) -> float:
    """Return how many of the reported seconds can have passed since a time, and since the person's form before."""
    latest = session.scalar(
        select(func.max(StoredAdjudicationTime.at)).where(StoredAdjudicationTime.person_id == person)
    )
    planted = session.scalar(select(func.max(StoredPlantedReview.at)).where(StoredPlantedReview.person_id == person))
    return max(0.0, min(reported, at - max(since, latest or 0.0, planted or 0.0), _LONGEST))


def adjudication_hours(session: Session, project: int, by: Any) -> dict[Any, float]:
    """Return the hours of a project by an expression of its times, such as the stage or the person."""
    sums = select(by, func.sum(StoredAdjudicationTime.seconds)).where(StoredAdjudicationTime.project_id == project)
    return {key: float(seconds) / 3600 for key, seconds in session.execute(sums.group_by(by))}
