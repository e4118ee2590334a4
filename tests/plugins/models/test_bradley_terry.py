import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from steelyard.plugins.models._cross_fitted import bradley_terry


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 5.0))
def test_the_gradient_is_zero_at_the_weights(seed, strength):
    draws = np.random.default_rng(seed)
    differences, weight = draws.normal(size=(12, 3)), draws.uniform(0.5, 2, size=12)
    found = bradley_terry(differences, weight, inverse_regularisation=strength)
    # d/dw of |w|^2 / 2 + C * sum(weight * log(1 + exp(-x w))), written out
    gradient = found - strength * sum(
        own * row / (1 + np.exp(row @ found)) for own, row in zip(weight, differences, strict=True)
    )
    assert np.abs(gradient).max() < 1e-3


def test_dense_and_sparse_differences_give_the_same():
    differences = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0], [3.0, 1.0, 0.0]])
    dense = bradley_terry(differences, np.ones(3), inverse_regularisation=1.0)
    assert bradley_terry(sparse.csr_matrix(differences), np.ones(3), inverse_regularisation=1.0) == pytest.approx(dense)
    assert dense[2] > 0 > dense[1]
