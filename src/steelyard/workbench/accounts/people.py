"""People and how they are known: accounts, passwords, browsers that are logged in, tokens of the REST interface.

Passwords are stored as Argon2id hashes, session and API tokens as SHA-256: a copy of the database opens no account. A
cookie is signed, so that a forged one costs no look-up; the token against forged forms (CSRF) follows from the session.
No key opens everything.
"""

import hashlib
import hmac
import random
import secrets
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, get_args
from weakref import WeakKeyDictionary

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from itsdangerous import BadSignature, Signer
from sqlalchemy import Row, bindparam, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from steelyard.core.names import normalize_name
from steelyard.workbench.accounts.api_tokens import Scope, digest_of, revoke_tokens
from steelyard.workbench.accounts.login_attempts import (
    DeviceCookie,
    count_failure,
    count_undecided,
    delay_of,
    forget_attempts,
    login_attempt,
    new_device,
    settle,
)
from steelyard.workbench.pipeline.offboarding import hand_over
from steelyard.workbench.storage.account_names import (
    check_free,
    checked_display_name,
    checked_name,
    checked_skills,
    erased_name,
)
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.tables import (
    Role,
    StoredApiToken,
    StoredKey,
    StoredLoginSession,
    StoredPerson,
)

ROLES: tuple[Role, ...] = get_args(Role)
SESSION_SECONDS = 12 * 3600.0
_LONGEST_TURN = 10.0
"""Seconds for which a login waits while others of its name or address are being checked."""
_FEWEST_CHARACTERS = 10
_MOST_CHARACTERS = 1000
# Letters and digits that no font confuses.
_ALPHABET = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
# Every request asks this: the statements are built once, and only what a visitor needs is read.
_ACTIVE = select(
    StoredPerson.id, StoredPerson.display_name, StoredPerson.role, StoredPerson.language, StoredPerson.pseudonym
).where(StoredPerson.is_active.is_(True))
_OF_SESSION = _ACTIVE.join(StoredLoginSession, StoredLoginSession.person_id == StoredPerson.id).where(
    StoredLoginSession.token_hash == bindparam("hash"), StoredLoginSession.expires_at > bindparam("at")
)
_OF_TOKEN = (
    _ACTIVE.add_columns(StoredApiToken.scope)
    .join(StoredApiToken, StoredApiToken.person_id == StoredPerson.id)
    .where(
        StoredApiToken.token_hash == bindparam("hash"),
        StoredApiToken.revoked_at.is_(None),
        StoredApiToken.expires_at > bindparam("at"),
    )
)
_keys: WeakKeyDictionary[object, bytes] = WeakKeyDictionary()
"""The key of each database that is open. It is made once in the life of a workbench."""
_NONE: Mapping[str, str] = MappingProxyType({})
_hasher = PasswordHasher()
# Checked for an unknown name, too, so that the time of an answer does not tell which names exist.
_NOBODY = _hasher.hash("nobody")


class Visitor(NamedTuple):
    """The sender of a request. ``csrf``: the token that forms of a browser's session carry; null for API tokens.

    ``scope``: that of an API token; null for a browser.
    """

    person: int
    name: str
    role: Role
    language: str
    pseudonym: str
    csrf: str | None
    scope: Scope | None = None


class LoginRefused(Exception):  # noqa: N818 - a refusal is an answer to the person, not a fault
    """A login that is not let in. ``wait`` is in seconds where too many failed before; null for a wrong password.

    ``is_undecided``: too many passwords are being checked, and some may be right.
    """

    def __init__(self, wait: float | None = None, *, is_undecided: bool = False) -> None:
        super().__init__("too many failed logins" if wait else "name or password is wrong")
        self.wait, self.is_undecided = wait, is_undecided


class NewPerson(NamedTuple):
    """An account to be made. Without a password nobody can log in to it."""

    name: str
    role: Role
    password: str | None = None
    display_name: str = ""
    language: str = "en"
    skills: tuple[str, ...] = ()
    is_simulated: bool = False


