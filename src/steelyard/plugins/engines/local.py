"""Processes of this machine: one result per batch, in order, with a bounded number of batches under way."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import resource_tracker
from typing import TypeVar

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, UserError
from steelyard.core.remedies import Advice, Remedy

Batch = TypeVar("Batch")
Result = TypeVar("Result")

_AHEAD = 2
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS")


class Config(BaseConfig, frozen=True):
    """Settings of the processes on this machine."""

    workers: int = 0
    """The number of processes; 0 for one per core, 1 for this process alone."""


class LocalEngine:
    """Maps over batches with processes that are started afresh (``spawn``): they inherit no thread or lock.

    Each of several processes computes in one thread: there is a process for each core already.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def map(self, function: Callable[[Batch], Result], batches: Iterable[Batch]) -> Iterator[Result]:
        """Yield one result per batch, in order; at most two batches a process are under way or waiting to be taken.

        Exceptions of ``function`` are raised here, at the turn of their batch. Raises TypeError for a function that a
        worker could not import by name, and UserError when a worker dies.
        """
        check_importable(function)
        return map(function, batches) if self.workers == 1 else self._in_processes(function, iter(batches))

    def _in_processes(self, function: Callable[[Batch], Result], batches: Iterator[Batch]) -> Iterator[Result]:
        waiting: deque[Future[Result]] = deque()
        spawning = multiprocessing.get_context("spawn")
        _start_tracker()
        with ProcessPoolExecutor(self.workers, spawning, initializer=_start_worker) as pool:
            try:
                waiting.extend(pool.submit(function, batch) for batch in islice(batches, _AHEAD * self.workers))
                while waiting:
                    result = waiting.popleft().result()
                    waiting.extend(pool.submit(function, batch) for batch in islice(batches, 1))
                    yield result
            except BrokenProcessPool as error:
                raise UserError(
                    "a worker process died (out of memory, or it could not start)",
                    do=Advice(
                        "use ", Remedy("workers", 1), "; in a script, keep the call under `if __name__ == '__main__':`"
                    ),
                ) from error
            finally:
                for future in waiting:
                    future.cancel()


def build(config: Config) -> LocalEngine:
    """Return the engine. Raises ConfigError for a negative number of workers."""
    if config.workers < 0:
        raise ConfigError(f"workers={config.workers}", where="engines.local", allowed="0 for one per core, or more")
    return LocalEngine(config.workers or num_cores())


def num_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start_tracker() -> None:
    """Start Python's process for semaphores so that a closed terminal does not end it before this process.

    Otherwise another is started in its place, which complains of every unknown semaphore.
    """
    if sys.platform == "win32":
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        resource_tracker.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker() -> None:
    """Bind the worker's life to its parent's, leave signals to the parent, and take one thread."""
    for name in ("SIGINT", "SIGHUP"):
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)
    if sys.platform == "linux":
        # Threads inherit the mask, so that the signal waits for the one that asks for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_by_parent, daemon=True).start()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _take_one_thread()


def _end_by_parent() -> None:
    """End this process at its parent's SIGTERM, not at one that all processes of a group receive.

    A worker that ended in the middle of a result would leave the parent waiting for the rest of it.
    """
    if sys.platform == "linux":
        while signal.sigwaitinfo({signal.SIGTERM}).si_pid != os.getppid():
            pass
        os._exit(1)


def _end_with_parent() -> None:
    """End this process when its parent has ended: no signal reaches the workers of a killed parent."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only a worker is started by this"
    parent.join()
    os._exit(1)


def _take_one_thread() -> None:
    """Compute in one thread: libraries loaded later read the environment, numpy is limited where it is loaded."""
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    if "numpy" in sys.modules:  # a script that asks for workers may have imported it before
        from threadpoolctl import threadpool_limits

        threadpool_limits(1)


def check_importable(function: Callable[..., object]) -> None:
    """Raise TypeError for a function that a worker process could not import by name."""
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise TypeError(f"{function!r} cannot be imported by name in a worker process") from error
