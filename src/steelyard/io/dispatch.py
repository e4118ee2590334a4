"""Many requests at a time from one ordinary iterator: threads that send, and a caller's loop that decides what is sent.

The caller's thread alone reads the requests, keeps the pace and yields the results, so that neither a ledger nor a pace
needs a lock. A request that failed waits for its next try without a thread.

The first stop signal (Ctrl-C) ends the sending, and what is under way is awaited: it may have to be paid for.
"""

import heapq
import itertools
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Generic, NamedTuple, TypeVar

from steelyard.core.errors import UserError
from steelyard.core.text import number_of
from steelyard.core.types import prepare_records
from steelyard.io.connections import Connections, RequestLimits
from steelyard.io.http import Attempt, HttpReply, retry_wait
from steelyard.io.pacing import RequestPace
from steelyard.io.progress import InterruptedRun, log, postponed

Job = TypeVar("Job")
_SECONDS_TO_STOP = 0.5


class Finished(NamedTuple, Generic[Job]):
    """A request that was answered or given up. ``seconds`` is the time of the last try.

    ``unanswered_tries`` counts the tries that may be billed without an answer (`Attempt`), the last one among them.
    """

    job: Job
    reply: HttpReply
    seconds: float
    unanswered_tries: int = 0


class _Under(NamedTuple, Generic[Job]):
    """A request that was begun: its tries so far, those without an answer, and the time by which it has to end."""

    job: Job
    num_tries: int
    deadline: float
    unanswered_tries: int = 0


Send = Callable[[Job, Connections, float], Attempt]
"""Sends a request once over kept connections, before a time of `time.monotonic`."""
_Ended = tuple[_Under[Job], Callable[[], Attempt], float, float]


def dispatch(
    jobs: Iterable[Job],
    send: "Send[Job]",
    limits: RequestLimits,
    pace: RequestPace,
    on_retry: Callable[[HttpReply, int], None] = lambda reply, number: None,
) -> "Generator[Finished[Job], None, None]":
    """Yield each request with its reply, as they come; requests are taken from ``jobs`` as the server has room.

    A transient failure is tried again after a wait that doubles, with jitter, and is at least what the server asks for;
    ``on_retry`` gets it before, with the number of the next try. Closing the iterator ends every exchange at once.
    After an error of ``send`` or a first stop signal nothing more is sent; the error, or InterruptedRun, is raised when
    what was under way has been yielded. A second signal acts as it would without this function.
    """
    dispatcher = _Dispatcher(send, limits, pace, on_retry)
    try:
        with postponed(dispatcher.stop):
            yield from dispatcher.run(iter(jobs))
    finally:
        dispatcher.close()


