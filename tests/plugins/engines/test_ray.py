import math
import operator
import os

import pytest

from ray_nodes import ray_nodes
from steelyard.core.errors import ConfigError, UserError
from steelyard.core.plugins import build
from steelyard.io.cases import write_cases
from steelyard.stages.resolve import resolve
from strategies import case

pytestmark = pytest.mark.slow

pytest.importorskip("ray", reason="Ray is of the group ray")


@pytest.fixture(scope="module")
def cluster():
    with ray_nodes(2) as nodes:
        yield nodes


@pytest.fixture
def engine(cluster):
    return build("engines", "ray", {"address": cluster.address})


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(ConfigError, match="ahead=0"):
        build("engines", "ray", {"ahead": 0})
    with pytest.raises(ConfigError, match=r"num_cpus=0\.0"):
        build("engines", "ray", {"num_cpus": 0.0})


def test_at_most_two_batches_a_core_are_under_way(engine):
    taken = []

    def batches():
        for number in range(50):
            taken.append(number)
            yield number

    results = engine.map(operator.neg, batches())
    for number in range(10):
        assert next(results) == -number
        assert len(taken) <= number + 1 + 2 * 2
    results.close()
    assert len(taken) < 20


def test_a_worker_that_dies_again_and_again_is_said_plainly(engine):
    with pytest.raises(UserError, match="the cluster lost a batch after all retries"):
        list(engine.map(os._exit, [3]))


def test_nodes_that_come_and_go_change_nothing_but_the_time(cluster, engine):
    sizes = range(20_000, 20_060)
    extra = cluster.add_node(num_cpus=1)
    results = engine.map(math.factorial, sizes)
    found = [next(results) for _ in range(10)]
    cluster.remove_node(extra)
    assert found + list(results) == list(map(math.factorial, sizes))


def test_resolving_on_a_cluster_gives_the_same_file_and_numbers(cluster, engine, tmp_path):
    cases = [case(f"p{index}", "abc", judgments=["a>b", "b>c", "c>a", "a=b"][: index % 5]) for index in range(700)]
    write_cases(tmp_path / "cases.jsonl", cases)
    there = resolve(tmp_path / "cases.jsonl", tmp_path / "there", engine="ray")
    here = resolve(tmp_path / "cases.jsonl", tmp_path / "here", workers=1)
    assert there.outputs == here.outputs
    assert there.summary == here.summary
