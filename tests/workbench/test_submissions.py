"""Answers: written once, checked, and followed by the gate exactly when the last one of an item is there."""

import threading
from functools import partial

import msgspec
import pytest
from sqlalchemy import select

from steelyard.annotation.answers import BucketComparison, TaskAnswer
from steelyard.core.errors import ConfigError
from steelyard.workbench.figures.agreement_figures import agreement_figures
from steelyard.workbench.pipeline.counters import GATE_EVENTS, recount
from steelyard.workbench.pipeline.queues import assign_task
from steelyard.workbench.pipeline.submissions import lock_assignment, save_draft, submit
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import methods_paragraph
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.figure_tables import StoredGateResult
from steelyard.workbench.storage.tables import (
    StoredAnswer,
    StoredAssignment,
    StoredEvent,
    StoredItem,
    StoredProject,
    StoredTask,
)
from workbench_people import NO_GOLD, NOON, answer, content_of, make_project, membership_of, send, sums_of, take

ABC = ("r0", "r1", "r2")
BAC, CBA = ("r1", "r0", "r2"), ("r2", "r1", "r0")


def rows(database, table):
    with database.reading() as session:
        return session.scalars(select(table).order_by(table.id)).all()


def both_answer(database, project, people, orders, *, tasks=1):
    """Let each person answer the tasks, each with the person's order of the responses."""
    for person, order in zip(people, orders, strict=True):
        for _ in range(tasks):
            ((number, _),) = take(database, project, person)
            send(database, number, answer(None, order))


def test_the_same_answer_sent_again_is_stored_once(database):
    project, people = make_project(database)
    ((number, shown),) = take(database, project, people[0])
    outcomes = [send(database, number, answer(shown)) for _ in range(3)]
    assert outcomes == ["stored", "stored before", "stored before"]
    (stored,) = rows(database, StoredAnswer)
    assert content_of(stored) == answer(shown)
    assert rows(database, StoredTask)[0].num_answered == 1
    assert [event.action for event in rows(database, StoredEvent)].count("answered") == 1


def test_another_answer_to_an_answered_task_is_refused(database):
    project, people = make_project(database)
    ((number, shown),) = take(database, project, people[0])
    send(database, number, answer(shown))
    with pytest.raises(ConfigError, match="answered already"):
        send(database, number, answer(shown, CBA))
    (stored,) = rows(database, StoredAnswer)
    assert content_of(stored) == answer(shown)


