"""The gate over batches and over pairs of people: shares by hand, also where one change takes many items there."""

import msgspec
import pytest
from sqlalchemy import select

from steelyard.workbench.pipeline.changed_settings import change_settings
from steelyard.workbench.pipeline.counters import GATE_EVENTS
from steelyard.workbench.pipeline.projects import settings_of
from steelyard.workbench.pipeline.queues import assign_task
from steelyard.workbench.pipeline.submissions import lock_assignment, submit
from steelyard.workbench.storage.tables import StoredEvent, StoredProject, StoredTask
from workbench_people import NO_GOLD, NOON, answer, make_project, membership_of

# Of each item: which two people answer it, and whether they agree on all of its 3 pairs or on none.
BY_TWO = [((0, 1), True), ((0, 1), False), ((0, 1), False), ((0, 1), True)]
BY_PAIRS = [((0, 1), True), ((2, 3), False), ((1, 0), False), ((0, 2), True), ((0, 1), False)]
CASES = [
    # 3/3, 3/6, 3/9, 6/12 of the batch.
    ("batch", BY_TWO, ["agreed", "agreed", "disagreed", "agreed"]),
    # 3/3 of the first two, 0/3 of the next, 3/6 of the first, 3/3 of another two, 3/9 of the first.
    ("pair of people", BY_PAIRS, ["agreed", "disagreed", "agreed", "agreed", "disagreed"]),
    ("item", BY_TWO, ["agreed", "disagreed", "disagreed", "agreed"]),
]


def project_with(database, gate, num_items, *, num_annotators=2):
    rules = msgspec.structs.replace(
        NO_GOLD, gate=gate, least_agreement=0.5, num_annotators=num_annotators, delivery_share=1.0
    )
    return make_project(database, num_items, num_people=4, rules=rules)


def answer_item(database, project, people, task, *, is_agreed):
    """Let two people answer the task of an item."""

    def work(session):
        row = session.get_one(StoredTask, task)
        for place, person in enumerate(people):
            assigned = assign_task(session, membership_of(session, project, person), row.id, row.responses, at=NOON)
            locked = lock_assignment(session, assigned.id, person=person)
            order = sorted(row.responses, reverse=place == 1 and not is_agreed)
            assert submit(session, locked, answer(order, order), seconds=1.0, at=NOON) == "stored"

    database.write(work)


def outcomes(database):
    """What happened at the gate, by item."""
    with database.reading() as session:
        events = session.scalars(select(StoredEvent).where(StoredEvent.action.in_(GATE_EVENTS))).all()
    return [event.action for event in sorted(events, key=lambda each: each.subject_id)]


def tasks_of(database):
    with database.reading() as session:
        return session.scalars(select(StoredTask.id).order_by(StoredTask.item_id)).all()


@pytest.mark.parametrize(("gate", "answers", "expected"), CASES)
def test_each_item_is_decided_by_the_share_of_its_unit_so_far(database, gate, answers, expected):
    project, people = project_with(database, gate, len(answers))
    for task, (pair, is_agreed) in zip(tasks_of(database), answers, strict=True):
        answer_item(database, project, [people[place] for place in pair], task, is_agreed=is_agreed)
    assert outcomes(database) == expected


@pytest.mark.parametrize(("gate", "answers", "expected"), CASES)
def test_many_items_that_are_complete_at_once_are_decided_in_their_order(database, gate, answers, expected):
    project, people = project_with(database, gate, len(answers), num_annotators=3)
    for task, (pair, is_agreed) in zip(tasks_of(database), answers, strict=True):
        answer_item(database, project, [people[place] for place in pair], task, is_agreed=is_agreed)
    assert outcomes(database) == []

    def ask_two(session):
        row = session.get_one(StoredProject, project)
        settings = settings_of(row)
        rules = msgspec.structs.replace(settings.rules, num_annotators=2)
        change_settings(session, row, msgspec.structs.replace(settings, rules=rules), by=None, at=NOON)

    database.write(ask_two)
    assert outcomes(database) == expected
