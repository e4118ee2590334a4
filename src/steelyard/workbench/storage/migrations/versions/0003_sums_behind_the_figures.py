"""Sums behind the figures, and indexes in which items, tasks and reviews are counted."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0003"
down_revision = "0001"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_IS_LEFT = sa.text("num_answered < num_wanted AND NOT is_retired AND NOT is_gold")


def _create_sums() -> None:
    op.create_table(
        "pair_agreements",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("kind", sa.String(length=30), nullable=False),
        sa.Column("category", sa.String(length=200), nullable=False),
        sa.Column("first_id", _Number, nullable=False),
        sa.Column("second_id", _Number, nullable=False),
        sa.Column("num_tasks", _Number, nullable=False),
        sa.Column("num_same", _Number, nullable=False),
        sa.Column("num_judged", _Number, nullable=False),
        sa.Column("same_squared", _Number, nullable=False),
        sa.Column("same_judged", _Number, nullable=False),
        sa.Column("judged_squared", _Number, nullable=False),
        sa.Column("cell_0_0", _Number, nullable=False),
        sa.Column("cell_0_1", _Number, nullable=False),
        sa.Column("cell_0_2", _Number, nullable=False),
        sa.Column("cell_1_0", _Number, nullable=False),
        sa.Column("cell_1_1", _Number, nullable=False),
        sa.Column("cell_1_2", _Number, nullable=False),
        sa.Column("cell_2_0", _Number, nullable=False),
        sa.Column("cell_2_1", _Number, nullable=False),
        sa.Column("cell_2_2", _Number, nullable=False),
        sa.Column("num_taus", _Number, nullable=False),
        sa.Column("sum_tau", sa.Double(), nullable=False),
        sa.Column("tau_squared", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["first_id"], ["people.id"], name=op.f("fk_pair_agreements_first_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_pair_agreements_project_id")),
        sa.ForeignKeyConstraint(["second_id"], ["people.id"], name=op.f("fk_pair_agreements_second_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pair_agreements")),
        sa.UniqueConstraint(
            "project_id",
            "kind",
            "category",
            "first_id",
            "second_id",
            name=op.f("uq_pair_agreements_project_id_kind_category_first_id_second_id"),
        ),
    )


def _create_days() -> None:
    op.create_table(
        "work_days",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("day", _Number, nullable=False),
        sa.Column("num_answers", _Number, nullable=False),
        sa.Column("num_gold", _Number, nullable=False),
        sa.Column("num_rework", _Number, nullable=False),
        sa.Column("num_cannot_judge", _Number, nullable=False),
        sa.Column("num_discarded", _Number, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("sum_length", sa.Double(), nullable=False),
        sa.Column("sum_time", sa.Double(), nullable=False),
        sa.Column("length_squared", sa.Double(), nullable=False),
        sa.Column("time_squared", sa.Double(), nullable=False),
        sa.Column("length_time", sa.Double(), nullable=False),
        sa.Column("num_best", _Number, nullable=False),
        sa.Column("num_first_best", _Number, nullable=False),
        sa.Column("first_chance", sa.Double(), nullable=False),
        sa.Column("first_variance", sa.Double(), nullable=False),
        sa.Column("num_pairs", _Number, nullable=False),
        sa.Column("num_tied", _Number, nullable=False),
        sa.Column("score_0", _Number, nullable=False),
        sa.Column("score_1", _Number, nullable=False),
        sa.Column("score_2", _Number, nullable=False),
        sa.Column("score_3", _Number, nullable=False),
        sa.Column("score_4", _Number, nullable=False),
        sa.Column("score_5", _Number, nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_work_days_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_work_days_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_work_days")),
        sa.UniqueConstraint("project_id", "person_id", "day", name=op.f("uq_work_days_project_id_person_id_day")),
    )


def _create_results() -> None:
    op.create_table(
        "gate_results",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("round", _Number, nullable=False),
        sa.Column("category", sa.String(length=200), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("is_passed", sa.Boolean(), nullable=False),
        sa.Column("num_same", _Number, nullable=False),
        sa.Column("num_judged", _Number, nullable=False),
        sa.Column("num_answers", _Number, nullable=False),
        sa.Column("num_wanted", _Number, nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_gate_results_item_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_gate_results_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gate_results")),
        sa.UniqueConstraint("item_id", "round", name=op.f("uq_gate_results_item_id_round")),
    )
    with op.batch_alter_table("gate_results", schema=None) as batch_op:
        batch_op.create_index(
            "ix_gate_results_figures",
            ["project_id", "category", "at", "is_passed", "num_same", "num_judged", "num_answers", "num_wanted"],
            unique=False,
        )
    op.create_table(
        "gold_results",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("task_id", _Number, nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("num_same", _Number, nullable=False),
        sa.Column("num_judged", _Number, nullable=False),
        sa.Column("is_void", sa.Boolean(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_gold_results_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_gold_results_project_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_gold_results_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gold_results")),
        sa.UniqueConstraint("task_id", "person_id", name=op.f("uq_gold_results_task_id_person_id")),
    )
    with op.batch_alter_table("gold_results", schema=None) as batch_op:
        batch_op.create_index(
            "ix_gold_results_figures",
            ["project_id", "person_id", "at", "is_void", "num_same", "num_judged"],
            unique=False,
        )


def _create_indexes() -> None:
    with op.batch_alter_table("items", schema=None) as batch_op:
        batch_op.create_index("ix_items_progress", ["project_id", "batch", "category", "state", "round"], unique=False)
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index(
            "ix_reviews_figures", ["project_id", "layer", "person_id", "decision", "at"], unique=False
        )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        columns = ["project_id", "category", "round", "num_wanted", "num_answered"]
        batch_op.create_index("ix_tasks_left", columns, sqlite_where=_IS_LEFT, postgresql_where=_IS_LEFT)


def upgrade() -> None:
    """Create the tables and indexes. The sums of what is stored already are made when the workbench is opened."""
    _create_sums()
    _create_days()
    _create_results()
    _create_indexes()


def downgrade() -> None:
    """Refuse: an older program would leave the sums as they are."""
    raise ConfigError("the sums would no longer follow the answers", do="restore a backup")
