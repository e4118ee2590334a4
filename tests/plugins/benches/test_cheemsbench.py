import numpy as np
import pytest

from steelyard.core.errors import ConfigError
from steelyard.core.plugins import build
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
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
    assert bench.normalize(case(), name).prompt.subset == subset
    assert bench.subset_of(name) == subset


@pytest.mark.parametrize(
    ("given", "subset"), [("open_prompt", "open_prompt"), ("Human Instruction", "human_instruction")]
)
def test_the_case_tells_it_first(given, subset):
    assert bench.normalize(case(subset=given), "test.jsonl").prompt.subset == subset
    assert bench.normalize(case(subset=given), "open-and-human.jsonl").prompt.subset == subset


@pytest.mark.parametrize("name", ["test.jsonl", "open_human.jsonl"])
def test_a_name_that_tells_nothing_or_both_is_refused(name):
    with pytest.raises(ConfigError, match="the subset of CheemsBench is unknown"):
        bench.normalize(case(), name)


def test_an_unknown_subset_is_refused():
    with pytest.raises(ConfigError, match="did you mean 'open_prompt'"):
        bench.normalize(case(subset="open_promt"), "open.jsonl")


WHOLE = [
    ("open_prompt", "code", [4, 3, 1000, 0]),
    ("open_prompt", "chat", [2, 1, 146, 0]),
    ("human_instruction", "code", [1, 1, 1346, 1346]),
]
"""One row stands for all prompts of a category: the published 1,146 and 1,346."""


def summary(rows, left_out=None):
    return bench.summarise(resample(items(rows), seed=0), left_out or {})


def test_overall_by_hand():
    # open: accuracy (3/4 + 1/2) / 2 = 0.625, exact (0 + 0) / 2; human: accuracy 1, exact 1. Mean of four: 0.65625
    found = summary(WHOLE)
    accuracy = found["subsets"]["open_prompt"]["accuracy"]
    assert (accuracy["value"], accuracy["n"]) == (0.625, 6)
    assert found["subsets"]["human_instruction"]["exact_match"]["value"] == 1.0
    assert (found["overall"]["value"], found["overall"]["n"]) == (0.65625, 2492)
    assert "missing" not in found


def test_each_subset_has_its_own_categories():
    found = summary(WHOLE)["subsets"]
    values = {
        subset: {name: one["accuracy"]["value"] for name, one in own["by_category"].items()}
        for subset, own in found.items()
    }
    # `code` is a category of both, and is not pooled.
    assert values == {"open_prompt": {"chat": 0.5, "code": 0.75}, "human_instruction": {"code": 1.0}}


def test_one_subset_alone_has_no_overall():
    found = summary(WHOLE[:2])
    assert "overall" not in found
    assert found["missing"] == {"human_instruction": "0 prompts, expected 1,346"}
    assert list(found["subsets"]) == ["open_prompt"]


def test_three_prompts_of_each_subset_have_no_overall():
    rows = [(subset, "code", [1, 1, 1, 1]) for subset in ("open_prompt", "human_instruction") for _ in range(3)]
    found = summary(rows)
    assert found["headline"] is None
    assert found["missing"] == {
        "open_prompt": "3 prompts, expected 1,146", "human_instruction": "3 prompts, expected 1,346"
    }  # fmt: skip
    assert found["subsets"]["open_prompt"]["accuracy"]["value"] == 1.0


def test_prompts_without_a_comparable_pair_are_part_of_the_published_bench():
    rows = [("open_prompt", "code", [4, 3, 1143, 0]), WHOLE[2]]
    cell = Cell("chat", "open_prompt")
    assert list(summary(rows)["missing"]) == ["open_prompt"]
    found = summary(rows, {cell: 3})
    assert found["headline"] == "overall"
    assert found["overall"]["n"] == 2492
