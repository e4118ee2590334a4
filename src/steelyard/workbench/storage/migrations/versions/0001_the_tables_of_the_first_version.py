"""The tables of the first version."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0001"
down_revision = None
branch_labels = depends_on = None

_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
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
_REPLACEMENT = f"""
    CREATE TRIGGER events_stay_REPLACE BEFORE INSERT ON events
    WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id) OR EXISTS (SELECT 1 FROM events WHERE hash = NEW.hash)
    BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END"""
"""SQLite's `INSERT OR REPLACE` deletes without a trigger. PostgreSQL replaces by an update, which is refused already."""


def _create(table: str, *columns: list[sa.Column[Any]], refers: str = "", unique: tuple[str, ...] = ()) -> None:
    """Create a table with an ``id``. ``refers`` has columns that name the id of another table, as "column -> table"."""
    references = [pair.split(" -> ") for pair in refers.split(", ") if pair]
    op.create_table(
        table,
        *(column for run in columns for column in run),
        sa.Column("id", _NUMBER, autoincrement=True, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{table}")),
        *(sa.ForeignKeyConstraint([c], [f"{to}.id"], name=op.f(f"fk_{table}_{c}")) for c, to in references),
        *(sa.UniqueConstraint(*names.split(), name=op.f(f"uq_{table}_{'_'.join(names.split())}")) for names in unique),
    )


def _columns(kind: sa.types.TypeEngine[Any], names: str, *, nullable: bool = False) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=nullable) for name in names.split()]


# fmt: off
def _create_accounts() -> None:
    _create(
        "keys", _columns(sa.String(40), "name"), _columns(sa.String(100), "value"), unique=("name",),
    )
    _create(
        "login_attempts", _columns(sa.String(200), "name"), _columns(sa.String(100), "address"),
        _columns(sa.Double(), "at"),
    )
    op.create_index("ix_login_attempts_at", "login_attempts", ["address", "at"])
    op.create_index("ix_login_attempts_name_at", "login_attempts", ["name", "at"])
    _create(
        "people", _columns(sa.String(200), "name"), _columns(sa.Text(), "display_name password_hash"),
        _columns(sa.String(40), "pseudonym"), _columns(sa.String(20), "role language"), _columns(sa.JSON(), "skills"),
        _columns(sa.Boolean(), "is_active is_simulated"), _columns(sa.Double(), "created_at"),
        _columns(sa.Double(), "qualified_at erased_at", nullable=True), unique=("name", "pseudonym"),
    )
    _create(
        "api_tokens", _columns(sa.String(64), "token_hash"), _columns(sa.String(200), "name"),
        _columns(_NUMBER, "person_id"), _columns(sa.String(20), "scope"),
        _columns(sa.Double(), "created_at expires_at"), _columns(sa.Double(), "revoked_at", nullable=True),
        refers="person_id -> people", unique=("token_hash",),
    )
    op.create_index("ix_api_tokens_person_id", "api_tokens", ["person_id"])
    _create(
        "login_sessions", _columns(sa.String(64), "token_hash"), _columns(_NUMBER, "person_id"),
        _columns(sa.Double(), "created_at expires_at"), refers="person_id -> people", unique=("token_hash",),
    )
    op.create_index("ix_login_sessions_person_id", "login_sessions", ["person_id"])


