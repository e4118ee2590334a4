"""Review: what each layer gets, who never gets it, and what a rejection begins."""

from collections import Counter
from itertools import chain
from threading import Barrier, Thread

import pytest
from sqlalchemy import select

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.core.errors import ConfigError
from steelyard.workbench.accounts.people import change_account
from steelyard.workbench.pipeline.alignment import QueuePage, adjudicate, pass_on
from steelyard.workbench.pipeline.reviewing import (
    Verdict,
    batches_of,
    decide,
    decide_batch,
    decisions_on,
    item_for,
    items_to_review,
)
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredItem,
    StoredPerson,
    StoredProject,
    StoredReview,
    StoredTask,
)
from steelyard.workbench.views.task_views import view_tasks
from workbench_crew import Crew, in_order
from workbench_people import NOON, make_project

ACCEPTED, REJECTED = Verdict(True), Verdict(False, "two scores are wrong")
LAYERS = (("delivery", "delivery"), ("operations", "operations"), ("research", "researcher"))


def annotated(database, **settings):
    """A crew whose people agree on all items."""
    crew = Crew(database, **({"responses": "abc", "num_annotators": 2} | settings))
    crew.annotate(lambda person, responses: in_order(responses))
    return crew


def deciding(crew, verdict, layer, person=None, number=0):
    person = person or crew.people[dict(LAYERS)[layer]][0]
    crew.database.write(
        lambda session: decide(session, crew.item(number).id, verdict, layer=layer, person=person, at=crew.now())
    )
    return crew.item(number).state


def deciding_batch(crew, verdict, layer, person=None):
    person = person or crew.people[dict(LAYERS)[layer]][0]
    crew.database.write(
        lambda session: decide_batch(
            session,
            session.get_one(StoredProject, crew.project),
            "b",
            verdict,
            layer=layer,
            person=person,
            at=crew.now(),
        )
    )


def queue(crew, layer, person):
    with crew.database.reading() as session:
        return [item.id for item in items_to_review(session, layer, person)]


def test_layers_get_exactly_what_they_drew(database):
    crew = annotated(database, num_items=10)
    drawn = {layer: {row.item_id for row in rows(crew) if row.layer == layer} for layer in ("delivery", "operations")}
    assert [len(items) for items in drawn.values()] == [3, 3]
    assert set(queue(crew, "delivery", crew.people["delivery"][0])) == drawn["delivery"]
    assert set(queue(crew, "operations", crew.people["operations"][0])) == drawn["operations"] - drawn["delivery"]
    ids = [crew.item(number).id for number in range(10)]
    for number in (ids.index(item) for item in drawn["delivery"]):
        deciding(crew, ACCEPTED, "delivery", number=number)
    assert set(queue(crew, "operations", crew.people["operations"][0])) == drawn["operations"]
    for number in (ids.index(item) for item in drawn["operations"]):
        deciding(crew, ACCEPTED, "operations", number=number)
    deciding_batch(crew, ACCEPTED, "research")
    assert {crew.item(number).state for number in range(10)} == {"finished"}
    assert Counter(row.layer for row in rows(crew)) == {"delivery": 3, "operations": 3, "research": 10}
    assert {row.decision for row in rows(crew)} == {"accepted"}


def rows(crew):
    return crew.rows(select(StoredReview).order_by(StoredReview.id))


def test_who_annotated_an_item_never_reviews_it(database):
    crew = annotated(database, delivery_share=1.0)
    first = crew.people["annotator"][0]
    item = crew.item().id
    with database.reading() as session:
        assert item_for(session, item, first, ["delivery review"]) is None
        assert item_for(session, item, crew.people["delivery"][0], ["delivery review"]) is not None
        assert item_for(session, item, crew.people["delivery"][0], ["validation"]) is None
    assert queue(crew, "delivery", first) == []
    with pytest.raises(TransitionRefused):
        deciding(crew, ACCEPTED, "delivery", person=first)
    with pytest.raises(TransitionRefused):
        deciding_batch(crew, REJECTED, "research", person=first)