def make_key(session: Session) -> None:
    """Make the key that cookies are signed with, once in the life of a workbench."""
    if session.scalar(select(StoredKey.id).where(StoredKey.name == "cookies")) is None:
        session.add(StoredKey(name="cookies", value=secrets.token_hex(32)))


def public_name(session: Session) -> str:
    """Return what tells this workbench from others that were served at the same address: a hash of its key."""
    return hashlib.sha256(b"public name" + _key(session)).hexdigest()[:12]


def add_person(session: Session, new: NewPerson, *, by: int | None, at: float) -> StoredPerson:
    """Make an account.

    Raises ConfigError for a name that is taken, or looks like one that is, for one that cannot be shown, and for a
    password that is too short.
    """
    name = checked_name(new.name)
    display_name = checked_display_name(new.display_name) or name
    check_free(session, name, display_name)
    if new.role not in ROLES:
        raise RefusedError(f"{new.role!r} is not a role", words="misfit", where="role", allowed=", ".join(ROLES))
    person = StoredPerson(
        name=name,
        display_name=display_name,
        pseudonym=f"P-{''.join(secrets.choice(_ALPHABET) for _ in range(8))}",
        password_hash="" if new.password is None else _hash_password(new.password),
        role=new.role,
        language=new.language,
        skills=checked_skills(new.skills),
        is_simulated=new.is_simulated,
        created_at=at,
    )
    session.add(person)
    try:
        with session.begin_nested():
            session.flush()
    except IntegrityError:
        problem, values = f"{name!r} has an account already", {"name": name}
        raise RefusedError(problem, words="taken", values=values, where="name", do="choose another name") from None
    record(session, AuditEvent("account made", "person", person.id, by, {"role": new.role}), at=at)
    return person


def has_public_passwords(session: Session) -> bool:
    """Tell whether simulated people can log in: their password is that of every demonstration."""
    able = select(StoredPerson.id).where(
        StoredPerson.is_simulated.is_(True), StoredPerson.is_active.is_(True), StoredPerson.password_hash != ""
    )
    return session.scalar(able.limit(1)) is not None


def first_password() -> str:
    """Return a random password to be told to a person, who changes it: 59 bits, in letters that no font confuses."""
    return "-".join("".join(secrets.choice(_ALPHABET) for _ in range(4)) for _ in range(3))


def set_password(session: Session, person: StoredPerson, password: str, *, by: int | None, at: float) -> None:
    """Change a password, log every browser of the person out, and revoke every token."""
    person.password_hash = _hash_password(password)
    session.execute(delete(StoredLoginSession).where(StoredLoginSession.person_id == person.id))
    revoke_tokens(session, person, at=at)
    record(session, AuditEvent("password changed", "person", person.id, by, {}), at=at)


def change_account(
    session: Session,
    person: StoredPerson,
    *,
    role: Role,
    is_active: bool,
    skills: tuple[str, ...],
    by: int | None,
    at: float,
) -> None:
    """Change what a person may do. Raises ConfigError where no administrator would be left.

    What an annotator holds goes to others when the account is closed or gets another role; tokens are revoked then.
    """
    if person.role == "administrator" and (role != "administrator" or not is_active):
        # Locked: of two administrators who close each other's accounts at once, one stays.
        administrators = select(StoredPerson.id).where(
            StoredPerson.role == "administrator", StoredPerson.is_active.is_(True)
        )
        if set(session.scalars(administrators.order_by(StoredPerson.id).with_for_update())) <= {person.id}:
            problem, do = "nobody else is an administrator", "make another administrator first"
            raise RefusedError(problem, words="last administrator", where="role", do=do)
    detail = {"role": role, "is_active": is_active, "skills": list(skills), "was": person.role}
    if not is_active or role != person.role:
        revoke_tokens(session, person, at=at)
    person.role, person.is_active, person.skills = role, is_active, checked_skills(skills)
    if not is_active:
        session.execute(delete(StoredLoginSession).where(StoredLoginSession.person_id == person.id))
    record(session, AuditEvent("account changed", "person", person.id, by, detail), at=at)
    if not is_active or role != "annotator":
        hand_over(session, person, at=at)


