"""The time of alignment, settlement and review. What was spent before is not known."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0016"
down_revision = "0015"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "settling_times",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("stage", sa.String(length=20), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_settling_times_item_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_settling_times_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_settling_times_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_settling_times")),
    )
    with op.batch_alter_table("settling_times", schema=None) as batch_op:
        batch_op.create_index("ix_settling_times_person", ["person_id", "at"], unique=False)
        batch_op.create_index("ix_settling_times_project", ["project_id", "stage", "seconds"], unique=False)


def downgrade() -> None:
    """Refuse, as every migration."""
    raise ConfigError("an older program does not know this database", do="restore a backup")
