"""Which requests of a ledger wait in which batch file: no request waits in two, and none that waits is sent.

The marks are tables of the ledger, so that a reply and the end of its wait are stored together. A request has a row for
every batch that it was in: ``waiting``, ``read`` once a result has come, ``released`` where it was given free.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from steelyard.core.errors import WaitingError
from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Record

TABLES = """
CREATE TABLE IF NOT EXISTS batches (name TEXT PRIMARY KEY, digest TEXT NOT NULL, since TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batched (request TEXT NOT NULL, batch TEXT NOT NULL, state TEXT NOT NULL, result TEXT,
  file TEXT, PRIMARY KEY (request, batch)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS batched_by_batch ON batched (batch, state);
CREATE TABLE IF NOT EXISTS result_files (digest TEXT PRIMARY KEY, name TEXT NOT NULL) WITHOUT ROWID;
"""
ALL_BATCHES = "all"
"""Word that releases every batch, in place of a name."""
_MOST_NAMED = 8
Finding = Literal["new", "known", "late", "repeated", "unknown"]
_WAITING = """SELECT name, since, SUM(state = 'waiting'), COUNT(*) FROM batches JOIN batched ON batch = name
  GROUP BY name HAVING SUM(state = 'waiting') > 0 ORDER BY name"""
_SETTLE = "UPDATE batched SET state = 'read', result = ?, file = ? WHERE request = ? AND batch = ?"
_HOLD = "INSERT OR IGNORE INTO held VALUES (?, ?, ?)"


class WaitingBatch(Record, frozen=True, kw_only=True):
    """A batch file with requests that wait: how many of how many, and since when (local time)."""

    name: str
    since: str
    num_waiting: int
    num_requests: int


def waiting_text(batches: Sequence[WaitingBatch]) -> str:
    """Describe how many requests wait in which batch files."""
    number = sum(batch.num_waiting for batch in batches)
    listing = ", ".join(f"{batch.name} ({batch.num_waiting:,} since {batch.since})" for batch in batches[:_MOST_NAMED])
    more = f" and {len(batches) - _MOST_NAMED} more" if len(batches) > _MOST_NAMED else ""
    waits = f"{number_of(number, 'request')} {verb_for(number, 'waits', 'wait')}"
    return f"{waits} in {number_of(len(batches), 'batch', 'batches')}: {listing}{more}"


class HeldResult(NamedTuple):
    """A result that was read from a file and not yet stored as a reply: its batch, and the encoded result."""

    batch: str
    content: str


class BatchMarks:
    """The marks in a ledger. Every method belongs to the ledger's transaction: `Ledger.together` stores its changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def names(self) -> dict[str, str]:
        """Return the hash of every batch file that was written, by its name."""
        return dict(self._connection.execute("SELECT name, digest FROM batches ORDER BY name"))

    def waiting(self) -> tuple[WaitingBatch, ...]:
        """Return the batches with requests that wait, in the order of their names; none for a ledger without marks."""
        if not self._connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'batched'").fetchone():
            return ()
        return tuple(
            WaitingBatch(name=name, since=since, num_waiting=num_waiting, num_requests=number)
            for name, since, num_waiting, number in self._connection.execute(_WAITING)
        )

    def refuse_waiting(self) -> None:
        """Raise WaitingError where requests wait: sent as well, they would be asked and billed twice."""
        if waiting := self.waiting():
            do = Advice(
                "put the results into the folder of the batch files and say ",
                Remedy("batch", FOLDER),
                ", or say ",
                Remedy("release_batch", "all"),
            )
            number = sum(batch.num_waiting for batch in waiting)
            raise WaitingError(waiting_text(waiting), do=f"{do} to ask these requests again", num_waiting=number)

    def is_waiting(self, request: str) -> bool:
        """Return whether the request waits in a batch."""
        query = "SELECT 1 FROM batched WHERE request = ? AND state = 'waiting'"
        return self._connection.execute(query, (request,)).fetchone() is not None

    def was_read(self, request: str) -> bool:
        """Return whether a batch has brought a result of the request."""
        query = "SELECT 1 FROM batched WHERE request = ? AND state = 'read'"
        return self._connection.execute(query, (request,)).fetchone() is not None

    def mark(self, name: str, digest: str, since: str, requests: Iterable[str]) -> None:
        """Mark requests as waiting in a new batch."""
        self._connection.execute("INSERT INTO batches VALUES (?, ?, ?)", (name, digest, since))
        rows = ((request, name) for request in requests)
        self._connection.executemany("INSERT INTO batched VALUES (?, ?, 'waiting', NULL, NULL)", rows)

    def release(self, name: str) -> int:
        """End the wait of the requests of a batch, or of `ALL_BATCHES`, without a reply. Returns how many there were.

        Raises KeyError for a batch that was never written.
        """
        if name == ALL_BATCHES:
            return self._connection.execute("UPDATE batched SET state = 'released' WHERE state = 'waiting'").rowcount
        if name not in self.names():
            raise KeyError(name)
        update = "UPDATE batched SET state = 'released' WHERE state = 'waiting' AND batch = ?"
        return self._connection.execute(update, (name,)).rowcount

    def settle(self, request: str, digest: str, file: str) -> tuple[Finding, str]:
        """Record a result by the hash of its content and the name of its file; return what it is, and its batch.

        ``new``: the request waited for it. ``known``: it was read before. ``late``: its request had been released.
        ``repeated``: every batch of the request has brought another result. ``unknown``: no batch has had the request.
        """
        query = "SELECT batch, state, result, file FROM batched WHERE request = ? ORDER BY batch"
        rows = self._connection.execute(query, (request,)).fetchall()
        if not rows:
            return "unknown", ""
        # Services without ids of their own repeat a failure word for word: in another file it is the next batch's.
        if any((result, place) == (digest, file) for _, _, result, place in rows):
            return "known", ""
        batches = {state: batch for batch, state, result, _ in reversed(rows) if result is None}
        if "waiting" not in batches and any(result == digest for _, _, result, _ in rows):
            return "known", ""
        findings: tuple[tuple[str, Finding], ...] = (("waiting", "new"), ("released", "late"))
        for state, finding in findings:
            if state in batches:
                self._connection.execute(_SETTLE, (digest, file, request, batches[state]))
                return finding, batches[state]
        return "repeated", ""

    def knows_file(self, digest: str) -> bool:
        """Return whether a result file of this hash was read."""
        return self._connection.execute("SELECT 1 FROM result_files WHERE digest = ?", (digest,)).fetchone() is not None

    def add_file(self, digest: str, name: str) -> None:
        """Record that a result file was read."""
        self._connection.execute("INSERT OR IGNORE INTO result_files VALUES (?, ?)", (digest, name))

    def hold(self, request: str, result: HeldResult) -> None:
        """Keep a result until its request comes: on disk, since files have tens of thousands of long replies.

        Of two results of one request the first is kept.
        """
        self._connection.execute(
            "CREATE TEMP TABLE IF NOT EXISTS held (request TEXT PRIMARY KEY, batch TEXT, content TEXT) WITHOUT ROWID"
        )
        self._connection.execute(_HOLD, (request, *result))

    def take(self, request: str) -> HeldResult | None:
        """Return the result that is held for a request, once; null without one."""
        if not self._has_held():
            return None
        row = self._connection.execute("SELECT batch, content FROM held WHERE request = ?", (request,)).fetchone()
        if row is None:
            return None
        self._connection.execute("DELETE FROM held WHERE request = ?", (request,))
        return HeldResult(*row)

    def held(self) -> Iterator[HeldResult]:
        """Yield the results that no request has taken."""
        if self._has_held():
            for row in self._connection.execute("SELECT batch, content FROM held ORDER BY request"):
                yield HeldResult(*row)

    def _has_held(self) -> bool:
        return self._connection.execute("SELECT 1 FROM sqlite_temp_master WHERE name = 'held'").fetchone() is not None
