import numpy as np
import pytest

from reference_measures import reference_estimate
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.unit_bootstrap import number_units, share_of

NOTHING = Estimate(None, None, None, 0)


def test_a_share_of_entries_drawn_by_unit():
    unit = np.array([0, 0, 1, 1, 2])
    counted, right = np.array([1, 1, 1, 0, 1], bool), np.array([1, 0, 1, 1, 1], bool)
    found = share_of(unit, counted, right, seed=0)
    assert (found.value, found.n) == (0.75, 4)
    assert 0 < found.low < 0.5  # three units tell less than their own extremes, a half and one, would have it
    assert found.high > 0.95
    assert share_of(unit, counted, right, seed=0) == found


def test_units_of_one_entry_have_the_binomial_s_spread():
    right = np.arange(400) % 4 != 0
    found = share_of(np.arange(400), np.ones(400, bool), right, seed=1)
    spread = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert found.low == pytest.approx(0.75 - spread, abs=0.01)
    assert found.high == pytest.approx(0.75 + spread, abs=0.01)
    # One unit says nothing of the spread between units: 400 entries of one prompt are no more than one outcome.
    whole = share_of(np.zeros(400, int), np.ones(400, bool), right, seed=1)
    assert (whole.value, whole.n) == (0.75, 400)
    assert whole.high - whole.low > 0.9


@pytest.mark.parametrize("right", [True, False])
def test_all_or_none_of_four_units_is_no_certainty(right):
    # Six entries of four units count.
    unit, counted = np.array([0, 0, 1, 1, 2, 3, 4]), np.array([1, 1, 1, 1, 1, 1, 0], bool)
    assert share_of(unit, counted, np.full(7, right), seed=0).record() == reference_estimate(float(right), 4, 6)


def test_nothing_counted_has_no_share():
    assert share_of(np.array([0]), np.array([False]), np.array([True]), seed=0) == NOTHING
    empty = np.array([], int)
    assert share_of(empty, empty.astype(bool), empty.astype(bool), seed=0) == NOTHING


def test_names_are_numbered_as_they_come():
    assert number_units(["b", "a", "b", "ג"]).tolist() == [0, 1, 0, 2]
