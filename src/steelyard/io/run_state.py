"""The state of an unfinished run: a small file in its folder with the command, the tasks so far, and how it ended.

The file is written about once a second while progress bars advance, and removed when the run finishes. Whether the run
still has a process is not in the file, which a kill leaves as it was: the lock of the folder says so.
"""

import os
import shlex
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Literal

import msgspec

from steelyard.core.errors import WaitingError
from steelyard.core.remedies import Advice
from steelyard.core.types import Record
from steelyard.io.atomic import LOCK_FILE, is_held
from steelyard.io.progress import BarStep, Show, as_interruption, in_words, observed

STATE_FILE = ".running.json"
_SECONDS_BETWEEN_WRITES = 1.0
_SECONDS_BEFORE_NEXT_TASK = 0.2
"""A task that begins is written sooner: its first step may take minutes."""
_FRESH_SECONDS = 10.0
_MOST_TASKS = 20


UnfinishedState = Literal["running", "interrupted", "failed", "waiting"]
"""State of a run without a record; ``waiting``: for the results of batch files, or for people."""


class TaskProgress(Record, frozen=True, kw_only=True):
    """One progress bar: steps done, and of how many; the time so far and left, in seconds; and the last figures."""

    title: str
    done: float = 0.0
    total: float | None = None
    seconds: float = 0.0
    seconds_left: float | None = None
    note: str = ""
    figures: dict[str, float] = msgspec.field(default_factory=dict)


class RunState(Record, frozen=True, kw_only=True):
    """The state of a run whose folder has no ``run.json`` yet.

    ``command`` continues the run in ``folder``, the working directory; it is null where the run was not started on the
    command line. Times are seconds since 1970. ``tasks`` are the last progress bars, the current one last. A run that
    waits has the number of what it waits for, items or requests, and what to do then.
    """

    state: UnfinishedState
    command: str | None
    folder: str
    process: int
    host: str
    started: float
    updated: float
    problem: str = ""
    num_waiting: int = 0
    next_step: str = ""
    tasks: tuple[TaskProgress, ...] = ()

    def resume_line(self) -> str | None:
        """Return the line for a shell that continues the run; null where it was not started on the command line."""
        return None if self.command is None else f"cd {shlex.quote(self.folder)} && {self.command}"


class _Task:
    """A progress bar that is written to the state of the run."""

    def __init__(self, recorder: "_Recorder", title: str, total: float | None) -> None:
        self._recorder = recorder
        self._started = time.monotonic()
        self._ended: float | None = None
        self._title, self._total = title, total
        self._done, self._note = 0.0, ""
        self._left: float | None = None
        self._figures: dict[str, float] = {}

    def show(self, step: BarStep) -> None:
        self._done += step.steps
        self._note, self._left = step.note, step.seconds_left
        if step.figures is not None:
            self._figures = dict(step.figures)
        self._recorder.write_after(_SECONDS_BETWEEN_WRITES)

    def end(self) -> None:
        self._ended = time.monotonic()
        self._recorder.write_after(_SECONDS_BETWEEN_WRITES)

    def progress(self) -> TaskProgress:
        seconds = (self._ended or time.monotonic()) - self._started
        left = self._left
        if left is None and self._total and self._done:
            left = seconds * max(self._total - self._done, 0.0) / self._done
        return TaskProgress(
            title=_utf8(self._title),
            done=self._done,
            total=self._total,
            seconds=round(seconds, 3),
            seconds_left=None if left is None or self._ended else round(left, 1),
            note=_utf8(self._note),
            # JSON has no NaN: it would be null, which no reader accepts as a figure.
            figures={name: value for name, value in self._figures.items() if isfinite(value)},
        )


_commands: list[str] = []
"""The command lines that started the verbs which are running."""


@contextmanager
def started_by(command: str | None) -> Iterator[None]:
    """Let runs in the block record the command line that started them; null leaves it out."""
    if command is None:
        yield
        return
    _commands.append(command)
    try:
        yield
    finally:
        _commands.remove(command)


