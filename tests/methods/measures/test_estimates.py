import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from steelyard.methods.measures.estimates import Estimate, clopper_pearson, interval, is_degenerate, widened


@pytest.mark.parametrize(("right", "n"), [(0, 1), (0, 30), (7, 20), (20, 20), (1, 500)])
def test_it_is_scipys(right, n):
    expected = binomtest(right, n).proportion_ci(0.95, "exact")
    assert clopper_pearson(right / n, n) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_none_of_n_by_hand():
    # (1 - p) ** n = 0.025 at the upper end
    low, high = clopper_pearson(0.0, 30)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 30)))


def test_only_an_interval_without_width_is_widened():
    wide, flat, bare = Estimate(0.5, 0.4, 0.6, 9), Estimate(0.0, 0.0, 0.0, 9), Estimate(0.0, None, None, 9)
    assert [is_degenerate(one) for one in (wide, flat, bare)] == [False, True, False]
    assert widened(wide, 9) == wide
    assert widened(bare, 9) == bare
    assert widened(flat, 0) == flat
    found = widened(flat, 9)
    assert (found.value, found.low, found.n, found.method) == (0.0, 0.0, 9, "clopper-pearson")
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 9))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_the_interval_is_numpys_percentiles(drawn):
    found = interval(0.5, np.array([*drawn, np.nan]), 7)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(drawn, [2.5, 97.5])), rel=1e-12, abs=1e-9)
    assert (found.value, found.n, found.method) == (0.5, 7, None)


def test_without_resamples_there_is_no_interval():
    assert interval(0.5, np.array([np.nan]), 7) == Estimate(0.5, None, None, 7)
