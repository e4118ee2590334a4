"""A value with its 95% interval, formed from the variance of its resamples and the effective number of prompts.

This module holds every method and every refusal. When to use which:

- `interval`, for a value and its resamples, by the values that the measure can take (`Scale`). Between two bounds (a
  share, a correlation): the score interval (Wilson, 1927) with an effective number of prompts and Student's t for the
  normal quantile. It has a width at 0 of n and at n of n. Any other value: Student's t, on the logarithm if the value
  is positive. Refused below the number of prompts at which simulation shows a coverage of 93 %.
- `exact_interval`, for the test of many small groups against a share near 0 or 1.
- `difference`, for two means on the same prompts: the score interval of paired outcomes (Tango, 1998), whose test of
  "no difference" is McNemar's. Interval and p-value agree: p < 0.05 exactly if the interval excludes 0.
- `quantile_interval`, for a quantile of values: the score interval of the share below it (Woodruff, 1952).
- `Estimate.transformed`, for an increasing function of one of these: a probability from the interval of its logit.

The effective number of prompts follows from the variance (Korn and Graubard, 1998). A handful of wrong prompts barely
determines that variance, so `_PRIOR` of a prompt whose pairs are all wrong together is added. Where the prompts with a
wrong pair are known, their number says how well it is determined, and the prior is added to the standard error: wrong
pairs in many prompts are evidence that the pairs of a prompt are independent.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, exp, isnan, sqrt
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Floats
from steelyard.core.types import JsonObject, Record

_TAIL = 0.975
_PRIOR = 0.5
"""Prompts, all of whose pairs are wrong together, that are added to the evidence on the variance."""
_LOST_FREEDOM = 4
"""The power of `Evidence.loss` by which the prior of a difference grows; by simulation."""
_NOTHING = 1e-13
"""A variance below this is the rounding of sums in single precision."""
_ROUNDING, _LOG_ROUNDING = 1e-9, 1e-6
"""Standard errors below these, relative to the value or its unit, are rounding."""
_LAST_PLACES = 1e-15
"""The rounding of a mean in double precision, relative to the mean."""
_LARGEST_ERROR = 1.5
"""The largest standard error of a positive value, relative to the value, that an interval is formed from."""
_FEWEST_BEYOND = 5
"""The expected number of prompts on either side of a quantile that its interval needs."""

ALL_EQUAL = "all resamples are equal"
"""The reason for having no interval where a value varies in no resample."""


class Scale(NamedTuple):
    """The values that a measure can take; None means unbounded. ``fewest``: prompts below which it has no interval.

    ``unit``: the spread of values of any size, such as rewards, relative to which their standard errors are rounding;
    they were centred before they were summed. None: 1, or the value where it is larger.
    """

    low: float | None
    high: float | None
    fewest: int = 0
    unit: float | None = None


SHARE = Scale(0.0, 1.0)
CORRELATION = Scale(-1.0, 1.0)
POSITIVE = Scale(0.0, None, 20)
UNBOUNDED = Scale(None, None, 20)


class Evidence(NamedTuple):
    """The effective sample behind a mean over prompts.

    ``units``: the number of prompts of equal weight that carry as much information (Kish, 1965). ``freedom``: the
    degrees of freedom of the variance (Satterthwaite, 1946). ``inflation``: the variance of the mean over that of its
    resamples. ``concentration``: by how much the variance is larger if all rare outcomes are in the smallest group.
    ``loss``: 1 over the share of the variance that the means of the strata leave: 2 for strata of two prompts.
    ``events``: how many prompts with a success, and how many with a failure, determine the variance of a share.
    ``prior``: prompts, all of whose pairs are wrong together, that are added to the evidence on the variance.
    """

    units: float
    freedom: float
    inflation: float = 1.0
    concentration: float = 1.0
    loss: float = 1.0
    events: tuple[float, float] | None = None
    prior: float = _PRIOR


class Estimate(Record, frozen=True):
    """A value with its 95% interval, and the number ``n`` of pairs or prompts that it is computed from.

    ``method`` names an interval that is not formed as the module describes; ``why`` is the reason for having none.
    ``float(estimate)``, a comparison with a number and a format such as ``.1%`` use the value; they raise EvidenceError
    where it is null, so that a missing value is never read as a number.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str | None = None
    why: str | None = None

    def __float__(self) -> float:
        if self.value is None:
            raise EvidenceError(
                f"there is no value: {self.why or 'it was withheld'}",
                do="read .value, which is null, and .why, the reason",
            )
        return self.value

    def __lt__(self, other: "Estimate | float") -> bool:
        return float(self) < float(other)

    def __le__(self, other: "Estimate | float") -> bool:
        return float(self) <= float(other)

    def __gt__(self, other: "Estimate | float") -> bool:
        return float(self) > float(other)

    def __ge__(self, other: "Estimate | float") -> bool:
        return float(self) >= float(other)

    def __format__(self, form: str) -> str:
        return format(float(self), form) if form else repr(self)

    def __repr__(self) -> str:
        value = "none" if self.value is None else f"{self.value:.3f}"
        ends = "" if self.low is None or self.high is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{value}{ends} (n={self.n:,}{f'; {self.why}' if self.why else ''})"

    def record(self) -> JsonObject:
        """Return the estimate as it is written; ``method`` and ``why`` only if present."""
        return msgspec.to_builtins(self)

    def without_interval(self, why: str) -> "Estimate":
        """Return the value alone, with the reason for having no interval."""
        return replace(self, low=None, high=None, why=why)

    def transformed(self, function: Callable[[float], float]) -> "Estimate":
        """Return the estimate of an increasing function of the value: the value and both ends are transformed."""
        ends = (None if end is None else function(end) for end in (self.value, self.low, self.high))
        return replace(self, **dict(zip(("value", "low", "high"), ends, strict=True)))

    def withheld(self) -> "Estimate":
        """Return the estimate without its numbers, for a headline that would claim too much."""
        return Estimate(None, None, None, self.n)


