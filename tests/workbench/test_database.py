"""The database: opened by address, migrated to exactly the tables of this program, written in whole transactions."""

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from steelyard.workbench.tables import WorkbenchTable


def test_migrations_make_exactly_the_tables_of_this_program(database):
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        differences = compare_metadata(context, WorkbenchTable.metadata)
    assert [each for each in differences if "alembic_version" not in str(each)] == []
    assert database.migrate() == "0001"