def test_a_rejection_needs_a_reason_and_begins_a_round(database):
    crew = annotated(database, delivery_share=1.0, operations_share=1.0)
    for reason in ("", "  ", "x" * 5001):
        with pytest.raises(ConfigError):
            deciding(crew, Verdict(False, reason), "delivery")
    assert deciding(crew, REJECTED, "delivery") == "annotating"
    item = crew.item()
    assert (item.round, item.agreement) == (2, None)
    former, new = crew.tasks(round=1), crew.tasks(round=2)
    assert [task.responses for task in new] == [task.responses for task in former]
    assert all(task.is_open and task.num_reserved == 0 for task in new)
    assert all(task.num_answered == 2 and not task.is_open for task in former)
    with database.reading() as session:
        assert len(session.scalars(select(StoredAnswer.id)).all()) == 2
        assert [(row.layer, row.decision, row.reason) for row in decisions_on(session, item)] == [
            ("delivery", "rejected", "two scores are wrong")
        ]
    # A single item is drawn again by both layers.
    assert {(row.layer, row.round, row.decision) for row in rows(crew)} == {
        ("delivery", 1, "rejected"),
        ("operations", 1, None),
        ("delivery", 2, None),
        ("operations", 2, None),
    }
    crew.annotate(lambda person, responses: in_order(responses))
    for layer, state in (
        ("delivery", "operations review"),
        ("operations", "validation"),
        ("research", "finished"),
    ):
        assert deciding(crew, ACCEPTED, layer) == state


@pytest.mark.parametrize("rework", ["others", "same people", "anyone"])
def test_who_annotates_again_is_as_the_rules_say(database, rework):
    crew = Crew(database, responses="abcd", delivery_share=1.0, rework=rework)
    first, second, third, fourth = crew.people["annotator"]
    crew.annotate(lambda person, responses: in_order(responses), [first, second])
    deciding(crew, REJECTED, "delivery")
    allowed = {"others": {third, fourth}, "same people": {first, second}, "anyone": {first, second, third, fourth}}
    assert {person for person in crew.people["annotator"] if crew.take(person)} == allowed[rework]


def test_discarded_responses_stay_out_of_a_new_round_or_come_back(database):
    crew = Crew(database, responses="abcd", delivery_share=1.0)
    crew.annotate(lambda person, responses: in_order(responses, "d"))
    deciding(crew, REJECTED, "delivery")
    assert {response for task in crew.tasks(round=2) for response in task.responses} == set("abc")
    crew.annotate(lambda person, responses: in_order(responses))
    deciding(crew, Verdict(False, "d is fine", restores_discarded=True), "delivery")
    assert crew.item().discarded == []
    assert {response for task in crew.tasks(round=3) for response in task.responses} == set("abcd")


def test_a_whole_batch_is_rejected_later_finished_items_too(database):
    crew = annotated(database, num_items=10, operations_share=0.0, delivery_share=0.3)
    finished = [number for number in range(10) if crew.item(number).state == "validation"][:4]
    for number in finished:
        deciding(crew, ACCEPTED, "research", number=number)
    (before,) = shown_batches(crew)
    assert before == ("b", 3, 4, 10)
    with pytest.raises(ConfigError):
        deciding_batch(crew, Verdict(False), "operations")
    deciding_batch(crew, REJECTED, "operations")
    assert {crew.item(number).state for number in range(10)} == {"annotating"}
    assert shown_batches(crew) == []
    drawn = [row for row in rows(crew) if row.round == 2]
    # The share of the batch again, not every item.
    assert Counter(row.layer for row in drawn) == {"delivery": 3}
    assert Counter(row.decision for row in rows(crew) if row.layer == "operations") == {"rejected": 10}
    assert [event.detail["items"] for event in crew.events("batch rejected")] == [10]
    with pytest.raises(TransitionRefused):
        deciding_batch(crew, REJECTED, "operations")
    assert len(crew.tasks(round=2)) == 10


def shown_batches(crew):
    with crew.database.reading() as session:
        return [
            (each.batch, each.num_waiting, each.num_finished, each.num_reviewable)
            for each in batches_of(session, "research", 10**6)
        ]


def test_the_answer_of_a_rejected_item_checks_nobody_any_more(database):
    crew = annotated(database, delivery_share=1.0)
    task = crew.tasks()[0]

    def make_gold(session):
        session.add(
            StoredTask(
                project_id=task.project_id,
                item_id=task.item_id,
                number=99,
                responses=task.responses,
                num_wanted=10**9,
                is_gold=True,
                gold={},
            )
        )

    database.write(make_gold)
    deciding(crew, REJECTED, "delivery")
    assert [(each.is_retired, each.is_open) for each in crew.tasks(is_gold=True)] == [(True, False)]


