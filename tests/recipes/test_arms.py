import json

import numpy as np
import pytest

from steelyard.recipes.arms import Arm, Measured, differences
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.intervals import Estimate


def arm(name):
    return Arm(name, 10.0, 20.0, 30, Estimate(0.5, 0.4, 0.6, 9), Estimate(0.3, 0.2, 0.4, 9), (0.4, 0.5, 0.6))


def table(right):
    return np.array([(1, one, 1, one) for one in right], dtype=np.int64)


def test_an_arm_is_written_with_every_seed_and_how_far_they_lie_apart():
    record = json.loads(json.dumps(arm("一").record()))
    assert record["accuracy_by_seed"] == [0.4, 0.5, 0.6]
    assert record["spread"] == pytest.approx(0.1)
    assert [record["accuracy"][key] for key in ("value", "low", "high", "n")] == [0.5, 0.4, 0.6, 9]
    assert "by_seed" not in record


def test_differences_are_paired_and_corrected_for_their_number():
    layout = layout_of([Label(f"p{index}", Cell("one")) for index in range(40)])
    tables = {"good": table([1] * 40), "bad": table([0] * 40), "same": table([1] * 40)}
    measured = Measured(tuple(map(arm, tables)), tables, layout)
    better, equal = differences(measured, [("good", "bad"), ("good", "same")])
    assert (better.first, better.second, better.comparison.accuracy.value) == ("good", "bad", 1.0)
    assert better.p_corrected == pytest.approx(min(1, 2 * better.comparison.p_accuracy))
    assert equal.p_corrected == 1.0
    assert equal.record()["accuracy"]["value"] == 0
