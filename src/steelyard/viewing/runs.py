"""The runs below a folder, found anew as they change: finished, running, interrupted, failed, or not readable.

A run is known to others by a hash of its place: no path comes from outside. Links are not followed.
"""

import hashlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from steelyard.evaluation.tables import count, word
from steelyard.io.atomic import LOCK_FILE, is_held
from steelyard.io.hashing import file_hash
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE
from steelyard.io.run_state import RunState, read_state
from steelyard.report.run_records import last_part
from steelyard.views.view import HeadlineRule, RunHeadline, view_of

State = Literal["finished", "running", "interrupted", "failed", "waiting", "unreadable"]
_ID_DIGITS = 16
_MIN_SECONDS = 1.0
_PAUSE = 5.0
"""A folder is searched again after at least this many times the duration of the last search."""


class ListedRun(NamedTuple):
    """One run: ``place`` is its path below the folder, ``time`` when it finished or was last heard of.

    ``version`` grows when anything else here changes. ``live`` is the state of an unfinished run, null if it left none.
    """

    id: str
    folder: Path
    place: str
    stage: str
    state: State
    time: float
    seconds: float | None
    headline: RunHeadline
    problem: str = ""
    live: RunState | None = None
    version: int = 0

    @property
    def name(self) -> str:
        """The name of its folder."""
        return self.place.rpartition("/")[2] or self.folder.name

    @property
    def parent(self) -> str:
        """The place of the folder that holds it; empty at the top."""
        return self.place.rpartition("/")[0]

    def fingerprint(self) -> str:
        """Return the hash of a finished run's record, by which its report is known."""
        return file_hash(self.folder / RUN_FILE)


class Changes(NamedTuple):
    """The runs that changed since a version, and the ids of those that are gone."""

    version: int
    runs: tuple[ListedRun, ...]
    gone: tuple[str, ...]


class _Place(NamedTuple):
    """A folder that holds a run: its records as the file system knows them, null where absent."""

    folder: Path
    finished: os.stat_result | None
    started: os.stat_result | None


