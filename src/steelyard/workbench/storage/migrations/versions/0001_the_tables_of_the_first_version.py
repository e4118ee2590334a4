"""The tables of the first version."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0001"
down_revision = None
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REFUSAL = "the audit log is append-only"
_TRIGGERS = {
    "sqlite": f"CREATE TRIGGER events_stay_VERB BEFORE VERB ON events BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END",
    "postgresql": """
        CREATE TRIGGER events_stay_VERB BEFORE VERB ON events
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change_of_events()""",
}
_FUNCTION = f"""
    CREATE FUNCTION refuse_change_of_events() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION '{_REFUSAL}'; END $$"""


def _create_accounts() -> None:
    op.create_table(
        "keys",
        sa.Column("name", sa.String(length=40), nullable=False),
        sa.Column("value", sa.String(length=100), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
        sa.UniqueConstraint("name", name=op.f("uq_keys_name")),
    )
    op.create_table(
        "login_attempts",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("address", sa.String(length=100), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_attempts")),
    )
    with op.batch_alter_table("login_attempts", schema=None) as batch_op:
        batch_op.create_index("ix_login_attempts_at", ["address", "at"], unique=False)
        batch_op.create_index("ix_login_attempts_name_at", ["name", "at"], unique=False)
    op.create_table(
        "people",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("display_name", sa.Text(), nullable=False),
        sa.Column("pseudonym", sa.String(length=40), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("language", sa.String(length=20), nullable=False),
        sa.Column("skills", sa.JSON(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("is_simulated", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("qualified_at", sa.Double(), nullable=True),
        sa.Column("erased_at", sa.Double(), nullable=True),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_people")),
        sa.UniqueConstraint("name", name=op.f("uq_people_name")),
        sa.UniqueConstraint("pseudonym", name=op.f("uq_people_pseudonym")),
    )


def _create_logins() -> None:
    op.create_table(
        "api_tokens",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("revoked_at", sa.Double(), nullable=True),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_api_tokens_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_tokens")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_tokens_token_hash")),
    )
    with op.batch_alter_table("api_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_api_tokens_person_id"), ["person_id"], unique=False)
    op.create_table(
        "login_sessions",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_login_sessions_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_sessions")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_login_sessions_token_hash")),
    )
    with op.batch_alter_table("login_sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_login_sessions_person_id"), ["person_id"], unique=False)


def _create_projects() -> None:
    op.create_table(
        "projects",
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("is_simulated", sa.Boolean(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sa.UniqueConstraint("name", name=op.f("uq_projects_name")),
    )
    op.create_table(
        "guidelines",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("category", sa.String(length=200), nullable=False),
        sa.Column("language", sa.String(length=20), nullable=False),
        sa.Column("version", _Number, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("person_id", _Number, nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_guidelines_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_guidelines_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_guidelines")),
        sa.UniqueConstraint(
            "project_id",
            "category",
            "language",
            "version",
            name=op.f("uq_guidelines_project_id_category_language_version"),
        ),
    )
    op.create_table(
        "events",
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("person_id", _Number, nullable=True),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("subject", sa.String(length=30), nullable=False),
        sa.Column("subject_id", _Number, nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("previous_hash", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_events_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sa.UniqueConstraint("hash", name=op.f("uq_events_hash")),
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index("ix_events_subject", ["subject", "subject_id"], unique=False)


def _create_items() -> None:
    op.create_table(
        "items",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("prompt", sa.String(length=500), nullable=False),
        sa.Column("language", sa.String(length=40), nullable=False),
        sa.Column("category", sa.String(length=200), nullable=False),
        sa.Column("batch", sa.String(length=200), nullable=False),
        sa.Column("case_json", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=30), nullable=False),
        sa.Column("round", _Number, nullable=False),
        sa.Column("agreement", sa.Double(), nullable=True),
        sa.Column("discarded", sa.JSON(), nullable=False),
        sa.Column("changed_at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_items_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("project_id", "prompt", "language", name=op.f("uq_items_project_id_prompt_language")),
    )
    with op.batch_alter_table("items", schema=None) as batch_op:
        batch_op.create_index("ix_items_batch", ["project_id", "batch"], unique=False)
        batch_op.create_index("ix_items_state", ["project_id", "state", "id"], unique=False)
    op.create_table(
        "remarks",
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_remarks_item_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_remarks_person_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_remarks")),
    )
    with op.batch_alter_table("remarks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_remarks_item_id"), ["item_id"], unique=False)
    op.create_table(
        "reviews",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("round", _Number, nullable=False),
        sa.Column("layer", sa.String(length=20), nullable=False),
        sa.Column("person_id", _Number, nullable=True),
        sa.Column("decision", sa.String(length=10), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", sa.Double(), nullable=True),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_reviews_item_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_reviews_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_reviews_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("item_id", "round", "layer", name=op.f("uq_reviews_item_id_round_layer")),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index("ix_reviews_open", ["project_id", "layer", "decision"], unique=False)


def _create_tasks() -> None:
    op.create_table(
        "tasks",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("item_id", _Number, nullable=False),
        sa.Column("round", _Number, nullable=False),
        sa.Column("number", _Number, nullable=False),
        sa.Column("kind", sa.String(length=30), nullable=False),
        sa.Column("responses", sa.JSON(), nullable=False),
        sa.Column("category", sa.String(length=200), nullable=False),
        sa.Column("num_wanted", _Number, nullable=False),
        sa.Column("num_reserved", _Number, nullable=False),
        sa.Column("num_answered", _Number, nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("is_retired", sa.Boolean(), nullable=False),
        sa.Column("is_gold", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Double(), nullable=False),
        sa.Column("gold", sa.JSON(), nullable=True),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_tasks_item_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_tasks_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("item_id", "round", "number", name=op.f("uq_tasks_item_id_round_number")),
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tasks_item_id"), ["item_id"], unique=False)
        columns = ["project_id", "is_gold", "is_open", sa.text("priority DESC"), "id"]
        batch_op.create_index("ix_tasks_open", columns, unique=False)


def _create_answers() -> None:
    op.create_table(
        "assignments",
        sa.Column("task_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("shown", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("is_gold_place", sa.Boolean(), nullable=False),
        sa.Column("assigned_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("draft", sa.JSON(), nullable=True),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_assignments_person_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_assignments_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignments")),
        sa.UniqueConstraint("task_id", "person_id", name=op.f("uq_assignments_task_id_person_id")),
    )
    with op.batch_alter_table("assignments", schema=None) as batch_op:
        batch_op.create_index("ix_assignments_expiry", ["state", "expires_at"], unique=False)
        batch_op.create_index("ix_assignments_person", ["person_id", "state"], unique=False)
    op.create_table(
        "answers",
        sa.Column("task_id", _Number, nullable=False),
        sa.Column("person_id", _Number, nullable=False),
        sa.Column("assignment_id", _Number, nullable=True),
        sa.Column("stage", sa.String(length=20), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("guideline_id", _Number, nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name=op.f("fk_answers_assignment_id")),
        sa.ForeignKeyConstraint(["guideline_id"], ["guidelines.id"], name=op.f("fk_answers_guideline_id")),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_answers_person_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_answers_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_answers")),
        sa.UniqueConstraint("assignment_id", name=op.f("uq_answers_assignment_id")),
    )
    with op.batch_alter_table("answers", schema=None) as batch_op:
        batch_op.create_index("ix_answers_person", ["person_id", "at"], unique=False)
        batch_op.create_index("ix_answers_task", ["task_id", "stage"], unique=False)


def upgrade() -> None:
    """Create every table, and the triggers that keep the audit log as it is."""
    _create_accounts()
    _create_logins()
    _create_projects()
    _create_items()
    _create_tasks()
    _create_answers()
    # The audit log cannot be changed, not even by an administrator of the application.
    dialect = op.get_bind().dialect.name
    if dialect == "postgresql":
        op.execute(_FUNCTION)
    for verb in ("UPDATE", "DELETE", "TRUNCATE") if dialect == "postgresql" else ("UPDATE", "DELETE"):
        op.execute(_TRIGGERS[dialect].replace("VERB", verb))


def downgrade() -> None:
    """Refuse: a workbench needs these tables."""
    raise ConfigError("there was nothing before the first version", do="restore a backup")
