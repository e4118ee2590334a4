import operator
import os

import pytest

from steelyard.core.errors import ConfigError, UserError
from steelyard.core.plugins import build
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
    assert "workers=1" in str(caught.value)
