import numpy as np
import pytest

from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.prompt_means import mean_of, paired_mean


def blocks_of(number, num_resamples=500):
    labels = [Label(f"p{index}", Cell("code" if index % 2 else "chat")) for index in range(number)]
    return draw_blocks(labels, num_resamples=num_resamples, seed=0)


def test_by_hand_over_the_prompts_that_both_have():
    first, second = (np.array(own) for own in ([1.0, 2.0, np.nan, 4.0], [0.0, 1.0, 9.0, 7.0]))
    found = paired_mean(blocks_of(4), mean_of(first), mean_of(second))
    # chat: prompt 0 alone, 1 - 0; code: (2 + 4) / 2 - (1 + 7) / 2
    assert found.difference.value == pytest.approx((1 - 1) / 2)
    assert found.difference.n == 3
    assert found.record()["difference"]["value"] == found.difference.value


def test_a_constant_lead_is_beyond_doubt_however_wide_the_values_spread():
    values = np.random.default_rng(0).normal(0, 100, 60)
    found = paired_mean(blocks_of(60), mean_of(values + 1), mean_of(values))
    # All sixty prompts differ alike: as far as sixty can tell, by at least (60 - t^2) / (60 + t^2) on average.
    assert found.difference.low == pytest.approx((60 - 4.0) / (60 + 4.0), abs=0.01)
    assert found.difference.high == pytest.approx(1, abs=1e-3)
    assert found.p < 1e-6


def test_nothing_in_common_has_no_difference():
    nan = np.nan
    found = paired_mean(blocks_of(2), mean_of(np.array([1.0, nan])), mean_of(np.array([nan, 1.0])))
    assert (found.difference.value, found.p) == (None, None)
