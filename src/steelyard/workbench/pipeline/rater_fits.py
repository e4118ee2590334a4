"""Fits of people's reliability: made when they are due, stored, and read by pages and decisions.

A fit takes a minute for 20,000 answers, a page none: it shows the latest fit, with when it was made and on how many
answers. A fit is due when a share of new answers has come since the last one, or after a day with any.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.plackett_luce import MOST_RANKED, RankingAnswer
from steelyard.annotation.rater_reliability import FEWEST_SHARED, RaterParameters, fit_panel
from steelyard.core.types import Record
from steelyard.workbench.pipeline.listings import latest_answers_of
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.figure_tables import StoredRaterFit, StoredWorkDay
from steelyard.workbench.storage.tables import StoredTask

MOST_ANSWERS = 20_000
"""The latest answers that a fit is made of."""
_SHARE_OF_NEW = 0.05
_OLD_SECONDS = 24 * 3600.0


class FitNote(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The fit behind figures: its number, when it was made, on how many answers and items, and the answers since."""

    fit: int
    at: float
    num_answers: int
    num_items: int
    num_since: int


class StoredPanel(NamedTuple):
    """The latest fit of a project with the people's parameters by number."""

    note: FitNote
    raters: Mapping[int, RaterParameters]

    @property
    def has_repeats(self) -> bool:
        """Return whether people answered several tasks of an item: the fit then assumes a variance of their views."""
        return any(rater.rater_item_variance for rater in self.raters.values())


class PeopleAnswers(NamedTuple):
    """Rankings of a project with numbered items and people: ``items`` and ``people`` are their numbers in the database.

    ``width``: the most responses of an item.
    """

    answers: list[RankingAnswer]
    items: list[int]
    people: list[int]
    width: int


def latest_panel(session: Session, project: int) -> StoredPanel | None:
    """Return the latest fit of a project; null before the first."""
    latest = select(StoredRaterFit).where(StoredRaterFit.project_id == project).order_by(StoredRaterFit.id.desc())
    row = session.scalar(latest.limit(1))
    if row is None:
        return None
    note = FitNote(
        fit=row.id,
        at=row.at,
        num_answers=row.num_used,
        num_items=row.num_items,
        num_since=max(0, count_answers(session, project) - row.num_answers),
    )
    raters = msgspec.convert(row.raters, dict[int, RaterParameters], strict=False)
    return StoredPanel(note, raters)


def is_due(session: Session, project: int, *, at: float) -> bool:
    """Tell whether a project needs a new fit: the first, one with 5% more answers, or after a day with any."""
    number = count_answers(session, project)
    fit = StoredRaterFit
    latest = select(fit.at, fit.num_answers, fit.raters).where(fit.project_id == project)
    latest = latest.order_by(fit.id.desc()).limit(1)
    row = session.execute(latest).one_or_none()
    if row is None:
        return number >= FEWEST_SHARED
    # Fits of earlier versions have no accuracies.
    if not all("accuracy" in rater for rater in row.raters.values()):
        return True
    num_new = number - row.num_answers
    return num_new >= max(FEWEST_SHARED, _SHARE_OF_NEW * row.num_answers) or (
        num_new > 0 and at - row.at > _OLD_SECONDS
    )


def fit_people(database: Database, project: int, *, at: float) -> None:
    """Fit the people of a project to its latest answers and store it, outside any transaction: a minute at most."""
    with database.reading() as session:
        number, read = count_answers(session, project), latest_answers(session, project)
    panel = fit_panel(read.answers, list(map(str, read.people)), num_items=len(read.items), width=read.width)
    raters = {person: msgspec.to_builtins(each) for person, each in panel.raters.items()}

    def store(session: Session) -> None:
        row = StoredRaterFit(project_id=project, at=at, num_answers=number, raters=raters)
        row.num_used, row.num_items = panel.num_answers, panel.num_shared_items
        session.add(row)

    database.write(store)


def latest_answers(session: Session, project: int) -> PeopleAnswers:
    """Return the latest answers of a project that rank responses, gold tasks left out, of all rounds."""
    latest = latest_answers_of(project, MOST_ANSWERS)
    rows = session.execute(
        select(StoredTask.item_id, latest.c.person_id, latest.c.content)
        .join(StoredTask, latest.c.task_id == StoredTask.id)
        .order_by(latest.c.id.desc())
    ).all()
    read = PeopleAnswers([], [], [], 0)
    items: dict[int, int] = {}
    people: dict[int, int] = {}
    places: dict[int, dict[str, int]] = {}
    for item, person, content in rows:
        tiers = ranked_tiers(msgspec.convert(content, TaskAnswer), places.setdefault(item, {}))
        if tiers:
            answer = RankingAnswer(items.setdefault(item, len(items)), people.setdefault(person, len(people)), tiers)
            read.answers.append(answer)
    width = max(map(len, places.values()), default=0)
    return PeopleAnswers(read.answers, list(items), list(people), width)


def ranked_tiers(answer: TaskAnswer, place: dict[str, int]) -> list[list[int]]:
    """Return the ranking of an answer as places of responses; empty where it orders nothing.

    ``place`` numbers the responses of the item, and grows.
    """
    number = sum(map(len, answer.ranking))
    if answer.cannot_judge is not None or not 2 <= number <= MOST_RANKED:
        return []
    return [[place.setdefault(response, len(place)) for response in tier] for tier in answer.ranking]


def count_answers(session: Session, project: int) -> int:
    """Return the answers of a project to ordinary tasks."""
    number = func.sum(StoredWorkDay.num_answers - StoredWorkDay.num_gold)
    return int(session.scalar(select(number).where(StoredWorkDay.project_id == project)) or 0)