class Difference(NamedTuple):
    """A difference with its interval, the two-sided ``p`` of the test of no difference, and its standard error."""

    estimate: Estimate
    p: float
    error: float

    def reversed(self) -> "Difference":
        """Return the second mean minus the first."""
        value, low, high = self.estimate.value, self.estimate.low, self.estimate.high
        if value is None or low is None or high is None:
            return self
        # 0.0 - x, because -0.0 would be written with its sign.
        return self._replace(estimate=replace(self.estimate, value=0.0 - value, low=0.0 - high, high=0.0 - low))


def no_difference(n: float) -> Estimate:
    """Return the difference of two models with equal scores of every response: 0 for any prompts, [0, 0].

    Two models that are only right on the same prompts may differ on others: `difference` gives theirs a width.
    """
    return Estimate(0.0, 0.0, 0.0, int(n), method="equal scores")


def needs_prompts(fewest: int) -> str:
    """Return the reason for having no interval below a number of prompts."""
    return f"an interval needs {fewest} prompts"


def one_sample(num_units: float) -> Evidence:
    """Return the effective sample of a plain mean over units that are resampled together, with replacement."""
    inflation = num_units / (num_units - 1) if num_units > 1 else 1.0
    return Evidence(num_units, num_units - 1, inflation, loss=inflation)


def interval(value: float, resampled: Floats, n: float, evidence: Evidence, scale: Scale = SHARE) -> Estimate:
    """Return a value with its interval. Resamples that are NaN (nothing to measure) are ignored.

    No interval, with the reason in ``why``, for too few prompts, if the resamples of an unbounded value are equal, or
    if those of a positive value differ too much.
    """
    bare = Estimate(None if isnan(value) else value, None, None, int(n))
    if evidence.units < scale.fewest and bare.value is not None:
        return bare.without_interval(needs_prompts(scale.fewest))
    if bare.value is None or (~np.isnan(resampled)).sum() < 2:
        return bare
    variance = variance_of(resampled, evidence)
    if scale.low is not None and scale.high is not None:
        width = scale.high - scale.low
        ends = score_interval((value - scale.low) / width, variance / width**2, evidence)
        low, high = (scale.low + width * end for end in ends)
        # Rounding may put an end on the wrong side of a value at a bound.
        return replace(bare, low=min(low, value), high=max(high, value))
    error = sqrt(variance)
    if why := _refusal(value, error, scale):
        return bare.without_interval(why)
    half_width = student(evidence.freedom) * error
    if scale.low is None:
        return replace(bare, low=value - half_width, high=value + half_width)
    # The delta method: the standard error of log(value) is that of the value over the value.
    factor = exp(half_width / value)
    return replace(bare, low=value / factor, high=value * factor)


def _refusal(value: float, error: float, scale: Scale) -> str | None:
    """Return why a value without an upper bound has no interval; None if it has one."""
    rounding = _ROUNDING if scale.low is None else _LOG_ROUNDING
    unit = max(1.0, abs(value)) if scale.unit is None else max(scale.unit, _LAST_PLACES / rounding * abs(value))
    if error <= rounding * unit or (scale.low is not None and value <= scale.low):
        return ALL_EQUAL
    # A mean of positive values has a relative error of about 1 even if one prompt has all of it. Only a quotient whose
    # denominator is near 0 in some resamples exceeds that, and its variance is that of these few resamples.
    return "the resamples differ too much" if scale.low is not None and error > _LARGEST_ERROR * value else None