class _Recorder:
    """Writes the state of one run. A state that cannot be written never stops the run."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STATE_FILE
        self._tasks: list[_Task] = []
        self._open: list[_Task] = []
        self._written = 0.0
        # A record can hold only UTF-8, and names in a command or folder may be something else.
        texts = (*_commands[-1:], _working_folder())
        command = _commands[-1] if _commands and all(_utf8(text) == text for text in texts) else None
        self._first = RunState(
            state="running",
            command=command,
            folder=_utf8(_working_folder()),
            process=os.getpid(),
            host=socket.gethostname(),
            started=time.time(),
            updated=0.0,
        )
        self.write()

    @contextmanager
    def observe(self, title: str, total: float | None) -> Iterator[Show]:
        """Record a progress bar. One inside another is a part of its step, and not recorded."""
        task = _Task(self, title, total)
        if not self._open:
            self._tasks = [*self._tasks[1 - _MOST_TASKS :], task]
        self._open.append(task)
        self.write_after(_SECONDS_BEFORE_NEXT_TASK)
        try:
            yield task.show
        finally:
            self._open.remove(task)
            task.end()

    def write_after(self, seconds: float) -> None:
        """Write the state if the last one is that old."""
        if time.monotonic() - self._written >= seconds:
            self.write()

    def write(
        self, state: UnfinishedState = "running", problem: str = "", *, num_waiting: int = 0, next_step: str = ""
    ) -> None:
        """Write the state under a temporary name and rename it; without a flush, which could take long."""
        self._written = time.monotonic()
        tasks = tuple(task.progress() for task in self._tasks)
        current = msgspec.structs.replace(
            self._first,
            state=state,
            problem=_utf8(problem),
            num_waiting=num_waiting,
            next_step=_utf8(next_step),
            tasks=tasks,
            updated=round(time.time(), 3),
        )
        content = msgspec.json.encode(current)
        with suppress(OSError):  # a full disk
            # The name is one of those that the next run of this folder sweeps.
            descriptor, name = tempfile.mkstemp(dir=self._path.parent, prefix=f"{STATE_FILE}.", suffix=".part")
            part = Path(name)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(content)
                part.chmod(0o644)
                part.replace(self._path)
            except BaseException:  # a state is written every second: the disk would fill with its parts
                part.unlink(missing_ok=True)
                raise


@contextmanager
def recorded_state(folder: Path) -> Iterator[None]:
    """Keep the state of a run in its folder while the block runs; it is removed unless the block fails."""
    recorder = _Recorder(folder)
    try:
        with observed(recorder.observe):
            yield
    except BaseException as error:
        if folder.is_dir():
            match as_interruption(error):
                case KeyboardInterrupt():
                    recorder.write("interrupted")
                case WaitingError() as waiting:
                    # In the words of the interface in use: the next step is to be pasted.
                    shown = waiting.worded(lambda remedy: in_words(Advice(remedy)))
                    recorder.write("waiting", str(shown), num_waiting=waiting.num_waiting, next_step=shown.do or "")
                case _:
                    recorder.write("failed", str(error))
        raise
    (folder / STATE_FILE).unlink(missing_ok=True)


def read_state(folder: Path) -> RunState | None:
    """Return the state of an unfinished run, as it is now; null where it was never written or cannot be read.

    A run whose process has ended without a word is interrupted.
    """
    try:
        state = msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=RunState)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if state.state == "running" and not _is_running(folder, state):
        return msgspec.structs.replace(state, state="interrupted")
    return state


def _is_running(folder: Path, state: RunState) -> bool:
    """Return whether a process holds the folder, or, where its disk has no locks, has just written the state."""
    try:
        if is_held(folder / LOCK_FILE):
            return True
    except OSError:
        pass  # another user's lock
    is_fresh = abs(time.time() - state.updated) < _FRESH_SECONDS
    return is_fresh and not (state.host == socket.gethostname() and _is_gone(state.process))


def _is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False
    return False


def _utf8(text: str) -> str:
    """Return the text with a mark for each surrogate: those of names that are not UTF-8, or of broken data."""
    return text.encode(errors="replace").decode()


def _working_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # deleted since the process started
        return ""