def _create_projects() -> None:
    _create(
        "projects", _columns(sa.String(200), "name"), _columns(sa.JSON(), "settings"),
        _columns(sa.Double(), "created_at"), _columns(sa.Boolean(), "is_simulated"), unique=("name",),
    )
    _create(
        "guidelines", _columns(_NUMBER, "project_id version"), _columns(sa.String(200), "category"),
        _columns(sa.String(20), "language"), _columns(sa.Text(), "text"),
        _columns(_NUMBER, "person_id", nullable=True), _columns(sa.Double(), "at"),
        refers="person_id -> people, project_id -> projects", unique=("project_id category language version",),
    )
    _create(
        "events", _columns(sa.Double(), "at"), _columns(_NUMBER, "person_id subject_id", nullable=True),
        _columns(sa.String(60), "action"), _columns(sa.String(30), "subject"), _columns(sa.JSON(), "detail"),
        _columns(sa.String(64), "previous_hash hash"), refers="person_id -> people", unique=("hash",),
    )
    op.create_index("ix_events_subject", "events", ["subject", "subject_id"])
    _create(
        "releases", _columns(_NUMBER, "project_id"), _columns(sa.String(100), "name"),
        _columns(_NUMBER, "person_id", nullable=True), _columns(sa.Double(), "at"), _columns(sa.String(64), "sha256"),
        _columns(sa.JSON(), "manifest"), refers="person_id -> people, project_id -> projects",
        unique=("project_id name",),
    )
    _create(
        "rater_fits", _columns(_NUMBER, "project_id num_answers num_used num_items"), _columns(sa.Double(), "at"),
        _columns(sa.JSON(), "raters"), refers="project_id -> projects",
    )
    op.create_index("ix_rater_fits_project", "rater_fits", ["project_id", "id"])


def _create_items() -> None:
    _create(
        "items", _columns(_NUMBER, "project_id round place"), _columns(sa.String(500), "prompt"),
        _columns(sa.String(40), "language"), _columns(sa.String(200), "category batch"),
        _columns(sa.Text(), "case_json"), _columns(sa.String(30), "state"),
        _columns(sa.Double(), "agreement", nullable=True), _columns(sa.JSON(), "discarded"),
        _columns(sa.Double(), "changed_at"), refers="project_id -> projects", unique=("project_id prompt language",),
    )
    op.create_index("ix_items_batch", "items", ["project_id", "batch"])
    op.create_index("ix_items_discarded", "items", ["project_id"], sqlite_where=sa.text("CAST(discarded AS VARCHAR) != '[]'"), postgresql_where=sa.text("CAST(discarded AS VARCHAR) != '[]'"))
    op.create_index("ix_items_place", "items", ["project_id", "state", "place", "id"])
    op.create_index("ix_items_progress", "items", ["project_id", "batch", "category", "state", "round"])
    op.create_index("ix_items_state", "items", ["project_id", "state", "id"])
    op.create_index("ix_items_waiting", "items", ["state", "changed_at", "id"])
    _create(
        "spare_numbers", _columns(_NUMBER, "project_id place"), _columns(sa.String(200), "batch"),
        refers="project_id -> projects",
    )
    op.create_index("ix_spare_numbers_batch", "spare_numbers", ["project_id", "batch", "place", "id"])
    _create(
        "release_parts", _columns(_NUMBER, "release_id number"), _columns(sa.String(100), "path"),
        _columns(sa.LargeBinary(), "content"), refers="release_id -> releases", unique=("release_id path number",),
    )
    _create(
        "remarks", _columns(_NUMBER, "item_id person_id"), _columns(sa.Text(), "text"), _columns(sa.Double(), "at"),
        refers="item_id -> items, person_id -> people",
    )
    op.create_index("ix_remarks_item_id", "remarks", ["item_id"])


def _create_tasks() -> None:
    _create(
        "tasks", _columns(_NUMBER, "project_id item_id round number num_wanted num_reserved num_answered"),
        _columns(sa.String(30), "kind"), _columns(sa.JSON(), "responses"), _columns(sa.String(200), "category"),
        _columns(sa.Boolean(), "is_open is_retired is_gold"), _columns(sa.JSON(), "gold", nullable=True), refers="item_id -> items, project_id -> projects",
        unique=("item_id round number",),
    )
    op.create_index("ix_tasks_item_id", "tasks", ["item_id"])
    op.create_index("ix_tasks_left", "tasks", ["project_id", "category", "round", "num_wanted", "num_answered"], sqlite_where=sa.text("num_answered < num_wanted AND NOT is_retired AND NOT is_gold"), postgresql_where=sa.text("num_answered < num_wanted AND NOT is_retired AND NOT is_gold"))
    op.create_index("ix_tasks_open", "tasks", ["project_id", "is_gold", "is_open", "id"])
    _create(
        "assignments", _columns(_NUMBER, "task_id person_id"), _columns(sa.JSON(), "shown"),
        _columns(sa.String(10), "state"), _columns(sa.Boolean(), "is_gold_place"),
        _columns(sa.Double(), "assigned_at expires_at seconds"), _columns(sa.Double(), "active_at", nullable=True),
        _columns(sa.JSON(), "draft", nullable=True), refers="person_id -> people, task_id -> tasks",
        unique=("task_id person_id",),
    )
    op.create_index("ix_assignments_expiry", "assignments", ["state", "expires_at"])
    op.create_index("ix_assignments_person", "assignments", ["person_id", "state"])
    _create(
        "answers", _columns(_NUMBER, "task_id person_id"),
        _columns(_NUMBER, "assignment_id guideline_id", nullable=True), _columns(sa.String(20), "stage"),
        _columns(sa.JSON(), "content"), _columns(sa.Double(), "seconds at"),
        refers="assignment_id -> assignments, guideline_id -> guidelines, person_id -> people, task_id -> tasks",
        unique=("assignment_id",),
    )
    op.create_index("ix_answers_person", "answers", ["person_id", "at"])
    op.create_index("ix_answers_task", "answers", ["task_id", "stage"])


