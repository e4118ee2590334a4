import operator
import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from steelyard.core.errors import ConfigError, UserError
from steelyard.core.plugins import build
from steelyard.plugins.engines import local
from steelyard.plugins.engines.local import Config, LocalEngine, num_cores
from steelyard.plugins.engines.local import build as build_local


def test_workers_are_told_by_the_setting():
    assert build("engines", "local", {"workers": 3}).workers == 3
    assert build("engines", "local").workers == num_cores() >= 1
    with pytest.raises(ConfigError, match="workers=-1"):
        build_local(Config(workers=-1))


def test_one_worker_is_this_process_and_more_are_not():
    (seen,) = LocalEngine(1).map(operator.methodcaller("append", 1), [kept := []])
    assert (seen, kept) == (None, [1])
    (seen,) = LocalEngine(2).map(operator.methodcaller("append", 1), [kept := []])
    assert (seen, kept) == (None, [])


ARITHMETIC = (
    "__import__('numpy').linalg and [one['num_threads'] for one in __import__('threadpoolctl').threadpool_info()]"
)


def test_several_workers_do_their_arithmetic_in_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    found = list(LocalEngine(2).map(eval, [ARITHMETIC] * 4))
    assert all(found)
    assert {number for threads in found for number in threads} == {1}
    assert os.environ["OMP_NUM_THREADS"] == "3"  # this process keeps what it was told


def test_what_is_loaded_already_is_held_to_one_thread_too(monkeypatch):
    for name in local._THREADS:
        monkeypatch.setenv(name, "3")
    with threadpool_limits():  # puts back what this process had
        np.ones((2, 2)) @ np.ones((2, 2))
        local._take_one_thread()
        assert {one["num_threads"] for one in threadpool_info()} == {1}


def test_at_most_two_batches_a_worker_are_under_way():
    taken = []

    def batches():
        for number in range(50):
            taken.append(number)
            yield number

    results = LocalEngine(2).map(operator.neg, batches())
    for number in range(10):
        assert next(results) == -number
        assert len(taken) <= number + 1 + 2 * 2
    results.close()
    assert len(taken) < 20


def test_a_worker_that_dies_is_said_plainly():
    with pytest.raises(UserError, match="a worker process died") as caught:
        list(LocalEngine(2).map(os._exit, [3]))
    assert "use workers=1" in str(caught.value)


IGNORED = "[__import__('signal').getsignal(number).name for number in (2, 1)]"  # SIGINT, SIGHUP
CLOSED_TERMINAL = f"""
import re, signal
from multiprocessing import resource_tracker
from pathlib import Path
from steelyard.plugins.engines.local import LocalEngine

if __name__ == "__main__":
    print(*LocalEngine(2).map(eval, [{IGNORED!r}]))
    status = Path(f"/proc/{{resource_tracker._resource_tracker._pid}}/status").read_text()
    print(int(re.search("SigBlk:\t(.*)", status)[1], 16) >> (signal.SIGHUP - 1) & 1)
    print(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_a_closed_terminal_is_left_to_the_parent(tmp_path):
    """It tells every process at once: what ends before its parent would leave it nothing but a broken pool."""
    (tmp_path / "closed.py").write_text(CLOSED_TERMINAL)
    done = subprocess.run([sys.executable, tmp_path / "closed.py"], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["['SIG_IGN', 'SIG_IGN']", "1", "set()"], done.stderr


ASKED_TO_END = "(os := __import__('os')).kill(os.getpid(), 15), __import__('time').sleep(0.1)"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells who sent a signal")
def test_a_worker_ends_when_its_parent_says_so_and_for_nobody_else():
    """A pool whose workers are ended in the middle of a result may wait for the rest of it for ever."""
    assert list(LocalEngine(2).map(eval, [ASKED_TO_END] * 3)) == [(None, None)] * 3
    with pytest.raises(UserError, match="a worker process died"):
        list(LocalEngine(2).map(eval, [ASKED_TO_END, "__import__('os')._exit(3)", ASKED_TO_END]))
