import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_measures import reference_estimate
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import area, selection_shares


def test_shares_and_differences_by_hand():
    unit = np.array([0, 0, 1, 2])
    counted = np.array([[1, 1], [1, 0], [1, 1], [1, 0]])
    right = np.array([True, False, True, False])
    found = selection_shares(unit, counted, right, seed=0)
    assert (found.of(0).value, found.of(0).n) == (0.5, 4)
    assert (found.of(1).value, found.of(1).n) == (1.0, 2)
    assert found.minus(1, 0).value == 0.5
    assert found.minus(0, 0).value == 0.0


def test_a_fraction_of_right_counts_as_such_and_each_column_may_have_its_own():
    counted, right = np.ones((2, 2)), np.array([[0.25, 1.0], [0.75, 0.0]])
    found = selection_shares(np.array([0, 1]), counted, right, seed=0)
    assert (found.of(0).value, found.of(1).value) == (0.5, 0.5)


def test_nothing_counted_has_no_share():
    found = selection_shares(np.array([0, 1]), np.array([[1, 0], [1, 0]]), np.array([True, False]), seed=0)
    assert found.of(1) == Estimate(None, None, None, 0)
    assert found.minus(0, 1).value is None


def test_entries_of_one_unit_are_drawn_together():
    # One unit of 50 right and one of 50 wrong entries tell as little as two outcomes.
    # A hundred units of one entry each give about 0.5 +- 0.1.
    right = np.arange(100) < 50
    whole = selection_shares((~right).astype(int), np.ones((100, 1)), right, seed=0).of(0)
    assert (whole.low, whole.high) == (pytest.approx(0.0, abs=0.01), pytest.approx(1.0, abs=0.01))
    apart = selection_shares(np.arange(100), np.ones((100, 1)), right, seed=0).of(0)
    assert 0.38 <= apart.low < apart.high <= 0.62


def test_the_interval_has_the_width_of_the_binomial():
    draws = np.random.default_rng(0)
    right = draws.random(400) < 0.8
    found = selection_shares(np.arange(400), np.ones((400, 1)), right, seed=1).of(0)
    deviation = (found.value * (1 - found.value) / 400) ** 0.5
    assert found.high - found.low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30))
def test_the_area_counts_pairs_of_right_and_wrong(entries):
    margin = np.array([value for value, _ in entries], float)
    right = np.array([is_right for _, is_right in entries])
    found = area(np.arange(len(entries)), margin, right, seed=0)
    # every right entry against every wrong one, a tie counting half
    won = [(a > b) + 0.5 * (a == b) for a, good in entries if good for b, bad in entries if not bad]
    if won:
        assert found.value == pytest.approx(sum(won) / len(won))
        assert 0 <= found.low <= found.high <= 1
    else:
        assert found.value is None


def test_all_right_of_three_units_is_no_certainty():
    counted = np.array([[1, 0], [1, 0], [1, 1], [1, 1], [0, 1]])
    found = selection_shares(np.array([0, 0, 1, 2, 3]), counted, np.ones(5, bool), seed=0)
    assert found.of(0).record() == reference_estimate(1.0, 3, 4)
    assert found.of(1).record() == reference_estimate(1.0, 3, 3)
    gap = found.minus(0, 1)
    assert (gap.value, gap.n) == (0.0, 4)
    assert gap.low < 0 < gap.high
