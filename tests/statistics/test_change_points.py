import numpy as np
import pytest
from scipy import stats

from steelyard.statistics.change_points import change_point


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
    assert change_point(np.ones(19), np.arange(19)) is None
    assert change_point(np.ones(50), np.zeros(50, int)) is None
    only = change_point(np.ones(20), np.arange(20))
    assert (only.place, only.p) == (10, 1.0)


def test_a_steady_series_changes_at_most_at_the_level():
    """400 series of 60 values: at 5% more than 32 changes have a probability of 0.4%."""
    rng = np.random.default_rng(1)
    changes = [change_point((rng.random(60) < 0.8).astype(float), np.arange(60)).p < 0.05 for _ in range(400)]
    assert sum(changes) <= 32


def test_at_most_nineteen_places_at_equal_steps_are_tested():
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.random(500), rng.random(500) * 0.9])
    expected = []
    for place in range(50, 1000, 50):
        first, second = values[:place], values[place:]
        within = ((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum()
        error = np.sqrt((within + 1) / 999 * (1 / place + 1 / (1000 - place)))
        expected.append(2 * stats.t.sf(abs(first.mean() - second.mean()) / error, 998))
    found = change_point(values, np.arange(1000))
    assert len(expected) == 19
    assert found.p == pytest.approx(19 * min(expected))
    assert found.place == 50 * (1 + int(np.argmin(expected)))
    assert (found.before.value, found.before.n) == (pytest.approx(values[: found.place].mean()), found.place)


def test_the_interval_of_a_part_is_wilsons_with_its_variance():
    values = np.repeat([0.0, 1.0, 1.0, 0.0], [8, 32, 8, 52])
    found = change_point(values, np.repeat([0, 1], [40, 60]))
    # 32 of 40 ones: Wilson with Student's quantile of 39 degrees of freedom. The sample variance is that of 39 values;
    # of 8 zeros it counts as 8.5 of 8.3, with half a value of prior knowledge that they are independent.
    quantile, number = stats.t.ppf(0.975, 39), 40 * 8.3 / 8.5
    middle = 0.8 + quantile**2 / (2 * number)
    half = quantile * np.sqrt(0.8 * 0.2 / number + quantile**2 / (4 * number**2))
    ends = ((middle - half) / (1 + quantile**2 / number), (middle + half) / (1 + quantile**2 / number))
    assert (found.before.low, found.before.high) == pytest.approx(ends, abs=1e-6)
    assert (found.before.value, found.after.value, found.after.n) == (0.8, pytest.approx(8 / 60), 60)
