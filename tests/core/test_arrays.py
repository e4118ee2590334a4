import numpy as np
import pytest
from scipy.special import expit

from steelyard.core.arrays import sigmoid, softplus

VALUES = np.array([-1e300, -800.0, -30.0, -1.0, 0.0, 1e-9, 2.5, 40.0, 1e300])


def test_they_are_scipys_and_numpys():
    assert sigmoid(VALUES) == pytest.approx(expit(VALUES), rel=1e-12)
    assert softplus(VALUES) == pytest.approx(np.logaddexp(0, VALUES), rel=1e-12)
