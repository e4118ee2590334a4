"""A small project of the workbench and people who answer its tasks, for tests."""

import msgspec
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer
from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.task_kinds import TaskRules
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project, settings_of
from steelyard.workbench.pipeline.queues import Membership, next_assignments
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.storage.figure_tables import (
    StoredGateResult,
    StoredGoldResult,
    StoredPairAgreement,
    StoredWorkDay,
)
from steelyard.workbench.storage.tables import StoredAssignment, StoredPerson, StoredProject

NOON = 1_700_000_000.0
NO_GOLD = PipelineRules(gold_share=0)
SUMS = (StoredWorkDay, StoredPairAgreement, StoredGateResult, StoredGoldResult)
"""The tables of the sums behind the figures."""


def cases(num_cases, num_responses=3, *, first=0):
    """Cases ``q0``, ``q1``, … whose responses ``r0``, ``r1``, … are worse the higher their number."""
    return [
        Case(
            prompt=Prompt(id=f"q{number}", messages=(Message(role="user", content=f"Question {number}?"),)),
            responses=tuple(
                Response(id=f"r{place}", text=f"Answer {place} to {number}") for place in range(num_responses)
            ),
        )
        for number in range(first, first + num_cases)
    ]


def cases_with_reference(number, *, first=500):
    """Cases whose ranking is that of their responses' numbers, with a reason for it."""
    return [
        msgspec.structs.replace(
            case, ranking=tuple((each.id,) for each in case.responses), meta={"reason": "The first is exact."}
        )
        for case in cases(number, first=first)
    ]


def make_project(database, num_cases=1, num_responses=3, *, num_people=2, rules=NO_GOLD, seed=0, **tasks):
    """Make a project with one batch and people with the role annotator; returns its id and theirs."""

    def make(session):
        project = add_project(
            session, "P", ProjectSettings(rules=rules, seed=seed, tasks=TaskRules(**tasks)), by=None, at=NOON
        )
        import_cases(session, project, cases(num_cases, num_responses), batch="b1", by=None, at=NOON)
        people = [
            add_person(session, NewPerson(f"person {number}", "annotator"), by=None, at=NOON).id
            for number in range(num_people)
        ]
        return project.id, people

    return database.write(make)


def membership_of(session, project, person):
    """Return the person's place in the project."""
    row = session.get_one(StoredProject, project)
    return Membership(session.get_one(StoredPerson, person), row, settings_of(row))


def take(database, project, person, *, number=1, at=NOON):
    """Reserve the person's next tasks; returns pairs of the assignment's id and the responses shown."""

    def work(session):
        mine = next_assignments(session, membership_of(session, project, person), number=number, at=at)
        return [(assignment.id, tuple(assignment.shown)) for assignment in mine]

    return database.write(work)


def answer(shown, order=None):
    """Return the answer that ranks the responses in an order, the one of their ids unless told."""
    order = order or sorted(shown)
    scores = {response: 5 - 2 * place for place, response in enumerate(order)}
    return TaskAnswer(scores=scores, ranking=tuple((response,) for response in order))


def send(database, assignment, content, *, seconds=3.0, at=NOON):
    """Submit an answer; returns what became of it."""

    def work(session):
        person = session.get_one(StoredAssignment, assignment).person_id
        return submit(session, lock_assignment(session, assignment, person=person), content, seconds=seconds, at=at)

    return database.write(work)


def answer_all(database, project, people, *, order=None, at=NOON):
    """Let everybody answer until nobody has a task; ``order(person, shown)`` is the ranking. Returns the number."""
    number = 0
    while True:
        mine = {person: take(database, project, person, at=at) for person in people}
        if not any(mine.values()):
            return number
        for person, tasks in mine.items():
            for assignment, shown in tasks:
                ranking = order(person, shown) if order else None
                assert send(database, assignment, answer(shown, ranking), at=at) == "stored"
                number += 1


def sums_of(database):
    """Return all rows of the sums without their numbers, with floats rounded to what addition keeps."""
    found = {}
    with database.reading() as session:
        for table in SUMS:
            columns = [column for column in table.__table__.columns if column.name != "id"]
            found[table.__tablename__] = sorted(
                tuple(round(value, 6) if isinstance(value, float) else value for value in row)
                for row in session.execute(select(*columns))
            )
    return found


def content_of(stored):
    """Return the answer of a stored row."""
    return msgspec.convert(stored.content, TaskAnswer)
