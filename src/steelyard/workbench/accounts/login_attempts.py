"""Throttling of logins: failures are counted by name and by address, those of a known browser by that browser alone.

Eight wrong passwords of anybody close a name for a while. A browser that was logged in with the name before has a
signed cookie and a count of its own: others cannot lock its person out (OWASP, device cookies). A name is stored as a
hash with the workbench's key: the typed name, perhaps the name of a person who was erased, stands nowhere.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from itsdangerous import BadSignature, Signer
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from steelyard.core.names import normalize_name
from steelyard.workbench.storage.tables import StoredLoginAttempt

DEVICE_SECONDS = 400 * 24 * 3600
"""Time for which a browser stays known: browsers keep no cookie longer."""
_WINDOW = 15 * 60.0
_MOST_BY_NAME = 8
_MOST_BY_ADDRESS = 60


class LoginAttempt(NamedTuple):
    """A login as it is counted. ``name``: a hash of it; where ``is_known``, what its browser is known by."""

    name: str
    address: str
    is_known: bool


class DeviceCookie(NamedTuple):
    """The cookie by which a browser is known again at a login with one name."""

    name: str
    value: str


def new_device(key: bytes, name: str) -> DeviceCookie:
    """Return the cookie of a browser that was logged in with a name. It opens nothing, and names nobody."""
    device = _name_hash(key, name)
    return DeviceCookie(f"steelyard_device_{device}", _signer(key, device).sign(secrets.token_urlsafe(16)).decode())


def login_attempt(key: bytes, name: str, address: str, cookies: Mapping[str, str]) -> LoginAttempt:
    """Return how a login with a name counts; ``cookies`` are those of its browser."""
    device = _name_hash(key, name)
    try:
        token = _signer(key, device).unsign(cookies.get(f"steelyard_device_{device}", "")).decode()
    except (BadSignature, UnicodeDecodeError):
        return LoginAttempt(device, address[:100], is_known=False)
    # No hash begins with a space: nobody counts up the failures of a browser by typing.
    return LoginAttempt(f" {token}", address[:100], is_known=True)


def seconds_to_wait(session: Session, attempt: LoginAttempt, *, at: float) -> float:
    """Return the seconds until a login may be tried again after too many that failed; 0 for at once."""
    limits = [(StoredLoginAttempt.name, attempt.name, _MOST_BY_NAME)]
    if not attempt.is_known:
        limits.append((StoredLoginAttempt.address, attempt.address, _MOST_BY_ADDRESS))
    waits = [0.0]
    for column, value, most in limits:
        failed = session.scalars(
            select(StoredLoginAttempt.at)
            .where(column == value, StoredLoginAttempt.at > at - _WINDOW)
            .order_by(StoredLoginAttempt.at.desc())
            .limit(most)
        ).all()
        if len(failed) == most:
            waits.append(failed[-1] + _WINDOW - at)
    return max(waits)


def count_failure(session: Session, attempt: LoginAttempt, *, at: float) -> int:
    """Count a failed login, and forget those that no longer count. Returns the number of its row."""
    row = StoredLoginAttempt(name=attempt.name, address=attempt.address, at=at)
    session.add(row)
    session.execute(delete(StoredLoginAttempt).where(StoredLoginAttempt.at < at - _WINDOW))
    return row.id


def _name_hash(key: bytes, name: str) -> str:
    return hmac.digest(key, f"device {normalize_name(name)}".encode(errors="replace"), "sha256").hex()[:16]


def _signer(key: bytes, device: str) -> Signer:
    return Signer(key, salt=f"device {device}")
