import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from strategies import case

FOUR = [(goal, name) for goal in ("Helpfulness", "Harmlessness") for name in ("Pairwise_set", "BoN_set")]


NUMBERS = (10_067, 2_109, 7_064, 1_677)


def items(shares, numbers=NUMBERS):
    """One row a part for all of its prompts, ``shares`` of them exact to the nearest prompt."""
    labels = [Label(f"{goal}{name}", Cell(goal, name)) for goal, name in shares]
    exact = [round(number * share) for number, share in zip(numbers, shares.values(), strict=False)]
    rows = [[3 * number, own, number, own] for number, own in zip(numbers, exact, strict=False)]
    return Items(layout_of(labels), np.array(rows), 20)


def test_a_prompt_is_right_when_its_best_answer_beats_all_and_overall_is_the_mean_of_four():
    found = build("benches", "rmb").summarise(
        resample(items(dict(zip(FOUR, (0.8, 0.6, 0.4, 0.1), strict=True))), seed=0)
    )
    assert {name: own["value"] for name, own in found["sections"].items()} == pytest.approx(
        {
            "Helpfulness, pairwise": 0.8,
            "Helpfulness, best of N": 0.6,
            "Harmlessness, pairwise": 0.4,
            "Harmlessness, best of N": 0.1,
        },
        abs=0.0005,
    )
    assert found["overall"]["value"] == pytest.approx((0.8 + 0.6 + 0.4 + 0.1) / 4, abs=0.0005)
    assert found["overall"]["n"] == sum(NUMBERS) == 20_917


def test_a_part_that_is_absent_leaves_no_headline():
    found = build("benches", "rmb").summarise(resample(items({FOUR[0]: 0.8}), seed=0))
    assert "overall" not in found
    assert len(found["missing"]) == 3


def test_four_of_its_98_files_have_no_headline():
    # One scenario in each set and goal: rows enough for every section, and far from all.
    part = items(dict(zip(FOUR, (0.8, 0.6, 0.4, 0.1), strict=True)), (849, 187, 459, 111))
    found = build("benches", "rmb").summarise(resample(part, seed=0))
    assert found["headline"] is None
    assert found["missing"]["Helpfulness, pairwise"] == "849 prompts, expected 10,067"
    assert found["sections"]["Helpfulness, pairwise"]["n"] == 849


def test_other_sets_and_goals_are_refused():
    bench = build("benches", "rmb")
    assert bench.normalize(case(subset="BoN_set", category=("Helpfulness", "Code")), "f")
    for change in ({"subset": "other"}, {"category": ("Code",)}, {"category": ()}):
        with pytest.raises(EvidenceError, match="subset Pairwise_set or BoN_set"):
            bench.normalize(case(**{"subset": "BoN_set", "category": ("Helpfulness",), **change}), "f")
