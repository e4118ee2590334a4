"""The contract of every engine: one result a batch, in order, errors intact, no more batches taken than it works on."""

import math
import operator
from functools import partial

import pytest

from ray_nodes import ray_nodes
from steelyard.core.errors import Place, RecordError
from steelyard.core.plugins import build, kinds
from steelyard.io.cases import decode_batch
from steelyard.io.lines import LineBatch

pytestmark = pytest.mark.slow

KINDS = kinds("engines")


@pytest.fixture(params=KINDS)
def engine(request):
    if request.param == "ray":
        pytest.importorskip("ray", reason="Ray is of the group ray")
        return build("engines", "ray", {"address": request.getfixturevalue("ray_cluster")})
    return build("engines", request.param)


@pytest.fixture(scope="module")
def ray_cluster():
    with ray_nodes(2) as cluster:
        yield cluster.address


def test_results_come_in_order_however_long_each_takes(engine):
    sizes = [30_000, 1, 20_000, 2, 10_000, 3, 4, 5]
    assert list(engine.map(math.factorial, sizes)) == [math.factorial(size) for size in sizes]


def test_settings_travel_with_the_function(engine):
    assert list(engine.map(partial(operator.add, 10), range(20))) == list(range(10, 30))


def test_nothing_in_nothing_out(engine):
    assert list(engine.map(operator.neg, [])) == []


def test_an_error_of_the_user_comes_back_as_it_was_raised(engine):
    good = b'{"format":1,"prompt":{"id":"p","messages":[]},"responses":[]}'
    bad = LineBatch("數據.jsonl", (7, 8), (good, b'{"format":1,"prompt":3}'))
    with pytest.raises(RecordError) as caught:
        list(engine.map(decode_batch, [LineBatch("數據.jsonl", (6,), (good,)), bad]))
    assert caught.value.where == Place("數據.jsonl", 8, "prompt")
    assert str(caught.value).startswith("數據.jsonl:8 at prompt: ")


def test_results_before_an_error_are_given(engine):
    results = engine.map(math.sqrt, [4, 9, -1, 16])
    assert [next(results), next(results)] == [2, 3]
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        next(results)


def test_batches_are_taken_as_they_are_needed(engine):
    taken = []

    def batches():
        for number in range(1000):
            taken.append(number)
            yield number

    results = engine.map(operator.neg, batches())
    assert next(results) == 0
    assert len(taken) < 100


def test_a_function_that_no_worker_could_import_is_refused(engine):
    with pytest.raises(TypeError, match="cannot be imported by name"):
        list(engine.map(lambda batch: batch, [1]))
