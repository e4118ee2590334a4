"""The queue: exactly as many people for each task as are wanted, places that come back, an order of one's own."""

import threading
from collections import Counter, defaultdict

import msgspec
import pytest
from sqlalchemy import select

from steelyard.workbench.pipeline.queues import give_back, release, take_again
from steelyard.workbench.pipeline.submissions import save_draft
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredPerson,
    StoredTask,
)
from workbench_people import NO_GOLD, NOON, answer, answer_all, make_project, send, take


def rows(database, table):
    with database.reading() as session:
        return session.scalars(select(table).order_by(table.id)).all()


def test_eight_people_at_once_give_each_task_exactly_as_many_answers_as_are_wanted(database):
    project, people = make_project(
        database, 6, 5, num_people=8, rules=msgspec.structs.replace(NO_GOLD, num_annotators=3)
    )
    failures = []

    def work(person):
        try:
            answer_all(database, project, [person])
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    tasks = rows(database, StoredTask)
    assert len(tasks) == 30
    assert {(task.num_wanted, task.num_reserved, task.num_answered, task.is_open) for task in tasks} == {
        (3, 3, 3, False)
    }
    who = defaultdict(list)
    for each in rows(database, StoredAnswer):
        who[each.task_id].append(each.person_id)
    assert all(len(set(answered)) == len(answered) == 3 for answered in who.values())
    assert len(who) == 30


def test_a_person_has_two_tasks_of_an_item_only_when_nothing_else_is_left(database):
    project, people = make_project(database, 5, 5, num_people=1)
    taken = []
    while mine := take(database, project, people[0]):
        ((number, shown),) = mine
        taken.append(number)
        send(database, number, answer(shown))
    of_task = {task.id: task.item_id for task in rows(database, StoredTask)}
    items = [of_task[each.task_id] for each in rows(database, StoredAssignment)]
    assert len(taken) == 25
    assert sorted(items[:5]) == sorted(set(items))
    assert Counter(items) == dict.fromkeys(items, 5)


def test_the_same_tasks_are_given_until_they_are_answered_and_never_more_than_three(database):
    project, people = make_project(database, 6, 5, num_people=1)
    first = take(database, project, people[0], number=2)
    assert take(database, project, people[0], number=2) == first
    assert len(take(database, project, people[0], number=50)) == 3
    assert len(rows(database, StoredAssignment)) == 3


def test_a_place_that_expired_goes_to_somebody_else_and_comes_back_only_if_it_is_free(database):
    project, (ada, bob, cyd) = make_project(database, num_people=3)
    ((of_ada, shown),) = take(database, project, ada)
    ((of_bob, bob_shown),) = take(database, project, bob)
    assert take(database, project, cyd) == []
    late = NOON + 46 * 60
    ((of_cyd, cyd_shown),) = take(database, project, cyd, at=late)
    assert send(database, of_cyd, answer(cyd_shown), at=late) == "stored"
    # One of the two places is free again: who comes first has it, whoever had it before.
    assert send(database, of_ada, answer(shown), at=late) == "stored"
    assert send(database, of_bob, answer(bob_shown), at=late) == "too late"
    (task,) = rows(database, StoredTask)
    assert (task.num_answered, task.num_reserved) == (2, 2)
    assert [each.person_id for each in rows(database, StoredAnswer)] == [cyd, ada]
    # What came too late is kept with the person's task.
    (draft,) = [each.draft for each in rows(database, StoredAssignment) if each.id == of_bob]
    assert draft["ranking"] == [["r0"], ["r1"], ["r2"]]


def test_a_task_that_nobody_else_is_there_for_comes_back_with_its_draft(database):
    project, (ada, bob) = make_project(database, num_people=2)
    ((number, shown),) = take(database, project, ada)
    ((of_bob, bob_shown),) = take(database, project, bob)
    draft = answer(shown)
    database.write(lambda session: save_draft(session, session.get_one(StoredAssignment, number), draft, seconds=5.0))
    late = NOON + 46 * 60
    assert send(database, of_bob, answer(bob_shown), at=NOON) == "stored"
    # Somebody asks: the place expires.
    assert take(database, project, bob, at=late) == []
    assert take(database, project, ada, at=late) == [(number, shown)]
    (kept,) = [each for each in rows(database, StoredAssignment) if each.id == number]
    assert (kept.state, kept.expires_at, kept.draft is not None) == ("open", late + 45 * 60, True)
    assert send(database, number, draft, at=late) == "stored"
    (task,) = rows(database, StoredTask)
    assert (task.num_answered, task.num_reserved, task.is_open) == (2, 2, False)


def test_a_person_at_work_keeps_the_task(database):
    project, (ada, bob, cyd) = make_project(database, num_people=3)
    take(database, project, ada)
    take(database, project, bob)
    for minutes in (30, 60, 90):
        assert len(take(database, project, ada, at=NOON + 60 * minutes)) == 1
    assert len(take(database, project, cyd, at=NOON + 91 * 60)) == 1
    assert {each.person_id for each in rows(database, StoredAssignment) if each.state == "open"} == {ada, cyd}


def test_a_task_that_is_given_back_goes_to_somebody_else(database):
    project, (ada, bob, cyd) = make_project(database, num_people=3)
    ((number, _),) = take(database, project, ada)
    take(database, project, bob)
    released = [
        database.write(lambda session: release(session, session.get_one(StoredAssignment, number))) for _ in range(2)
    ]
    assert released == [True, False]
    assert len(take(database, project, cyd)) == 1
    (task,) = rows(database, StoredTask)
    assert (task.num_reserved, task.is_open) == (2, False)


