"""The databases of the workbench's tests: every test that asks for one runs on SQLite, and on a real
PostgreSQL in `make slow`."""

import shutil
from contextlib import contextmanager
from functools import cache

import pytest
from anyio.from_thread import start_blocking_portal
from argon2 import PasswordHasher

from browser_tab import Tab
from memory_folder import new_folder
from postgres_server import postgres_serving, run_statement
from quick_client import QuickClient
from steelyard.workbench.accounts import people
from steelyard.workbench.figures.fit_keeper import FitKeeper
from steelyard.workbench.storage.database import Database
from workbench_server import ServedWorkbench
from workbench_site import Visit, close_when_idle, copy_sqlite, make_site


@pytest.fixture(scope="session", autouse=True)
def quick_passwords():
    """Hash passwords at the least cost: at that of users, which `test_people` checks, a login takes 0.15 s of CPU.

    The value is a hash at the cost of users, which the module made when it was imported.
    """
    of_users = people._NOBODY
    quick = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "_hasher", quick)
        patch.setattr(people, "_NOBODY", quick.hash("nobody"))
        yield of_users


@pytest.fixture(scope="session", autouse=True)
def patient_pages():
    """Let pages wait for a fit until it is made: half a second, as for users, may pass or not on a busy machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FitKeeper.refresh, "__kwdefaults__", {"patience": 600.0})
        yield


@pytest.fixture(scope="session", autouse=True)
def one_loop():
    """Send the requests of all tests through one event loop, whose threads go on to the next request."""
    with start_blocking_portal() as portal, pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuickClient, "portal", portal)
        yield


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory):
    """A migrated SQLite file, to be copied: a migration takes longer than most tests."""
    path = tmp_path_factory.mktemp("template") / "workbench.db"
    database = Database(f"sqlite:///{path}")
    database.migrate()
    database.write(people.make_key)
    database.close()
    return path


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server with a migrated database ``template_workbench``: the address of a database ``{name}``."""
    with postgres_serving() as address:
        run_statement(address.format(name="postgres"), "CREATE DATABASE template_workbench")
        database = Database(address.format(name="template_workbench"))
        database.migrate()
        database.write(people.make_key)
        database.close()
        yield address


@pytest.fixture
def empty_postgres(postgres):
    """The address of a PostgreSQL database without tables."""
    with _new_database(postgres, "empty", "template1") as address:
        yield address


@pytest.fixture(scope="session")
def sqlite_place():
    """Where the SQLite file of a test is: each test finds another file there."""
    folder = new_folder("sqlite-")
    yield folder / "workbench.db"
    shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def address(request, sqlite_place):
    """The address of a migrated database without rows, on each of the two systems."""
    if request.param == "sqlite":
        copy_sqlite(request.getfixturevalue("sqlite_template"), sqlite_place)
        yield f"sqlite:///{sqlite_place}"
        return
    with _new_database(request.getfixturevalue("postgres"), "test", "template_workbench") as made:
        yield made


@pytest.fixture
def database(address):
    """A migrated database without rows, on each of the two systems."""
    opened = _opened(address)
    yield opened
    close_when_idle(opened)


@pytest.fixture
def new_sqlite(sqlite_template, sqlite_place):
    """Gives a database on SQLite without rows, at each call another one in the place of the one before."""

    def make():
        copy_sqlite(sqlite_template, sqlite_place)
        return _opened(f"sqlite:///{sqlite_place}")

    yield make
    close_when_idle(_opened(f"sqlite:///{sqlite_place}"))


@cache
def _opened(address):
    """The database at an address, whatever is there at the time: it keeps the statements that it has compiled.

    To compile those of one test takes longer than most tests.
    """
    return Database(address)


@pytest.fixture(scope="session")
def populated_site(tmp_path_factory):
    """A populated workbench, to be copied: its file, and what is in it."""
    path = tmp_path_factory.mktemp("site") / "template.db"
    return path, make_site(f"sqlite:///{path}")


@pytest.fixture
def visit(populated_site, sqlite_place):
    """A copy of the populated workbench, as browsers and programs reach it."""
    path, site = populated_site
    place = sqlite_place.with_name("site.db")
    copy_sqlite(path, place)
    opened = Visit(_opened(f"sqlite:///{place}"), site)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def served(sqlite_template, tmp_path_factory):
    """A workbench on SQLite that is served, and can be killed: its database and its server."""
    path = tmp_path_factory.mktemp("served") / "workbench.db"
    path.write_bytes(sqlite_template.read_bytes())
    opened = Database(f"sqlite:///{path}")
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
def _new_database(postgres, name, template):
    server = postgres.format(name="postgres")
    run_statement(server, f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield postgres.format(name=name)
    finally:
        run_statement(server, f"DROP DATABASE {name} WITH (FORCE)")
