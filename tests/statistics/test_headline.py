import numpy as np
import pytest

from steelyard.statistics.aggregation import Headline, mean_accuracy
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of

LABELS = [Label(f"p{index}", Cell("code" if index < 30 else "数学")) for index in range(40)]


def totals():
    right = np.array([index % 3 == 0 for index in range(40)], dtype=np.int64)
    ones = np.ones_like(right)
    return resample(Items(layout_of(LABELS), np.stack([ones, right, ones, right], axis=1), 500), seed=0)


def test_the_estimate_stands_under_the_name():
    found = mean_accuracy(totals()).record(totals())
    # 10 of 30 in code; of the ten others 30, 33, 36 and 39 are right
    assert found["headline"] == "accuracy"
    assert found["accuracy"]["value"] == pytest.approx((10 / 30 + 4 / 10) / 2)
    assert found["accuracy"]["low"] < found["accuracy"]["value"] < found["accuracy"]["high"]
    assert found["accuracy"]["n"] == 40


def test_what_is_missing_leaves_no_number_and_the_formula_is_not_asked():
    def never(_):
        raise AssertionError

    partial = Headline("overall", "the mean of two halves", never, 0, {"安全": "no cases of it"})
    assert partial.record(totals()) == {"headline": None, "missing": {"安全": "no cases of it"}}
