"""An index of the items that responses were taken out of: to look through all items is to read the texts of all cases."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0013"
down_revision = "0012"
branch_labels = depends_on = None

_WHERE = sa.text("CAST(discarded AS VARCHAR) != '[]'")


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_items_discarded", "items", ["project_id"], sqlite_where=_WHERE, postgresql_where=_WHERE)


def downgrade() -> None:
    """Refuse, as every migration."""
    raise ConfigError("an older program does not know this database", do="restore a backup")
