"""SQLite: no event takes the place of another one, which `INSERT OR REPLACE` would delete without a trigger."""

from alembic import op

from steelyard.core.errors import ConfigError

revision = "0012"
down_revision = "0011"
branch_labels = depends_on = None

_TRIGGER = """
    CREATE TRIGGER events_stay_REPLACE BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM events WHERE hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"""


def upgrade() -> None:
    """Add the trigger; PostgreSQL replaces a row by an update, which is refused already."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(_TRIGGER)


def downgrade() -> None:
    """Refuse: an older program relies on nothing of it, and the log would be open again."""
    raise ConfigError("events of the audit log could be replaced again", do="restore a backup")
