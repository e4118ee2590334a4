"""Correlation of two values over models: Pearson's, Spearman's and Kendall's, with intervals and a paired test.

Both values of a model are means over items, so that a coefficient varies with the models and with the items. On
Fisher's scale, z = atanh(r), the variance over models is 1 / (n - 3), for ranks (1 + r² / 2) / (n - 3) (Bonett and
Wright, 2000), and for Kendall's tau 0.437 / (n - 4) (Fieller, Hartley and Pearson, 1957) with a term for few possible
values. The variance over resampled items is added to it. Models of one family, such as those of one backbone, are not
independent: with families, they are left out one family at a time (the jackknife).
"""

from collections.abc import Callable, Iterator
from math import atanh, isnan, sqrt, tanh
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.statistics.intervals import Estimate, student

FEWEST_MODELS = 8
"""Models, or families of models, below which a correlation over models proves nothing."""
TOO_FEW_MODELS = f"fewer than {FEWEST_MODELS} models"
"""The reason for having no interval with few models."""
TOO_FEW_FAMILIES = f"fewer than {FEWEST_MODELS} families of models"
"""The reason for having no interval with few families of models."""
ONE_FAMILY_VARIES = "only one family has different values"
_NO_LIMIT = 1e6
"""The degrees of freedom of the normal distribution."""
_POWER = 0.8
"""The power of a detectable difference."""
_NUM_ANGLES = 4097
"""Points around an ellipse; the ends of an interval are exact to six digits."""
_ROUNDING = 1e-12
_LARGEST_INFLATION = 2.0
Coefficient = Callable[[Floats, Floats], Floats]


class CorrelationDifference(NamedTuple):
    """One correlation with an outcome minus another, with the two-sided ``p`` of the test of no difference.

    ``detectable`` is the difference around the mean of the two that the test shows with a power of 80% or more, before
    a correction for many tests. Both are null where the difference has no interval.
    """

    estimate: Estimate
    p: float | None = None
    detectable: float | None = None


def pearson(first: Floats, second: Floats) -> Floats:
    """Compute Pearson's coefficient over the last axis: (…, model) to (…). NaN where one side does not vary."""
    left, right = (values - values.mean(axis=-1, keepdims=True) for values in (first, second))
    # Each side is scaled by its largest deviation, so that small values are not taken for equal ones.
    left, right = (
        side / np.maximum(np.abs(side).max(axis=-1, keepdims=True), np.finfo(float).tiny) for side in (left, right)
    )
    varies = _varies(first) & _varies(second)
    scale = np.sqrt((left**2).sum(axis=-1) * (right**2).sum(axis=-1))
    return np.where(varies, (left * right).sum(axis=-1), np.nan) / np.where(varies, scale, 1.0)


def _varies(values: Floats) -> Booleans:
    """Return whether the values along the last axis differ by more than a rounding error."""
    spread = values.max(axis=-1) - values.min(axis=-1)
    return spread > _ROUNDING * np.abs(values).max(axis=-1)


def spearman(first: Floats, second: Floats) -> Floats:
    """Compute Spearman's coefficient over the last axis: Pearson's of the ranks, equal values with their mean rank."""
    return pearson(_ranks(first), _ranks(second))


def kendall(first: Floats, second: Floats) -> Floats:
    """Compute Kendall's tau-b over the last axis, which corrects for ties. NaN where one side does not vary."""
    left, right = _order_signs(first), _order_signs(second)
    scale = np.sqrt(np.abs(left).sum(axis=(-2, -1)) * np.abs(right).sum(axis=(-2, -1)))
    varies = scale > 0
    total = (left * right).sum(axis=(-2, -1))
    return np.where(varies, total, np.nan) / np.where(varies, scale, 1.0)


def _ranks(values: Floats) -> Floats:
    """Return the ranks along the last axis, from 0; equal values have the mean of their ranks."""
    below = (values[..., :, None] > values[..., None, :]).sum(axis=-1)
    equal = (values[..., :, None] == values[..., None, :]).sum(axis=-1)
    return below + (equal - 1) / 2.0


def _order_signs(values: Floats) -> Integers:
    """Return 1, 0 or -1 for each two values: (…, model) to (…, model, model)."""
    left, right = values[..., :, None], values[..., None, :]
    return (left > right).astype(np.int8) - (left < right).astype(np.int8)


