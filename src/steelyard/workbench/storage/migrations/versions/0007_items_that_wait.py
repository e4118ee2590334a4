"""An index for the queues of alignment and review: the items of a state, those that wait longest first."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = depends_on = None


def upgrade() -> None:
    """Create the index: without it every page of a queue read the texts of all items."""
    op.create_index("ix_items_waiting", "items", ["state", "changed_at", "id"], unique=False)


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("ix_items_waiting", "items")
