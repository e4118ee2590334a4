"""A value with its interval: the percentiles of resamples, or an exact interval where resampling cannot tell one.

A bootstrap of n equal outcomes (0 right of n) has no spread, and an interval of no width would claim certainty. The
interval of Clopper and Pearson (1934) takes its place; at 0 of n its upper end is close to 3.7 / n (two-sided; the
"rule of three", 3 / n, is the one-sided bound).
"""

from typing import Any, NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Floats

CLOPPER_PEARSON = "clopper-pearson"
_TAIL = 0.025


class Estimate(NamedTuple):
    """A value with its 95 % interval, and how many pairs or prompts stand behind it.

    ``method`` is null for the percentile bootstrap, else the name of the interval that took its place.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    method: str | None = None

    def record(self) -> dict[str, Any]:
        """The estimate as it is written; ``method`` only where it is not the percentile bootstrap."""
        written = self._asdict()
        if self.method is None:
            del written["method"]
        return written

    def withheld(self) -> "Estimate":
        """The same without its numbers: what is shown where a headline would claim too much."""
        return Estimate(None, None, None, self.n)


def interval(value: float, resampled: Floats, n: float) -> Estimate:
    """A value and the percentile interval of what it is in each resample; NaN (nothing to measure) is passed over."""
    drawn = resampled[~np.isnan(resampled)]
    if not len(drawn):
        return Estimate(value, None, None, int(n))
    drawn = np.sort(drawn)
    return Estimate(value, _quantile(drawn, _TAIL), _quantile(drawn, 1 - _TAIL), int(n))


def clopper_pearson(value: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a share of n independent outcomes; neither ``n`` nor ``value * n`` need be whole."""
    from scipy.special import betaincinv

    right = value * n
    low = 0.0 if right <= 0 else float(betaincinv(right, n - right + 1, _TAIL))
    high = 1.0 if right >= n else float(betaincinv(right + 1, n - right, 1 - _TAIL))
    return low, high


def is_degenerate(found: Estimate) -> bool:
    """Whether every resample gave the same: an interval of no width."""
    return found.value is not None and found.low is not None and found.low == found.high


def widened(found: Estimate, num_units: float) -> Estimate:
    """The estimate of a share with an exact interval, where its bootstrap has no spread and there is a unit at all.

    ``num_units``: how many independent units stand behind it: prompts, not pairs. ``method`` then says so.
    """
    if found.value is None or not is_degenerate(found) or num_units <= 0:
        return found
    low, high = clopper_pearson(min(max(found.value, 0.0), 1.0), num_units)
    return found._replace(low=low, high=high, method=CLOPPER_PEARSON)


def _quantile(ordered: Floats, share: float) -> float:
    """The quantile of sorted values as numpy has it, without an overhead that hundreds of intervals would feel."""
    place = share * (len(ordered) - 1)
    lower = int(place)
    part, low, high = place - lower, ordered[lower], ordered[min(lower + 1, len(ordered) - 1)]
    return float(high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part)
