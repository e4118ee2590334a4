"""Killing the server of a workbench while people submit, and comparing what it acknowledged with what is stored."""

from collections import Counter
from itertools import pairwise

from sqlalchemy import select

from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredEvent, StoredTask
from workbench_clients import Annotator, KillableServer, tokens_of
from workbench_people import content_of, make_project

NUM_PEOPLE = 4


def work_and_kill(database, address, *, num_kills, num_items):
    """Let people answer every task while the server is killed at as many moments; returns them and the project."""
    project, people = make_project(database, num_items, 5, num_people=NUM_PEOPLE)
    total = 2 * 5 * num_items
    with KillableServer(address) as server:
        workers = [Annotator(server, token, project=project) for token in tokens_of(database, people)]
        for worker in workers:
            worker.start()
        for number in range(1, num_kills + 1):
            # Somewhere in the midst: others are submitting when one has just been told that the answer is stored.
            while sum(len(worker.acknowledged) for worker in workers) < total * number / (num_kills + 1):
                assert any(worker.is_alive() for worker in workers)
                workers[number % NUM_PEOPLE].join(0.002)
            server.restart()
        for worker in workers:
            worker.join()
    return workers, total


def check_whole(database, workers, total):
    """Compare what was acknowledged with what is stored."""
    assert [worker.failure for worker in workers] == [None] * len(workers)
    acknowledged = Counter(number for worker in workers for number in worker.acknowledged)
    assert set(acknowledged.values()) == {1}
    with database.reading() as session:
        answers = session.scalars(select(StoredAnswer)).all()
        tasks = session.scalars(select(StoredTask)).all()
        shown = {each.id: each.shown for each in session.scalars(select(StoredAssignment))}
        events = session.scalars(select(StoredEvent).where(StoredEvent.action == "answered")).all()
        assert verify(session) is None
    assert {outcome for worker in workers for outcome in worker.acknowledged.values()} <= {"stored", "stored before"}
    assert sorted(each.assignment_id for each in answers) == sorted(acknowledged)
    assert len(answers) == len(events) == total
    assert {(task.num_wanted, task.num_reserved, task.num_answered) for task in tasks} == {(2, 2, 2)}
    # The texts of the responses begin with their numbers, by which everybody ranks.
    for each in answers:
        ranking = [tier[0] for tier in content_of(each).ranking]
        assert sorted(ranking) == sorted(shown[each.assignment_id])
        assert all(first < second for first, second in pairwise(ranking))
