"""Whether the sigmoid of a difference of rewards is a probability: reliability, Brier score, log-loss, temperature.

Under Bradley and Terry, P(better answer wins) = sigmoid(d), d its reward minus the other's. *Confidence* is the larger
of the two probabilities, sigmoid(|d|); it is calibrated if of the pairs with confidence c a share c is right (half of
those with d = 0). All is over pairs, each counted once.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from steelyard.core.arrays import Floats, Integers, ratio, sigmoid, softplus
from steelyard.core.seeds import generator
from steelyard.statistics.bootstrap import Blocks, Sums, Terms, add_up, evidence_of, one_group
from steelyard.statistics.intervals import POSITIVE, SHARE, Estimate, Evidence, Scale, interval
from steelyard.statistics.prompt_means import estimate_ratio

NUM_BINS = 10
NUM_FOLDS = 5
_STEPS = 50
_MANY, _STRIDE = 20_000, 16
_STEEPEST = 100.0
"""The largest factor that is looked at, in units of 1 / mean size of a margin."""
_ENOUGH = 1e-7
_EQUAL = 1e-6
"""Resamples of the calibration error that lie less apart are equal but for rounding."""
_FEWEST_CALIBRATED = 60
"""Prompts below which losses, temperatures and calibration errors are too skewed for an interval."""
_BRIER_OF_FITTED = SHARE._replace(fewest=_FEWEST_CALIBRATED)
"""A fitted temperature adds a variance that resamples of the prompts do not have."""
_LOSS = POSITIVE._replace(fewest=_FEWEST_CALIBRATED)


class Margins(NamedTuple):
    """The better response's reward minus the worse one's, of each pair, and the pair's prompt; shape (pair,)."""

    prompt: Integers
    margin: Floats


class Steepness(NamedTuple):
    """By what margins are to be multiplied (1 / temperature), and whether the search ended inside its bounds."""

    value: float
    is_inside: bool


def calibration_report(blocks: Blocks, margins: Margins, *, seed: int) -> dict[str, Any]:
    """Reliability of the rewards as they are, and after a temperature that other prompts' pairs have fitted.

    ``cross_validated``: each pair at the temperature of the four fifths of the prompts that it is not of.
    """
    start = fit_steepness(margins.margin[::_STRIDE]).value if len(margins.margin) > _MANY else None
    steepness = fit_steepness(margins.margin, start)
    fitted = out_of_fold(blocks, margins, steepness.value, seed=seed)
    return {
        **_measured(blocks, margins, SHARE),
        "temperature": _temperature(blocks, margins, steepness),
        # The fitted temperature adds a variance that resamples of the prompts do not have.
        "cross_validated": _measured(
            blocks, Margins(margins.prompt, fitted), SHARE._replace(fewest=_FEWEST_CALIBRATED)
        ),
    }


def fit_steepness(margin: Floats, start: float | None = None) -> Steepness:
    """The factor a >= 0 that minimises the mean of -ln sigmoid(a * margin), found by Newton's method on a convex sum.

    It is 0 where the better answer has on average no greater reward, and at its bound where all pairs are right.
    """
    scale = float(np.abs(margin).mean())
    if scale == 0 or margin.sum() <= 0:
        return Steepness(0.0, is_inside=False)
    if margin.min() >= 0:
        return Steepness(_STEEPEST / scale, is_inside=False)
    scaled = margin / scale
    low, high = 0.0, _STEEPEST
    value = min(start * scale if start else 1.0, _STEEPEST)
    for _ in range(_STEPS):
        miss = sigmoid(-value * scaled)
        slope, curvature = float(miss @ scaled), float((miss * (1 - miss)) @ scaled**2)
        low, high = (value, high) if slope > 0 else (low, value)
        step = slope / curvature if curvature > 0 else np.inf
        following = value + step if low < value + step < high else (low + high) / 2
        is_found = abs(following - value) <= _ENOUGH
        value = following
        if is_found:
            break
    return Steepness(value / scale, is_inside=value < _STEEPEST * (1 - 1e-6))


def out_of_fold(blocks: Blocks, margins: Margins, start: float, *, seed: int) -> Floats:
    """Each margin times the factor that the pairs of the other folds give; parallel items are of one fold."""
    num_units = int(blocks.unit.max()) + 1
    fold = np.arange(num_units) % NUM_FOLDS
    generator(seed, "folds of calibration").shuffle(fold)
    own = fold[blocks.unit[margins.prompt]]
    fitted = np.zeros_like(margins.margin)
    for number in np.unique(own).tolist():
        held_out = own == number
        others = margins.margin[~held_out]
        factor = fit_steepness(others, start or None).value if len(others) else 1.0
        fitted[held_out] = margins.margin[held_out] * factor
    return fitted


