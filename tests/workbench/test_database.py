"""The database: opened by address, migrated to exactly the tables of this program, written in whole transactions."""

import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, func, inspect, select, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.schema import CreateIndex

import steelyard.workbench
from steelyard.core.errors import ConfigError, FileError, OutputError
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.database_errors import UnavailableError
from steelyard.workbench.storage.tables import StoredEvent, StoredPerson, StoredTask, WorkbenchTable
from workbench_people import NOON


def add(name):
    return lambda session: add_person(session, NewPerson(name, "annotator"), by=None, at=NOON).id


def names(database):
    with database.reading() as session:
        return sorted(session.scalars(select(StoredPerson.name)))


def test_migrations_make_exactly_the_tables_of_this_program(database):
    def is_compared(_, name, *__):
        # Alembic cannot read the order of a column in an index of SQLite: it is compared below.
        return name != "ix_tasks_open" or not database.is_sqlite

    with database.engine.connect() as connection:
        options = {"compare_type": True, "include_object": is_compared}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, WorkbenchTable.metadata) == []
        if database.is_sqlite:
            statement = "SELECT sql FROM sqlite_master WHERE name = 'ix_tasks_open'"
            made = connection.scalar(text(statement))
            (index,) = [each for each in StoredTask.__table__.indexes if each.name == "ix_tasks_open"]
            assert made.split("tasks", 2)[2] == str(CreateIndex(index)).split("tasks", 2)[2]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def address_without_tables(request, tmp_path):
    """The address of an empty database on each of the two systems."""
    if request.param == "postgresql":
        return request.getfixturevalue("empty_postgres")
    return f"sqlite:///{tmp_path}/new.db"


def test_versions_follow_one_another_in_one_line():
    folder = Path(steelyard.workbench.__file__).parent / "storage" / "migrations"
    # Two people who each add a version to the same one would leave two heads, and no workbench that opens.
    versions = list(ScriptDirectory(str(folder)).walk_revisions())
    names = {version.path.rsplit("/", 1)[1].split("_")[0]: version.revision for version in versions}
    assert names == {number: number for number in names}
    assert [version.revision for version in versions] == sorted(names, reverse=True)
    assert [version.down_revision for version in versions] == [*sorted(names, reverse=True)[1:], None]


def test_a_database_that_is_migrated_stays_as_it_is(database):
    database.write(add("Ada"))
    version = database.migrate()
    with database.engine.connect() as connection:
        assert version == connection.scalar(text("SELECT version_num FROM alembic_version"))
    assert names(database) == ["Ada"]


def breaking_at(number):
    """Let the connection end at a statement, counted from 1: what was not committed is gone, as after a kill."""
    count = 0

    def end(*_):
        nonlocal count
        count += 1
        if count == number:
            raise KeyboardInterrupt

    return end


@pytest.mark.parametrize("number", [9, 20, 45, 60])
def test_a_migration_that_is_killed_leaves_the_tables_as_they_were(address_without_tables, number):
    ended, database = Database(address_without_tables), Database(address_without_tables)
    event.listen(ended.engine, "after_cursor_execute", breaking_at(number))
    with pytest.raises(KeyboardInterrupt):
        ended.migrate()
    ended.close()
    with database.engine.connect() as connection:
        assert inspect(connection).get_table_names() == []
    database.migrate()
    assert database.write(add("Ada"))
    database.close()


def test_of_several_that_migrate_at_once_one_does_and_all_can_work(address_without_tables):
    opened = [Database(address_without_tables) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        versions = list(threads.map(Database.migrate, opened))
    assert len(set(versions)) == 1
    for number, database in enumerate(opened):
        assert database.write(add(f"person {number}"))
        database.close()


def test_the_database_of_another_program_is_left_alone(address_without_tables):
    database = Database(address_without_tables)
    with database.engine.begin() as connection:
        connection.execute(text("CREATE TABLE customers (id INTEGER)"))
    with pytest.raises(FileError, match="tables of another program: customers") as refusal:
        database.migrate()
    assert "createdb workbench" in refusal.value.do
    with database.engine.connect() as connection:
        assert inspect(connection).get_table_names() == ["customers"]
    database.close()


def test_a_damaged_file_says_so_and_is_left_alone(tmp_path, sqlite_template):
    path = tmp_path / "w.db"
    whole = sqlite_template.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    database = Database(f"sqlite:///{path}")
    with pytest.raises(OutputError, match="cannot be opened") as refusal:
        database.migrate()
    assert refusal.value.do == "the file is damaged: restore a backup, and serve that"
    database.close()


@pytest.mark.slow
def test_a_server_that_is_gone_and_a_text_that_cannot_be_stored_are_told(empty_postgres):
    database = Database(empty_postgres)
    database.migrate()
    with pytest.raises(ConfigError, match="characters or a length"):
        database.write(lambda session: session.scalar(select(StoredPerson.id).where(StoredPerson.name == "A\0da")))

    def lose(session):
        session.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    with pytest.raises(UnavailableError, match="what was stored before is intact") as refusal:
        database.write(lose)
    assert "run the same again" in refusal.value.do
    assert database.write(add("Ada"))
    database.close()


def test_the_database_of_a_newer_program_is_left_alone(database):
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(FileError, match="was migrated to version 9999 by a newer program"):
        database.migrate()


def test_a_transaction_that_raises_leaves_nothing(database):
    def work(session):
        add("Ada")(session)
        raise ConfigError("no", where="here")

    with pytest.raises(ConfigError):
        database.write(work)
    assert names(database) == []
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(StoredEvent)) == 0


