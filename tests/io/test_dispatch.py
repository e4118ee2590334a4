"""The loop that decides what is sent: a pause that ends while it looks leaves it no reason to wait for a reply."""

import time

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
