"""Responses that leave an item: what retires, what stays, what is added, and where the item goes."""

import pytest
from sqlalchemy import select

from steelyard.workbench.figures.dashboards import progress_figures
from steelyard.workbench.pipeline.alignment import propose
from steelyard.workbench.pipeline.queues import next_assignments
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import methods_paragraph
from steelyard.workbench.storage.tables import HAS_DISCARDS, StoredAssignment, StoredProject
from workbench_crew import Crew, in_order, ranked


def test_what_both_people_discard_leaves_at_once_and_the_rest_is_planned_anew(database):
    crew = Crew(database, delivery_share=1.0)
    crew.annotate(lambda person, responses: in_order(responses, "e"))
    assert crew.item().discarded == ["e"]
    assert crew.item().state == "delivery review"
    (event,) = crew.events("responses discarded")
    assert event.detail == {"responses": {"e": "garbled"}, "staying": 2, "retired": 3, "added": 1}
    alive = crew.tasks(is_retired=False)
    assert sorted(tuple(task.responses) for task in alive) == [("a", "b", "c"), ("a", "b", "d"), ("b", "c", "d")]
    assert [task.number for task in alive] == [1, 2, 6]
    assert all(task.num_answered == task.num_reserved == 2 for task in alive)
    for task in crew.tasks(is_retired=True):
        assert not task.is_open
        assert task.num_reserved == task.num_answered
    with database.reading() as session:
        assert session.scalars(select(StoredAssignment).filter_by(state="open")).all() == []


def test_what_is_out_is_counted_on_progress_and_in_the_paper(database):
    crew = Crew(database, num_items=2, delivery_share=1.0)
    crew.annotate(lambda person, responses: in_order(responses, "e"))
    with database.reading() as session:
        project = session.get_one(StoredProject, crew.project)
        counts = progress_figures(session, project, at=crew.now()).discards
        text = methods_paragraph(paper_figures(session, project, at=crew.now()), "en")
    assert (counts.responses, counts.items, counts.reasons) == (2, 2, {"garbled": 2})
    # Of five triples three show the response that left; one triple covers what they compared of the other four.
    assert (counts.tasks_ended, counts.tasks_added) == (6, 2)
    assert "2 of 2 items; 6 tasks ended by it, and 2 were planned" in text


def test_who_holds_a_task_that_retires_loses_it_and_is_told(database):
    crew = Crew(database, responses="abcd", num_annotators=1)
    first, second = crew.people["annotator"][:2]
    held = crew.take(second)
    mine = crew.take(first)
    common = sorted(set(mine[2]) & set(held[2]))[0]
    crew.submit(mine[0], in_order(mine[2], common))
    assert crew.submit(held[0], in_order(held[2])) == "too late"
    with database.reading() as session:
        assert session.get_one(StoredAssignment, held[0]).state == "released"
    with database.reading() as session:
        for assignment in next_assignments(session, crew.membership(session, second), number=3, at=crew.now()):
            assert common not in assignment.shown


def test_what_one_of_two_discards_stays_and_is_disputed(database):
    crew = Crew(database, responses="abc")
    first, second = crew.people["annotator"][:2]
    crew.annotate(lambda person, responses: in_order(responses, "c" if person == first else ""), [first, second])
    assert crew.item().discarded == []
    assert crew.item().state == "aligning"
    disputed = [frozenset(point[1:]) for point in crew.evidence()[0].disputed]
    assert len(disputed) == len(set(disputed))
    assert set(disputed) == {frozenset("ac"), frozenset("bc")}


@pytest.mark.parametrize(("two_left", "state", "added"), [("compare", "annotating", 1), ("drop", "dropped", 0)])
def test_two_that_are_left_are_compared_or_dropped_as_the_rules_say(database, two_left, state, added):
    crew = Crew(database, responses="abc", two_left=two_left, delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    for person in (first, second):
        crew.submit(crew.take(person)[0], ranked("a>b", "c"))
    assert crew.item().state == state
    assert crew.events("responses discarded")[0].detail["added"] == added
    if state == "dropped":
        assert all(task.is_retired and not task.is_open for task in crew.tasks())
        return
    crew.annotate(lambda person, responses: in_order(responses), [first, second])
    assert [each.task.responses for each in crew.evidence()] == [["a", "b"]]
    assert crew.item().state == "delivery review"


def test_a_single_response_that_is_left_has_nothing_to_be_compared_with(database):
    crew = Crew(database, responses="abc", num_annotators=1)
    person = crew.people["annotator"][0]
    crew.submit(crew.take(person)[0], ranked("b", "ac"))
    assert crew.item().state == "dropped"
    assert [event.detail["reason"] for event in crew.events("dropped")] == ["1 of 3 responses remain"]


def test_alignment_discards_and_the_item_goes_back_for_its_new_tasks(database):
    crew = Crew(database, responses="abcde", delivery_share=1.0)
    first, second = crew.people["annotator"][:2]
    # They agree on all tasks but those with e, which one of them discards.
    crew.annotate(lambda person, responses: in_order(responses, "e" if person == first else ""), [first, second])
    assert crew.item().state == "aligning"
    disputed = next(each for each in crew.evidence() if each.is_open)
    answer = in_order(disputed.task.responses, "e")
    for person in (first, second):
        database.write(
            lambda session, person=person: propose(
                session, crew.item().id, disputed.task.id, answer, person=person, at=crew.now()
            )
        )
    assert crew.item().state == "annotating"
    assert [event.detail["reason"] for event in crew.events("replanned")] == ["discarded: e"]
    assert crew.item().round == 1
    crew.annotate(lambda person, responses: in_order(responses), [first, second])
    # Disputes about e went with it.
    assert crew.item().state == "delivery review"
    assert all("e" not in each.task.responses for each in crew.evidence())


def test_items_with_discards_are_found_in_an_index_of_their_own(new_sqlite):
    with new_sqlite().engine.connect() as connection:
        asked = f"SELECT items.id, items.discarded FROM items WHERE items.project_id = 1 AND {HAS_DISCARDS}"
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}").all()
    assert "ix_items_discarded" in str(plan)
