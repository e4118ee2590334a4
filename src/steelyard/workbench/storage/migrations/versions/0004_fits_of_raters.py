"""Fits of the reliability of people."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0004"
down_revision = "0003"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table. The first fit of a project is made when its page of people is opened."""
    op.create_table(
        "rater_fits",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("num_answers", _Number, nullable=False),
        sa.Column("num_used", _Number, nullable=False),
        sa.Column("num_items", _Number, nullable=False),
        sa.Column("raters", sa.JSON(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_rater_fits_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rater_fits")),
    )
    with op.batch_alter_table("rater_fits", schema=None) as batch_op:
        batch_op.create_index("ix_rater_fits_project", ["project_id", "id"], unique=False)


def downgrade() -> None:
    """Refuse: decisions in the audit log stand on fits."""
    raise ConfigError("decisions would stand on fits that are gone", do="restore a backup")
