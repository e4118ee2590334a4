"""Ctrl-C and requests to end: the first is answered in order, with a word on what is kept; the second ends at once."""

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
_SECONDS_OF_ONE_REQUEST = 3.0
"""So long after the first signal a launched process takes further ones as the same request."""
_KEPT = {
    "checkpoint.pt": "the last checkpoint",
    "replies.sqlite": "every reply so far",
    "scores.*.part.jsonl": "every score so far",
}
"""What a stage goes on from after it was stopped, by the file that holds it."""


class InterruptedRun(KeyboardInterrupt):
    """A run that was asked to end by the signal of this number."""

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
    """Note the first signal of each kind instead; the function gives its number, or 0 while there was none."""
    received = [0]

    def note(number: int) -> None:
        received[0] = number
        log("stopping after this step; once more ends at once, without a checkpoint")

    with _answered(note):
        yield lambda: received[0]


def kept_work(folder: Path | None) -> str:
    """Say what a stopped run left in its ``--out`` folder, and what the same command does with it."""
    again = "the same command begins anew"
    if folder is None or not folder.is_dir():
        return f"stopped; nothing was written: {again}"
    finished = sorted(path.parent.name for path in folder.glob(f"*/{RUN_FILE}"))
    started = [path.parent for path in (folder / STARTED_FILE, *folder.glob(f"*/{STARTED_FILE}")) if path.is_file()]
    kept = [words for pattern, words in _KEPT.items() if any(any(place.glob(pattern)) for place in started)]
    if finished:
        kept.insert(0, f"{len(finished)} finished stages")
    if not kept:
        return f"stopped; nothing of {folder} is finished: {again}"
    return f"stopped; {folder} keeps {' and '.join(kept)}: the same command goes on from there"


def _is_launched() -> bool:
    """Whether torchrun started this process: it sends on what the terminal has sent to both."""
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def _answered(act: Callable[[int], None]) -> Iterator[None]:
    """Call ``act`` at the first signal. Signals that are ignored (``nohup``) stay so; only the main thread has any."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    first: dict[int, float] = {}

    def answer(number: int, frame: FrameType | None) -> None:
        del frame
        if number not in first:
            first[number] = time.monotonic()
            if not _is_launched():
                signal.signal(number, signal.SIG_DFL)
            act(number)
        elif time.monotonic() - first[number] > _SECONDS_OF_ONE_REQUEST:
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
