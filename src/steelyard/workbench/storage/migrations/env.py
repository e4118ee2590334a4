"""The environment in which Alembic runs a migration: the connection that `Database.migrate` gives."""

from alembic import context

# Their tables belong to the metadata.
from steelyard.workbench.storage import figure_tables, qualification_tables, release_tables  # noqa: F401
from steelyard.workbench.storage.tables import WorkbenchTable

context.configure(
    connection=context.config.attributes["connection"], target_metadata=WorkbenchTable.metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