def _create_reviews() -> None:
    _create(
        "reviews", _columns(_NUMBER, "project_id item_id round"), _columns(sa.String(20), "layer"),
        _columns(_NUMBER, "person_id", nullable=True), _columns(sa.String(10), "decision", nullable=True),
        _columns(sa.Text(), "reason"), _columns(sa.Double(), "at", nullable=True),
        refers="item_id -> items, person_id -> people, project_id -> projects", unique=("item_id round layer",),
    )
    op.create_index("ix_reviews_figures", "reviews", ["project_id", "layer", "person_id", "decision", "at"])
    op.create_index("ix_reviews_open", "reviews", ["project_id", "layer", "decision"])
    _create(
        "planted_reviews", _columns(_NUMBER, "project_id item_id round"), _columns(sa.String(20), "layer"),
        _columns(sa.JSON(), "changed", nullable=True), _columns(sa.JSON(), "remarks"),
        _columns(_NUMBER, "number person_id ruled_by", nullable=True), _columns(sa.String(200), "batch", nullable=True),
        _columns(sa.String(10), "decision", nullable=True), _columns(sa.Text(), "reason"),
        _columns(sa.Double(), "placed_at at", nullable=True),
        _columns(sa.Double(), "seconds"), _columns(sa.Boolean(), "is_retired is_upheld"),
        refers="item_id -> items, person_id -> people, project_id -> projects, ruled_by -> people",
        unique=("item_id round layer", "number"),
    )
    op.create_index("ix_planted_reviews_open", "planted_reviews", ["layer", "decision", "placed_at", "project_id"])
    _create(
        "adjudication_times", _columns(_NUMBER, "project_id item_id person_id"), _columns(sa.String(20), "stage"),
        _columns(sa.Double(), "seconds at"), refers="item_id -> items, person_id -> people, project_id -> projects",
    )
    op.create_index("ix_adjudication_times_person", "adjudication_times", ["person_id", "at"])
    op.create_index("ix_adjudication_times_project", "adjudication_times", ["project_id", "stage", "seconds"])
    _create(
        "disagreements", _columns(_NUMBER, "project_id item_id gate_id fit_id num_compared num_different"),
        _columns(sa.String(200), "category"), _columns(sa.Double(), "expected excess p"),
        refers="fit_id -> rater_fits, item_id -> items, project_id -> projects", unique=("item_id",),
    )
    op.create_index("ix_disagreements_figures", "disagreements", ["project_id", "category", "excess", "p", "num_compared", "num_different", "expected"])
    op.create_index("ix_disagreements_gate", "disagreements", ["project_id", "gate_id"])
    op.create_index("ix_disagreements_worst", "disagreements", ["project_id", "excess", "item_id"])


