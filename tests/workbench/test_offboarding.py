"""People who leave in the middle of a task, of an alignment or of a review: nothing waits for them."""

import threading

import pytest
from sqlalchemy import select

from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.people import NewPerson, add_person, change_account, erase_person
from steelyard.workbench.pipeline.alignment import all_items_to_align, items_to_adjudicate, propose
from steelyard.workbench.pipeline.reviewing import Verdict, decide
from steelyard.workbench.storage.tables import StoredAssignment, StoredPerson
from workbench_crew import Crew, in_order


def leave(database, person, how):
    """Let a person leave: an account that is erased or closed, or gets another role."""

    def work(session):
        row = session.get_one(StoredPerson, person)
        if how == "erased":
            return erase_person(session, row, by=None, at=1.0)
        role, is_active = ("delivery", True) if how == "another role" else ("annotator", False)
        return change_account(session, row, role=role, is_active=is_active, skills=(), by=None, at=1.0)

    database.write(work)


WAYS = pytest.mark.parametrize("how", ["erased", "closed", "another role"])


@WAYS
def test_what_they_hold_goes_to_others_at_once(database, how):
    crew = Crew(database, responses="abc", num_annotators=1, lock_minutes=7 * 24 * 60)
    first, second = crew.people["annotator"][:2]
    held = crew.take(first)
    assert crew.take(second) is None
    leave(database, first, how)
    taken = crew.take(second)
    assert taken[1] == held[1]
    # An answer that was on its way finds the place taken; the other one counts.
    assert crew.submit(held[0], in_order(held[2])) == "too late"
    assert crew.submit(taken[0], in_order(taken[2])) == "stored"
    assert crew.item().state != "annotating"


def test_who_comes_back_finds_the_task_with_its_draft(database):
    crew = Crew(database, responses="abc", num_annotators=1)
    first = crew.people["annotator"][0]
    held = crew.take(first)

    def draft(session):
        session.get_one(StoredAssignment, held[0]).draft = {"remark": "half done"}

    database.write(draft)
    leave(database, first, "closed")

    def open_again(session):
        row = session.get_one(StoredPerson, first)
        change_account(session, row, role="annotator", is_active=True, skills=(), by=None, at=2.0)

    database.write(open_again)
    assert crew.take(first) == held
    assert crew.rows(select(StoredAssignment))[0].draft == {"remark": "half done"}


@WAYS
@pytest.mark.parametrize("leaves_before_the_gate", [True, False])
def test_an_item_that_cannot_be_aligned_any_more_is_passed_on(database, how, leaves_before_the_gate):
    crew = Crew(database, responses="abc")
    first, second = crew.people["annotator"][:2]

    def opposed(person, responses):
        if leaves_before_the_gate and person == second:
            leave(database, first, how)
        return in_order(responses, order="abc" if person == first else "cba")

    crew.annotate(opposed)
    if not leaves_before_the_gate:
        with database.reading() as session:
            assert len(all_items_to_align(session, second)) == 1
        leave(database, first, how)
    assert crew.item().state == "with delivery"
    (event,) = crew.events("unresolved")
    assert (event.person_id, event.detail["reason"]) == (None, "a person who would have to align it has left")
    leave(database, second, how)
    with database.reading() as session:
        assert len(items_to_adjudicate(session, "delivery", crew.people["delivery"][0])) == 1
        # Who annotated it and is with delivery now does not settle it.
        assert items_to_adjudicate(session, "delivery", second) == []


def test_a_proposal_of_somebody_who_left_still_counts(database):
    crew = Crew(database, responses="abc", delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(lambda person, responses: in_order(responses, order="abc" if person == first else "cba"))
    task = crew.evidence()[0].task

    def say(person):
        answer = in_order(task.responses)
        database.write(lambda session: propose(session, crew.item().id, task.id, answer, person=person, at=crew.now()))

    say(first)
    leave(database, first, "erased")
    say(second)
    assert crew.item().state == "delivery review"


@WAYS
def test_a_review_of_somebody_who_left_is_made_by_another(database, how):
    crew = Crew(database, responses="abc", delivery_share=1.0)
    crew.annotate(lambda person, responses: in_order(responses))
    first, second = crew.people["delivery"]
    if how != "another role":
        leave(database, first, how)
    database.write(
        lambda session: decide(session, crew.item().id, Verdict(True), layer="delivery", person=second, at=crew.now())
    )
    assert crew.item().state in ("operations review", "validation")


def test_of_two_administrators_who_close_each_others_accounts_one_stays(database):
    def make(session):
        return [add_person(session, NewPerson(name, "administrator"), by=None, at=0.0).id for name in ("ada", "bob")]

    people, refused, together = database.write(make), [], threading.Barrier(2)

    def close(person):
        together.wait()
        try:
            leave(database, person, "closed")
        except ConfigError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=close, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.reading() as session:
        active = session.scalars(select(StoredPerson.id).filter_by(role="administrator", is_active=True)).all()
    assert (len(active), len(refused)) == (1, 1)
