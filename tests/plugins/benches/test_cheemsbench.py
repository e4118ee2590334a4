import numpy as np
import pytest

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.methods.measures.resampling import Items, resample
from steelyard.methods.measures.strata import Cell, Label, layout_of
from strategies import case

bench = build("benches", "cheemsbench")


def items(given):
    """From (subset, category, [pairs, correct, prompts, exact])."""
    labels = [Label(str(index), Cell(category, subset)) for index, (subset, category, _) in enumerate(given)]
    return Items(layout_of(labels), np.array([row for *_, row in given]), num_resamples=20)


@pytest.mark.parametrize(
    ("name", "subset"),
    [
        ("open.jsonl", "open_prompt"),
        ("CheemsBench_Open_prompt.jsonl", "open_prompt"),
        ("Human-instruction.parquet", "human_instruction"),
    ],
)
def test_the_file_name_tells_the_subset(name, subset):
    assert bench.prepared(case(), name).prompt.subset == subset
    assert bench.subset_of(name) == subset


@pytest.mark.parametrize(
    ("given", "subset"), [("open_prompt", "open_prompt"), ("Human Instruction", "human_instruction")]
)
def test_the_case_tells_it_first(given, subset):
    assert bench.prepared(case(subset=given), "test.jsonl").prompt.subset == subset
    assert bench.prepared(case(subset=given), "open-and-human.jsonl").prompt.subset == subset


@pytest.mark.parametrize("name", ["test.jsonl", "open_human.jsonl"])
def test_a_name_that_tells_nothing_or_both_is_refused(name):
    with pytest.raises(ConfigError, match="cannot tell which subset"):
        bench.prepared(case(), name)


def test_an_unknown_subset_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'open_prompt'"):
        bench.prepared(case(subset="open_promt"), "open.jsonl")


def test_overall_by_hand():
    # open: accuracy (3/4 + 1/2) / 2 = 0.625, exact (0 + 0) / 2; human: accuracy 1, exact 1. Mean of four: 0.65625
    rows = [
        ("open_prompt", "code", [4, 3, 1, 0]),
        ("open_prompt", "chat", [2, 1, 1, 0]),
        ("human_instruction", "code", [1, 1, 1, 1]),
    ]
    found = bench.summarise(resample(items(rows), seed=0))
    accuracy = found["subsets"]["open_prompt"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (0.625, 6)
    # One prompt a category: resampling within them tells nothing, and the interval is that of two prompts.
    assert accuracy["method"] == "clopper-pearson"
    assert accuracy["low"] < 0.05
    assert accuracy["high"] > 0.95
    assert found["subsets"]["human_instruction"]["exact_match"]["value"] == 1.0
    assert found["overall"] == {"value": 0.65625, "low": 0.65625, "high": 0.65625, "n": 3}
    assert "missing" not in found


def test_one_subset_alone_has_no_overall():
    found = bench.summarise(resample(items([("open_prompt", "code", [4, 3, 1, 0])]), seed=0))
    assert "overall" not in found
    assert list(found["missing"]) == ["human_instruction"]
    assert list(found["subsets"]) == ["open_prompt"]