def _create_qualification() -> None:
    _create(
        "qualification_rounds", _columns(_NUMBER, "project_id person_id number"), _columns(sa.JSON(), "tasks"),
        _columns(sa.String(20), "outcome"), _columns(sa.Double(), "accuracy ended_at", nullable=True),
        _columns(_NUMBER, "decided_by", nullable=True), _columns(sa.Text(), "reason"),
        _columns(sa.Double(), "begun_at"), refers="decided_by -> people, person_id -> people, project_id -> projects",
        unique=("project_id person_id number",),
    )
    op.create_index("ix_qualification_rounds_person_id", "qualification_rounds", ["person_id"])
    _create(
        "qualification_tasks", _columns(_NUMBER, "project_id"), _columns(sa.String(30), "kind"),
        _columns(sa.Text(), "case_json reason"), _columns(sa.JSON(), "responses reference"),
        _columns(sa.Boolean(), "is_retired"), refers="project_id -> projects",
    )
    op.create_index("ix_qualification_tasks_project", "qualification_tasks", ["project_id", "is_retired", "id"])
    _create(
        "qualification_answers", _columns(_NUMBER, "round_id task_id num_same num_points"),
        _columns(sa.JSON(), "content"), _columns(sa.Double(), "seconds at"),
        refers="round_id -> qualification_rounds, task_id -> qualification_tasks", unique=("round_id task_id",),
    )


def _create_agreements() -> None:
    _create(
        "pair_agreements",
        _columns(_NUMBER, "project_id first_id second_id num_tasks num_same num_judged sum_same_squared sum_same_judged sum_judged_squared num_left_left num_left_right num_left_tie num_right_left num_right_right num_right_tie num_tie_left num_tie_right num_tie_tie num_taus"),
        _columns(sa.String(30), "kind"), _columns(sa.String(200), "category"),
        _columns(sa.Double(), "sum_tau sum_tau_squared"),
        refers="first_id -> people, project_id -> projects, second_id -> people",
        unique=("project_id kind category first_id second_id",),
    )


def _create_figures() -> None:
    _create(
        "work_days",
        _columns(_NUMBER, "project_id person_id day num_answers num_gold num_rework num_cannot_judge num_discarded num_best num_first_best num_pairs num_tied score_0 score_1 score_2 score_3 score_4 score_5"),
        _columns(sa.Double(), "seconds sum_length sum_time sum_length_squared sum_time_squared sum_length_time first_chance first_variance"),
        refers="person_id -> people, project_id -> projects", unique=("project_id person_id day",),
    )
    _create(
        "gate_results",
        _columns(_NUMBER, "project_id item_id round num_same num_judged num_answers num_wanted num_compared"),
        _columns(sa.String(200), "category"), _columns(sa.Double(), "at"), _columns(sa.Boolean(), "is_passed"),
        refers="item_id -> items, project_id -> projects", unique=("item_id round",),
    )
    op.create_index("ix_gate_results_figures", "gate_results", ["project_id", "category", "at", "is_passed", "num_same", "num_judged", "num_answers", "num_wanted", "num_compared"])
    _create(
        "gold_results", _columns(_NUMBER, "project_id person_id task_id num_same num_judged"),
        _columns(sa.Double(), "at"), _columns(sa.Boolean(), "is_void"),
        refers="person_id -> people, project_id -> projects, task_id -> tasks", unique=("task_id person_id",),
    )
    op.create_index("ix_gold_results_figures", "gold_results", ["project_id", "person_id", "at", "is_void", "num_same", "num_judged"])
# fmt: on


def upgrade() -> None:
    """Create every table, and the triggers that keep the audit log as it is."""
    _create_accounts()
    _create_projects()
    _create_items()
    _create_tasks()
    _create_reviews()
    _create_qualification()
    _create_agreements()
    _create_figures()
    # The audit log cannot be changed, not even by an administrator of the application.
    dialect = op.get_bind().dialect.name
    op.execute(_FUNCTION if dialect == "postgresql" else _REPLACEMENT)
    for verb in ("UPDATE", "DELETE", "TRUNCATE") if dialect == "postgresql" else ("UPDATE", "DELETE"):
        op.execute(_TRIGGERS[dialect].replace("VERB", verb))


def downgrade() -> None:
    """Refuse: a workbench needs these tables."""
    raise ConfigError("there was nothing before the first version", do="restore a backup")
