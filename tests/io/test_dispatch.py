"""The loop that decides what is sent: it waits for no reply without a reason, and loses none."""

import subprocess
import sys
import threading
import time

import pytest

from many_processes import alone
from steelyard.core.errors import ModelError
from steelyard.io import dispatch
from steelyard.io.addresses import Key
from steelyard.io.connections import RequestLimits
from steelyard.io.http import Attempt, HttpReply
from steelyard.io.pacing import RequestPace


def test_a_pause_that_ends_between_two_looks_at_the_clock_holds_nothing(monkeypatch):
    limits = RequestLimits(timeout_seconds=5, num_tries=1, wait_seconds=0.1, key=Key(), total_seconds=5)
    pace = RequestPace(4)
    real, looks = time.monotonic, []

    class Clock:
        @staticmethod
        def monotonic():
            looks.append(None)
            # The first look is before the end of the pause, all later ones after it.
            return real() - 10 if len(looks) == 1 else real()

    pace.pause(real() - 1)
    monkeypatch.setattr(dispatch, "time", Clock)
    sent = dispatch.dispatch(range(3), lambda job, connections, deadline: Attempt(HttpReply(job)), limits, pace)
    assert sorted(finished.reply.value for finished in sent) == [0, 1, 2]


def test_replies_under_way_are_yielded_before_an_error_is_raised():
    limits = RequestLimits(timeout_seconds=600, num_tries=9, wait_seconds=0.01, key=Key())
    sent, is_refused = [], threading.Event()

    def send(job, connections, deadline):
        sent.append(job)
        if job == 2:
            is_refused.set()
            raise ModelError("no such model")
        # All others of the first eight end after the refusal.
        assert is_refused.wait(300)
        return Attempt(HttpReply(None, "http_500"), is_retriable=True) if job == 5 else Attempt(HttpReply(job))

    replies = []
    finished = dispatch.dispatch(range(100), send, limits, RequestPace(64))
    with pytest.raises(ModelError, match="no such model"):
        replies.extend((one.job, one.reply.reason) for one in finished)
    assert sorted(sent) == list(range(8))
    # What might pass is not tried again: its failure is told, and it is asked in the next run.
    assert sorted(replies) == [(job, "http_500" if job == 5 else None) for job in (0, 1, 3, 4, 5, 6, 7)]


STUCK = """
import time
from steelyard.io.addresses import Key
from steelyard.io.connections import RequestLimits
from steelyard.io.dispatch import dispatch
from steelyard.io.http import Attempt, HttpReply
from steelyard.io.pacing import RequestPace
limits = RequestLimits(timeout_seconds=600, num_tries=1, wait_seconds=0.01, key=Key())
replies = dispatch([1, 0], lambda job, *_: Attempt(HttpReply(job or time.sleep(600))), limits, RequestPace(2))
print(next(replies).job)
raise KeyboardInterrupt
"""


def test_a_process_ends_although_a_thread_is_busy():
    done = subprocess.run(
        [sys.executable, "-c", STUCK], env=alone(), capture_output=True, text=True, timeout=500, check=False
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.stdout == "1\n"