def test_reading_changes_nothing(database):
    with database.reading() as session:
        add("Ada")(session)
        session.flush()
    assert names(database) == []


def test_transactions_in_parallel_are_all_kept(database):
    failures = []

    def work(number):
        try:
            for step in range(10):
                database.write(add(f"{number}-{step}"))
        except Exception as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(database) == sorted(f"{number}-{step}" for number in range(8) for step in range(10))


def test_a_transaction_that_another_stands_in_the_way_of_is_run_again_as_a_whole(database):
    tries = []

    def work(session):
        tries.append(1)
        number = add(f"try {len(tries)}")(session)
        if len(tries) < 3:
            raise OperationalError("UPDATE", {}, sqlite3.OperationalError("database is locked"))
        return number

    database.write(work)
    assert len(tries) == 3
    assert names(database) == ["try 3"]


def test_an_error_that_does_not_pass_is_raised_at_once(database):
    tries = []

    def work(session):
        tries.append(1)
        session.execute(text("SELECT 1 FROM nowhere"))

    with pytest.raises(DBAPIError):
        database.write(work)
    assert len(tries) == 1


def test_a_reader_sees_one_state_while_others_write(database):
    with database.reading() as session:
        assert session.scalar(select(func.count()).select_from(StoredPerson)) == 0
        database.write(add("Ada"))
        assert session.scalar(select(func.count()).select_from(StoredPerson)) == 0
    assert names(database) == ["Ada"]


@pytest.mark.slow
def test_two_serialisations_that_fail_on_postgresql_are_run_again(empty_postgres):
    database = Database(empty_postgres)
    database.migrate()
    first, second = database.write(add("a")), database.write(add("b"))
    both_hold_one, tries = threading.Barrier(2), []

    def lock(one, other):
        def work(session):
            tries.append(1)
            session.get_one(StoredPerson, one, with_for_update=True)
            if len(tries) <= 2:
                both_hold_one.wait()
            session.get_one(StoredPerson, other, with_for_update=True).display_name += "!"

        database.write(work)

    threads = [threading.Thread(target=lock, args=pair) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # Each waits for the other: PostgreSQL ends one, which succeeds the next time.
    assert len(tries) == 3
    with database.reading() as session:
        assert list(session.scalars(select(StoredPerson.display_name).order_by(StoredPerson.id))) == ["a!", "b!"]
    database.close()


def test_a_backup_is_one_state_of_a_database_in_use(tmp_path, sqlite_template):
    path = tmp_path / "w.db"
    path.write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{path}")
    database.write(add("Ada"))
    database.backup(tmp_path / "copy.db")
    database.write(add("Bob"))
    copy = Database(f"sqlite:///{tmp_path}/copy.db")
    copy.migrate()
    assert names(copy) == ["Ada"]
    with pytest.raises(OutputError, match="exists already"):
        database.backup(tmp_path / "copy.db")
    copy.close()
    database.close()


@pytest.fixture
def readable_by_all():
    """Run with a umask that lets every user of the machine read new files."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize("is_link", [False, True])
@pytest.mark.usefixtures("readable_by_all")
def test_other_users_of_the_machine_cannot_read_a_database_or_its_backup(tmp_path, is_link):
    if is_link:
        (tmp_path / "w.db").symlink_to("elsewhere.db")
    database = Database(f"sqlite:///{tmp_path}/w.db")
    database.migrate()
    database.write(add("Ada"))
    database.backup(tmp_path / "copy.db")
    name = "elsewhere.db" if is_link else "w.db"
    files = [tmp_path / each for each in (name, f"{name}-wal", f"{name}-shm", "copy.db")]
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in files} == {file.name: "0o600" for file in files}
    database.close()


@pytest.mark.usefixtures("readable_by_all")
def test_the_permissions_of_an_existing_database_stay(tmp_path, sqlite_template):
    path = tmp_path / "w.db"
    path.write_bytes(sqlite_template.read_bytes())
    path.chmod(0o660)
    database = Database(f"sqlite:///{path}")
    database.write(add("Ada"))
    assert path.stat().st_mode & 0o777 == 0o660
    database.close()


@pytest.mark.slow
def test_a_server_is_copied_by_its_own_tool(empty_postgres, tmp_path):
    database = Database(empty_postgres)
    with pytest.raises(ConfigError, match="pg_dump"):
        database.backup(tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()
    database.close()


@pytest.mark.parametrize(
    "address",
    [
        "",
        "w.db",
        "mysql://me:secret@host/w",
        "sqlite://",
        "postgresql",
        "sqlite:///:memory:",
        "sqlite:///w\0.db",
        "sqlite:///w.db?mode=ro",
        "postgresql://me:secret@[::bad/w",
    ],
)
def test_an_address_that_is_none_is_refused_without_being_repeated(address):
    with pytest.raises(ConfigError, match="sqlite:///FILE or postgresql://") as refusal:
        Database(address)
    assert "secret" not in str(refusal.value)


def test_what_cannot_be_opened_is_an_error(tmp_path):
    with pytest.raises(OutputError, match="is not a folder"):
        Database(f"sqlite:///{tmp_path}/missing/w.db")
    database = Database(f"postgresql://me:secret@/nothing?host={tmp_path}")
    with pytest.raises(OutputError, match="cannot be opened") as refusal:
        database.migrate()
    assert "secret" not in str(refusal.value)
    database.close()
