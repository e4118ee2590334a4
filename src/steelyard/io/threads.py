"""Work in threads that a stop does not wait for: a request to a silent server may take minutes.

The threads of `concurrent.futures` are joined at the end of the process, so that Ctrl-C would wait for every one.
"""

import threading
from collections.abc import Callable, Generator, Iterable
from functools import partial
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

from steelyard.core.types import prepare_records

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_unordered(
    work: Callable[[Item, threading.Event], Result], items: Iterable[Item], number: int
) -> Generator[Result, None, None]:
    """Yield ``work(item, is_stopped)`` of each item as the results come, at most ``number`` at a time.

    Items are read in the calling thread, each when there is room for it. An error of ``work`` is raised here. When the
    iterator is closed, by an error or by Ctrl-C, ``is_stopped`` is set, and what is under way is left to itself: its
    result is lost.
    """
    tasks: SimpleQueue[Item | _End] = SimpleQueue()
    outcomes: SimpleQueue[Callable[[], Result]] = SimpleQueue()
    is_stopped = threading.Event()

    def run() -> None:
        while not isinstance(item := tasks.get(), _End):
            outcomes.put(outcome_of(partial(work, item, is_stopped)))

    waiting, num_running, num_threads = iter(items), 0, 0
    try:
        while True:
            for item in islice(waiting, number - num_running):
                tasks.put(item)
                num_running += 1
            while num_threads < num_running:
                start_thread(run, f"request {num_threads}")
                num_threads += 1
            if not num_running:
                return
            outcome = outcomes.get()
            num_running -= 1
            yield outcome()
    finally:
        is_stopped.set()
        for _ in range(num_threads):
            tasks.put(_End())


def start_thread(work: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread that does not hold the program, once every record that it may read is described."""
    prepare_records()
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread


def outcome_of(work: Callable[[], Result]) -> Callable[[], Result]:
    """Do the work, and return a function that returns its result or raises its error."""
    try:
        result = work()
    except BaseException as error:
        failure = error

        def fail() -> Result:
            raise failure

        return fail
    return lambda: result


class _End:
    """The end of the tasks of one thread."""
