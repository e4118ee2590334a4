"""Copies that are made while twenty people work: each is one state, from which work can go on."""

import subprocess
from collections import Counter

import pytest
from sqlalchemy import select
from typer.testing import CliRunner

from postgres_server import programs, run_statement
from steelyard.cli.main import build_app
from steelyard.workbench.pipeline.counters import recount
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredAnswer, StoredAssignment, StoredEvent, StoredTask
from workbench_clients import Annotator, tokens_of
from workbench_people import make_project, sums_of
from workbench_server import ServedWorkbench

pytestmark = pytest.mark.slow

NUM_PEOPLE, NUM_ITEMS = 20, 16
NUM_ANSWERS = 2 * 5 * NUM_ITEMS


class Address:
    """Where a served workbench is, as annotators ask for it."""

    def __init__(self, server):
        self.url = server.origin


@pytest.fixture
def copied(request, address, tmp_path):
    """Makes a copy of the database at its address, with the tool of its system, and opens it."""

    def copy(number):
        if address.startswith("sqlite"):
            made = tmp_path / f"{number}.db"
            done = CliRunner().invoke(build_app(), ["workbench", "backup", str(made), "--database", address])
            assert done.exit_code == 0, done.output
            return Database(f"sqlite:///{made}")
        name, dump = f"copy_{number}", tmp_path / f"{number}.dump"
        there = request.getfixturevalue("postgres")
        run_statement(there.format(name="postgres"), f"CREATE DATABASE {name} TEMPLATE template0")
        subprocess.run([programs() / "pg_dump", "--format=custom", f"--file={dump}", address], check=True)
        restore = [programs() / "pg_restore", f"--dbname={there.format(name=name)}", dump]
        subprocess.run(restore, check=True)
        return Database(there.format(name=name))

    return copy


def test_a_copy_made_while_people_work_is_one_state(database, address, copied):
    project, people = make_project(database, NUM_ITEMS, 5, num_people=NUM_PEOPLE)
    server = ServedWorkbench(address)
    workers = [Annotator(Address(server), token, project=project) for token in tokens_of(database, people)]
    sizes = []
    try:
        for worker in workers:
            worker.start()
        for number in range(3):
            # In the midst of the work: some have answered, and some have not.
            while sum(len(worker.acknowledged) for worker in workers) < NUM_ANSWERS * (number + 1) / 5:
                assert any(worker.is_alive() for worker in workers)
                workers[number].join(0.01)
            copy = copied(number)
            sizes.append(check_one_state(copy))
            copy.close()
        for worker in workers:
            worker.join()
    finally:
        server.kill()
    assert [worker.failure for worker in workers] == [None] * NUM_PEOPLE
    assert sizes == sorted(sizes)
    assert 0 < sizes[0] < sizes[-1] <= check_one_state(database) == NUM_ANSWERS


def check_one_state(database):
    """Compare the tables of a database with each other; returns the number of answers."""
    with database.reading() as session:
        answers = Counter(session.scalars(select(StoredAnswer.task_id)))
        held = Counter(session.scalars(select(StoredAssignment.task_id).where(StoredAssignment.state == "open")))
        tasks = session.scalars(select(StoredTask)).all()
        told = Counter(session.scalars(select(StoredEvent.subject_id).where(StoredEvent.action == "answered")))
        assert verify(session) is None
    assert told == answers
    assert {task.id: task.num_answered for task in tasks if task.num_answered} == answers
    assert all(task.num_reserved == answers[task.id] + held[task.id] <= task.num_wanted for task in tasks)
    grown = sums_of(database)
    database.write(recount)
    assert sums_of(database) == grown
    return answers.total()
