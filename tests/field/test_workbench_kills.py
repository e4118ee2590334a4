"""Fifty kills of the workbench's server in the midst of submitting, on SQLite and on PostgreSQL."""

import pytest

from postgres_server import postgres_serving, run_statement
from steelyard.workbench.storage.database import Database
from workbench_kills import check_whole, work_and_kill

pytestmark = pytest.mark.field


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """The address of an empty database on each of the two systems."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/workbench.db"
        return
    with postgres_serving() as server:
        run_statement(server.format(name="postgres"), "CREATE DATABASE workbench")
        yield server.format(name="workbench")


def test_fifty_kills_lose_nothing_and_double_nothing(address):
    database = Database(address)
    database.migrate()
    workers, total = work_and_kill(database, address, num_kills=50, num_items=60)
    check_whole(database, workers, total)
    database.close()
