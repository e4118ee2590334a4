"""Fifty kills of the workbench's server in the midst of submitting, on SQLite and on PostgreSQL."""

import pytest

from steelyard.workbench.storage.database import Database
from workbench_kills import check_whole, work_and_kill

pytestmark = pytest.mark.field


def test_fifty_kills_lose_nothing_and_double_nothing(address):
    database = Database(address)
    database.migrate()
    workers, total = work_and_kill(database, address, num_kills=50, num_items=60)
    check_whole(database, workers, total)
    database.close()
