import numpy as np
import pytest

from steelyard.methods.measures.blocks import draw_blocks
from steelyard.methods.measures.prompt_means import Ratio, mean_of, num_units, summarise
from steelyard.methods.measures.strata import Cell, Label

LABELS = [
    Label("p", Cell("code", None, "zh")),
    Label("q", Cell("code", None, "he")),
    Label("q", Cell("code", None, "zh")),
    Label("r", Cell("chat")),
]


def test_macro_and_micro_by_hand():
    blocks = draw_blocks(LABELS, num_resamples=200, seed=0)
    values = Ratio(np.array([1.0, 2.0, 0.0, 5.0]), np.array([2.0, 2.0, 1.0, 5.0]))
    found = summarise(blocks, {"share": values})["share"]
    assert found["micro"]["value"] == pytest.approx(8 / 10)
    assert found["macro"]["value"] == pytest.approx((3 / 5 + 1) / 2)
    assert found["by_category"]["code"]["value"] == pytest.approx(3 / 5)
    assert found["by_language"]["zh"]["value"] == pytest.approx(1 / 3)
    assert found["by_language"]["unknown"]["value"] == 1.0
    assert (found["micro"]["n"], found["by_category"]["code"]["n"]) == (10, 5)
    # code: units p (1/2) and q (2/3), drawn twice: every resample is 1/2, 3/5 or 2/3
    assert found["by_category"]["code"]["low"] == pytest.approx(1 / 2)
    assert found["by_category"]["code"]["high"] == pytest.approx(2 / 3)


def test_nan_is_nothing():
    blocks = draw_blocks(LABELS, num_resamples=20, seed=0)
    found = summarise(blocks, {"mean": mean_of(np.array([1.0, np.nan, 3.0, np.nan]))}, with_groups=False)["mean"]
    assert found["micro"] == {"value": 2.0, "low": pytest.approx(1.0), "high": pytest.approx(3.0), "n": 2}
    assert "by_category" not in found
    nothing = summarise(blocks, {"mean": mean_of(np.full(4, np.nan))})["mean"]
    assert nothing["macro"] == nothing["micro"] == {"value": None, "low": None, "high": None, "n": 0}
    assert nothing["by_category"] == {}


def test_a_share_without_spread_has_an_exact_interval():
    blocks = draw_blocks(LABELS, num_resamples=20, seed=0)
    found = summarise(blocks, {"share": mean_of(np.zeros(4), is_share=True)})["share"]
    assert num_units(blocks, np.array([True, True, True, False])) == 2
    assert found["micro"]["high"] == pytest.approx(1 - 0.025 ** (1 / 3))
    # two units in one category and one in the other: as 4 / (1/2 + 1)
    assert found["macro"]["high"] == pytest.approx(1 - 0.025 ** (1.5 / 4))
    assert found["by_category"]["code"]["high"] == pytest.approx(1 - 0.025 ** (1 / 2))
    assert found["by_category"]["code"]["method"] == "clopper-pearson"