def test_of_two_reviewers_at_once_one_wins_and_the_other_is_told(database):
    crew = annotated(database, delivery_share=1.0, operations_share=1.0)
    barrier = Barrier(2)
    outcomes = []

    def review(person, verdict):
        barrier.wait()
        try:
            outcomes.append(deciding(crew, verdict, "delivery", person=person))
        except TransitionRefused:
            outcomes.append("told")

    threads = [
        Thread(target=review, args=(person, verdict))
        for person, verdict in zip(crew.people["delivery"], (ACCEPTED, REJECTED), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) in (["operations review", "told"], ["annotating", "told"])
    assert len([row for row in rows(crew) if row.decision]) == 1
    assert crew.item().state in outcomes


def test_an_item_that_is_not_there_is_not_reviewed(database):
    crew = annotated(database)
    with database.reading() as session:
        assert item_for(session, 999, crew.people["delivery"][0], ["delivery review"]) is None
        assert session.scalar(select(StoredItem.id).where(StoredItem.id == 999)) is None


def test_a_queue_of_any_length_is_read_page_by_page(database):
    make_project(database, 450, num_people=1)

    def wait(session):
        for number, item in enumerate(session.scalars(select(StoredItem).order_by(StoredItem.id))):
            item.state, item.category = "delivery review", "odd" if number % 2 else "even"
            # Many begin to wait in the same moment: the last place of a page is within them.
            item.changed_at = NOON + number // 130 + 0.1

    database.write(wait)

    def walk(wanted):
        with database.reading() as session:
            while items := items_to_review(session, "delivery", 10**6, wanted):
                yield [item.id for item in items]
                if not (after := wanted.following(items)):
                    return
                wanted = wanted._replace(after=after)

    with database.reading() as session:
        ids = list(session.scalars(select(StoredItem.id).order_by(StoredItem.id)))
        with pytest.raises(ConfigError, match="not a place in a queue"):
            items_to_review(session, "delivery", 1, QueuePage(after="x"))
    pages = list(walk(QueuePage()))
    assert [len(page) for page in pages] == [200, 200, 50]
    assert list(chain(*pages)) == ids
    assert list(chain(*walk(QueuePage(category="odd", batch="b1")))) == ids[1::2]
    assert list(walk(QueuePage(language="ar"))) == []


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["delivery", "operations", "research"])
def test_who_settled_an_item_reviews_it_only_where_no_colleague_can(database, layer):
    crew = Crew(database, responses="abc", num_annotators=2, delivery_share=1.0, operations_share=1.0)
    first, second = crew.people["annotator"][:2]
    crew.annotate(lambda person, shown: in_order(shown, order="abc" if person == first else "cba"), [first, second])
    passing = first
    for (name, role), state in zip(LAYERS, ("aligning", "with delivery", "with operations"), strict=True):
        database.write(
            lambda session, passing=passing, state=state: pass_on(
                session, crew.item().id, "unclear", state=state, person=passing, at=crew.now()
            )
        )
        if name == layer:
            break
        passing = crew.people[role][0]
    settler, colleague = crew.people[dict(LAYERS)[layer]]
    (task,) = crew.evidence()
    database.write(
        lambda session: adjudicate(
            session, crew.item().id, task.task.id, in_order("abc"), layer=layer, person=settler, at=crew.now()
        )
    )
    for name, _ in LAYERS[: [each for each, _ in LAYERS].index(layer)]:
        deciding(crew, ACCEPTED, name, person=crew.people[dict(LAYERS)[name]][1])
    # The colleague can: the settler has nothing to review.
    assert queue(crew, layer, settler) == []
    assert len(queue(crew, layer, colleague)) == 1
    with pytest.raises(TransitionRefused):
        deciding(crew, ACCEPTED, layer, person=settler)
    with pytest.raises(TransitionRefused):
        deciding_batch(crew, ACCEPTED, layer, person=settler)
    database.write(
        lambda session: change_account(
            session,
            session.get_one(StoredPerson, colleague),
            role=dict(LAYERS)[layer],
            is_active=False,
            skills=(),
            by=None,
            at=crew.now(),
        )
    )
    # Nobody else is left, and an item must not wait for ever.
    assert len(queue(crew, layer, settler)) == 1
    deciding(crew, ACCEPTED, layer, person=settler)


def test_whoever_annotates_again_reads_why_the_item_was_sent_back(database):
    crew = annotated(database, delivery_share=1.0)
    deciding(crew, REJECTED, "delivery")
    person = crew.people["annotator"][3]
    crew.take(person)
    with database.reading() as session:
        membership = crew.membership(session, person)
        mine = session.scalars(select(StoredAssignment).filter_by(person_id=person, state="open")).all()
        assert [task.sent_back for task in view_tasks(session, membership, mine, at=crew.now()).tasks] == [
            REJECTED.reason
        ]
