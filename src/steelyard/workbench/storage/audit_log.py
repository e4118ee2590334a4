"""The audit log: who did what to which object, in a chain of hashes that shows any change afterwards.

An event is written in the transaction of what it tells of, so that neither exists without the other. The tables refuse
updates and deletions. A holder of the database's password could still rewrite history: `check_log` says where.
The event of an answer has the hash of its content: an answer that was changed shows as well, and so does one whose
event was cut off at the end of the log. A check that finds nothing is an event itself, after which the next one may
begin: the whole log is read on request.
"""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec
from sqlalchemy import bindparam, insert, select, text
from sqlalchemy.orm import Session

from steelyard.core.types import JsonObject
from steelyard.workbench.storage.tables import StoredAnswer, StoredEvent

_LOCK = 7_305_194_806_130_911
"""The number of the lock under which PostgreSQL appends one event after another; SQLite has one writer anyway."""
_BLOCK = 5000


_TAKE_LOCK = text(f"SELECT pg_advisory_xact_lock({_LOCK})")
_LAST_HASH = select(StoredEvent.hash).order_by(StoredEvent.id.desc()).limit(1)
_APPEND = insert(StoredEvent.metadata.tables[StoredEvent.__tablename__])
_HASH = select(StoredEvent.hash).where(StoredEvent.id == bindparam("event"))
_AFTER = (
    # Columns alone: a row of a class takes longer than its hash.
    select(
        StoredEvent.id,
        StoredEvent.at,
        StoredEvent.person_id,
        StoredEvent.action,
        StoredEvent.subject,
        StoredEvent.subject_id,
        StoredEvent.detail,
        StoredEvent.previous_hash,
        StoredEvent.hash,
    )
    .where(StoredEvent.id > bindparam("event"))
    .order_by(StoredEvent.id)
    .limit(_BLOCK)
)
_ANSWERS = (
    select(StoredAnswer.id, StoredAnswer.content)
    .where(StoredAnswer.id > bindparam("answer"))
    .order_by(StoredAnswer.id)
    .limit(_BLOCK)
)
_LOG, _CHECKED = "log", "log checked"


class AuditEvent(NamedTuple):
    """An event: ``person`` is null for the program itself; ``subject`` names a table's noun, such as ``item``.

    ``detail`` never holds a password, a token or the text of an answer.
    """

    action: str
    subject: str
    subject_id: int | None
    person: int | None
    detail: JsonObject


class CheckedEvent(NamedTuple):
    """An event and its hash up to which the log was found whole, and when, in seconds since 1970."""

    event: int
    hash: str
    at: float | None = None


BEGINNING = CheckedEvent(0, "")


class LogCheck(NamedTuple):
    """A check of the log ``since`` an event, or its beginning, ``through`` another.

    ``broken``: the first event that does not follow from those before it; null if all do. ``answer``: the first answer
    that is not as its event says, or is gone, or whose event is; null if there is none.
    """

    broken: int | None
    since: CheckedEvent
    through: CheckedEvent
    answer: int | None = None

    @property
    def is_whole(self) -> bool:
        """True for a log without a problem."""
        return self.broken is None and self.answer is None


def record(session: Session, event: AuditEvent, *, at: float) -> None:
    """Remember a event, to be written with the transaction of the session: `append_recorded`."""
    session.info.setdefault("events", []).append((event, at))


def answer_detail(answer: StoredAnswer) -> JsonObject:
    """Return the detail of the event of a stored answer: its number and the hash of its content."""
    return {"answer": answer.id, "sha256": _content_hash(answer.content)}


def append_recorded(session: Session) -> None:
    """Append the events of this transaction to the log. Called last: from here to the commit nobody else can append."""
    events: list[tuple[AuditEvent, float]] = session.info.pop("events", [])
    if not events:
        return
    session.flush()
    if session.get_bind().dialect.name == "postgresql":
        session.execute(_TAKE_LOCK)
    session.execute(_APPEND, chained(events, session.scalar(_LAST_HASH) or ""))


def chained(events: Iterable[tuple[AuditEvent, float]], last: str) -> list[JsonObject]:
    """Return the rows of events and their times that follow an event with the hash ``last``, empty for the first."""
    rows: list[JsonObject] = []
    for event, at in events:
        row: JsonObject = {"at": at, "person_id": event.person, "action": event.action, "subject": event.subject}
        row |= {"subject_id": event.subject_id, "detail": event.detail, "previous_hash": last}
        last = row["hash"] = _hash(event, at, last)
        rows.append(row)
    return rows


def verify(session: Session) -> int | None:
    """Return the number of the first event that does not follow from those before it; null if all do."""
    return check_log(session).broken


def check_log(session: Session, since: CheckedEvent = BEGINNING) -> LogCheck:
    """Follow the chain of hashes behind an event that was checked, by default the `BEGINNING`: all of it.

    What was changed before that event is found from the beginning alone, and so is an answer without its event. Events
    that a former version wrote have no hash of their answers. Reads one state of the database (`Database.reading`).
    """
    last, through = since.hash, since.event
    hashes: dict[int, str] = {}
    if since.event and session.scalar(_HASH, {"event": since.event}) != since.hash:
        return LogCheck(since.event, since, since)
    while rows := session.execute(_AFTER, {"event": through}).all():
        for number, at, person, action, subject, subject_id, detail, previous, stored in rows:
            if previous != last or stored != _hash(AuditEvent(action, subject, subject_id, person, detail), at, last):
                return LogCheck(number, since, CheckedEvent(through, last))
            last, through = stored, number
            if "answer" in detail:
                hashes[detail["answer"]] = detail["sha256"]
    changed = _changed_answer(session, hashes, is_whole=since == BEGINNING)
    return LogCheck(None, since, CheckedEvent(through, last), changed)


def _changed_answer(session: Session, hashes: dict[int, str], *, is_whole: bool) -> int | None:
    """Return the first answer whose content has not its hash, or that is gone; of the whole log, or without a hash."""
    if not hashes:
        return None
    last = min(hashes) - 1
    while rows := session.execute(_ANSWERS, {"answer": last}).all():
        for last, content in rows:
            expected = hashes.pop(last, None)
            if (expected is None and is_whole) or (expected is not None and expected != _content_hash(content)):
                return last
    return min(hashes, default=None)


def last_checked_event(session: Session) -> CheckedEvent:
    """Return the end of the latest check that found nothing; the beginning where there was none."""
    event = session.scalar(
        select(StoredEvent)
        .where(StoredEvent.subject == _LOG, StoredEvent.action == _CHECKED)
        .order_by(StoredEvent.id.desc())
        .limit(1)
    )
    return BEGINNING if event is None else CheckedEvent(event.detail["through"], event.detail["hash"], event.at)


def record_check(session: Session, check: LogCheck, *, by: int, at: float) -> None:
    """Log that a check found nothing: the next one may begin where it ended."""
    assert check.is_whole, "a broken log is not noted"
    detail: JsonObject = {"from": check.since.event, "through": check.through.event, "hash": check.through.hash}
    record(session, AuditEvent(_CHECKED, _LOG, None, by, detail), at=at)


def _content_hash(content: JsonObject) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _hash(event: AuditEvent, at: float, previous: str) -> str:
    content = msgspec.json.encode([previous, at, *event], order="sorted")
    return hashlib.sha256(content).hexdigest()
