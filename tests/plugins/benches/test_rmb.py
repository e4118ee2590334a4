import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.methods.measures.resampling import Items, resample
from steelyard.methods.measures.strata import Cell, Label, layout_of
from strategies import case

FOUR = [(goal, name) for goal in ("Helpfulness", "Harmlessness") for name in ("Pairwise_set", "BoN_set")]


def items(shares):
    """Ten prompts of three pairs in each part; so many of them exact."""
    rows, labels = [], []
    for (goal, name), exact in shares.items():
        for index in range(10):
            rows.append([3, 3 if index < exact else 2, 1, int(index < exact)])
            labels.append(Label(f"{goal}{name}{index}", Cell(goal, name)))
    return Items(layout_of(labels), np.array(rows), 20)


def test_a_prompt_is_right_when_its_best_answer_beats_all_and_overall_is_the_mean_of_four():
    found = build("benches", "rmb").summarise(resample(items(dict(zip(FOUR, (8, 6, 4, 1), strict=True))), seed=0))
    assert {name: own["value"] for name, own in found["sections"].items()} == pytest.approx(
        {
            "Helpfulness, pairwise": 0.8,
            "Helpfulness, best of N": 0.6,
            "Harmlessness, pairwise": 0.4,
            "Harmlessness, best of N": 0.1,
        }
    )
    assert found["overall"]["value"] == pytest.approx((0.8 + 0.6 + 0.4 + 0.1) / 4)
    assert found["overall"]["n"] == 40


def test_a_part_that_is_absent_leaves_no_headline():
    found = build("benches", "rmb").summarise(resample(items({FOUR[0]: 8}), seed=0))
    assert "overall" not in found
    assert len(found["missing"]) == 3


def test_other_sets_and_goals_are_refused():
    bench = build("benches", "rmb")
    assert bench.prepared(case(subset="BoN_set", category=("Helpfulness", "Code")), "f")
    for change in ({"subset": "other"}, {"category": ("Code",)}, {"category": ()}):
        with pytest.raises(EvidenceError, match="subset Pairwise_set or BoN_set"):
            bench.prepared(case(**{"subset": "BoN_set", "category": ("Helpfulness",), **change}), "f")
