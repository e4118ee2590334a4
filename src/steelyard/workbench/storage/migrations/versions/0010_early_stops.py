"""Items that needed fewer people, their order being sure enough."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0010"
down_revision = "0009"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table: no project of an earlier version stopped early."""
    op.create_table(
        "early_stops",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("round", _Number, nullable=False),
        sa.Column("fit_id", _Number, nullable=False),
        sa.Column("sureness", sa.Double(), nullable=False),
        sa.Column("num_answers", _Number, nullable=False),
        sa.Column("num_saved", _Number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["fit_id"], ["rater_fits.id"], name=op.f("fk_early_stops_fit_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_early_stops_item_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_early_stops_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_early_stops")),
        sa.UniqueConstraint("item_id", "round", name=op.f("uq_early_stops_item_id_round")),
    )
    with op.batch_alter_table("early_stops", schema=None) as batch_op:
        batch_op.create_index("ix_early_stops_project", ["project_id", "num_saved"], unique=False)


def downgrade() -> None:
    """Refuse, as every migration does: restore a backup instead."""
    raise ConfigError("what was stopped early would be gone", do="restore a backup")
