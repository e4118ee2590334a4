"""Work in threads that a stop does not wait for."""

import subprocess
import sys
import threading

import pytest

from many_processes import alone
from steelyard.io.threads import map_unordered


def test_every_item_has_its_result_whatever_the_number_of_threads():
    for number in (1, 3, 50):
        assert sorted(map_unordered(lambda item, _: item * item, range(20), number)) == [n * n for n in range(20)]
    assert list(map_unordered(lambda item, _: item, [], 4)) == []


def test_an_item_is_read_only_when_there_is_room_for_it():
    read = []

    def items():
        for number in range(10):
            read.append(number)
            yield number

    results = map_unordered(lambda item, _: item, items(), 2)
    # Either thread may be the first.
    assert next(results) in (0, 1)
    assert len(read) == 2
    next(results)
    assert len(read) == 3
    results.close()
    assert len(read) == 3


def test_an_error_is_raised_in_the_calling_thread_and_ends_the_others():
    stops = []

    def work(item, is_stopped):
        if item == 2:
            raise ValueError("no two")
        stops.append(is_stopped)
        return item

    with pytest.raises(ValueError, match="no two"):
        list(map_unordered(work, [1, 2, 3], 1))
    assert len(stops) == 1
    assert stops[0].is_set()


def test_a_closed_iterator_waits_for_no_thread_and_tells_it_to_stop():
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def work(item, is_stopped):
        if item == 1:
            return item
        begun.set()
        free.wait(300)
        if is_stopped.is_set():
            ended.set()
        return item

    results = map_unordered(work, [1, 2], 2)
    assert next(results) == 1
    assert begun.wait(300)
    results.close()
    assert not ended.is_set()
    free.set()
    assert ended.wait(300)


STUCK = """
import time
from steelyard.io.threads import map_unordered
results = map_unordered(lambda item, _: item or time.sleep(600), [1, 0], 2)
print(next(results))
raise KeyboardInterrupt
"""


def test_a_process_ends_although_a_thread_is_busy():
    done = subprocess.run(
        [sys.executable, "-c", STUCK], env=alone(), capture_output=True, text=True, timeout=500, check=False
    )
    assert "KeyboardInterrupt" in done.stderr
    assert done.stdout == "1\n"