def _measured(blocks: Blocks, margins: Margins, brier: Scale) -> dict[str, Any]:
    margin, size = margins.margin, len(margins.margin)
    win = sigmoid(margin)
    columns = {"brier": ((1 - win) ** 2, brier), "log_loss": (softplus(-margin), _LOSS)}
    evidence, found = _evidence(blocks, margins.prompt), dict[str, Any]()
    for name, (column, scale) in columns.items():
        sums = add_up(blocks, Terms(margins.prompt, one_group(size), [column, np.ones(size)]), 1)
        found[name] = estimate_ratio(sums, size, evidence, scale).record()
    return found | _reliability(blocks, margins)


def _evidence(blocks: Blocks, prompt: Integers) -> Evidence:
    """What stands behind a mean over pairs, of these prompts."""
    counted = np.bincount(prompt, minlength=len(blocks.block)) > 0
    return evidence_of(blocks, one_group(len(counted)), counted)


def _reliability(blocks: Blocks, margins: Margins) -> dict[str, Any]:
    """The curve over bins of equally many pairs, and the mean distance between confidence and accuracy over them."""
    confidence = sigmoid(np.abs(margins.margin))
    right = np.where(margins.margin > 0, 1.0, np.where(margins.margin == 0, 0.5, 0.0))
    place, num_bins = equal_mass_bins(confidence)
    sums = add_up(blocks, Terms(margins.prompt, place, [confidence, right, np.ones(len(place))]), num_bins)
    curve = []
    for one in range(num_bins):
        own = Sums(sums.point[one : one + 1, 1:], sums.resampled[:, one : one + 1, 1:])
        evidence, n = _evidence(blocks, margins.prompt[place == one]), sums.point[one, 2]
        accuracy = estimate_ratio(own, n, evidence, SHARE)
        if not margins.margin[place == one].any():
            accuracy = Estimate(accuracy.value, None, None, int(n), why="all pairs are tied")
        curve.append({"confidence": float(sums.point[one, 0] / n), "accuracy": accuracy.record()})
    return {
        "expected_calibration_error": _error(sums, _evidence(blocks, margins.prompt)).record(),
        "curve": curve,
    }


def equal_mass_bins(values: Floats) -> tuple[Integers, int]:
    """Bins of about equally many values, at most `NUM_BINS`, and how many there are; equal values share one."""
    if not len(values):
        return np.zeros(0, np.int64), 0
    edges = np.quantile(values, np.arange(1, NUM_BINS) / NUM_BINS)
    place = np.searchsorted(edges, values, side="left")
    is_used = np.bincount(place, minlength=NUM_BINS) > 0
    return (np.cumsum(is_used) - 1)[place], int(is_used.sum())


def _error(sums: Sums, evidence: Evidence) -> Estimate:
    """Compute ECE with an interval that holds by the triangle inequality.

    ECE is a sum of distances, so that it lies no further from the true one than the gaps of all bins together lie from
    the true gaps. The 95 % quantile of that sum over the resamples is its half-width: rather too wide where bins are
    well calibrated, since noise makes every distance larger there.
    """
    point, drawn = (ratio(own[..., 0] - own[..., 1], own[..., 2].sum(axis=-1, keepdims=True)) for own in sums)
    value, n = float(np.abs(point).sum()), int(sums.point[:, 2].sum())
    if np.isnan(value):
        return Estimate(None, None, None, n)
    if evidence.units < _FEWEST_CALIBRATED:
        return Estimate(value, None, None, n, why=f"an interval needs {_FEWEST_CALIBRATED} prompts")
    apart = np.nanquantile(np.abs(drawn - point).sum(axis=-1), 0.95) * sqrt(evidence.inflation)
    if apart < _EQUAL:
        return Estimate(value, None, None, n, why="all resamples are equal")
    low, high = max(0.0, value - float(apart)), min(1.0, value + float(apart))
    return Estimate(value, low, high, n, method="triangle inequality")


def _temperature(blocks: Blocks, margins: Margins, steepness: Steepness) -> dict[str, Any]:
    """1 / steepness on all pairs; in each resample by one Newton step from there. Null where there is no minimum."""
    size = len(margins.margin)
    if not steepness.is_inside or steepness.value <= 0:
        return Estimate(None, None, None, size).record()
    scaled = steepness.value * margins.margin
    miss = sigmoid(-scaled)
    terms = Terms(margins.prompt, one_group(size), [miss * scaled, miss * (1 - miss) * scaled**2])
    slope, curvature = np.moveaxis(add_up(blocks, terms, 1).resampled[:, 0], -1, 0)
    factor = 1 + ratio(slope, curvature)
    drawn = ratio(np.ones_like(factor), factor) / steepness.value
    return interval(1 / steepness.value, drawn, size, _evidence(blocks, margins.prompt), _LOSS).record()