def variance_of(resampled: Floats, evidence: Evidence) -> float:
    """Return the variance of a value from its resamples, corrected for what resampling loses; 0 for fewer than 2.

    Resamples without a value (NaN) are ignored.
    """
    known = resampled[~np.isnan(resampled)]
    return float(known.var(ddof=1)) * evidence.inflation if len(known) > 1 else 0.0


def score_interval(value: float, variance: float, evidence: Evidence) -> tuple[float, float]:
    """Return the interval of a mean of values in [0, 1]: all p with |value - p| <= t sqrt(p (1 - p) / n_effective)."""
    value = min(max(value, 0.0), 1.0)
    binomial = value * (1 - value)
    effect, freedom = _effect_and_freedom(variance, value, evidence)
    t = student(freedom)
    # a = t² / n_effective. The two ends are the roots of (value - p)² = a p (1 - p).
    a = t * t * effect / max(evidence.units, _NOTHING)
    middle = (value + a / 2) / (1 + a)
    half_width = sqrt(a * binomial + a * a / 4) / (1 + a)
    return max(0.0, middle - half_width), min(1.0, middle + half_width)


def exact_interval(value: float, variance: float, evidence: Evidence, *, num_intervals: int = 1) -> tuple[float, float]:
    """Return the interval of a share by the binomial distribution of the effective number (Clopper and Pearson, 1934).

    For tests of many small groups, where the score interval is too narrow: next to 0 its far tail is not normal. The
    effective number is reduced for few degrees of freedom (Korn and Graubard, 1998).
    """
    from scipy.special import betaincinv

    value = min(max(value, 0.0), 1.0)
    effect, freedom = _effect_and_freedom(variance, value, evidence)
    number = evidence.units / effect * (student(1e6, num_intervals) / student(freedom, num_intervals)) ** 2
    tail, events = (1 - _TAIL) / num_intervals, value * number
    low = 0.0 if events <= 0 else float(betaincinv(events, number - events + 1, tail))
    high = 1.0 if events >= number else float(betaincinv(events + 1, number - events, 1 - tail))
    return low, high


def difference(
    value: float,
    resampled: Floats,
    n: float,
    evidence: Evidence,
    *,
    discordance: float | None = None,
    largest: float = 1.0,
) -> Difference:
    """Return a difference of two means on the same prompts, with interval and p-value from one and the same test.

    ``discordance`` is the mean absolute difference by prompt, ``largest`` the largest that one prompt can have. If the
    discordance is unknown (None), the interval is Student's; with equal resamples, that of no discordance.
    """
    return difference_of(value, variance_of(resampled, evidence), n, evidence, discordance=discordance, largest=largest)


def difference_of(
    value: float,
    variance: float,
    n: float,
    evidence: Evidence,
    *,
    discordance: float | None = None,
    largest: float = 1.0,
) -> Difference:
    """Return the same as `difference` from the variance of the difference."""
    if isnan(value):
        return Difference(Estimate(None, None, None, int(n)), 1.0, 0.0)
    if discordance is None and variance > _NOTHING:
        error = sqrt(variance)
        half_width = student(evidence.freedom) * error
        estimate = Estimate(value, value - half_width, value + half_width, int(n))
        return Difference(estimate, _p_value(value, error, evidence), error)
    mean, spread = value / largest, variance / largest**2
    discordant = max(discordance / largest if discordance is not None else abs(mean), abs(mean))
    # If two models differ only in one category of two prompts, the variance within it may vanish by chance.
    prior = _PRIOR * evidence.loss**_LOST_FREEDOM
    effect = _design_effect(spread, discordant - mean * mean, discordant, evidence, prior)
    a = student(evidence.freedom) ** 2 * effect / max(evidence.units, _NOTHING)
    low, high = -_upper_end(-mean, discordant, a) * largest, _upper_end(mean, discordant, a) * largest
    # Under the hypothesis of no difference (mean 0) the variance is the discordance itself: McNemar's test.
    error = sqrt(effect * discordant / max(evidence.units, _NOTHING)) * largest
    # Without any discordance the test has no error; the interval still has a width, from which one follows.
    floor = high / student(evidence.freedom)
    return Difference(Estimate(value, low, high, int(n)), _p_value(value, error, evidence), error or floor)


