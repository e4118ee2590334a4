"""Tokens of the REST interface have a scope and an end.

Those that exist keep the rights of their owner's role for 90 days; those of closed accounts, and those that are older
than their owner's password, end now.
"""

import time

import sqlalchemy as sa
from alembic import op

from steelyard.core.errors import ConfigError

revision = "0014"
down_revision = "0013"
branch_labels = depends_on = None

_REVOKE = sa.text(
    "UPDATE api_tokens SET revoked_at = :now WHERE revoked_at IS NULL AND ("
    "EXISTS (SELECT 1 FROM people WHERE people.id = api_tokens.person_id AND NOT people.is_active) OR "
    "EXISTS (SELECT 1 FROM events WHERE events.subject = 'person' AND events.subject_id = api_tokens.person_id "
    "AND events.action = 'password changed' AND events.at > api_tokens.created_at))"
)


def upgrade() -> None:
    """Add the columns, and end the tokens that a password or an account has outlived."""
    with op.batch_alter_table("api_tokens", schema=None) as batch_op:
        batch_op.add_column(sa.Column("scope", sa.String(length=20), nullable=False, server_default="administer"))
        batch_op.add_column(sa.Column("expires_at", sa.Double(), nullable=False, server_default="0"))
    now = time.time()
    op.get_bind().execute(sa.text("UPDATE api_tokens SET expires_at = :end"), {"end": now + 90 * 24 * 3600})
    op.get_bind().execute(_REVOKE, {"now": now})


def downgrade() -> None:
    """Refuse, as every migration."""
    raise ConfigError("an older program does not know this database", do="restore a backup")
