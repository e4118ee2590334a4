"""Work that waits for nobody is found with its reason, and is gone when what the page asks for was done."""

import pytest
from sqlalchemy import select

from steelyard.annotation.pipeline import PipelineRules
from steelyard.annotation.qualification import QualificationRules
from steelyard.workbench.accounts.people import NewPerson, add_person, change_account
from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.item_states import lock_item, move
from steelyard.workbench.pipeline.projects import case_of, settings_of
from steelyard.workbench.pipeline.queues import release
from steelyard.workbench.pipeline.round_plans import plan_tasks
from steelyard.workbench.pipeline.unassignable import unassignable_work
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredTask,
)
from workbench_people import NOON, answer, answer_all, make_project, send, take


def found(database, project):
    with database.reading() as session:
        rows = unassignable_work(session, session.get_one(StoredProject, project))
    return [(row.reason, row.about, row.number) for row in rows]


def account(database, person, *, role="annotator", is_active=True, skills=()):
    database.write(
        lambda session: change_account(
            session,
            session.get_one(StoredPerson, person),
            role=role,
            is_active=is_active,
            skills=skills,
            by=None,
            at=NOON,
        )
    )


def test_open_tasks_without_anybody(database):
    project, people = make_project(database, 3)

    def name(session):
        for task in session.scalars(select(StoredTask)):
            task.category = "law"

    database.write(name)
    assert found(database, project) == []
    for person in people:
        account(database, person, skills=("code",))
    assert found(database, project) == [("skills", "law", 3)]
    account(database, people[0], skills=("code", "law"))
    # One person is not two, but the first place of each task is free for somebody.
    assert found(database, project) == []
    for person in people:
        account(database, person, is_active=False)
    assert found(database, project) == [("nobody", "law", 3)]


def test_tasks_that_everybody_has_had(database):
    project, people = make_project(database, 2)
    [(first, shown)] = take(database, project, people[0])
    send(database, first, answer(shown))
    assert found(database, project) == []
    account(database, people[1], is_active=False)
    assert found(database, project) == [("had", "", 1)]
    account(database, people[1])
    # The task of the other item is handed back by one, then by both.
    for person, reasons in zip(people, ([], ["had"]), strict=True):
        taken = take(database, project, person, number=3)
        other = next(number for number, _ in taken if _item_of(database, number) != _item_of(database, first))
        database.write(lambda session, other=other: release(session, session.get_one(StoredAssignment, other)))
        assert [row[0] for row in found(database, project)] == reasons


def _item_of(database, assignment):
    with database.reading() as session:
        return session.get_one(StoredTask, session.get_one(StoredAssignment, assignment).task_id).item_id


@pytest.mark.parametrize(("rework", "reason"), [("others", "rework others"), ("same people", None), ("anyone", None)])
def test_rework_that_is_for_nobody(database, rework, reason):
    rules = PipelineRules(gold_share=0, rework=rework)
    project, people = make_project(database, 1, rules=rules)
    answer_all(database, project, people)

    def reject(session):
        item = session.scalars(select(StoredItem)).one()
        item.state = "validation"
        locked = lock_item(session, item.id)
        move(session, locked, "rejected", person=None, at=NOON)
        row = session.get_one(StoredProject, project)
        session.add_all(plan_tasks(locked, case_of(locked), settings_of(row), discarded=()))

    database.write(reject)
    assert [row[0] for row in found(database, project)] == ([reason] if reason else [])
    if rework == "same people":
        for person in people:
            account(database, person, is_active=False)
        database.write(lambda session: add_person(session, NewPerson("new", "annotator"), by=None, at=NOON).id)
        assert found(database, project) == [("rework same", "", 1)]


def test_nobody_has_passed_the_qualification(database):
    project, _ = make_project(database, 2)

    def turn_on(session):
        row = session.get_one(StoredProject, project)
        settings = settings_of(row)
        changed = type(settings)(rules=settings.rules, qualification=QualificationRules(num_tasks=3))
        change_settings(session, row, changed, by=None, at=NOON)

    database.write(turn_on)
    assert found(database, project) == [("not qualified", "", 2)]


def test_items_that_nobody_may_review_or_align(database):
    project, people = make_project(database, 2)
    answer_all(database, project, people)

    def put(state):
        def work(session):
            for item in session.scalars(select(StoredItem)):
                item.state = state

        database.write(work)

    put("validation")
    assert found(database, project) == [("no reviewer", "validation", 2)]
    # Who annotated becomes the only researcher: no item is for this person.
    account(database, people[0], role="researcher")
    assert found(database, project) == [("reviewers worked", "validation", 2)]
    put("aligning")
    # Who left said what the other says: there is nothing to align with this person.
    assert found(database, project) == []
    number = database.write(lambda session: give_up(session, people[0]))
    # Researchers align nothing: the item of the one who was an annotator waits for nobody.
    assert found(database, project) == [("gone", "aligning", number)]
    account(database, people[0], role="annotator")
    assert found(database, project) == []


def give_up(session, person):
    """Let a person have said of every task that it cannot be judged. Returns the number of their items."""
    mine = select(StoredAnswer).where(StoredAnswer.person_id == person)
    for row in session.scalars(mine).all():
        row.content = {"cannot_judge": "outside my field"}
    items = select(StoredTask.item_id).join(StoredAnswer, StoredAnswer.task_id == StoredTask.id)
    return len(set(session.scalars(items.where(StoredAnswer.person_id == person))))
