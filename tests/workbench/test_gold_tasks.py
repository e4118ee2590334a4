"""Gold tasks: settled answers check people who do not know them, at a guaranteed rate, and change no data."""

import msgspec
import pytest
from sqlalchemy import select

from steelyard.annotation.answers import TaskAnswer
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.figures.people_figures import people_figures
from steelyard.workbench.pipeline.case_export import export_cases
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.gold_tasks import add_gold_tasks
from steelyard.workbench.pipeline.item_states import move
from steelyard.workbench.pipeline.reviewing import Verdict, decide, decide_batch
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredItem, StoredProject, StoredTask
from workbench_people import NO_GOLD, NOON, answer, cases, make_project, send, take

ABC, BAC, CBA = ("r0", "r1", "r2"), ("r1", "r0", "r2"), ("r2", "r1", "r0")
ACCEPTED = Verdict(is_accepted=True)
QUARTER = msgspec.structs.replace(NO_GOLD, gold_share=0.25)


def rows(database, table):
    with database.reading() as session:
        return session.scalars(select(table).order_by(table.id)).all()


@pytest.fixture
def settled(database):
    """A finished item on which two people differed and aligned on ``r1``, ``r0``, ``r2``: project and people."""
    return adjudicate(database, QUARTER, until="finished")


def adjudicate(database, rules, *, until):
    project, people = make_project(database, rules=rules)
    for person, order in zip(people, (ABC, CBA), strict=True):
        ((number, _),) = take(database, project, person)
        send(database, number, answer(None, order))

    def align(session):
        item = session.scalars(select(StoredItem)).one()
        task = session.scalars(select(StoredTask)).one()
        content = msgspec.to_builtins(answer(None, BAC))
        session.add(
            StoredAnswer(task_id=task.id, person_id=people[0], stage="alignment", content=content, seconds=0, at=NOON)
        )
        move(session, item, "settled", person=people[0], at=NOON)
        while item.state != until:
            move(session, item, "accepted", person=None, at=NOON)

    database.write(align)
    return project, people


def make(database, project, most=5):
    def add(session):
        items = session.scalars(select(StoredItem.id)).all()
        add_gold_tasks(session, session.get_one(StoredProject, project), most=most, at=NOON, items=items)

    former = num_gold(database)
    database.write(add)
    return num_gold(database) - former


def num_gold(database):
    return sum(task.is_gold for task in rows(database, StoredTask))


def exported(database, project):
    with database.reading() as session:
        return list(export_cases(session, session.get_one(StoredProject, project), evidence="both"))


def test_a_settled_answer_becomes_one_gold_task(database, settled):
    project, _ = settled
    assert [make(database, project, most) for most in (0, 5, 5)] == [0, 1, 0]
    first, gold = rows(database, StoredTask)
    assert (gold.is_gold, gold.is_open, gold.responses) == (True, True, first.responses)
    assert msgspec.convert(gold.gold, TaskAnswer) == answer(None, BAC)


@pytest.mark.parametrize(("share", "number"), [(0.25, 1), (0.0, 0)])
@pytest.mark.parametrize("by_batch", [False, True])
def test_the_last_acceptance_of_a_settled_item_makes_gold_of_it(database, share, number, by_batch):
    project, _ = adjudicate(database, msgspec.structs.replace(NO_GOLD, gold_share=share), until="validation")

    def accept(session):
        researcher = add_person(session, NewPerson("rea", "researcher"), by=None, at=NOON).id
        item = session.scalars(select(StoredItem)).one()
        who = {"layer": "research", "person": researcher, "at": NOON}
        if by_batch:
            decide_batch(session, session.get_one(StoredProject, project), item.batch, ACCEPTED, **who)
        else:
            decide(session, item.id, ACCEPTED, **who)

    database.write(accept)
    assert [task.is_gold for task in rows(database, StoredTask)] == [False, *[True] * number]


def test_what_was_never_settled_is_no_gold(database):
    project, people = make_project(database, rules=QUARTER)
    for person in people:
        ((number, shown),) = take(database, project, person)
        send(database, number, answer(shown))

    def finish(session):
        item = session.scalars(select(StoredItem)).one()
        while item.state != "finished":
            move(session, item, "accepted", person=None, at=NOON)

    database.write(finish)
    assert make(database, project) == 0


def test_a_newcomer_gets_the_gold_task_at_the_rate_and_those_who_know_it_never(database, settled):
    project, people = settled
    make(database, project)
    before = exported(database, project)

    def more(session):
        import_cases(
            session, session.get_one(StoredProject, project), cases(30, first=50), batch="b2", by=None, at=NOON
        )
        return add_person(session, NewPerson("new", "annotator"), by=None, at=NOON).id

    newcomer = database.write(more)
    for person in (newcomer, *people):
        for _ in range(8):
            ((number, shown),) = take(database, project, person)
            assert send(database, number, answer(shown)) == "stored"
    gold = {task.id for task in rows(database, StoredTask) if task.is_gold}
    had = {
        person: [each.task_id in gold for each in rows(database, StoredAssignment) if each.person_id == person]
        for person in (newcomer, *people)
    }
    # One place of every four is gold; there is one gold task, and nobody has a task twice.
    assert sum(had[newcomer][:4]) == 1
    assert sum(had[newcomer]) == 1
    assert not any(had[people[0]] + had[people[1]])
    # What checks a person is no judgment on the item.
    assert exported(database, project) == before


def test_people_says_of_whom_the_share_of_gold_could_not_be_kept(database, settled):
    project, people = settled
    make(database, project)
    tomorrow = NOON + 86400
    database.write(
        lambda session: import_cases(
            session, session.get_one(StoredProject, project), cases(30, first=50), batch="b2", by=None, at=NOON
        )
    )
    for number in range(17):
        for person in people[: 1 if number >= 7 else 2]:
            ((assignment, shown),) = take(database, project, person, at=tomorrow)
            send(database, assignment, answer(shown), at=tomorrow)
    with database.reading() as session:
        figures = people_figures(session, session.get_one(StoredProject, project))
    # A quarter of 17 and of 7 answers, less the one by which days and blocks may differ.
    assert {row.person: row.gold_missing for row in figures.people} == {people[0]: 3, people[1]: 0}
