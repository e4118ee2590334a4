"""Array types, elementwise functions that neither overflow nor divide by zero, and random generators by purpose.

A random draw depends on the run's seed and its purpose, never on the order of calls.
"""

import hashlib
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

Booleans = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.integer]
_EQUAL, _NO_RANGE = 1e-12, 1e-290
"""Values whose range is less, as a share of the largest and as such, are equal up to rounding."""
_WIDENED = 1e-9
"""The share of equal values by which a histogram of them is widened, so that its edges differ."""


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


def histogram_edges(values: Floats, num_bins: int) -> Floats:
    """Return edges of bins of equal width over all values; those that are equal up to rounding lie in the middle."""
    low, high = float(values.min()), float(values.max())
    size = max(abs(low), abs(high))
    if high - low <= max(_EQUAL * size, _NO_RANGE):
        half = max(0.5, _WIDENED * size)
        low, high = low - half, high + half
    return np.linspace(low, high, num_bins + 1)


def derived_seed(seed: int, *names: str | int) -> int:
    """Return a 63-bit seed for one purpose: equal arguments give equal seeds on every machine."""
    text = "\x1f".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def derived_seeds(seed: int, names: Sequence[str | int], lasts: Iterable[str | int]) -> list[int]:
    """Return ``derived_seed(seed, *names, last)`` for each last name; the common prefix is hashed once."""
    shared = hashlib.sha256(("\x1f".join(str(part) for part in (seed, *names)) + "\x1f").encode())
    seeds = []
    for last in lasts:
        digest = shared.copy()
        digest.update(str(last).encode())
        seeds.append(int.from_bytes(digest.digest()[:8], "big") >> 1)
    return seeds


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """Return a numpy generator for one purpose."""
    return np.random.default_rng(derived_seed(seed, *names))
