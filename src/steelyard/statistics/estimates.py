"""A value with its 95 % interval, formed from the variance of its resamples and from what stands behind them.

- A mean of values between two bounds (a share, a correlation): the score interval (Wilson, 1927) with an effective
  number of prompts, and Student's t for the normal quantile. It has a width at 0 of n and at n of n.
- A difference of two such means on the same prompts: the score interval of paired outcomes (Tango, 1998), whose test of
  "no difference" is McNemar's. Interval and p-value agree: p < 0.05 where the interval leaves out 0.
- Any other value: Student's t, on the logarithm where the value is positive. Refused below the number of prompts from
  which simulation shows a coverage of 93 %.

The effective number of prompts comes from the variance itself (Korn and Graubard, 1998). From a handful of wrong
prompts that variance is hardly known, so `_PRIOR` of a prompt is added whose pairs are all wrong together.
"""

from functools import lru_cache
from math import exp, isnan, sqrt
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from steelyard.core.types import Record
from steelyard.statistics.pair_counts import Floats

_TAIL = 0.975
_PRIOR = 0.5
_LOST_FREEDOM = 4
"""The power of (prompts - 1) / (degrees of freedom) by which the prior of a difference grows; by simulation."""
_NOTHING = 1e-13
"""A variance below this is the rounding of sums in single precision."""
_ROUNDING, _LOG_ROUNDING = 1e-9, 1e-6
"""Standard errors below these, relative to the value, are rounding."""
_LARGEST_EXPONENT = 50.0


class Scale(NamedTuple):
    """The values that a measure can take; null is no bound. ``fewest``: prompts below which it has no interval."""

    low: float | None
    high: float | None
    fewest: int = 0


SHARE = Scale(0.0, 1.0)
CORRELATION = Scale(-1.0, 1.0)
POSITIVE = Scale(0.0, None, 20)
UNBOUNDED = Scale(None, None, 20)


class Evidence(NamedTuple):
    """What stands behind a mean over prompts.

    ``units``: how many prompts of equal weight tell as much (Kish, 1965). ``freedom``: the degrees of freedom of its
    variance (Satterthwaite, 1946). ``inflation``: by what the variance of resamples falls short of that of the mean.
    """

    units: float
    freedom: float
    inflation: float = 1.0


