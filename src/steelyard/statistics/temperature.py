"""The inverse temperature of margins: the factor by which they are probabilities under the Bradley-Terry model."""

from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, sigmoid

_STEEPEST = 100.0
"""The largest factor of the search, in units of 1 / mean absolute margin."""
_LEAST = 1e-290
"""Margins of a smaller mean size count as equal: their factor would be no finite number."""
_STEPS = 50
_ENOUGH = 1e-7


class InverseTemperature(NamedTuple):
    """The factor of the margins (1 / temperature), and whether the search ended inside its bounds."""

    value: float
    is_inside: bool


def fit_inverse_temperature(margin: Floats, start: float | None = None) -> InverseTemperature:
    """Find the factor a >= 0 that minimises the mean of -ln sigmoid(a * margin), a convex function, by Newton's method.

    It is 0 if the mean margin is not positive or the margins are too small for a factor, and at its bound if all pairs
    are right.
    """
    scale = float(np.abs(margin).mean())
    if scale < _LEAST or margin.sum() <= 0:
        return InverseTemperature(0.0, is_inside=False)
    if margin.min() >= 0:
        return InverseTemperature(_STEEPEST / scale, is_inside=False)
    scaled = margin / scale
    low, high = 0.0, _STEEPEST
    value = min(start * scale if start else 1.0, _STEEPEST)
    for _ in range(_STEPS):
        miss = sigmoid(-value * scaled)
        slope, curvature = float(miss @ scaled), float((miss * (1 - miss)) @ scaled**2)
        low, high = (value, high) if slope > 0 else (low, value)
        step = slope / curvature if curvature > 0 else np.inf
        # The bracket keeps the step safe where the curvature vanishes: bisect if Newton leaves it.
        following = value + step if low < value + step < high else (low + high) / 2
        has_converged = abs(following - value) <= _ENOUGH
        value = following
        if has_converged:
            break
    return InverseTemperature(value / scale, is_inside=value < _STEEPEST * (1 - 1e-6))
