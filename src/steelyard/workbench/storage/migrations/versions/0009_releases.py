"""Releases: exports that are kept as they were made."""

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0009"
down_revision = "0008"
branch_labels = depends_on = None

_Number = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "releases",
        sa.Column("project_id", _Number, nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("person_id", _Number, nullable=True),
        sa.Column("at", sa.Double(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("manifest", sa.JSON(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["people.id"], name=op.f("fk_releases_person_id")),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_releases_project_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_releases")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_releases_project_id_name")),
    )
    op.create_table(
        "release_parts",
        sa.Column("release_id", _Number, nullable=False),
        sa.Column("path", sa.String(length=100), nullable=False),
        sa.Column("number", _Number, nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("id", _Number, autoincrement=True, nullable=False),
        sa.ForeignKeyConstraint(["release_id"], ["releases.id"], name=op.f("fk_release_parts_release_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_release_parts")),
        sa.UniqueConstraint("release_id", "path", "number", name=op.f("uq_release_parts_release_id_path_number")),
    )


def downgrade() -> None:
    """Refuse: what was released would be lost."""
    raise ConfigError("what was released would be lost", do="restore a backup")