class Estimate(Record, frozen=True):
    """A value with its 95 % interval, and how many pairs or prompts stand behind it.

    ``method`` names an interval that is not formed as the module says; ``why``: the reason for having none.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str | None = None
    why: str | None = None

    def record(self) -> dict[str, Any]:
        """Return the estimate as it is written; ``method`` and ``why`` only where there is one."""
        return msgspec.to_builtins(self)

    def withheld(self) -> "Estimate":
        """The same without its numbers: what is shown where a headline would claim too much."""
        return Estimate(None, None, None, self.n)


class Difference(NamedTuple):
    """A difference with its interval, the two-sided ``p`` of there being none, and the standard error of that test."""

    estimate: Estimate
    p: float
    error: float


def one_sample(num_units: float) -> Evidence:
    """What stands behind a plain mean over units that are resampled with replacement, all of them together."""
    return Evidence(num_units, num_units - 1, num_units / (num_units - 1) if num_units > 1 else 1.0)


def interval(value: float, resampled: Floats, n: float, evidence: Evidence, scale: Scale = SHARE) -> Estimate:
    """A value with its interval; resamples in which it is NaN (nothing to measure) are passed over.

    Null with ``why`` where there are too few prompts, or where the resamples of an unbounded value do not vary.
    """
    nothing = Estimate(None if isnan(value) else value, None, None, int(n))
    if evidence.units < scale.fewest and nothing.value is not None:
        return replace(nothing, why=f"an interval needs {scale.fewest} prompts")
    if nothing.value is None or (~np.isnan(resampled)).sum() < 2:
        return nothing
    variance = variance_of(resampled, evidence)
    if scale.low is not None and scale.high is not None:
        width = scale.high - scale.low
        ends = score_interval((value - scale.low) / width, variance / width**2, evidence)
        low, high = (scale.low + width * end for end in ends)
        return replace(nothing, low=min(low, value), high=max(high, value))
    rounding = _ROUNDING if scale.low is None else _LOG_ROUNDING
    if variance <= (rounding * max(1.0, abs(value))) ** 2 or (scale.low is not None and value <= scale.low):
        return replace(nothing, why="all resamples are equal")
    half = student(evidence.freedom) * sqrt(variance)
    if scale.low is None:
        return replace(nothing, low=value - half, high=value + half)
    factor = exp(min(half / value, _LARGEST_EXPONENT))
    return replace(nothing, low=value / factor, high=value * factor)


def variance_of(resampled: Floats, evidence: Evidence) -> float:
    """The variance of a value over its resamples, corrected for what resampling loses; 0 where there are fewer than 2.

    Resamples without a value are passed over.
    """
    known = resampled[~np.isnan(resampled)]
    return float(known.var(ddof=1)) * evidence.inflation if len(known) > 1 else 0.0


def score_interval(value: float, variance: float, evidence: Evidence) -> tuple[float, float]:
    """The interval of a mean of values between 0 and 1: all p with |value - p| <= t * sqrt(p (1 - p) / n_effective)."""
    value = min(max(value, 0.0), 1.0)
    binomial = value * (1 - value)
    t = student(evidence.freedom)
    a = t * t * _design_effect(variance, binomial, min(value, 1 - value), evidence) / max(evidence.units, _NOTHING)
    middle = (value + a / 2) / (1 + a)
    half = sqrt(a * binomial + a * a / 4) / (1 + a)
    return max(0.0, middle - half), min(1.0, middle + half)


def difference(
    value: float,
    resampled: Floats,
    n: float,
    evidence: Evidence,
    *,
    discordance: float | None = None,
    largest: float = 1.0,
) -> Difference:
    """A difference of two means on the same prompts, with the interval and the p-value of one and the same test.

    ``discordance`` is the mean absolute difference by prompt, ``largest`` the largest that one prompt can have. Where
    the discordance is not known (null), the interval is Student's, and with resamples all equal that of no discordance.
    """
    if isnan(value):
        return Difference(Estimate(None, None, None, int(n)), 1.0, 0.0)
    variance = variance_of(resampled, evidence)
    if discordance is None and variance > _NOTHING:
        error = sqrt(variance)
        half = student(evidence.freedom) * error
        return Difference(Estimate(value, value - half, value + half, int(n)), _p_value(value, error, evidence), error)
    own, spread = value / largest, variance / largest**2
    apart = max(discordance / largest if discordance is not None else abs(own), abs(own))
    # Where two models differ in one category of two prompts alone, the variance within it may be nothing by chance.
    prior = _PRIOR * max(1.0, (evidence.units - 1) / max(evidence.freedom, 1.0)) ** _LOST_FREEDOM
    effect = _design_effect(spread, apart - own * own, apart, evidence, prior)
    a = student(evidence.freedom) ** 2 * effect / max(evidence.units, _NOTHING)
    low, high = -_upper_end(-own, apart, a) * largest, _upper_end(own, apart, a) * largest
    error = sqrt(effect * apart / max(evidence.units, _NOTHING)) * largest
    floor = high / student(evidence.freedom)
    return Difference(Estimate(value, low, high, int(n)), _p_value(value, error, evidence), error or floor)


def _p_value(value: float, error: float, evidence: Evidence) -> float:
    from scipy.special import stdtr

    if value == 0:
        return 1.0
    return float(min(1.0, 2 * stdtr(max(evidence.freedom, 1.0), -abs(value) / error)))


def _design_effect(variance: float, binomial: float, rarer: float, evidence: Evidence, prior: float = _PRIOR) -> float:
    """The variance over that of outcomes which are whole prompts, drawn towards 1 where few prompts have the rarer one.

    ``binomial`` is what whole prompts would have, times their number; ``rarer`` the share of the rarer outcome.
    """
    if variance <= _NOTHING or binomial <= _NOTHING:
        return 1.0
    effect = variance * evidence.units / binomial
    events = rarer * evidence.units / effect
    return (events * effect + prior) / (events + prior)


def _upper_end(value: float, apart: float, a: float) -> float:
    """The largest d with (value - d)^2 <= a (max(apart, |d|) - d^2): outcomes differ in at least |d| of the prompts."""
    middle = 2 * value + a
    beyond = (middle + sqrt(max(middle * middle - 4 * (1 + a) * value * value, 0.0))) / (2 * (1 + a))
    if beyond >= apart:
        return min(1.0, beyond)
    return (value + sqrt(max(value * value - (1 + a) * (value * value - a * apart), 0.0))) / (1 + a)


def student(freedom: float) -> float:
    """The 97.5 % quantile of Student's t; below one degree of freedom that of one."""
    return _student(round(min(max(freedom, 1.0), 1e6), 2))


@lru_cache(maxsize=4096)
def _student(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, _TAIL))
