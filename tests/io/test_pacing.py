"""The number of requests at a time follows simulated servers; headers are read as their providers document them."""

import heapq
import statistics
from datetime import UTC, datetime

import pytest

from steelyard.io.pacing import RequestPace, server_waits

NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


def simulated(pace, *, room, seconds_each, refuses, until):
    """Run a server with ``room`` for requests of so many seconds. Returns the ends of replies, refusals and limits."""
    now, running, queue, replies, refusals, limits = 0.0, [], [], [], 0, []
    while now < until:
        while pace.has_room(len(running) + len(queue)):
            if len(running) < room:
                heapq.heappush(running, (now + seconds_each, now))
            elif refuses:
                refusals += 1
                pace.note(is_refused=True, started=now, now=now)
            else:
                queue.append(now)
        now, started = heapq.heappop(running)
        pace.note(is_refused=False, started=started, now=now)
        replies.append(now)
        limits.append(pace.limit)
        if queue:
            heapq.heappush(running, (now + seconds_each, queue.pop(0)))
    return replies, refusals, limits


@pytest.mark.parametrize("room", [1, 5, 64, 150])
@pytest.mark.parametrize("refuses", [False, True])
def test_a_server_with_room_for_so_many_is_kept_busy(room, refuses):
    pace = RequestPace(200)
    replies, refusals, limits = simulated(pace, room=room, seconds_each=0.05, refuses=refuses, until=60.0)
    late = [end for end in replies if end > 20.0]
    assert len(late) >= 0.97 * room * 40.0 / 0.05
    assert refusals <= 0.1 * len(replies) if room > 20 else refusals <= len(replies)
    # It tries twice as many now and then.
    assert statistics.median(limits) <= max(1.4 * room, 10)


def test_a_server_without_a_limit_gets_the_most_and_no_more():
    pace = RequestPace(200)
    simulated(pace, room=1000, seconds_each=0.05, refuses=False, until=10.0)
    assert pace.limit == 200
    assert not pace.has_room(200)
    assert RequestPace(3).limit == 3


def test_a_round_of_refusals_halves_and_a_round_of_replies_adds_one():
    pace = RequestPace(100)
    pace.note(is_refused=True, started=0.0, now=0.1)
    assert (pace.limit, pace.has_room(1)) == (7, False)  # 7.5: nothing beside what is under way before a reply
    for _ in range(7):
        pace.note(is_refused=True, started=0.0, now=0.1)
    assert pace.limit == 4
    for _ in range(5):
        pace.note(is_refused=False, started=0.1, now=0.2)
    assert pace.limit == 5
    assert pace.has_room(4)
    for _ in range(99):
        pace.note(is_refused=True, started=0.2, now=0.3)
    assert (pace.limit, pace.has_room(0)) == (1, True)


def test_a_pause_is_not_shortened():
    pace = RequestPace(4)
    pace.pause(9.0)
    pace.pause(5.0)
    assert pace.resume_at == 9.0


def in_minutes(minutes):
    return f"Sun, 22 Nov 2026 12:{minutes:02}:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": in_minutes(2)}, 120.0),
        # The server's clock is an hour behind: its own date counts.
        ({"retry-after": "Sun, 22 Nov 2026 11:00:30 GMT", "date": "Sun, 22 Nov 2026 11:00:00 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 11:59:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "9" * 400}, 0.0),
        ({"retry-after": "٣"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
    ],
)
def test_a_refusal_says_when_to_come_back(headers, seconds):
    waits = server_waits(headers, is_refused=True, now=NOW)
    assert (waits.retry_after, waits.pause) == (seconds, seconds)
    assert server_waits(headers, is_refused=False, now=NOW) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("name", "reset", "limit", "seconds"),
    [
        ("requests", "1m0s", "500", 0.12),  # 500 a minute: one is freed after 120 ms
        ("requests", "20ms", None, 0.02),
        ("requests", "1h2m3.5s", None, 3723.5),
        ("requests", "1795348830", None, 30.0),
        ("requests", "never", None, 0.0),
        ("tokens", "10s", "30000", 0.1),
    ],
)
def test_an_allowance_that_is_used_up_makes_a_pause(name, reset, limit, seconds):
    headers = {f"x-ratelimit-remaining-{name}": "0", f"x-ratelimit-reset-{name}": reset}
    headers |= {f"x-ratelimit-limit-{name}": limit} if limit else {}
    assert server_waits(headers, is_refused=False, now=NOW).pause == pytest.approx(seconds)
    assert server_waits(headers, is_refused=False, now=NOW).retry_after == 0.0
    assert server_waits(headers, is_refused=True, now=NOW).retry_after == pytest.approx(seconds)
    headers[f"x-ratelimit-remaining-{name}"] = "1"
    assert server_waits(headers, is_refused=False, now=NOW).pause == 0.0


def test_an_allowance_in_the_spelling_of_anthropic():
    headers = {"anthropic-ratelimit-requests-remaining": "0"}
    headers["anthropic-ratelimit-requests-reset"] = "2026-11-22T12:00:20Z"
    assert server_waits(headers, is_refused=False, now=NOW).pause == 20.0
