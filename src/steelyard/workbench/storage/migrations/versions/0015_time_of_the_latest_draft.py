"""When the latest draft of an assignment came: no draft adds more seconds than have passed since."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0015"
down_revision = "0014"
branch_labels = depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("assignments", sa.Column("active_at", sa.Double(), nullable=True))


def downgrade() -> None:
    """Refuse, as every migration."""
    raise ConfigError("an older program does not know this database", do="restore a backup")