def erase_person(session: Session, person: StoredPerson, *, by: int | None, at: float) -> None:
    """Forget a person: name, password, sessions and tokens go; the judgments stay under the pseudonym.

    What the person holds goes to others.

    The audit log names people by number only, so that nothing in it has to change.
    """
    if person.role == "administrator":
        change_account(session, person, role="annotator", is_active=False, skills=(), by=by, at=at)
    make_key(session)  # a workbench that was never served has none
    forget_attempts(session, login_attempt(_key(session), person.name, "", {}))
    person.name = erased_name(person.pseudonym)
    person.display_name = person.pseudonym
    person.password_hash, person.skills, person.is_active, person.erased_at = "", [], False, at
    session.execute(delete(StoredLoginSession).where(StoredLoginSession.person_id == person.id))
    revoke_tokens(session, person, at=at)
    session.execute(update(StoredApiToken).where(StoredApiToken.person_id == person.id).values(name=""))
    record(session, AuditEvent("person erased", "person", person.id, by, {}), at=at)
    hand_over(session, person, at=at)


def enter(
    database: Database, name: str, password: str, *, address: str, at: float, cookies: Mapping[str, str] = _NONE
) -> str:
    """Check a password and return the cookie of a new session, in two short transactions. Raises LoginRefused.

    The password is hashed between them: nobody else's answer waits for that. The attempt is counted before it is
    tried, so that many at once are throttled, too, and is taken back when it succeeds: those beyond the limit wait for
    what becomes of the others. ``cookies``: of the browser.
    """

    def begin(session: Session) -> tuple[int, str]:
        counted = login_attempt(_key(session), name, address, cookies)
        if (delay := delay_of(session, counted, at=at)).seconds:
            raise LoginRefused(delay.seconds, is_undecided=delay.is_undecided)
        person = _person_named(session, name)
        return count_undecided(session, counted, at=at), "" if person is None else person.password_hash

    latest = time.monotonic() + _LONGEST_TURN
    while True:
        try:
            attempt, stored = database.write(begin)
            break
        except LoginRefused as refusal:
            if not refusal.is_undecided or time.monotonic() > latest:
                raise
        time.sleep(random.uniform(0.05, 0.15))
    if not _is_password(stored or _NOBODY, password) or not stored:
        database.write(lambda session: settle(session, attempt, is_failed=True))
        raise LoginRefused
    newer = _hasher.hash(password) if _hasher.check_needs_rehash(stored) else stored

    def end(session: Session) -> str:
        person = _person_named(session, name)
        if person is None or person.password_hash != stored:
            # Closed, or given another password, in the meantime.
            raise LoginRefused
        person.password_hash = newer
        settle(session, attempt, is_failed=False)
        return _open_session(session, person, at)

    return database.write(end)


def log_in(
    session: Session, name: str, password: str, *, address: str, at: float, cookies: Mapping[str, str] = _NONE
) -> str:
    """Check a password and return the cookie of a new session, within a transaction: `enter` holds up nobody.

    Raises LoginRefused. The failure is written in this transaction: call `record_failure` in one that is kept.
    """
    if wait := delay_of(session, login_attempt(_key(session), name, address, cookies), at=at).seconds:
        raise LoginRefused(wait)
    person = _person_named(session, name)
    stored = "" if person is None else person.password_hash
    if not _is_password(stored or _NOBODY, password) or person is None or not stored:
        raise LoginRefused
    if _hasher.check_needs_rehash(stored):
        person.password_hash = _hasher.hash(password)
    return _open_session(session, person, at)


