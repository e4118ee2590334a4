"""Types of arrays, and elementwise functions that neither overflow nor divide by zero."""

import numpy as np
from numpy.typing import NDArray

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.integer]


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide elementwise; NaN where the denominator is not positive."""
    is_positive = denominator > 0
    return np.where(is_positive, numerator, np.nan) / np.where(is_positive, denominator, 1.0)


def sigmoid(value: Floats) -> Floats:
    """Return 1 / (1 + exp(-value)), between 0 and 1 for any finite value."""
    # exp of a large number is inf, and 1 / inf is the 0 that is meant.
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-value))


def softplus(value: Floats) -> Floats:
    """Return ln(1 + exp(value)), which is minus the logarithm of sigmoid(-value)."""
    return np.maximum(value, 0.0) + np.log1p(np.exp(-np.abs(value)))
