"""Queues by priority: their sources, and the place of each item with its reason."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0005"
down_revision = "0004"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables. Items that are there already came in the order of their import: they get no row."""
    op.create_table(
        "queues",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("random_share", sa.Double(), nullable=False),
        sa.Column("sources", sa.JSON(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_queues_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_queues_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queues")),
    )
    with op.batch_alter_table("queues", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_queues_project_id"), ["project_id"], unique=False)
    op.create_table(
        "queue_places",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("queue_id", _Number, nullable=False),
        sa.Column("place", _Number, nullable=False),
        sa.Column("priority", sa.Double(), nullable=True),
        sa.Column("uncertainty", sa.Double(), nullable=True),
        sa.Column("disagreement", sa.Double(), nullable=True),
        sa.Column("decile", _Number, nullable=False),
        sa.Column("is_random", sa.Boolean(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_queue_places_item_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_queue_places_project_id")),
        sa.ForeignKeyConstraint(["queue_id"], ["queues.id"], name=op.f("fk_queue_places_queue_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_queue_places")),
        sa.UniqueConstraint("item_id", name=op.f("uq_queue_places_item_id")),
    )
    with op.batch_alter_table("queue_places", schema=None) as batch_op:
        batch_op.create_index("ix_queue_places_figures", ["project_id", "decile", "is_random"], unique=False)
        batch_op.create_index(batch_op.f("ix_queue_places_queue_id"), ["queue_id"], unique=False)


def downgrade() -> None:
    """Refuse: an older program would export chosen items as if they were a random sample."""
    raise ConfigError("exports would no longer say how items were chosen", do="restore a backup")
