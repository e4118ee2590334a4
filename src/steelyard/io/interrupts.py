"""Ctrl-C and other stop signals: the first stops in order and reports what can be resumed; the second ends at once."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from steelyard.io.progress import log
from steelyard.io.run_folder import RUN_FILE, STARTED_FILE

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_SECONDS_OF_ONE_STOP = 3.0
"""Signals that follow the first within this time are the same request, in a process started by torchrun."""
_RESUMABLE = {
    "checkpoint.pt": "the last checkpoint",
    "replies.sqlite": "every reply so far",
    "scores.*.part.jsonl": "every score so far",
}
"""What a stage resumes from, by the file that holds it."""


class InterruptedRun(KeyboardInterrupt):
    """A run was stopped by the signal of this number."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        self.number = number
        super().__init__(number)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise InterruptedRun in the block at the first signal of each kind; the second ends the process at once."""

    def stop(number: int) -> None:
        raise InterruptedRun(number)

    with _answered(stop):
        yield


@contextmanager
def deferred() -> Iterator[Callable[[], int]]:
    """Record the first signal of each kind instead of raising; the function returns its number, or 0."""
    received = [0]

    def record(number: int) -> None:
        received[0] = number
        log("stopping after this step; once more ends at once, without a checkpoint")

    with _answered(record):
        yield lambda: received[0]


def resumable_work(folder: Path | None) -> str:
    """Describe what a stopped run left in its ``--out`` folder and what the same command does with it."""
    again = "the same command starts over"
    if folder is None or not folder.is_dir():
        return f"stopped; nothing was written: {again}"
    finished = sorted(path.parent.name for path in folder.glob(f"*/{RUN_FILE}"))
    started = [path.parent for path in (folder / STARTED_FILE, *folder.glob(f"*/{STARTED_FILE}")) if path.is_file()]
    parts = [words for pattern, words in _RESUMABLE.items() if any(any(place.glob(pattern)) for place in started)]
    if finished:
        parts.insert(0, f"{len(finished)} finished stages")
    if not parts:
        return f"stopped; nothing of {folder} is finished: {again}"
    return f"stopped; {folder} keeps {' and '.join(parts)}: the same command continues from there"


@contextmanager
def _answered(act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act`` at the first signal. Ignored signals (``nohup``) stay ignored; only the main thread gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    first: dict[int, float] = {}

    def answer(number: int, frame: FrameType | None) -> None:
        del frame
        if number not in first:
            first[number] = time.monotonic()
            # torchrun forwards signals that the terminal also sent here.
            if "TORCHELASTIC_RUN_ID" not in os.environ:
                signal.signal(number, signal.SIG_DFL)
            act(number)
        elif time.monotonic() - first[number] > _SECONDS_OF_ONE_STOP:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    numbers = [number for name in _SIGNALS if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.getsignal(number) for number in numbers}
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(number, answer)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
