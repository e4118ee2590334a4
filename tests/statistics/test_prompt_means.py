import numpy as np
import pytest
from scipy.stats import t as student_t

from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import SHARE
from steelyard.statistics.prompt_means import Ratio, mean_of, paired_mean, summarise

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
    # Two prompts tell next to nothing: there is no interval of an unbounded value.
    assert found["by_category"]["code"]["why"] == "an interval needs 20 prompts"


def test_nan_is_nothing():
    blocks = draw_blocks(LABELS, num_resamples=20, seed=0)
    found = summarise(blocks, {"mean": mean_of(np.array([1.0, np.nan, 3.0, np.nan]))}, with_groups=False)["mean"]
    why = "an interval needs 20 prompts"
    assert found["micro"] == {"value": 2.0, "low": None, "high": None, "n": 2, "why": why}
    assert "by_category" not in found
    nothing = summarise(blocks, {"mean": mean_of(np.full(4, np.nan))})["mean"]
    assert nothing["macro"] == nothing["micro"] == {"value": None, "low": None, "high": None, "n": 0}
    assert nothing["by_category"] == {}


def none_right(num_units, freedom=None):
    """The upper end at 0 of n: t^2 / (n + t^2), with n - 1 degrees of freedom or 1."""
    t = student_t.ppf(0.975, max(freedom or num_units - 1, 1))
    return pytest.approx(t**2 / (num_units + t**2), rel=1e-2)


def test_a_share_without_spread_has_an_interval_by_its_units():
    blocks = draw_blocks(LABELS, num_resamples=20, seed=0)
    found = summarise(blocks, {"share": mean_of(np.zeros(4), SHARE)})["share"]
    # Units of 1, 2 and 1 prompts: 16 / 6 effective ones (Kish), in two strata. Of the parts 4/16, 1/16 and 1/16 of the
    # variance, the first two have one degree of freedom together; the third has those of the pool of three units.
    freedom = (6 / 16) ** 2 / ((5 / 16) ** 2 + (1 / 16) ** 2 / 2)
    assert found["micro"]["high"] == none_right(16 / 6, freedom)
    # Shares 1/3 and 2/3 in one category, 1 in the other: as 4 / (5/9 + 1) units. All that are right may be in the
    # smaller category, which has 1 / (7/9) times the mean of the two categories' variances.
    units = 4 / (5 / 9 + 1)
    assert found["macro"]["high"] == none_right(units * 7 / 9, units - 1)
    assert found["by_category"]["code"]["high"] == none_right(9 / 5)


def test_a_difference_of_shares_has_the_width_of_what_differs():
    blocks = draw_blocks([Label(f"p{index}", Cell("a")) for index in range(40)], num_resamples=2000, seed=0)
    apart = np.tile([1.0, -1.0, 0.0, 0.0], 10)
    found = summarise(blocks, {"gap": Ratio(apart, np.ones(40), is_difference=True)})["gap"]
    # Half of the prompts are discordant: the standard error is sqrt(1/2 / 40), or a little more.
    assert found["micro"]["value"] == 0
    assert found["micro"]["high"] == pytest.approx(2.03 * np.sqrt(0.5 / 40), rel=0.1)
    assert found["micro"]["low"] == pytest.approx(-found["micro"]["high"])


def two_categories(number, num_resamples=500):
    labels = [Label(f"p{index}", Cell("code" if index % 2 else "chat")) for index in range(number)]
    return draw_blocks(labels, num_resamples=num_resamples, seed=0)


def test_by_hand_over_the_prompts_that_both_have():
    first, second = (np.array(own) for own in ([1.0, 2.0, np.nan, 4.0], [0.0, 1.0, 9.0, 7.0]))
    found = paired_mean(two_categories(4), mean_of(first), mean_of(second))
    # chat: prompt 0 alone, 1 - 0; code: (2 + 4) / 2 - (1 + 7) / 2
    assert found.difference.value == pytest.approx((1 - 1) / 2)
    assert found.difference.n == 3


def test_a_constant_lead_is_beyond_doubt_however_wide_the_values_spread():
    values = np.random.default_rng(0).normal(0, 100, 60)
    found = paired_mean(two_categories(60), mean_of(values + 1), mean_of(values))
    # All sixty prompts differ alike: as far as sixty can tell, by at least (60 - t^2) / (60 + t^2) on average.
    assert found.difference.low == pytest.approx((60 - 4.0) / (60 + 4.0), abs=0.01)
    assert found.difference.high == pytest.approx(1, abs=1e-3)
    assert found.p < 1e-6


def test_nothing_in_common_has_no_difference():
    nan = np.nan
    found = paired_mean(two_categories(2), mean_of(np.array([1.0, nan])), mean_of(np.array([nan, 1.0])))
    assert (found.difference.value, found.p) == (None, None)
