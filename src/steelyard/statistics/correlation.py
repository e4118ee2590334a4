"""Correlation of two values over models, Pearson's and Spearman's, with an interval over models and over items.

Both values of a model are means over items, so that a coefficient varies with the models and with the items. On
Fisher's scale, z = atanh(r), the variance over models is 1 / (n - 3), for ranks (1 + r² / 2) / (n - 3) (Bonett and
Wright, 2000). The variance over resampled items is added to it.
"""

from collections.abc import Callable
from math import atanh, isnan, sqrt, tanh

import numpy as np

from steelyard.core.numerics import Floats
from steelyard.statistics.intervals import Estimate, student

FEWEST_MODELS = 8
"""Models below which a correlation over models is no evidence."""
TOO_FEW_MODELS = f"fewer than {FEWEST_MODELS} models"
"""The reason for having no interval with few models."""
_NO_LIMIT = 1e6
"""The degrees of freedom of the normal distribution."""
_ROUNDING = 1e-12
Coefficient = Callable[[Floats, Floats], Floats]


def pearson(first: Floats, second: Floats) -> Floats:
    """Compute Pearson's coefficient over the last axis: (…, model) to (…). NaN where one side does not vary."""
    left, right = (values - values.mean(axis=-1, keepdims=True) for values in (first, second))
    scale = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    varies = scale > _ROUNDING
    return np.where(varies, (left * right).sum(axis=-1), np.nan) / np.where(varies, scale, 1.0)


def spearman(first: Floats, second: Floats) -> Floats:
    """Compute Spearman's coefficient over the last axis: Pearson's of the ranks, equal values with their mean rank."""
    return pearson(_ranks(first), _ranks(second))


def _ranks(values: Floats) -> Floats:
    """Return the ranks along the last axis, from 0; equal values have the mean of their ranks."""
    below = (values[..., :, None] > values[..., None, :]).sum(axis=-1)
    equal = (values[..., :, None] == values[..., None, :]).sum(axis=-1)
    return below + (equal - 1) / 2.0


def correlate(coefficient: Coefficient, first: Floats, second: Floats) -> Estimate:
    """Return a coefficient over models with its 95% interval; n counts models.

    Both arrays have shape (1 + resample, model): the values, and those of resampled items, perhaps none.
    No interval with fewer than `FEWEST_MODELS` models. No value where one side is equal in all models.
    """
    values = coefficient(first, second)
    value, number = float(values[0]), first.shape[-1]
    if isnan(value):
        return Estimate(None, None, None, number, why="all values are equal")
    if number < FEWEST_MODELS:
        return Estimate(value, None, None, number, why=TOO_FEW_MODELS)
    # A coefficient of 1 has no place on Fisher's scale. The next smaller one of ranks is 12 / (n³ - n) below it.
    most = 1 - 6 / (number**3 - number)
    over_models = (1 + (value**2 / 2 if coefficient is spearman else 0)) / (number - 3)
    resampled = np.arctanh(np.clip(values[1:], -most, most))
    over_items = float(np.nanvar(resampled, ddof=1)) if (~np.isnan(resampled)).sum() > 1 else 0.0
    middle, reach = atanh(min(max(value, -most), most)), student(_NO_LIMIT) * sqrt(over_models + over_items)
    low, high = tanh(middle - reach), tanh(middle + reach)
    return Estimate(value, min(low, value), max(high, value), number)
