"""People: accuracy on gold tasks and its change, reliability, and what the speed and sameness of their answers say.

All on sums that answers added to (`counters`), but for the agreement with gold over time.
"""

from collections.abc import Mapping
from math import floor

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steelyard.annotation.annotator_metrics import (
    AgreementOverTime,
    BehaviourFlag,
    Drift,
    behaviour_flags,
    drifts,
    gold_analysis,
)
from steelyard.annotation.rater_reliability import reliability_of
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.linearised import mean_of_sums
from steelyard.workbench.figures.reviewer_figures import ReviewerAccuracy, reviewer_accuracy
from steelyard.workbench.pipeline.counters import DAY
from steelyard.workbench.pipeline.gold_tasks import GOLD_MADE
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.rater_fits import FitNote, latest_panel
from steelyard.workbench.pipeline.work_limits import closed_categories
from steelyard.workbench.storage.figure_tables import (
    StoredGoldResult,
    StoredWorkDay,
)
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.tables import StoredEvent, StoredPerson, StoredProject

_MOST_GOLD = 400
"""The latest gold answers of a person in which a change is looked for."""
_DAY_SUMS = tuple(
    column for column in StoredWorkDay.__table__.columns if column.name not in ("id", "project_id", "person_id", "day")
)


class ClosedCategory(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A category that a person's accuracy on its gold tasks closes (`work_limits`)."""

    category: str
    accuracy: Estimate


class PersonQuality(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A person: answers, gold accuracy with the number of gold answers, its change, and flags that were looked for.

    ``reliability`` and ``ties``: `rater_reliability.RaterReliability` by the latest fit; null before the first.
    ``shared_answers``: answers in that fit to items that others answered, too.
    ``closed``: categories whose tasks the person gets no more, by the record there. ``gold_missing``: gold tasks that
    the share asks for and the person could not get, having had the items of all of them.
    """

    person: int
    pseudonym: str
    name: str
    answers: int
    seconds_an_answer: float
    gold_answers: int
    gold: Estimate
    reliability: Estimate | None
    ties: Estimate | None
    shared_answers: int
    drift: Drift | None
    flags: tuple[BehaviourFlag, ...]
    closed: tuple[ClosedCategory, ...] = ()
    gold_missing: int = 0


class PeopleFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everybody who answered, those first who stand out; ``gold``: the mean accuracy of all gold answers.

    ``fit``: what the reliability of people stands on; null before the first fit. ``reviewers``: planted reviews.
    """

    gold: Estimate
    fit: FitNote | None
    people: tuple[PersonQuality, ...]
    reviewers: tuple[ReviewerAccuracy, ...]


def people_figures(session: Session, project: StoredProject) -> PeopleFigures:
    """Return gold accuracy, reliability, speed and sameness of everybody who answered in a project."""
    sums = _person_sums(session, project.id)
    gold = _gold_sums(session, project.id)
    changes = drifts(_agreement_over_time(session, project.id, {person: row[0] for person, row in gold.items()}))
    flags, panel = behaviour_flags(sums), latest_panel(session, project.id)
    reliable = {} if panel is None else {key: reliability_of(each) for key, each in panel.raters.items()}
    closed = closed_categories(session, settings_of(project).limits, project=project.id)
    missing = _gold_missing(session, project)
    people = session.execute(
        select(StoredPerson.id, StoredPerson.pseudonym, StoredPerson.display_name).where(
            is_among(StoredPerson.id, sums)
        )
    ).all()
    rows = [
        PersonQuality(
            person=person,
            pseudonym=pseudonym,
            name=name,
            answers=round(sums[person]["num_answers"]),
            seconds_an_answer=sums[person]["seconds"] / sums[person]["num_answers"],
            gold_answers=gold.get(person, (0, 0.0, 0.0))[0],
            gold=mean_of_sums(*gold.get(person, (0, 0.0, 0.0)), low=0.0, high=1.0),
            reliability=reliable[person].accuracy if person in reliable else None,
            ties=reliable[person].ties if person in reliable else None,
            shared_answers=panel.raters[person].num_answers if panel is not None and person in reliable else 0,
            drift=changes.get(person),
            flags=flags.get(person, ()),
            gold_missing=missing.get(person, 0),
            closed=tuple(
                ClosedCategory(category=category, accuracy=accuracy)
                for category, accuracy in sorted(closed.get(person, {}).items(), key=lambda row: natural_order(row[0]))
            ),
        )
        for person, pseudonym, name in people
    ]
    total = [sum(values) for values in zip(*gold.values(), strict=True)] or [0, 0.0, 0.0]
    return PeopleFigures(
        gold=mean_of_sums(int(total[0]), total[1], total[2], low=0.0, high=1.0),
        fit=None if panel is None else panel.note,
        people=tuple(sorted(rows, key=lambda row: (-_num_raised(row), natural_order(row.name), row.person))),
        reviewers=reviewer_accuracy(session, project.id),
    )


def _num_raised(row: PersonQuality) -> int:
    return sum(flag.is_raised for flag in row.flags) + (row.drift is not None and row.drift.is_real) + len(row.closed)


def _person_sums(session: Session, project: int) -> dict[int, dict[str, float]]:
    rows = session.execute(
        select(StoredWorkDay.person_id, *(func.sum(column) for column in _DAY_SUMS))
        .where(StoredWorkDay.project_id == project)
        .group_by(StoredWorkDay.person_id)
    ).all()
    names = [column.name for column in _DAY_SUMS]
    return {row[0]: dict(zip(names, map(float, row[1:]), strict=True)) for row in rows}


def _gold_sums(session: Session, project: int) -> dict[int, tuple[int, float, float]]:
    """Return the number of gold answers of each person, the sum of their shares right, and that of the squares."""
    gold = StoredGoldResult
    share = 1.0 * gold.num_same / gold.num_judged
    rows = session.execute(
        select(gold.person_id, func.count(), func.sum(share), func.sum(share * share))
        .where(gold.project_id == project, gold.is_void.is_(False), gold.num_judged > 0)
        .group_by(gold.person_id)
    ).all()
    return {person: (number, float(total), float(squares)) for person, number, total, squares in rows}


def _gold_missing(session: Session, project: StoredProject) -> dict[int, int]:
    """Return how many gold tasks each person lacks, since the first day on which the project had any from the start.

    Days do not begin with a block of the gold places: one task too few is none.
    """
    made = StoredEvent.subject == "project", StoredEvent.subject_id == project.id, StoredEvent.action == GOLD_MADE
    first = session.scalar(select(func.min(StoredEvent.at)).where(*made))
    if first is None:
        return {}
    share, days = settings_of(project).rules.gold_share, StoredWorkDay
    rows = session.execute(
        select(days.person_id, func.sum(days.num_answers), func.sum(days.num_gold))
        .where(days.project_id == project.id, days.day > first // DAY)
        .group_by(days.person_id)
    )
    return {person: max(0, floor(share * int(answers)) - int(had) - 1) for person, answers, had in rows}


def _agreement_over_time(session: Session, project: int, numbers: Mapping[int, int]) -> dict[int, AgreementOverTime]:
    """Return the gold answers in the latest interim analysis of each person; ``numbers``: how many each person has."""
    gold, over_time = StoredGoldResult, {}
    for person, number in numbers.items():
        analysis = gold_analysis(number)
        if analysis is None:
            continue
        latest = (
            select(gold.num_same, gold.num_judged)
            .where(gold.project_id == project, gold.person_id == person, gold.is_void.is_(False), gold.num_judged > 0)
            .order_by(gold.at.desc(), gold.id.desc())
            .offset(number - analysis.size)
            .limit(_MOST_GOLD)
        )
        shares = [same / judged for same, judged in reversed(session.execute(latest).all())]
        over_time[person] = AgreementOverTime(shares, analysis.size - len(shares))
    return over_time