def test_the_same_answer_sent_eight_times_at_once_is_stored_once(database):
    project, people = make_project(database)
    ((number, shown),) = take(database, project, people[0])
    outcomes, together = [], threading.Barrier(8)

    def work():
        together.wait()
        outcomes.append(send(database, number, answer(shown)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["stored"] + ["stored before"] * 7
    assert len(rows(database, StoredAnswer)) == 1
    assert rows(database, StoredTask)[0].num_answered == 1


def test_an_answer_at_the_moment_at_which_its_time_is_over_takes_one_place(database):
    project, (ada, bob, cyd) = make_project(database, num_people=3)
    ((number, shown),) = take(database, project, ada)
    ((of_bob, shown_to_bob),) = take(database, project, bob)
    assert take(database, project, cyd) == []
    late, found, expired = NOON + 46 * 60, threading.Event(), threading.Event()

    def expire():
        found.wait(30)
        take(database, project, cyd, at=late)
        expired.set()

    def answer_meanwhile(session):
        locked = lock_assignment(session, number, person=ada)
        found.set()
        # Whoever takes the place now waits for this answer.
        expired.wait(0 if database.is_sqlite else 1.5)
        return submit(session, locked, answer(shown), seconds=3.0, at=late)

    other = threading.Thread(target=expire)
    other.start()
    outcomes = [database.write(answer_meanwhile)]
    other.join()
    ((of_cyd, shown_to_cyd),) = take(database, project, cyd, at=late) or [(of_bob, shown_to_bob)]
    outcomes += [send(database, of_cyd, answer(shown_to_cyd), at=late)]
    outcomes += [send(database, of_bob, answer(shown_to_bob), at=late)]
    (task,) = rows(database, StoredTask)
    assert (task.num_answered, task.num_reserved, task.is_open) == (2, 2, False)
    assert sum(each == "stored" for each in outcomes) == 2 == len(rows(database, StoredAnswer))


@pytest.mark.parametrize("round_number", range(4))
def test_of_two_last_answers_at_the_same_time_exactly_one_closes_the_item(database, round_number):
    project, people = make_project(database, num_responses=5, num_people=2)
    waiting = []
    for person in people:
        for _ in range(4):
            ((number, shown),) = take(database, project, person)
            send(database, number, answer(shown))
        waiting += take(database, project, person)
    together = threading.Barrier(2)

    def work(number, shown):
        together.wait()
        send(database, number, answer(shown))

    threads = [threading.Thread(target=work, args=each) for each in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (item,) = rows(database, StoredItem)
    assert item.agreement == 1.0
    assert item.state not in ("annotating", "aligning")
    assert [event.action for event in rows(database, StoredEvent)].count("agreed") == 1
    with database.reading() as session:
        assert verify(session) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (TaskAnswer(), "the ranking does not name every response"),
        (TaskAnswer(ranking=(("r0",), ("r1",), ("r2",))), "missing score"),
        (answer(None, ("r0", "r1", "other")), "a score of '[?]'"),
        (
            TaskAnswer(scores={"r0": 9, "r1": 1, "r2": 0}, ranking=(("r0",), ("r1",), ("r2",))),
            "0 to 5 are allowed",
        ),
        (
            TaskAnswer(scores={"r0": 1, "r1": 1, "r2": 0}, ranking=(("r0",), ("r1",), ("r2",))),
            "missing comparison: [AB], [BC]",
        ),
        (
            TaskAnswer(scores={"r0": 1, "r1": 2, "r2": 0}, ranking=(("r0",), ("r1",), ("r2",))),
            "score against ranking",
        ),
        (
            TaskAnswer(
                scores={"r0": 1, "r1": 1, "r2": 0},
                comparisons=(BucketComparison(first="r0", second="r1", choice="worse"),),
                ranking=(("r0",), ("r1",), ("r2",)),
            ),
            "comparison against ranking",
        ),
        (TaskAnswer(cannot_judge=" "), "no reason why it cannot be judged"),
    ],
)
def test_an_answer_that_contradicts_itself_is_refused_and_nothing_is_stored(database, content, message):
    project, people = make_project(database)
    ((number, _),) = take(database, project, people[0])
    events = len(rows(database, StoredEvent))
    with pytest.raises(ConfigError, match=message):
        send(database, number, content)
    assert rows(database, StoredAnswer) == []
    assert rows(database, StoredAssignment)[0].state == "open"
    assert len(rows(database, StoredEvent)) == events


def test_drafts_are_kept_with_the_time_in_front_of_the_page(database):
    project, people = make_project(database)
    ((number, shown),) = take(database, project, people[0])
    begun = TaskAnswer(scores={shown[0]: 4})
    for seconds in (2.5, 4000.0, -7.0):
        database.write(
            lambda session, seconds=seconds: save_draft(
                session, session.get_one(StoredAssignment, number), begun, seconds=seconds
            )
        )
    assert msgspec.convert(rows(database, StoredAssignment)[0].draft, TaskAnswer) == begun
    send(database, number, answer(shown), seconds=1.5)
    # A pause counts as two minutes at most.
    assert rows(database, StoredAnswer)[0].seconds == pytest.approx(2.5 + 120 + 1.5)


@pytest.mark.parametrize(("order", "state", "agreement"), [(ABC, "validation", 1.0), (BAC, "aligning", 2 / 3)])
def test_the_gate_lets_an_item_pass_from_nine_tenths_on(database, order, state, agreement):
    rules = msgspec.structs.replace(NO_GOLD, delivery_share=0.0, operations_share=0.0)
    project, people = make_project(database, rules=rules)
    both_answer(database, project, people, (ABC, order))
    (item,) = rows(database, StoredItem)
    assert (item.state, item.agreement) == (state, pytest.approx(agreement))


def test_items_that_a_layer_has_drawn_wait_for_it(database):
    rules = msgspec.structs.replace(NO_GOLD, delivery_share=1.0, operations_share=0.0)
    project, people = make_project(database, rules=rules)
    both_answer(database, project, people, (ABC, ABC))
    assert rows(database, StoredItem)[0].state == "delivery review"


def test_a_gate_of_one_third_apart_is_exactly_at_its_bound(database):
    rules = msgspec.structs.replace(NO_GOLD, least_agreement=2 / 3)
    project, people = make_project(database, rules=rules)
    both_answer(database, project, people, (ABC, BAC))
    assert rows(database, StoredItem)[0].state != "aligning"


def test_what_nobody_could_judge_does_not_pass(database):
    project, people = make_project(database)
    for person in people:
        ((number, _),) = take(database, project, person)
        send(database, number, TaskAnswer(cannot_judge="not my field"))
    (item,) = rows(database, StoredItem)
    assert (item.state, item.agreement) == ("aligning", None)


@pytest.mark.parametrize("gate", ["item", "batch", "pair of people"])
def test_one_answer_a_task_has_nothing_to_pass_and_counts_in_no_share(database, gate):
    rules = msgspec.structs.replace(NO_GOLD, num_annotators=1, delivery_share=1.0, gate=gate)
    project, people = make_project(database, 3, num_people=1, rules=rules)
    for content in (None, None, TaskAnswer(cannot_judge="not my field")):
        ((number, shown),) = take(database, project, people[0])
        send(database, number, content or answer(shown))
    # What the only person could not judge is settled by others.
    assert sorted(item.state for item in rows(database, StoredItem)) == ["aligning", *["delivery review"] * 2]
    events = [event.action for event in rows(database, StoredEvent) if event.action in GATE_EVENTS]
    assert sorted(events) == ["disagreed", "uncompared", "uncompared"]
    before = sums_of(database)
    database.write(recount)
    assert sums_of(database) == before
    with database.reading() as session:
        row = session.get_one(StoredProject, project)
        gate, paper = agreement_figures(session, row).gate, paper_figures(session, row, at=NOON)
    assert (gate.value, gate.n, paper.gates, paper.uncompared, paper.aligned.n) == (None, 0, 0, 3, 0)
    assert "Each task was answered by one person." in methods_paragraph(paper, "en")
    assert "passed the gate" not in methods_paragraph(paper, "en")


def test_a_gate_over_a_batch_counts_complete_items_alone(database):
    """Two people differ on the task of the first item, whose second task is open: the second item passes by itself."""
    rules = msgspec.structs.replace(NO_GOLD, gate="batch")
    project, people = make_project(database, 2, 4, rules=rules)
    tasks = {(task.item_id, task.number): task.id for task in rows(database, StoredTask)}
    assert len(tasks) > 2
    first = min(item for item, _ in tasks)
    for (item, number), task in tasks.items():
        if item != first or number == 1:
            for person in people:
                shown = next(each.responses for each in rows(database, StoredTask) if each.id == task)
                order = sorted(shown, reverse=item == first and person == people[0])
                database.write(partial(answer_elsewhere, project=project, person=person, task=task, order=order))
    states = {item.id: item.state for item in rows(database, StoredItem)}
    assert states.pop(first) == "annotating"
    assert not {"aligning", "annotating"} & {*states.values()}
    (passed,) = rows(database, StoredGateResult)
    assert passed.is_passed


def answer_elsewhere(session, *, project, person, task, order):
    """Answer a task as if the person had got it."""
    assigned = assign_task(session, membership_of(session, project, person), task, order, at=NOON)
    locked = lock_assignment(session, assigned.id, person=assigned.person_id)
    assert submit(session, locked, answer(order, order), seconds=1.0, at=NOON) == "stored"


def test_one_answer_of_two_is_no_agreement_yet(database):
    project, people = make_project(database, num_people=1)
    ((number, shown),) = take(database, project, people[0])
    assert send(database, number, answer(shown)) == "stored"
    (item,) = rows(database, StoredItem)
    assert (item.state, item.agreement) == ("annotating", None)
