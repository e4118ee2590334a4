import numpy as np
import pytest
from scipy.special import expit

from steelyard.core.numerics import derived_seed, derived_seeds, generator, sigmoid, softplus

VALUES = np.array([-1e300, -800.0, -30.0, -1.0, 0.0, 1e-9, 2.5, 40.0, 1e300])


def test_they_are_scipys_and_numpys():
    assert sigmoid(VALUES) == pytest.approx(expit(VALUES), rel=1e-12)
    assert softplus(VALUES) == pytest.approx(np.logaddexp(0, VALUES), rel=1e-12)


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
