"""What people differ about beyond their noise, by item."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0008"
down_revision = "0007"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_INDEXES = {
    "ix_disagreements_worst": ["project_id", "excess", "item_id"],
    "ix_disagreements_figures": [
        "project_id", "category", "excess", "p", "num_compared", "num_different", "expected"
    ],
    "ix_disagreements_gate": ["project_id", "gate_id"],
}  # fmt: skip


def upgrade() -> None:
    """Create the table. Items that came to the gate before are assessed when the page is opened."""
    op.create_table(
        "disagreements",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("gate_id", _Number, nullable=False),
        sa.Column("fit_id", _Number, nullable=False),
        sa.Column("category", sa.String(length=200), nullable=False),
        sa.Column("num_compared", _Number, nullable=False),
        sa.Column("num_different", _Number, nullable=False),
        sa.Column("expected", sa.Double(), nullable=False),
        sa.Column("excess", sa.Double(), nullable=False),
        sa.Column("p", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["fit_id"], ["rater_fits.id"], name=op.f("fk_disagreements_fit_id")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_disagreements_item_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_disagreements_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_disagreements")),
        sa.UniqueConstraint("item_id", name=op.f("uq_disagreements_item_id")),
    )
    with op.batch_alter_table("disagreements", schema=None) as batch_op:
        for name, columns in _INDEXES.items():
            batch_op.create_index(name, columns, unique=False)


def downgrade() -> None:
    """Refuse, as every migration does: restore a backup instead."""
    raise ConfigError("the assessments would be gone", do="restore a backup")
