"""Results of a qualification: each annotator with the latest round, its accuracy with the interval, and decisions."""

from collections import defaultdict

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from steelyard.annotation.qualification import accuracy_of
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.statistics.intervals import Estimate
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.queues import PASSED
from steelyard.workbench.qualification.material import qualification_tasks
from steelyard.workbench.qualification.rounds import Standing
from steelyard.workbench.storage.figure_tables import StoredWorkDay
from steelyard.workbench.storage.number_lists import is_among
from steelyard.workbench.storage.qualification_tables import StoredQualificationAnswer, StoredQualificationRound
from steelyard.workbench.storage.tables import StoredPerson, StoredProject


class PersonQualification(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An annotator's standing in a project with the latest round. ``rounds``: how many there were.

    ``accuracy``: the share of the reference over the answers of the round. ``decided_by``: the pseudonym of who let the
    person pass, or have another round, for the ``reason``; null where nobody did.
    """

    person: int
    pseudonym: str
    name: str
    standing: Standing
    rounds: int
    num_done: int
    num_tasks: int
    accuracy: Estimate
    ended_at: float | None
    decided_by: str | None
    reason: str


class QualificationFigures(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The qualification of a project. ``available``: its tasks. A round draws ``num_tasks`` of them."""

    available: int
    num_tasks: int
    least_accuracy: float
    people: tuple[PersonQualification, ...]


def qualification_figures(session: Session, project: StoredProject) -> QualificationFigures:
    """Return the qualification of a project with every annotator, those first who wait for a manager."""
    rules, tasks = settings_of(project).qualification, qualification_tasks(session, project)
    rounds: dict[int, list[StoredQualificationRound]] = defaultdict(list)
    of_project = select(StoredQualificationRound).where(StoredQualificationRound.project_id == project.id)
    for row in session.scalars(of_project.order_by(StoredQualificationRound.number)):
        rounds[row.person_id].append(row)
    shares = _shares(session, [each[-1].id for each in rounds.values()])
    pseudonyms = {person: pseudonym for person, pseudonym in session.execute(_PSEUDONYMS)}  # noqa: C416 - rows
    has_worked = exists().where(StoredWorkDay.project_id == project.id, StoredWorkDay.person_id == StoredPerson.id)
    annotators = select(StoredPerson, has_worked).where(
        StoredPerson.role == "annotator", StoredPerson.is_active.is_(True)
    )
    people = []
    for person, is_at_work in session.execute(annotators).all():
        mine = rounds.get(person.id, [])
        latest = mine[-1] if mine else None
        people.append(
            PersonQualification(
                person=person.id,
                pseudonym=person.pseudonym,
                name=person.display_name,
                standing=_standing(
                    latest,
                    is_at_work=is_at_work or not rules.num_tasks,
                    has_tasks=bool(tasks.for_skills(person.skills)),
                ),
                rounds=len(mine),
                num_done=0 if latest is None else len(shares[latest.id]),
                num_tasks=rules.num_tasks if latest is None else len(latest.tasks),
                accuracy=accuracy_of([] if latest is None else shares[latest.id]),
                ended_at=None if latest is None else latest.ended_at,
                decided_by=None if latest is None else pseudonyms.get(latest.decided_by or 0),
                reason="" if latest is None else latest.reason,
            )
        )
    return QualificationFigures(
        available=len(tasks.category_of),
        num_tasks=rules.num_tasks,
        least_accuracy=rules.least_accuracy,
        people=tuple(sorted(people, key=lambda row: (row.standing != "failed", natural_order(row.name), row.person))),
    )


_PSEUDONYMS = select(StoredPerson.id, StoredPerson.pseudonym)


def _shares(session: Session, rounds: list[int]) -> dict[int, list[float]]:
    """Return the shares of the reference that the answers of rounds have, by round."""
    answer, shares = StoredQualificationAnswer, defaultdict(list)
    rows = select(answer.round_id, answer.num_same, answer.num_points).where(is_among(answer.round_id, rounds))
    for number, num_same, num_points in session.execute(rows.order_by(answer.id)):
        shares[number].append(num_same / num_points)
    return shares


def _standing(latest: StoredQualificationRound | None, *, is_at_work: bool, has_tasks: bool) -> Standing:
    if latest is not None and latest.outcome in PASSED:
        return "passed"
    if is_at_work:
        return "not needed"
    if latest is not None and latest.outcome == "failed":
        return "failed"
    if latest is not None and latest.outcome == "open":
        return "open"
    return "to do" if has_tasks else "no tasks"
