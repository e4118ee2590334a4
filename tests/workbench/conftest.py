"""The databases of the workbench's tests: every test that asks for one runs on SQLite and on a real PostgreSQL."""

from contextlib import contextmanager
from itertools import count

import pytest

from browser_tab import Tab
from postgres_server import postgres_serving, run_statement
from steelyard.workbench.database import Database
from steelyard.workbench.people import make_key
from workbench_server import ServedWorkbench
from workbench_site import Visit, make_site

_numbers = count(1)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    """A migrated SQLite file, to be copied: a migration takes longer than most tests."""
    path = tmp_path_factory.mktemp("template") / "workbench.db"
    database = Database(f"sqlite:///{path}")
    database.migrate()
    database.close()
    return path


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server with a migrated database ``template_workbench``: the address of a database ``{name}``."""
    with postgres_serving() as address:
        run_statement(address.format(name="postgres"), "CREATE DATABASE template_workbench")
        database = Database(address.format(name="template_workbench"))
        database.migrate()
        database.close()
        yield address


@pytest.fixture
def empty_postgres(postgres):
    """The address of a PostgreSQL database without tables."""
    with _new_database(postgres, "template1") as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    """The address of a migrated database without rows, on each of the two systems."""
    if request.param == "sqlite":
        path = tmp_path / "workbench.db"
        path.write_bytes(request.getfixturevalue("sqlite_template").read_bytes())
        yield f"sqlite:///{path}"
        return
    with _new_database(request.getfixturevalue("postgres"), "template_workbench") as made:
        yield made


@pytest.fixture
def database(address):
    """A migrated database without rows, on each of the two systems."""
    opened = Database(address)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def populated_site(tmp_path_factory):
    """A populated workbench, to be copied: its file, and what is in it."""
    path = tmp_path_factory.mktemp("site") / "template.db"
    return path, make_site(path)


@pytest.fixture
def visit(populated_site, tmp_path):
    """A copy of the populated workbench, as browsers and programs reach it."""
    path, site = populated_site
    opened = Visit(path, tmp_path, site)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def served(sqlite_template, tmp_path_factory):
    """A workbench on SQLite that is served, and can be killed: its database and its server."""
    path = tmp_path_factory.mktemp("served") / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    opened = Database(f"sqlite:///{path}")
    opened.write(make_key)
    server = ServedWorkbench(f"sqlite:///{path}")
    yield opened, server
    server.kill()
    opened.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A tab of Chromium."""
    with Tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@contextmanager
def _new_database(postgres, template):
    name = f"test_{next(_numbers)}"
    server = postgres.format(name="postgres")
    run_statement(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield postgres.format(name=name)
    finally:
        run_statement(server, f"DROP DATABASE {name} WITH (FORCE)")