def correlate(coefficient: Coefficient, first: Floats, second: Floats, families: Integers | None = None) -> Estimate:
    """Return a coefficient over models with its 95% interval; n counts models.

    Both arrays have shape (1 + resample, model): the values, and those of resampled items, perhaps none. ``families``
    has the number of each model's family, shape (model,); null for independent models. No interval with fewer than
    `FEWEST_MODELS` models or families. No value where one side is equal in all models.
    """
    values = coefficient(first, second)
    value, number = float(values[0]), first.shape[-1]
    if isnan(value):
        return Estimate(None, None, None, number, why="all values are equal")
    num_units = number if families is None else len(np.unique(families))
    if num_units < FEWEST_MODELS:
        return Estimate(value, None, None, number, why=TOO_FEW_MODELS if number == num_units else TOO_FEW_FAMILIES)
    over_models, freedom = _variance(coefficient, value, number), _NO_LIMIT
    if families is not None and num_units < number:
        left_out = [_fisher(coefficient, *sides) for sides in _without_each(families, first[0], second[0])]
        # The jackknife; NaN where a value without one of the families is not defined.
        values_without = np.concatenate(left_out)
        over_models, freedom = float(np.var(values_without)) * (len(values_without) - 1), _freedom(families)
        if isnan(over_models):
            return Estimate(value, None, None, number, why=ONE_FAMILY_VARIES)
    on_scale = _on_scale(coefficient, values, number)
    resampled = on_scale[1:]
    over_items = float(np.nanvar(resampled, ddof=1)) if (~np.isnan(resampled)).sum() > 1 else 0.0
    middle = float(on_scale[0])
    reach = student(freedom) * sqrt(over_models + over_items)
    low, high = tanh(middle - reach), tanh(middle + reach)
    return Estimate(value, min(low, value), max(high, value), number)


def compare_correlations(
    coefficient: Coefficient, first: Floats, second: Floats, outcome: Floats, families: Integers | None = None
) -> CorrelationDifference:
    """Test whether two values correlate equally with one outcome over the same models (dependent correlations).

    The test is that of the difference on Fisher's scale; the interval has the differences of all pairs of correlations
    that this test does not refuse together, so that p < 0.05 exactly where it excludes 0. Student's t has one degree of
    freedom less than there are models, or effective families. Arrays: see `correlate`.

    Differs from: Meng, Rosenthal and Rubin (1992), whose covariance of the two correlations holds for normal values of
    independent models: it is that of the jackknife, for ranks and families as well. Differs from: Zou (2007), who adds
    the distances to the ends of the two intervals: where benches correlate highly, that interval is wider than needed
    and includes 0 where the test finds a difference.
    """
    number = first.shape[-1]
    groups = np.arange(number) if families is None else families
    num_units = len(np.unique(groups))
    points = [coefficient(side, outcome) for side in (first, second)]
    value = float(points[0][0] - points[1][0])
    if isnan(value):
        return CorrelationDifference(Estimate(None, None, None, number, why="all values are equal"))
    if num_units < FEWEST_MODELS:
        why = TOO_FEW_MODELS if number == num_units else TOO_FEW_FAMILIES
        return CorrelationDifference(Estimate(value, None, None, number, why=why))
    if np.all(pearson(first, second) > 1 - _ROUNDING):
        return CorrelationDifference(Estimate(0.0, 0.0, 0.0, number, method="equal values"), 1.0, 0.0)
    left_out = [
        np.stack([_fisher(coefficient, side, both) for side in sides])
        for *sides, both in _without_each(groups, first[0], second[0], outcome[0])
    ]
    covariance = _jackknife_covariance(np.concatenate(left_out, axis=1))
    if np.isnan(covariance).any():
        return CorrelationDifference(Estimate(value, None, None, number, why=ONE_FAMILY_VARIES))
    if num_units == number and coefficient is not pearson:
        # The variance of ranks does not depend on the distribution of values, and is known better than by a jackknife.
        known = np.sqrt([_variance(coefficient, float(each[0]), number) for each in points])
        covariance = _correlation_of(covariance) * np.outer(known, known)
    # A side without resamples keeps its value in those of the other.
    on_scale = np.stack(np.broadcast_arrays(*(_on_scale(coefficient, each, number) for each in points)))
    resampled = on_scale[:, 1:][:, ~np.isnan(on_scale[:, 1:]).any(axis=0)]
    covariance += np.cov(resampled) if resampled.shape[1] > 1 else 0.0
    return _tested(value, on_scale[:, 0], covariance, _freedom(groups), number)