def test_tasks_stand_in_the_same_order_on_a_page_that_is_opened_again(database):
    project, (ada, _) = make_project(database, 3, num_people=2)
    for turn in range(12):
        at = NOON + turn
        loaded = take(database, project, ada, number=3, at=at)
        assert len(loaded) == 3
        assert take(database, project, ada, number=3, at=at) == loaded
        until = {each.id: each.expires_at for each in rows(database, StoredAssignment)}
        assert database.write(lambda session, until=until: give_back(session, ada, until)) == 3


def test_what_was_loaded_and_never_shown_is_given_back_and_comes_again_as_new(database):
    project, (ada, bob) = make_project(database, 3, num_people=2)
    mine = [number for number, _ in take(database, project, ada, number=3)]
    until = {each.id: each.expires_at for each in rows(database, StoredAssignment)}
    draft = answer(("r0", "r1", "r2"))
    database.write(lambda session: save_draft(session, session.get_one(StoredAssignment, mine[0]), draft, seconds=0))
    # Another person's page, and one that knows an older time, give nothing back; a draft stays.
    assert database.write(lambda session: give_back(session, bob, until)) == 0
    assert database.write(lambda session: give_back(session, ada, dict.fromkeys(mine, NOON))) == 0
    assert database.write(lambda session: give_back(session, ada, until)) == 2
    assert database.write(lambda session: give_back(session, ada, until)) == 0
    assert [each.state for each in rows(database, StoredAssignment)] == ["open", "unseen", "unseen"]
    assert sorted(each.num_reserved for each in rows(database, StoredTask)) == [0, 0, 1]
    assert len(take(database, project, ada, number=3)) == 3


def test_a_page_whose_task_another_page_of_the_person_gave_back_still_sends_its_answer(database):
    project, (ada, bob) = make_project(database, 2, num_people=2)
    loaded = take(database, project, ada, number=2)
    until = {each.id: each.expires_at for each in rows(database, StoredAssignment)}
    assert database.write(lambda session: give_back(session, ada, until)) == 2
    # The numbers are nobody else's: an answer to one would otherwise be stored under another task.
    assert {number for number, _ in take(database, project, bob, number=2)}.isdisjoint(until)
    for number, shown in loaded:
        assert send(database, number, answer(shown)) == "stored"
    assert take(database, project, ada) == []
    assert [(task.num_answered, task.num_reserved) for task in rows(database, StoredTask)] == [(1, 2), (1, 2)]


def test_two_pages_that_take_an_expired_task_again_take_one_place(database):
    project, (ada, bob) = make_project(database, num_people=2)
    ((number, _),) = take(database, project, ada)
    late = NOON + 46 * 60
    database.write(lambda session: release(session, session.get_one(StoredAssignment, number)))
    together = threading.Barrier(2)

    def again():
        def work(session):
            mine = session.get_one(StoredAssignment, number)
            if not tried:
                tried.append(mine)
                together.wait()
            return take_again(session, mine, expires_at=late)

        tried = []
        database.write(work)

    threads = [threading.Thread(target=again) for _ in range(2)]
    if database.is_sqlite:
        # One writer at a time: the pages come one after the other.
        together = threading.Barrier(1)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (task,) = rows(database, StoredTask)
    assert (task.num_reserved, task.is_open) == (1, True)
    assert len(take(database, project, bob)) == 1


@pytest.mark.parametrize("has_other", [False, True])
def test_who_enters_something_keeps_the_task_unless_somebody_else_has_it(database, has_other):
    rules = msgspec.structs.replace(NO_GOLD, num_annotators=1)
    project, (ada, bob) = make_project(database, num_people=2, rules=rules)
    ((number, shown),) = take(database, project, ada)
    late = NOON + 46 * 60
    if has_other:
        assert len(take(database, project, bob, at=late)) == 1

    def enter(session):
        row = session.get_one(StoredAssignment, number)
        save_draft(session, row, answer(shown), seconds=1.0, expires_at=late + 60)
        session.flush()
        return row.state, row.expires_at

    assert database.write(enter) == (("expired", NOON + 45 * 60) if has_other else ("open", late + 60))
    # Neither a place nor an answer is lost: the one who has it gives the only answer.
    assert len(take(database, project, bob, at=late + 30)) == has_other
    outcome = send(database, number, answer(shown), at=late + 30)
    assert outcome == ("too late" if has_other else "stored")
    assert rows(database, StoredTask)[0].num_reserved == 1


def test_each_person_has_an_order_of_responses_that_stays(database):
    project, people = make_project(database, 30, num_people=2)
    orders = {}
    for person in people:
        while mine := take(database, project, person):
            ((number, shown),) = mine
            send(database, number, answer(shown))
    of_task = defaultdict(dict)
    for each in rows(database, StoredAssignment):
        of_task[each.task_id][each.person_id] = tuple(each.shown)
        orders[each.person_id, tuple(each.shown)] = 1
    assert all(sorted(shown) == ["r0", "r1", "r2"] for both in of_task.values() for shown in both.values())
    # 30 tasks of each person: all six orders occur but with a chance of 6 (5/6)^30 < 3 %, fixed by the seed.
    assert len(orders) == 12
    assert any(both[people[0]] != both[people[1]] for both in of_task.values())


def test_a_person_gets_tasks_of_the_own_skills_alone(database):
    project, (ada, bob) = make_project(database, 6, num_people=2)

    def limit(session):
        session.get_one(StoredPerson, ada).skills = ["maths"]
        for number, task in enumerate(session.scalars(select(StoredTask).order_by(StoredTask.id))):
            task.category = ("maths", "law", "")[number % 3]

    database.write(limit)
    # Two tasks of the skill, two of no category.
    assert answer_all(database, project, [ada]) == 4
    assert answer_all(database, project, [bob]) == 6
