"""Throttling of logins: failures are counted by name and by address, those of a known browser by that browser alone.

Eight wrong passwords of anybody close a name for a while. A browser that was logged in with the name before has a
signed cookie and a count of its own: others cannot lock its person out (OWASP, device cookies). A name is stored as a
hash with the workbench's key: the typed name, perhaps the name of a person who was erased, stands nowhere.

A login is counted before its password is checked, so that guesses sent at once are throttled, too. Where too many are
being checked, further ones wait: only failures refuse anybody.
"""

import hmac
import secrets
from collections.abc import Mapping
from typing import NamedTuple

from itsdangerous import BadSignature, Signer
from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from steelyard.core.names import normalize_name
from steelyard.workbench.storage.tables import StoredLoginAttempt

DEVICE_SECONDS = 400 * 24 * 3600
"""Time for which a browser stays known: browsers keep no cookie longer."""
_WINDOW = 15 * 60.0
_MOST_BY_NAME = 8
_MOST_BY_ADDRESS = 60
_UNDECIDED = "?"
"""The first character of the name of a login while its password is checked: no hash and no other count has it."""
_LONGEST_CHECK = 30.0
"""Seconds after which a login without a result counts as failed: its process has ended."""


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


class Delay(NamedTuple):
    """The time until a login may be tried again: 0 seconds for at once.

    ``is_undecided``: passwords that are being checked are counted, and the next of them may end the delay.
    """

    seconds: float
    is_undecided: bool


def delay_of(session: Session, attempt: LoginAttempt, *, at: float) -> Delay:
    """Return how long a login has to wait after too many that failed, or that are being checked.

    Those of the future do not count: the clock of the machine was set back since.
    """
    names = (attempt.name, _UNDECIDED + attempt.name)
    limits: list[tuple[ColumnElement[bool], int]] = [(StoredLoginAttempt.name.in_(names), _MOST_BY_NAME)]
    if not attempt.is_known:
        limits.append((StoredLoginAttempt.address == attempt.address, _MOST_BY_ADDRESS))
    delays = [Delay(0.0, is_undecided=False)]
    for is_counted, most in limits:
        rows = session.execute(
            select(StoredLoginAttempt.at, StoredLoginAttempt.name)
            .where(is_counted, StoredLoginAttempt.at > at - _WINDOW, StoredLoginAttempt.at < at + _WINDOW)
            .order_by(StoredLoginAttempt.at.desc())
        ).all()
        failed = [row.at for row in rows if row.name[0] != _UNDECIDED or row.at < at - _LONGEST_CHECK]
        if len(failed) >= most:
            delays.append(Delay(failed[most - 1] + _WINDOW - at, is_undecided=False))
        elif len(rows) >= most:
            delays.append(Delay(_LONGEST_CHECK, is_undecided=True))
    # Failures alone refuse a login: what is being checked changes nothing about them.
    return max(delays, key=lambda each: (each.seconds > 0 and not each.is_undecided, each.seconds))


def count_failure(session: Session, attempt: LoginAttempt, *, at: float) -> None:
    """Count a failed login, and forget those that no longer count."""
    session.add(StoredLoginAttempt(name=attempt.name, address=attempt.address, at=at))
    session.execute(delete(StoredLoginAttempt).where(StoredLoginAttempt.at < at - _WINDOW))


def count_undecided(session: Session, attempt: LoginAttempt, *, at: float) -> int:
    """Count a login whose password is about to be checked. Returns the number of its row, for `settle`."""
    row = StoredLoginAttempt(name=_UNDECIDED + attempt.name, address=attempt.address, at=at)
    session.add(row)
    session.flush()
    return row.id


def settle(session: Session, number: int, *, is_failed: bool) -> None:
    """Count a login whose password was checked as failed, or no longer."""
    row = session.get(StoredLoginAttempt, number)
    if row is not None and is_failed:
        row.name = row.name.removeprefix(_UNDECIDED)
    elif row is not None:
        session.delete(row)


def forget_attempts(session: Session, attempt: LoginAttempt) -> None:
    """Forget the logins with the name of one."""
    names = (attempt.name, _UNDECIDED + attempt.name)
    session.execute(delete(StoredLoginAttempt).where(StoredLoginAttempt.name.in_(names)))


def _name_hash(key: bytes, name: str) -> str:
    return hmac.digest(key, f"device {normalize_name(name)}".encode(errors="replace"), "sha256").hex()[:16]


def _signer(key: bytes, device: str) -> Signer:
    return Signer(key, salt=f"device {device}")