def _tested(value: float, middle: Floats, covariance: Floats, freedom: float, number: int) -> CorrelationDifference:
    """Return a difference with its test and interval, from both coefficients on Fisher's scale and their covariance."""
    from scipy.special import stdtr, stdtrit

    error = sqrt(max(float(np.array([1, -1]) @ covariance @ np.array([1, -1])), 0.0))
    if error < _ROUNDING:
        is_equal = abs(value) < _ROUNDING
        return CorrelationDifference(Estimate(value, value, value, number, method="equal orders"), float(is_equal), 0.0)
    p = min(1.0, 2 * float(stdtr(freedom, -abs(middle[0] - middle[1]) / error)))
    # The ellipse of the pairs of correlations whose difference from the values is no larger than the test allows.
    angle = np.linspace(0.0, 2 * np.pi, _NUM_ANGLES)
    share = _correlation_of(covariance)[0, 1]
    around = np.stack([np.cos(angle), share * np.cos(angle) + sqrt(1 - share**2) * np.sin(angle)])
    reach = student(freedom) * np.sqrt(np.diag(covariance))
    left, right = np.tanh(middle[:, None] + reach[:, None] * around)
    estimate = Estimate(value, min(float((left - right).min()), value), max(float((left - right).max()), value), number)
    level, half = atanh(np.tanh(middle).mean()), (student(freedom) + float(stdtrit(freedom, _POWER))) * error / 2
    detectable = tanh(level + half) - tanh(level - half)
    return CorrelationDifference(estimate, p, detectable)


def _jackknife_covariance(left_out: Floats) -> Floats:
    """Return the covariance of two values from those without each unit, shape (2, unit); NaN where one is not defined.

    The correlation of the two is shrunk a little: with few units, those of a sample may have equal values by chance.
    """
    num_units = left_out.shape[1]
    covariance = np.cov(left_out, bias=True) * (num_units - 1)
    return covariance * np.where(np.eye(2, dtype=bool), 1.0, 1 - 1 / num_units**2)


def _correlation_of(covariance: Floats) -> Floats:
    """Return the matrix of correlations of a covariance; 0 where one side has no variance."""
    error = np.sqrt(np.diag(covariance))
    scale = np.outer(error, error)
    correlations = np.divide(covariance, scale, out=np.zeros_like(scale), where=scale > _ROUNDING)
    np.fill_diagonal(correlations, 1.0)
    return correlations


def _variance(coefficient: Coefficient, value: float, number: int) -> float:
    """Return the variance of a coefficient on Fisher's scale over independent models."""
    if coefficient is spearman:
        return (1 + value**2 / 2) / (number - 3)
    if coefficient is not kendall:
        return 1 / (number - 3)
    # Near 1 tau has few possible values among few models, and its variance exceeds Fieller's constant.
    crowded = 1 + 3 / (number * max(1 - abs(value), _ROUNDING)) ** 2
    return 0.437 / (number - 4) * min(crowded, _LARGEST_INFLATION)


def _on_scale(coefficient: Coefficient, values: Floats, number: int) -> Floats:
    """Return coefficients over a number of models on Fisher's scale, on which 1 has no place.

    The next smaller coefficient of ranks than 1 is 12 / (n³ - n) below it, that of tau 4 / (n² - n).
    """
    step = _ROUNDING
    if coefficient is spearman:
        step = 6 / (number**3 - number)
    elif coefficient is kendall:
        step = 2 / (number**2 - number)
    most = 1 - step
    return np.arctanh(np.clip(values, -most, most))


def _fisher(coefficient: Coefficient, first: Floats, second: Floats) -> Floats:
    """Return the coefficient over the last axis on Fisher's scale."""
    return _on_scale(coefficient, coefficient(first, second), first.shape[-1])


def _freedom(families: Integers) -> float:
    """Return the degrees of freedom of a jackknife by family: the effective number of families (Kish, 1965) minus 1.

    At least 1, where nearly all models are of one family.
    """
    sizes = np.unique(families, return_counts=True)[1]
    return max(len(families) ** 2 / float((sizes**2).sum()) - 1, 1.0)


def _without_each(families: Integers, *sides: Floats) -> Iterator[tuple[Floats, ...]]:
    """Yield the values without each family, together for all families of one size: shape (family, model)."""
    names, sizes = np.unique(families, return_counts=True)
    for size in np.unique(sizes):
        rows = np.stack([np.flatnonzero(families != name) for name in names[sizes == size]])
        yield tuple(side[rows] for side in sides)
