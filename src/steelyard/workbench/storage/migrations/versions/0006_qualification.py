"""Qualification: tasks with a reference, rounds of people, and the answers within a round."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0006"
down_revision = "0005"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _create_tasks() -> None:
    op.create_table(
        "qualification_tasks",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("kind", sa.String(length=30), nullable=False),
        sa.Column("case_json", sa.Text(), nullable=False),
        sa.Column("responses", sa.JSON(), nullable=False),
        sa.Column("reference", sa.JSON(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("is_retired", sa.Boolean(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_qualification_tasks_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_qualification_tasks")),
    )
    with op.batch_alter_table("qualification_tasks", schema=None) as batch_op:
        columns = ["project_id", "is_retired", "id"]
        batch_op.create_index("ix_qualification_tasks_project", columns, unique=False)


def _create_rounds() -> None:
    op.create_table(
        "qualification_rounds",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("number", _Number, nullable=False),
        sa.Column("tasks", sa.JSON(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("accuracy", sa.Double(), nullable=True),
        sa.Column("decided_by", _Number, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("begun_at", sa.Double(), nullable=False),
        sa.Column("ended_at", sa.Double(), nullable=True),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["decided_by"], ["people.id"], name=op.f("fk_qualification_rounds_decided_by")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_qualification_rounds_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_qualification_rounds_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_qualification_rounds")),
        sa.UniqueConstraint(
            "project_id",
            "person_id",
            "number",
            name=op.f("uq_qualification_rounds_project_id_person_id_number"),
        ),
    )
    with op.batch_alter_table("qualification_rounds", schema=None) as batch_op:
        batch_op.create_index(op.f("ix_qualification_rounds_person_id"), ["person_id"], unique=False)


def _create_answers() -> None:
    op.create_table(
        "qualification_answers",
        sa.Column("round_id", _Number, nullable=False),
        sa.Column("task_id", _Number, nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("num_same", _Number, nullable=False),
        sa.Column("num_points", _Number, nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(
            ["round_id"], ["qualification_rounds.id"], name=op.f("fk_qualification_answers_round_id")
        ),
        sa.ForeignKeyConstraint(["task_id"], ["qualification_tasks.id"], name=op.f("fk_qualification_answers_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_qualification_answers")),
        sa.UniqueConstraint("round_id", "task_id", name=op.f("uq_qualification_answers_round_id_task_id")),
    )


def upgrade() -> None:
    """Create the tables."""
    _create_tasks()
    _create_rounds()
    _create_answers()


def downgrade() -> None:
    """Refuse: nobody would know who has passed."""
    raise ConfigError("nobody would know who has passed", do="restore a backup")
