import numpy as np
import pytest
from scipy import stats

from steelyard.statistics.change_points import FEWEST_VALUES, MOST_PLACES, change_point


def test_a_clear_change_is_found_where_it_is():
    values = np.array([1.0] * 30 + [0.0] * 30)
    found = change_point(values, np.arange(60))
    assert found.place in range(28, 33)  # the places are every third value
    assert found.p < 1e-6
    blocks = change_point(values, np.repeat(np.arange(6), 10))
    assert (blocks.place, blocks.before.value, blocks.after.value) == (30, 1.0, 0.0)
    assert blocks.before.low < 1.0
    assert blocks.after.high > 0.0


def test_one_place_is_student_s_test_with_a_prior():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.random(40), rng.random(60) * 0.8])
    found = change_point(values, np.repeat([0, 1], [40, 60]))
    first, second = values[:40], values[40:]
    within = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
    error = np.sqrt((within + 1) / 99 * (1 / 40 + 1 / 60))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(first.mean() - second.mean()) / error, 98))


def test_there_is_no_place_without_values_on_both_sides():
    assert change_point(np.ones(2 * FEWEST_VALUES - 1), np.arange(2 * FEWEST_VALUES - 1)) is None
    assert change_point(np.ones(50), np.zeros(50, int)) is None
    assert change_point(np.ones(2 * FEWEST_VALUES), np.arange(2 * FEWEST_VALUES)).p == 1.0


def test_a_steady_series_changes_at_most_at_the_level():
    """400 series of 60 values: at 5% more than 32 changes have a probability of 0.4%."""
    rng = np.random.default_rng(1)
    changes = [change_point((rng.random(60) < 0.8).astype(float), np.arange(60)).p < 0.05 for _ in range(400)]
    assert sum(changes) <= 32


def test_at_most_nineteen_places_are_tested():
    values = np.array([1.0, 0.0] * 500)
    # Every place has means of 0.5: the smallest p-value is near 1, and stays 1 with the correction.
    assert change_point(values, np.arange(1000)).p == 1.0
    assert MOST_PLACES == 19
