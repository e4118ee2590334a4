import numpy as np
import pytest
from scipy.special import expit

from steelyard.core.numerics import derived_seed, derived_seeds, generator, histogram_edges, sigmoid, softplus

VALUES = np.array([-1e300, -800.0, -30.0, -1.0, 0.0, 1e-9, 2.5, 40.0, 1e300])


def test_they_are_scipys_and_numpys():
    assert sigmoid(VALUES) == pytest.approx(expit(VALUES), rel=1e-12)
    assert softplus(VALUES) == pytest.approx(np.logaddexp(0, VALUES), rel=1e-12)


@pytest.mark.parametrize("low", [0.0, 1.0, -1e8, 1e20, -1e150, 5e-324])
def test_values_that_are_equal_up_to_rounding_have_bins_of_some_width(low):
    values = np.array([low, np.nextafter(low, np.inf), low])
    edges = histogram_edges(values, 40)
    assert len(edges) == 41
    assert (np.diff(edges) > 0).all()
    assert np.histogram(values, edges)[0].sum() == 3


def test_the_bins_of_other_values_are_numpys():
    values = np.array([0.25, -3.0, 7.5, 7.0])
    assert histogram_edges(values, 9).tolist() == np.histogram_bin_edges(values, 9).tolist()


def test_equal_purposes_give_equal_draws_and_others_do_not():
    draws = generator(1, "split", 3).random(4)
    assert np.array_equal(draws, generator(1, "split", 3).random(4))
    assert not np.array_equal(draws, generator(2, "split", 3).random(4))
    assert not np.array_equal(draws, generator(1, "split", 4).random(4))


def test_names_are_kept_apart():
    assert derived_seed(0, "ab", "c") != derived_seed(0, "a", "bc")
    assert 0 <= derived_seed(0) < 2**63


def test_many_seeds_at_once_are_those_of_one_after_another():
    names = ["a", "杆秤", "", "a\x1fb"]
    assert derived_seeds(7, ("random", 3), names) == [derived_seed(7, "random", 3, name) for name in names]
