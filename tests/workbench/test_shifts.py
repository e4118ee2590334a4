"""People who do things at once and in odd order: nothing gets stuck, doubled or lost (`workbench_shifts`)."""

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from workbench_shifts import TeamMachine

pytestmark = pytest.mark.slow


def test_nothing_gets_stuck_doubled_or_lost(new_sqlite):
    class Machine(TeamMachine):
        new_database = staticmethod(new_sqlite)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=4,
            stateful_step_count=15,
            derandomize=True,
            deadline=None,
            database=None,
            phases=(Phase.generate,),
            suppress_health_check=list(HealthCheck),
        ),
    )
