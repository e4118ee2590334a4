"""How many tasks of an item were compared at the gate: none where each has one answer."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0011"
down_revision = "0010"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_INDEX = "ix_gate_results_figures"
_BEFORE = ["project_id", "category", "at", "is_passed", "num_same", "num_judged", "num_answers", "num_wanted"]


def upgrade() -> None:
    """Add the column, and count it for the items that came to the gate before."""
    with op.batch_alter_table("gate_results", schema=None) as batch_op:
        batch_op.drop_index(_INDEX)
        batch_op.add_column(sa.Column("num_compared", _Number, nullable=False, server_default="0"))
    op.execute(
        "UPDATE gate_results SET num_compared = (SELECT count(*) FROM tasks WHERE tasks.item_id = gate_results.item_id"
        " AND tasks.round = gate_results.round AND tasks.num_answered > 1 AND NOT tasks.is_gold"
        " AND NOT tasks.is_retired)"
    )
    with op.batch_alter_table("gate_results", schema=None) as batch_op:
        batch_op.alter_column("num_compared", server_default=None)
        batch_op.create_index(_INDEX, [*_BEFORE, "num_compared"], unique=False)


def downgrade() -> None:
    """Refuse: an older program would count items without a comparison as not passed."""
    raise ConfigError("items that nobody could compare would count as not passed", do="restore a backup")