class _Dispatcher(Generic[Job]):
    """The requests under way, those that wait for another try, and the threads."""

    def __init__(
        self, send: "Send[Job]", limits: RequestLimits, pace: RequestPace, on_retry: Callable[[HttpReply, int], None]
    ) -> None:
        self.send, self.limits, self.pace, self.on_retry = send, limits, pace, on_retry
        self.connections = Connections()
        self.inbox: SimpleQueue[_Under[Job] | None] = SimpleQueue()
        self.outbox: SimpleQueue[_Ended[Job] | None] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.num_running = 0
        self.delayed: list[tuple[float, int, _Under[Job]]] = []
        self.numbers = itertools.count()
        self.finished: deque[Finished[Job]] = deque()
        self.error: UserError | InterruptedRun | None = None

    def stop(self, number: int) -> None:
        """Send nothing more, since a signal of this number was received; called while anything may be running."""
        self.error = self.error or InterruptedRun(number)
        self.outbox.put(None)

    def run(self, jobs: Iterator[Job]) -> "Generator[Finished[Job], None, None]":
        """Yield the results until every request has one."""
        has_more = True
        while True:
            has_more = self._start(jobs, has_more=has_more)
            if self.finished:
                yield self.finished.popleft()
                self._collect(0.0)
            elif self.error is not None:
                if not self.num_running:
                    raise self.error
                self._collect(None)
            elif self.num_running or self.delayed or has_more:
                self._collect(self._seconds_to_next())
            else:
                return

    def close(self) -> None:
        """End the threads; an exchange under way loses its connection."""
        self.connections.close()
        for _ in self.threads:
            self.inbox.put(None)
        deadline = time.monotonic() + _SECONDS_TO_STOP
        for thread in self.threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start(self, jobs: Iterator[Job], *, has_more: bool) -> bool:
        """Send what the pace allows: requests whose wait is over first. Returns whether there may be more jobs."""
        # A reply keeps its place until the caller has stored it: a kill of the run loses no more than those places.
        while self.error is None and self.pace.has_room(self.num_running + len(self.finished)):
            now = time.monotonic()
            if now < self.pace.resume_at:
                break
            if self.delayed and self.delayed[0][0] <= now:
                self._hand_over(heapq.heappop(self.delayed)[2])
                continue
            # Requests that wait are bounded too: each holds its text.
            if not has_more or len(self.delayed) >= 2 * self.pace.most:
                break
            try:
                job = next(jobs)
            except StopIteration:
                return False
            if self.error is not None:  # a signal came while the request was made
                break
            self._hand_over(_Under(job, 0, time.monotonic() + self.limits.total_seconds))
        return has_more

    def _hand_over(self, under: "_Under[Job]") -> None:
        self.num_running += 1
        if len(self.threads) < self.num_running:
            prepare_records()
            # Daemons, unlike the threads of concurrent.futures: a look-up of a host name cannot be ended, and must not
            # hold the program.
            thread = threading.Thread(target=self._work, name=f"request {len(self.threads)}", daemon=True)
            thread.start()
            self.threads.append(thread)
        self.inbox.put(under)

    def _work(self) -> None:
        while (under := self.inbox.get()) is not None:
            started = time.monotonic()
            ended = _outcome_of(partial(self.send, under.job, self.connections, under.deadline))
            self.outbox.put((under, ended, started, time.monotonic()))

    def _seconds_to_next(self) -> float | None:
        """Return the seconds until something can be sent; null if only a reply can change that."""
        if not self.pace.has_room(self.num_running):
            return None
        times = [self.delayed[0][0]] if self.delayed else []
        now = time.monotonic()
        if self.pace.resume_at > now:
            times = [max(self.pace.resume_at, *times)] if times else [self.pace.resume_at]
        if times:
            return max(0.0, min(times) - now)
        # A pause may have ended since `_start` looked: without a request under way no reply would ever come.
        return None if self.num_running else 0.0

    def _collect(self, seconds: float | None) -> None:
        """Wait so long for a request to end, and take every one that has."""
        with suppress(Empty):
            ended = self.outbox.get(timeout=seconds) if seconds != 0.0 else self.outbox.get_nowait()
            while True:
                if ended is not None:
                    self._end(*ended)
                elif self.num_running:
                    awaited = number_of(self.num_running, "reply", "replies")
                    log(f"stopping: nothing more is sent; waiting for {awaited} under way (Ctrl-C again stops at once)")
                ended = self.outbox.get_nowait()

    def _end(self, under: "_Under[Job]", outcome: Callable[[], Attempt], started: float, now: float) -> None:
        self.num_running -= 1
        try:
            ended = outcome()
        except UserError as error:
            self.error = self.error or error
            return
        self.pace.note(is_refused=ended.is_refused, started=started, now=now)
        if ended.waits.pause:
            self.pace.pause(now + ended.waits.pause)
        num_tries, unanswered = under.num_tries + 1, under.unanswered_tries + ended.is_unanswered
        wait = retry_wait(self.limits, num_tries, ended)
        is_again = ended.is_retriable and num_tries < self.limits.num_tries and self.error is None
        if is_again and now + wait < under.deadline:
            self.on_retry(ended.reply, num_tries + 1)
            again = _Under(under.job, num_tries, under.deadline, unanswered)
            heapq.heappush(self.delayed, (now + wait, next(self.numbers), again))
        else:
            self.finished.append(Finished(under.job, ended.reply, now - started, unanswered))


def _outcome_of(work: Callable[[], Attempt]) -> Callable[[], Attempt]:
    """Do the work, and return a function that returns its result or raises its error."""
    try:
        result = work()
    except BaseException as error:
        failure = error

        def fail() -> Attempt:
            raise failure

        return fail
    return lambda: result
