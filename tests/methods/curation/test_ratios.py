import numpy as np
import pytest

from steelyard.methods.curation.ratios import Ratio, numbered, share_of


def test_a_share_of_entries_drawn_by_unit():
    unit = np.array([0, 0, 1, 1, 2])
    counted, right = np.array([1, 1, 1, 0, 1], bool), np.array([1, 0, 1, 1, 1], bool)
    found = share_of(unit, counted, right, seed=0)
    assert (found.value, found.n) == (0.75, 4)
    assert found.low == 0.5  # three times unit 0, or it twice with much luck elsewhere: never below its own half
    assert found.high == 1.0
    assert share_of(unit, counted, right, seed=0) == found


def test_units_of_one_entry_have_the_binomial_s_spread():
    right = np.arange(400) % 4 != 0
    found = share_of(np.arange(400), np.ones(400, bool), right, seed=1)
    spread = 1.96 * (0.75 * 0.25 / 400) ** 0.5
    assert found.low == pytest.approx(0.75 - spread, abs=0.01)
    assert found.high == pytest.approx(0.75 + spread, abs=0.01)
    whole = share_of(np.zeros(400, int), np.ones(400, bool), right, seed=1)
    assert (whole.low, whole.high) == (0.75, 0.75)


def test_nothing_counted_has_no_share():
    assert share_of(np.array([0]), np.array([False]), np.array([True]), seed=0) == Ratio(None, None, None, 0)
    empty = np.array([], int)
    assert share_of(empty, empty.astype(bool), empty.astype(bool), seed=0) == Ratio(None, None, None, 0)


def test_names_are_numbered_as_they_come():
    assert numbered(["b", "a", "b", "ג"]).tolist() == [0, 1, 0, 2]