def quantile_interval(ordered: Floats, quantile: float, shares_below: Floats, evidence: Evidence) -> Estimate:
    """Return a quantile of sorted values with Woodruff's interval: that of the share below it, read off the values.

    ``shares_below``: the share of values at or below the quantile in each resample.
    """
    if not len(ordered):
        return Estimate(None, None, None, 0)
    value = Estimate(float(np.quantile(ordered, quantile)), None, None, len(ordered))
    # Minus a rounding error: 5 / (1 - 0.9) is slightly above 50 in binary.
    fewest = ceil(_FEWEST_BEYOND / min(quantile, 1 - quantile) - 1e-9)
    if evidence.units < fewest:
        return value.without_interval(needs_prompts(fewest))
    low, high = np.quantile(ordered, score_interval(quantile, variance_of(shares_below, evidence), evidence)).tolist()
    if low == high:
        return value.without_interval("the values around it are equal")
    return replace(value, low=low, high=high, method="woodruff")


def student(freedom: float, num_intervals: int = 1) -> float:
    """Return the 97.5% quantile of Student's t, or that of several intervals which hold together at 95%.

    Fewer than one degree of freedom count as one.
    """
    # Rounded to two digits, so that the cache serves nearly equal degrees of freedom.
    return _student(round(min(max(freedom, 1.0), 1e6), 2), num_intervals)


@lru_cache(maxsize=4096)
def _student(freedom: float, num_intervals: int) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - (1 - _TAIL) / num_intervals))


def _p_value(value: float, error: float, evidence: Evidence) -> float:
    """Return the two-sided p-value of Student's t = value / error; 1 for a value of 0."""
    from scipy.special import stdtr

    if value == 0:
        return 1.0
    return float(min(1.0, 2 * stdtr(max(evidence.freedom, 1.0), -abs(value) / error)))


def _effect_and_freedom(variance: float, value: float, evidence: Evidence) -> tuple[float, float]:
    """Return the design effect of a share, shrunk for few prompts with the rarer outcome, and its freedom."""
    binomial = value * (1 - value)
    if evidence.events is None or variance <= _NOTHING or binomial <= _NOTHING:
        return _design_effect(variance, binomial, min(value, 1 - value), evidence, evidence.prior), evidence.freedom
    events = max(evidence.events[value >= 0.5], _NOTHING)
    prior = _PRIOR / (events + _PRIOR)
    error = (1 - prior) * sqrt(variance * evidence.units / binomial) + prior * sqrt(evidence.concentration)
    # The prior adds degrees of freedom in the same proportion.
    return error**2, evidence.freedom + (evidence.freedom + 1) * _PRIOR / events


def _design_effect(variance: float, binomial: float, rarer: float, evidence: Evidence, prior: float = _PRIOR) -> float:
    """Return the variance relative to that of outcomes that are whole prompts, shrunk for few rare prompts.

    ``binomial`` is the variance of whole prompts times their number; ``rarer`` the share of the rarer outcome.
    """
    if variance <= _NOTHING or binomial <= _NOTHING:
        return evidence.concentration
    return shrink_effect(variance * evidence.units / binomial, rarer, evidence, prior)


def shrink_effect(effect: float, rarer: float, evidence: Evidence, prior: float = _PRIOR) -> float:
    """Return a design effect, shrunk towards that of whole prompts for few prompts with the rarer outcome.

    That is 1, or the concentration in groups of unequal size: their rare outcomes may all be in the smallest.
    """
    # The number of prompts with the rarer outcome that determine the variance: where categories or prompts have unequal
    # weights, few do. Divided by the effect it is the number of independent events, e.g. of pairs. The effect is the
    # shrunken one, (events effect + prior) / (events + prior), because the variance itself is small where the heavy
    # prompts have no rare outcome yet.
    rare = rarer * (evidence.freedom + 1)
    half = prior * evidence.concentration - rare
    return (half + sqrt(half**2 + 4 * prior * rare * effect)) / (2 * prior)


def _upper_end(value: float, discordant: float, a: float) -> float:
    """Return the largest d with (value - d)^2 <= a (max(discordant, |d|) - d^2): at least |d| of the prompts differ."""
    middle = 2 * value + a
    beyond = (middle + sqrt(max(middle * middle - 4 * (1 + a) * value * value, 0.0))) / (2 * (1 + a))
    if beyond >= discordant:
        return min(1.0, beyond)
    return (value + sqrt(max(value * value - (1 + a) * (value * value - a * discordant), 0.0))) / (1 + a)
