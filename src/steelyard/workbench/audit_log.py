"""The audit log: who did what to which object, in a chain of hashes that shows any change afterwards.

An event is written in the transaction of what it tells of, so that neither exists without the other. The tables refuse
updates and deletions. Whoever holds the password of the database could still rewrite history: `verify` says where.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
from sqlalchemy import insert, select, text
from sqlalchemy.orm import Session

from steelyard.core.types import JsonObject
from steelyard.workbench.tables import StoredEvent

_LOCK = 7_305_194_806_130_911
"""The number of the lock under which PostgreSQL appends one event after another; SQLite has one writer anyway."""
_BLOCK = 5000


_LAST_HASH = select(StoredEvent.hash).order_by(StoredEvent.id.desc()).limit(1)
_APPEND = insert(StoredEvent.__table__)  # pyright: ignore[reportArgumentType] - the Table of a declared class


class Deed(NamedTuple):
    """What a person did: ``person`` is null for the program itself; ``subject`` names a table's noun, such as ``item``.

    ``detail`` never holds a password, a token or the text of an answer.
    """

    action: str
    subject: str
    subject_id: int | None
    person: int | None
    detail: JsonObject


def record(session: Session, deed: Deed, *, at: float) -> None:
    """Remember a deed, to be written with the transaction of the session: `append_recorded`."""
    session.info.setdefault("deeds", []).append((deed, at))


def append_recorded(session: Session) -> None:
    """Append the deeds of this transaction to the log. Called last: from here to the commit nobody else can append."""
    deeds: list[tuple[Deed, float]] = session.info.pop("deeds", [])
    if not deeds:
        return
    session.flush()
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK})
    session.execute(_APPEND, chained(deeds, session.scalar(_LAST_HASH) or ""))


def chained(deeds: Iterable[tuple[Deed, float]], last: str) -> list[JsonObject]:
    """Return the rows of deeds and their times that follow an event with the hash ``last``, empty for the first."""
    rows: list[JsonObject] = []
    for deed, at in deeds:
        row: JsonObject = {"at": at, "person_id": deed.person, "action": deed.action, "subject": deed.subject}
        row |= {"subject_id": deed.subject_id, "detail": deed.detail, "previous_hash": last}
        last = row["hash"] = _hash(deed, at, last)
        rows.append(row)
    return rows


def verify(session: Session) -> int | None:
    """Return the number of the first event that does not follow from those before it; null if all do."""
    last = ""
    for row in _in_order(session):
        deed = Deed(row.action, row.subject, row.subject_id, row.person_id, row.detail)
        if row.previous_hash != last or row.hash != _hash(deed, row.at, last):
            return row.id
        last = row.hash
    return None


def _in_order(session: Session) -> Iterator[StoredEvent]:
    after = 0
    while rows := session.scalars(
        select(StoredEvent).where(StoredEvent.id > after).order_by(StoredEvent.id).limit(_BLOCK)
    ).all():
        yield from rows
        after = rows[-1].id
        session.expunge_all()


def _hash(deed: Deed, at: float, previous: str) -> str:
    content = msgspec.json.encode([previous, at, *deed], order="sorted")
    return hashlib.sha256(content).hexdigest()
