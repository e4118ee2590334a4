"""Tokens of the REST interface: each has a scope and an end, and is revoked with the password and the account.

Only the SHA-256 of a token is stored.
"""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Literal, get_args

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from steelyard.workbench.storage.account_names import checked_name
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import StoredApiToken, StoredPerson

Scope = Literal["read", "annotate", "administer"]
"""Purposes of a token: to read through the REST interface, to annotate, or all that the interface allows its owner."""
SCOPES: tuple[Scope, ...] = get_args(Scope)
LONGEST_TOKEN_DAYS = 365
_DAY = 24 * 3600.0


def issue_token(
    session: Session, person: StoredPerson, name: str, *, at: float, scope: Scope = "administer", days: int = 90
) -> str:
    """Return a new token for the REST interface, which ends after ``days``; it is shown this once."""
    if scope not in SCOPES:
        raise RefusedError(f"{scope[:50]!r} is not a scope", words="misfit", where="scope", allowed=", ".join(SCOPES))
    if not 1 <= days <= LONGEST_TOKEN_DAYS:
        values, allowed = {"limit": f"{LONGEST_TOKEN_DAYS}"}, f"1 to {LONGEST_TOKEN_DAYS}"
        raise RefusedError(f"a token of {days} days", words="days", values=values, where="days", allowed=allowed)
    token = f"sty_{secrets.token_urlsafe(32)}"
    row = StoredApiToken(
        token_hash=digest_of(token),
        name=checked_name(name),
        scope=scope,
        person_id=person.id,
        created_at=at,
        expires_at=at + days * _DAY,
    )
    session.add(row)
    session.flush()
    record(session, AuditEvent("token issued", "token", row.id, person.id, {"scope": scope, "days": days}), at=at)
    return token


def tokens_of(session: Session, people: Sequence[int], *, at: float) -> Sequence[StoredApiToken]:
    """Return the tokens of people that open something now, the oldest first."""
    tokens = select(StoredApiToken).where(
        StoredApiToken.person_id.in_(people), StoredApiToken.revoked_at.is_(None), StoredApiToken.expires_at > at
    )
    return session.scalars(tokens.order_by(StoredApiToken.id)).all()


def revoke_token(session: Session, token: StoredApiToken, *, by: int, at: float) -> None:
    """Revoke a token."""
    token.revoked_at = token.revoked_at or at
    record(session, AuditEvent("token revoked", "token", token.id, by, {}), at=at)


def revoke_tokens(session: Session, person: StoredPerson, *, at: float) -> None:
    """Revoke every token of a person."""
    of_person = StoredApiToken.person_id == person.id, StoredApiToken.revoked_at.is_(None)
    session.execute(update(StoredApiToken).where(*of_person).values(revoked_at=at))


def digest_of(token: str) -> str:
    """Return the hash under which a random token is stored."""
    # Tokens are random and long: one fast hash is enough, where passwords need a slow one.
    return hashlib.sha256(token.encode()).hexdigest()