def _person_named(session: Session, name: str) -> StoredPerson | None:
    # Accounts of earlier versions may have a name whose letters are written in another way.
    names = (normalize_name(name), name.strip())
    people = select(StoredPerson).where(StoredPerson.name.in_(names), StoredPerson.is_active.is_(True))
    return min(session.scalars(people), key=lambda each: names.index(each.name), default=None)


def _open_session(session: Session, person: StoredPerson, at: float) -> str:
    token = secrets.token_urlsafe(32)
    session.add(
        StoredLoginSession(
            token_hash=digest_of(token), person_id=person.id, created_at=at, expires_at=at + SESSION_SECONDS
        )
    )
    session.execute(delete(StoredLoginSession).where(StoredLoginSession.expires_at < at))
    record(session, AuditEvent("logged in", "person", person.id, person.id, {}), at=at)
    return Signer(_key(session)).sign(token).decode()


def record_failure(session: Session, name: str, *, address: str, at: float, cookies: Mapping[str, str] = _NONE) -> None:
    """Count a failed login."""
    count_failure(session, login_attempt(_key(session), name, address, cookies), at=at)


def device_cookie(session: Session, name: str) -> DeviceCookie:
    """Return the cookie by which the browser of a login is known again: others cannot lock it out of the name."""
    return new_device(_key(session), name)


def log_out(session: Session, cookie: str) -> None:
    """End the session of a cookie, if there is one."""
    if token := _unsigned(session, cookie):
        session.execute(delete(StoredLoginSession).where(StoredLoginSession.token_hash == digest_of(token)))


def is_signed(session: Session, cookie: str) -> bool:
    """Tell whether a cookie was made by this workbench; its session may be over."""
    return _unsigned(session, cookie) is not None


def visitor_of_cookie(session: Session, cookie: str, *, at: float) -> Visitor | None:
    """Return who a cookie belongs to; null for one that is forged, over, or of an account that is closed."""
    token = _unsigned(session, cookie)
    if token is None:
        return None
    row = session.execute(_OF_SESSION, {"hash": digest_of(token), "at": at}).one_or_none()
    return None if row is None else _visitor(row, hmac.digest(_key(session), token.encode(), "sha256").hex())


def visitor_of_token(session: Session, token: str, *, at: float) -> Visitor | None:
    """Return who an API token belongs to; null for one that is unknown, revoked, over, or of a closed account."""
    row = session.execute(_OF_TOKEN, {"hash": digest_of(token), "at": at}).one_or_none()
    return None if row is None else _visitor(row, None)._replace(scope=row.scope)


def _visitor(person: Row, csrf: str | None) -> Visitor:
    role: Role = next(role for role in ROLES if role == person.role)
    return Visitor(person.id, person.display_name, role, person.language, person.pseudonym, csrf)


def _hash_password(password: str) -> str:
    if not _FEWEST_CHARACTERS <= len(password) <= _MOST_CHARACTERS:
        raise RefusedError(
            f"a password of {len(password)} characters",
            words="password",
            values={"fewest": str(_FEWEST_CHARACTERS), "most": f"{_MOST_CHARACTERS:,}"},
            where="password",
            allowed=f"{_FEWEST_CHARACTERS} or more",
        )
    return _hasher.hash(password)


def _is_password(stored: str, password: str) -> bool:
    try:
        return _hasher.verify(stored, password[:_MOST_CHARACTERS])
    except (VerificationError, InvalidHashError):
        return False


def _key(session: Session) -> bytes:
    engine = session.get_bind()
    if engine not in _keys:
        value = session.scalar(select(StoredKey.value).where(StoredKey.name == "cookies"))
        assert value is not None, "made when the workbench is opened"
        _keys[engine] = bytes.fromhex(value)
    return _keys[engine]


def _unsigned(session: Session, cookie: str) -> str | None:
    try:
        return Signer(_key(session)).unsign(cookie).decode()
    except (BadSignature, UnicodeDecodeError):
        return None
