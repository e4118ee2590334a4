"""The state machine of people who do things at once and in odd order, for longer, and otherwise each time."""

import shutil

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from steelyard.workbench.accounts.people import make_key
from steelyard.workbench.storage.database import Database
from workbench_shifts import TeamMachine
from workbench_site import copy_sqlite

pytestmark = pytest.mark.field


def test_nothing_gets_stuck_doubled_or_lost_in_many_shifts(tmp_path):
    template, place = tmp_path / "template.db", tmp_path / "workbench.db"
    made = Database(f"sqlite:///{template}")
    made.migrate()
    made.write(make_key)
    made.close()
    shutil.copy(template, place)
    database = Database(f"sqlite:///{place}")

    def new_database():
        database.close()
        copy_sqlite(template, place)
        return database

    class Machine(TeamMachine):
        pass

    Machine.new_database = staticmethod(new_database)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=150,
            stateful_step_count=50,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