class RunList:
    """The runs below ``root``. Records are read again only when they change; searches are at least a second apart.

    ``token`` identifies this list: versions of another one mean nothing here.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.token = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._runs: dict[str, ListedRun] = {}
        self._gone: dict[str, int] = {}
        self._read: dict[Path, tuple[tuple[int, int, int], ListedRun]] = {}
        self._version = 0
        self._due = 0.0

    @property
    def number(self) -> int:
        """The number of runs."""
        return len(self._runs)

    def run(self, identifier: str) -> ListedRun | None:
        """Return the run of this id as it is now, null if there is none."""
        with self._lock:
            self._refresh()
            return self._runs.get(identifier)

    def changes(self, version: int) -> Changes:
        """Return what changed after a version."""
        with self._lock:
            self._refresh()
            changed = tuple(run for run in self._runs.values() if run.version > version)
            gone = tuple(identifier for identifier, since in self._gone.items() if since > version)
            return Changes(self._version, changed, gone)

    def _refresh(self) -> None:
        started = time.monotonic()
        if started < self._due:
            return
        current = {run.id: run for run in map(self._listed, _places(self.root))}
        for identifier, run in current.items():
            before = self._runs.get(identifier)
            if before is not None and before == run._replace(version=before.version):
                current[identifier] = before
            else:
                self._version += 1
                current[identifier] = run._replace(version=self._version)
        for identifier in self._runs.keys() - current.keys():
            self._version += 1
            self._gone[identifier] = self._version
        for identifier in current:
            self._gone.pop(identifier, None)
        self._runs = current
        folders = {run.folder for run in current.values()}
        self._read = {folder: known for folder, known in self._read.items() if folder in folders}
        ended = time.monotonic()
        self._due = ended + max(_MIN_SECONDS, _PAUSE * (ended - started))

    def _listed(self, place: _Place) -> ListedRun:
        if place.finished is None or place.started is not None:
            return _unfinished(self.root, place)
        signature = (place.finished.st_mtime_ns, place.finished.st_size, place.finished.st_ino)
        known = self._read.get(place.folder)
        if known is None or known[0] != signature:
            known = self._read[place.folder] = (signature, _finished(self.root, place.folder, place.finished))
        return known[1]


def _places(root: Path) -> Iterator[_Place]:
    """Yield every folder with a record of a run, at any depth; hidden folders, links and forbidden folders are not."""
    waiting = [str(root)]
    while waiting:
        folder = waiting.pop()
        records: dict[str, os.stat_result] = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name in (RUN_FILE, STARTED_FILE):
                        if entry.is_file(follow_symlinks=False):
                            records[entry.name] = entry.stat(follow_symlinks=False)
                    elif not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue  # it was removed, or may not be read
        if records:
            yield _Place(Path(folder), records.get(RUN_FILE), records.get(STARTED_FILE))


def _id(place: str) -> str:
    return hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:_ID_DIGITS]


def _place_of(root: Path, folder: Path) -> str:
    """Return the path below the root; bytes that are not UTF-8 are shown as escapes."""
    place = folder.relative_to(root).as_posix()
    return "" if place == "." else place.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _finished(root: Path, folder: Path, record: os.stat_result) -> ListedRun:
    place = _place_of(root, folder)
    try:
        overview = msgspec.json.decode((folder / RUN_FILE).read_bytes(), type=RunOverview)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"{RUN_FILE}: {error}"
        return ListedRun(_id(place), folder, place, "", "unreadable", record.st_mtime, None, RunHeadline(), problem)
    headline = headline_of(overview)
    return ListedRun(_id(place), folder, place, overview.stage, "finished", record.st_mtime, overview.seconds, headline)


class _Started(msgspec.Struct):
    stage: str = ""
    config: msgspec.Raw = msgspec.Raw(b"{}")


def _unfinished(root: Path, place: _Place) -> ListedRun:
    live = read_state(place.folder)
    try:
        started = msgspec.json.decode((place.folder / STARTED_FILE).read_bytes(), type=_Started)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        started = _Started()
    name = _place_of(root, place.folder)
    seen = max(record.st_mtime for record in (place.finished, place.started) if record is not None)
    return ListedRun(
        _id(name),
        place.folder,
        name,
        started.stage,
        _held(place.folder) if live is None else live.state,
        seen if live is None else live.updated,
        None if live is None else max(live.updated - live.started, 0.0),
        headline_of(RunOverview(started.stage, started.config))._replace(value="", about=""),
        "" if live is None else live.problem,
        live,
    )


def _held(folder: Path) -> State:
    """Return the state of a run that left no state: it runs while a process holds its folder."""
    try:
        return "running" if is_held(folder / LOCK_FILE) else "interrupted"
    except OSError:
        return "interrupted"


class _CasesUsed(msgspec.Struct, frozen=True):
    num_in: int = 0
    num_used: int = 0


class RunOverview(msgspec.Struct, frozen=True):
    """Parts of a ``run.json`` that the list of runs needs."""

    stage: str
    config: msgspec.Raw = msgspec.Raw(b"{}")
    counts: _CasesUsed = _CasesUsed()
    summary: msgspec.Raw = msgspec.Raw(b"{}")
    seconds: float = 0.0


class _Settings(msgspec.Struct):
    model: Any = None


class _Backbone(msgspec.Struct):
    num_weights: int


class _Reported(msgspec.Struct):
    runs: dict[str, str]


_WITHOUT_VIEW = {
    "backbone": HeadlineRule(_Backbone, lambda run: RunHeadline(count(run.num_weights), word("view_weights"))),
    "report": HeadlineRule(_Reported, lambda run: RunHeadline(count(len(run.runs)), word("view_runs_shown"))),
}


def headline_of(run: RunOverview) -> RunHeadline:
    """Return the headline of a finished run; of a stage without one, and of a foreign summary, what it used."""
    view = view_of(run.stage)
    rule = _WITHOUT_VIEW.get(run.stage) if view is None else view.headline
    unit = word("view_cases_used" if view is None else view.unit)
    shown = RunHeadline(count(run.counts.num_used), f"{word('view_of')} {count(run.counts.num_in)} {unit}")
    if rule is not None:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            shown = rule.headline(msgspec.json.decode(run.summary, type=rule.fields, strict=False))
    return shown if shown.model else shown._replace(model=_model_setting(run.config))


def _model_setting(config: msgspec.Raw) -> str:
    """Return the model that the settings name, as a training records it; empty without one."""
    try:
        model = msgspec.json.decode(config, type=_Settings).model
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return last_part(model) if isinstance(model, str) else ""
