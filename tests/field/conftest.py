"""What several tests in the field start with."""

import pytest

from postgres_server import postgres_serving, run_statement


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """The address of an empty database on each of the two systems."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/workbench.db"
        return
    with postgres_serving() as server:
        run_statement(server.format(name="postgres"), "CREATE DATABASE workbench")
        yield server.format(name="workbench")
