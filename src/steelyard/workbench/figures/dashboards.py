"""Progress of a project: items by state, batch and category, answers a day and by person, reviews, and the forecast.

Every figure is counted by the database in an index or from sums that answers added to (`counters`): the time of a page
does not grow with the texts, and hardly with the items.
"""

from collections.abc import Sequence
from math import sqrt
from typing import Any, get_args

from sqlalchemy import BigInteger, Integer, cast, func, select
from sqlalchemy.orm import Session

from steelyard.annotation.pipeline import LAYERS, ItemState
from steelyard.annotation.progress import ProjectForecast, WorkDone, WorkLeft, WorkPrice, forecast
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate, student
from steelyard.workbench.pipeline.adjudication_times import adjudication_hours
from steelyard.workbench.pipeline.counters import DAY
from steelyard.workbench.pipeline.discards import DiscardCounts, discard_counts
from steelyard.workbench.pipeline.planted_reviews import ShownSums, ShownTable, reviews_of, shown_sums
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.unassignable import UnassignableWork, unassignable_work
from steelyard.workbench.pipeline.waiting import WaitingWork, waiting_work
from steelyard.workbench.storage.figure_tables import StoredGateResult, StoredWorkDay
from steelyard.workbench.storage.tables import (
    StoredAdjudicationTime,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredReview,
    StoredTask,
)

PAPER_ANSWERS_A_DAY = 40
"""Triples a day of an annotator of CheemsBench (CHEEMS, appendix D.1)."""
_NUM_WAITS = 1000
_WEEK = 7 * DAY
_MONDAY = 4 * DAY
"""The first Monday of the count of seconds: weeks begin on Mondays."""


class ItemCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Items of a group by state. ``rework``: those that were sent back at least once."""

    name: str
    total: int
    finished: int
    rework: int
    states: dict[str, int]


class DayCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A day (UTC, its start in seconds since 1970): answers, the gold and the repeated ones of them, people, hours.

    ``people`` answered; ``hours`` of everybody, alignment, settlement and review included.
    """

    at: float
    answers: int
    gold: int
    rework: int
    people: int
    hours: float


