"""The logistic function and its loss over large arrays, without overflow."""

import numpy as np

from steelyard.statistics.pair_counts import Floats


def sigmoid(value: Floats) -> Floats:
    """1 / (1 + exp(-value)), from 0 to 1 for any finite value."""
    with np.errstate(over="ignore"):  # exp of a large number is inf, and 1 / inf is the 0 that is meant
        return 1 / (1 + np.exp(-value))


def softplus(value: Floats) -> Floats:
    """ln(1 + exp(value)): minus the logarithm of sigmoid(-value)."""
    return np.maximum(value, 0.0) + np.log1p(np.exp(-np.abs(value)))
