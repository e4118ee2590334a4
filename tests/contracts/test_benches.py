"""The contract of every bench: it places cases, and sums statistics to its headline with intervals."""

import json

import numpy as np
import pytest

from steelyard.core.plugins import build, kinds
from steelyard.methods.measures.resampling import Items
from steelyard.methods.measures.strata import Cell, Label, layout_of
from strategies import case

KINDS = kinds("benches")
SUBSETS = {"cases": None, "cheemsbench": "open_prompt", "rewardbench": "hep-go"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def items(subset):
    labels = [Label(f"p{index}", Cell("ab"[index % 2], subset)) for index in range(20)]
    return Items(layout_of(labels), np.array([[2, index % 3, 1, index % 3 == 2] for index in range(20)]), 20)


def test_every_bench_is_known_here(kind):
    assert kind in SUBSETS, "say in SUBSETS which subset its cases may have"


def test_placing_keeps_all_but_the_subset(kind):
    bench = build("benches", kind)
    given = case(subset=SUBSETS[kind], category=("数学",), language="zh", ranking=(("a",), ("b", "c")))
    assert bench.prepared(given, "open.jsonl") == given
    assert bench.foreign is None or isinstance(bench.foreign, str)
    assert bench.subset_of("nothing.jsonl") is None


def test_the_summary_is_plain_json_and_the_same_for_the_same_seed(kind):
    bench = build("benches", kind)
    found = bench.summarise(items(SUBSETS[kind]), seed=3)
    assert json.loads(json.dumps(found)) == found
    assert bench.summarise(items(SUBSETS[kind]), seed=3) == found


def test_an_incomplete_bench_has_no_headline(kind):
    found = build("benches", kind).summarise(items(SUBSETS[kind]), seed=0)
    assert "overall" not in found
    assert kind == "cases" or found["missing"]