class PersonPace(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A person's answers: in all, on how many days, a day on which the person worked, and hours of active time.

    ``hours`` include alignment.
    """

    person: int
    pseudonym: str
    name: str
    answers: int
    days: int
    answers_a_day: float
    hours: float
    last_at: float


class RoundCounts(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Rounds of items: at the gate, passed, and the answers that they took; reviews accepted and rejected.

    ``compared``: those of the gates at which a task had two answers; the others could not pass.
    """

    gates: int
    compared: int
    passed: int
    answers: int
    wanted: int
    accepted: int
    rejected: int


class ProgressFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The progress of a project. ``answers_left``: those that open tasks ask for. ``pace``: answers a day of a person.

    ``pace`` is the mean over the days with any work; ``forecast_at``: when the forecast begins, seconds.
    ``unassignable``: work that waits for nobody; ``waiting``: for people. ``discards``: responses that people took out.
    """

    at: float
    items: ItemCounts
    batches: tuple[ItemCounts, ...]
    categories: tuple[ItemCounts, ...]
    days: tuple[DayCounts, ...]
    people: tuple[PersonPace, ...]
    pace: Estimate
    answers: int
    answers_left: int
    rounds: RoundCounts
    discards: DiscardCounts
    forecast: ProjectForecast
    forecast_at: float
    unassignable: tuple[UnassignableWork, ...]
    waiting: tuple[WaitingWork, ...]


def progress_figures(
    session: Session,
    project: StoredProject,
    *,
    at: float,
    planted: ShownTable | None = None,
) -> ProgressFigures:
    """Return the figures of the page of a project's progress at a time.

    ``planted``: the planted reviews that the reader sees; these items count as they are shown.
    """
    is_rework = StoredItem.round > 1
    columns = (StoredItem.batch, StoredItem.category, StoredItem.state, is_rework)
    counts = select(*columns, func.count()).where(StoredItem.project_id == project.id).group_by(*columns)
    groups: list[Sequence[Any]] = list(session.execute(counts).all())
    shown = shown_sums(session, planted)
    for each in shown:
        groups += [
            (each.item_batch, each.category, "finished", each.round - (each.decision == "rejected") > 1, -each.number),
            (each.batch, each.category, each.state, each.round > 1, each.number),
        ]
    days, people = _days(session, project.id, shown), _people(session, project.id)
    rounds, left = _rounds(session, project.id, shown), _answers_left(session, project.id, planted, shown)
    total = _counted("", groups)
    forecast_at = (at // DAY) * DAY
    to_come = _left(session, project, rounds, left, items=total, planted=planted, shown=shown, at=forecast_at)
    return ProgressFigures(
        at=at,
        items=total,
        batches=_by(groups, 0),
        categories=_by(groups, 1),
        days=days,
        people=people,
        pace=_pace(session, project.id),
        answers=sum(day.answers for day in days),
        answers_left=left,
        rounds=rounds,
        discards=discard_counts(session, project.id),
        forecast=_forecast(project, days, to_come, at=forecast_at),
        forecast_at=forecast_at,
        unassignable=unassignable_work(session, project),
        waiting=waiting_work(session, project.id, shown),
    )


def review_counts(session: Session, project: int, *columns: Any) -> list[Any]:
    """Return the accepted and rejected reviews that were made, grouped by columns: these, the decision, a number."""
    made = select(*columns, StoredReview.decision, func.count()).where(
        StoredReview.project_id == project, StoredReview.layer.in_(LAYERS), StoredReview.decision.is_not(None)
    )
    return list(session.execute(made.group_by(*columns, StoredReview.decision)).all())


def week_of(column: Any) -> Any:
    """Return the number of the week of a time; `week_start` returns its beginning."""
    return (cast(column, BigInteger) - int(_MONDAY)) // int(_WEEK)


def week_number(at: float) -> int:
    """Return the number of the week of a time, as `week_of`."""
    return (int(at) - int(_MONDAY)) // int(_WEEK)


def week_start(number: int) -> float:
    """Return when a week begins, in seconds since 1970."""
    return _MONDAY + number * _WEEK


def _by(groups: Sequence[Any], place: int) -> tuple[ItemCounts, ...]:
    names = sorted({row[place] for row in groups}, key=natural_order)
    counted = (_counted(name, [row for row in groups if row[place] == name]) for name in names)
    return tuple(each for each in counted if each.total)


def _counted(name: str, groups: Sequence[Any]) -> ItemCounts:
    states: dict[str, int] = dict.fromkeys(get_args(ItemState), 0)
    for _, _, state, _, number in groups:
        states[state] += number
    return ItemCounts(
        name=name,
        total=sum(states.values()),
        finished=states["finished"],
        rework=sum(number for _, _, _, is_rework, number in groups if is_rework),
        states={state: number for state, number in states.items() if number},
    )


def _days(session: Session, project: int, shown: Sequence[ShownSums]) -> tuple[DayCounts, ...]:
    """Return the days on which a person answered, aligned, settled or reviewed."""
    sums = (StoredWorkDay.num_answers, StoredWorkDay.num_gold, StoredWorkDay.num_rework, StoredWorkDay.seconds)
    rows = session.execute(
        select(StoredWorkDay.day, *(func.sum(column) for column in sums), func.count())
        .where(StoredWorkDay.project_id == project)
        .group_by(StoredWorkDay.day)
        .order_by(StoredWorkDay.day)
    ).all()
    adjudicated = adjudication_hours(session, project, cast(StoredAdjudicationTime.at, BigInteger) // int(DAY))
    for each in shown:
        if each.seconds:
            adjudicated[each.day] = adjudicated.get(each.day, 0.0) + each.seconds / 3600
    days = {day: counts for day, *counts in map(tuple, rows)} | {
        day: [0] * (len(sums) + 1) for day in adjudicated.keys() - {row[0] for row in rows}
    }
    return tuple(
        DayCounts(
            at=day * DAY,
            answers=int(answers),
            gold=int(gold),
            rework=int(rework),
            people=int(people),
            hours=float(seconds) / 3600 + adjudicated.get(day, 0.0),
        )
        for day, (answers, gold, rework, seconds, people) in sorted(days.items())
    )


def _people(session: Session, project: int) -> tuple[PersonPace, ...]:
    rows = session.execute(
        select(
            StoredPerson.id,
            StoredPerson.pseudonym,
            StoredPerson.display_name,
            func.sum(StoredWorkDay.num_answers),
            func.count(),
            func.sum(StoredWorkDay.seconds),
            func.max(StoredWorkDay.day),
        )
        .join(StoredPerson, StoredWorkDay.person_id == StoredPerson.id)
        .where(StoredWorkDay.project_id == project)
        .group_by(StoredPerson.id, StoredPerson.pseudonym, StoredPerson.display_name)
        .order_by(func.sum(StoredWorkDay.num_answers).desc(), StoredPerson.id)
    ).all()
    adjudicated = adjudication_hours(session, project, StoredAdjudicationTime.person_id)
    return tuple(
        PersonPace(
            person=person,
            pseudonym=pseudonym,
            name=name,
            answers=int(answers),
            days=days,
            answers_a_day=float(answers) / days,
            hours=float(seconds) / 3600 + adjudicated.get(person, 0.0),
            last_at=last * DAY,
        )
        for person, pseudonym, name, answers, days, seconds, last in rows
    )


def _pace(session: Session, project: int) -> Estimate:
    """Return the mean of answers a day over people and the days on which they worked, with Student's interval.

    No interval for a single day of work, nor where all are equal: they say nothing of other days.
    """
    number = StoredWorkDay.num_answers
    count, total, squares = session.execute(
        select(func.count(), func.sum(number), func.sum(number * number)).where(StoredWorkDay.project_id == project)
    ).one()
    if not count:
        return Estimate(None, None, None, 0)
    mean = float(total) / count
    variance = float(squares) / count - mean**2
    if count == 1 or variance <= 1e-9 * mean**2:
        return Estimate(mean, None, None, count)
    reach = student(count - 1) * sqrt(variance / (count - 1))
    return Estimate(mean, max(mean - reach, 0.0), mean + reach, count)


def _rounds(session: Session, project: int, shown: Sequence[ShownSums]) -> RoundCounts:
    gate = StoredGateResult
    passed = func.sum(cast(gate.is_passed, Integer()))
    compared = func.sum(cast(gate.num_compared > 0, Integer()))
    gates, num_compared, num_passed, answers, wanted = session.execute(
        select(func.count(), compared, passed, func.sum(gate.num_answers), func.sum(gate.num_wanted)).where(
            gate.project_id == project
        )
    ).one()
    decisions: dict[str, int] = dict.fromkeys(("accepted", "rejected"), 0)
    for decision, number in review_counts(session, project):
        decisions[decision] += number
    for each in shown:
        if each.decision is not None:
            decisions[each.decision] += each.number
    return RoundCounts(
        gates=gates,
        compared=int(num_compared or 0),
        passed=int(num_passed or 0),
        answers=int(answers or 0),
        wanted=int(wanted or 0),
        **decisions,
    )


def _answers_left(session: Session, project: int, planted: ShownTable | None, shown: Sequence[ShownSums]) -> int:
    # The condition of the index `ix_tasks_left`, in its words.
    left = select(func.sum(StoredTask.num_wanted - StoredTask.num_answered)).where(
        StoredTask.project_id == project,
        StoredTask.num_answered < StoredTask.num_wanted,
        ~StoredTask.is_retired,
        ~StoredTask.is_gold,
    )
    number = int(session.scalar(left) or 0)
    if planted is None or not any(each.state == "annotating" for each in shown):
        return number
    again = (
        select(func.sum(StoredTask.num_wanted))
        .join_from(StoredTask, planted.columns.item_id.table, StoredTask.item_id == planted.columns.item_id)
        .where(planted.columns.state == "annotating", ~StoredTask.is_retired, ~StoredTask.is_gold)
    )
    return number + int(session.scalar(again) or 0)


def _left(
    session: Session,
    project: StoredProject,
    rounds: RoundCounts,
    answers_left: int,
    *,
    items: ItemCounts,
    planted: ShownTable | None,
    shown: Sequence[ShownSums],
    at: float,
) -> WorkLeft:
    # Days from the gate to the end, of the items that came to it last, and of those that still wait.
    gate = StoredGateResult
    latest = select(gate).where(gate.project_id == project.id).order_by(gate.id.desc()).limit(_NUM_WAITS).subquery()
    rows = session.execute(
        select(latest.c.at, StoredItem.id, StoredItem.state, StoredItem.changed_at)
        .join(StoredItem, (StoredItem.id == latest.c.item_id) & (StoredItem.round == latest.c.round))
        .where(StoredItem.state.not_in(("annotating", "dropped")))
    ).all()
    reviews = reviews_of(session, planted, [row.id for row in rows])
    is_over = [(reviews[item].state if item in reviews else state) == "finished" for _, item, state, _ in rows]
    finished = [
        max(0.0, changed_at - begun) / DAY for (begun, *_, changed_at), over in zip(rows, is_over, strict=True) if over
    ]
    waiting = [max(0.0, at - begun) / DAY for (begun, *_), over in zip(rows, is_over, strict=True) if not over]
    # Each round after the first one began with a rejection.
    sent_back = select(func.sum(StoredItem.round - 1)).where(StoredItem.project_id == project.id)
    return WorkLeft(
        num_answers=answers_left,
        num_items=items.total - items.finished - items.states.get("dropped", 0),
        answers_a_round=rounds.answers / rounds.gates if rounds.gates else 0.0,
        waste=max(1.0, rounds.answers / rounds.wanted) if rounds.wanted else 1.0,
        num_accepted=items.finished,
        num_rejected=int(session.scalar(sent_back) or 0)
        + sum(each.number for each in shown if each.decision == "rejected"),
        waits=finished,
        waiting=waiting,
    )


def _forecast(project: StoredProject, days: Sequence[DayCounts], left: WorkLeft, *, at: float) -> ProjectForecast:
    """ProjectForecast from the whole days before ``at``, the start of a day; those without an answer count, too."""
    settings = settings_of(project)
    by_day = {day.at: day for day in days if day.at < at}
    first = min(by_day, default=at)
    row = [by_day.get(first + number * DAY) for number in range(int((at - first) // DAY))]
    # Answers to gold tasks take time and money, and are not among those that open tasks ask for.
    answers, gold = sum(day.answers for day in by_day.values()), sum(day.gold for day in by_day.values())
    done = WorkDone(
        [0 if day is None else day.answers - day.gold for day in row],
        [0.0 if day is None else 3600 * day.hours for day in row],
        first_weekday=int((first - _MONDAY) // DAY) % 7,
    )
    is_by_hour = settings.priced_by == "hour"
    amount = settings.price if is_by_hour else settings.price * answers / max(1, answers - gold)
    return forecast(done, left, WorkPrice(amount, settings.priced_by), seed=settings.seed)
