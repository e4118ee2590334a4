"""Prediction-powered inference: an unbiased value from few human labels and many labels of a judge.

The value is θ(human) + λ [θ(judge, other prompts) - θ(judge, the human-labelled prompts)] (Angelopoulos et al., 2023,
Science 382, 669), where θ is any function of sums over prompts. The bracket has the expectation 0 for any judge's
errors are, if the human-labelled prompts are a random sample of all prompts in each stratum. λ is the weight that
minimises the variance (PPI++: Angelopoulos, Duchi and Zrnic, 2023). Prompts are the units, drawn within strata.

With few labels the estimated λ makes the residuals too small, and a good judge leaves so few disagreements that their
variance is hardly known. Therefore:

- the variance is multiplied by f / (f - 1) for the fitted λ, with f degrees of freedom of the human labels;
- one prompt is added on which the judge knows nothing: its residual is that of the human label, and it shrinks λ;
- the interval is the one of `intervals`, with Student's t, and for shares the score interval;
- without a gain in variance λ is 0, and the interval is that of the human labels alone; so it is where the score
  interval of a share nearer to one half would be wider in spite of a gain.

Coverage on real labels is in docs/log/prediction_powered.md.
"""

from collections.abc import Sequence
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats, Integers, generator
from steelyard.core.types import Record
from steelyard.statistics.intervals import SHARE, Difference, Estimate, Evidence, Scale, difference, difference_of
from steelyard.statistics.intervals import interval as interval_of

_UNINFORMED = 1.0
"""Prompts, on which the judge knows nothing, that are added to the evidence on its residuals; by simulation."""
_NUM_PERMUTATIONS = 2000
LEVEL = 0.01
"""The p-value below which the human-labelled prompts are called different from the others."""


class Drawn(NamedTuple):
    """A value on the data, and in every resample: shape (resample,)."""

    point: float
    resampled: Floats


class LabelSources(NamedTuple):
    """One value by human labels and by those of a judge, in the same resamples.

    ``human`` and ``judged_same`` are of the human-labelled prompts, ``judged_rest`` of the others.
    """

    human: Drawn
    judged_same: Drawn
    judged_rest: Drawn


class Variances(NamedTuple):
    """Variances in the resamples: of the human value, of the judge's on the same prompts, and of the judge's bracket.

    The bracket is the judge's value on the human-labelled prompts minus that on the others. ``covariance``: of the
    human value with the bracket; ``covariance_same``: with the judge's value on the same prompts.
    """

    human: float
    judged_same: float
    bracket: float
    covariance: float
    covariance_same: float

    @property
    def correlation(self) -> float:
        """The correlation of the judge's value with the human one, from -1 to 1; 0 where one of them is constant."""
        both = sqrt(self.human * self.judged_same)
        return max(-1.0, min(1.0, self.covariance_same / both)) if both > 0 else 0.0


class CombinedValue(NamedTuple):
    """The combined value and its resamples, whose variance is the corrected one.

    ``weight`` is λ. ``effective_labels`` (per human label): the variance of the human labels alone over that of the
    combination, at least 1 unless the weight is shared with other values.
    """

    drawn: Drawn
    weight: float
    effective_labels: float
    correlation: float


class NeededLabels(Record, frozen=True, kw_only=True):
    """The number of human-labelled prompts at which the 95% interval has a wanted width.

    ``with_judge``: with the judge's labels; null if the judged prompts are too few for this width, however many of them
    get a human label. ``without_judge``: with human labels alone. ``more``: those that are still missing, by the
    cheaper way.
    """

    width: float
    with_judge: int | None
    without_judge: int
    more: int


class PPIEstimate(Record, frozen=True, kw_only=True):
    """A value from few human and many judge labels, next to the value from the human labels alone.

    ``judge_only``: the judge's value on the prompts without a human label, with the judge's bias. ``correlation``: of
    the judge's value of a prompt with the human one, which bounds the gain. ``weight``: the weight λ of the judge's
    labels. ``effective_labels``: one human label with the judge's labels counts as this many alone. ``p``: of a
    difference. ``needed``: for a wanted width.
    """

    estimate: Estimate
    human_only: Estimate
    judge_only: float | None
    correlation: float
    weight: float
    effective_labels: float
    p: float | None = None
    needed: NeededLabels | None = None


class PopulationCheck(Record, frozen=True, kw_only=True):
    """Test of the human-labelled prompts as a random sample of all.

    ``p_mix``: of a permutation test that categories and subsets have equal shares in both; null with one stratum.
    ``judged_difference``: the judge's value on the human-labelled prompts minus that on the others, with ``p_judged``.
    """

    p_mix: float | None
    judged_difference: Estimate
    p_judged: float

    @property
    def differs(self) -> bool:
        """True where one of the tests says that the prompts differ."""
        return self.smallest_p < LEVEL

    @property
    def smallest_p(self) -> float:
        """The smaller p-value."""
        return min(1.0 if self.p_mix is None else self.p_mix, self.p_judged)


def variances_of(sources: LabelSources, evidence: Evidence) -> Variances:
    """Return the variances from the resamples in which all values are known; zeros with fewer than two.

    ``evidence`` is that of the human-labelled prompts.
    """
    human, same, rest = (part.resampled for part in sources)
    known = ~np.isnan(human + same)
    # Without other prompts the judge is still compared on the same ones.
    bracket = np.where(np.isnan(rest), 0.0, same - rest)
    drawn = np.stack([human, same, bracket])[:, known]
    if drawn.shape[1] < 2:
        return Variances(0.0, 0.0, 0.0, 0.0, 0.0)
    matrix = np.cov(drawn) * evidence.inflation
    return Variances(*(float(matrix[at]) for at in ((0, 0), (1, 1), (2, 2), (0, 2), (0, 1))))


def weight_of(variances: Variances, evidence: Evidence) -> float:
    """Return the weight that minimises the variance; 0 where the judge's labels gain nothing.

    For values that share a weight ``variances`` are their sums: the sum of the variances is then the smallest.
    """
    if evidence.freedom <= 1 or variances.bracket <= 0 or variances.covariance <= 0:
        return 0.0
    weight = variances.covariance / variances.bracket * evidence.units / (evidence.units + _UNINFORMED)
    return weight if 0 < _variance_with(weight, variances, evidence) < variances.human else 0.0


def _variance_with(weight: float, variances: Variances, evidence: Evidence) -> float:
    """Return the variance of the combined value, corrected for the fitted weight and the uninformed prompt."""
    noise = weight**2 * variances.bracket
    fitted = variances.human - 2 * weight * variances.covariance + noise
    fitted *= evidence.freedom / (evidence.freedom - 1)
    return (evidence.units * fitted + _UNINFORMED * (variances.human + noise)) / (evidence.units + _UNINFORMED)


def combine(sources: LabelSources, evidence: Evidence, weight: float | None = None) -> CombinedValue:
    """Combine the values with the weight that minimises the variance; with weight 0 where that gains nothing.

    A ``weight`` that several values share may gain nothing for this one: ``effective_labels`` is then below 1.
    """
    variances = variances_of(sources, evidence)
    alone = CombinedValue(sources.human, 0.0, 1.0, variances.correlation)
    human, same, rest = sources
    weight = weight_of(variances, evidence) if weight is None else weight
    if not weight or np.isnan(human.point + same.point + rest.point):
        return alone
    drawn = human.resampled + weight * (rest.resampled - same.resampled)
    error = np.nanstd(drawn, ddof=1)
    if not error > 0:
        return alone
    variance = _variance_with(weight, variances, evidence)
    # Scaled so that every interval formed from the resamples has the corrected variance.
    center = np.nanmean(drawn)
    scaled = center + (drawn - center) * (sqrt(variance / evidence.inflation) / error)
    value = human.point + weight * (rest.point - same.point)
    return CombinedValue(Drawn(value, scaled), weight, variances.human / variance, variances.correlation)


class HumanSample(NamedTuple):
    """The human labels behind an estimate: ``n`` pairs or prompts, and their effective sample."""

    n: float
    evidence: Evidence


def ppi_estimate(sources: LabelSources, sample: HumanSample, scale: Scale = SHARE) -> PPIEstimate:
    """Return the estimate of a value with both kinds of labels, and with the human labels alone."""
    alone = interval_of(sources.human.point, sources.human.resampled, sample.n, sample.evidence, scale)
    powered = combine(sources, sample.evidence)
    value = powered.drawn.point
    if scale.low is not None:
        value = max(value, scale.low)
    if scale.high is not None:
        value = min(value, scale.high)
    # What determines the variance of residuals are the judge's errors, not the errors by human labels.
    evidence = sample.evidence._replace(events=None) if powered.weight else sample.evidence
    estimate = interval_of(value, powered.drawn.resampled, sample.n, evidence, scale)
    return _narrower(_record(sources, powered, estimate, alone))


def ppi_difference(sources: LabelSources, sample: HumanSample, *, discordance: float | None) -> PPIEstimate:
    """Return the estimate of a difference of two means on the same prompts; ``discordance`` is by human labels.

    ``p`` belongs to the combined estimate.
    """
    alone = difference(*sources.human, sample.n, sample.evidence, discordance=discordance)
    powered = combine(sources, sample.evidence)
    value = min(max(powered.drawn.point, -1.0), 1.0)
    tested = difference(value, powered.drawn.resampled, sample.n, sample.evidence, discordance=discordance)
    combined = _record(sources, powered, tested.estimate, alone.estimate)
    return _narrower(replace(combined, p=tested.p), p_alone=alone.p)


def _record(sources: LabelSources, powered: CombinedValue, estimate: Estimate, alone: Estimate) -> PPIEstimate:
    rest = sources.judged_rest.point
    return PPIEstimate(
        estimate=estimate,
        human_only=alone,
        judge_only=None if np.isnan(rest) else rest,
        correlation=powered.correlation,
        weight=powered.weight,
        effective_labels=powered.effective_labels,
    )


def _narrower(combined: PPIEstimate, *, p_alone: float | None = None) -> PPIEstimate:
    """Return the estimate, or that of the human labels alone (with its ``p_alone``) where its interval is narrower."""
    width, width_alone = _width(combined.estimate), _width(combined.human_only)
    if width is None or width_alone is None or width <= width_alone:
        return combined
    return replace(combined, estimate=combined.human_only, weight=0.0, effective_labels=1.0, p=p_alone)


def labels_needed(estimate: PPIEstimate, width: float, *, num_labelled: int, num_judged: int) -> PPIEstimate:
    """Return the estimate with the number of human-labelled prompts that gives the interval a wanted ``width``.

    With the best weight the variance of m labels among N judged prompts is proportional to (1 - r²) / m + r² / N. The
    r² is the one that explains the present gain. Null without an interval.
    """
    now, alone = _width(estimate.estimate), _width(estimate.human_only)
    if now is None or alone is None or not num_labelled:
        return estimate
    without = _whole(num_labelled * (alone / width) ** 2)
    free = num_judged - num_labelled
    explained = min((1 - 1 / estimate.effective_labels) * num_judged / free, 0.999) if free > 0 else 0.0
    wanted = ((1 - explained) / num_labelled + explained / num_judged) * (width / now) ** 2
    left = wanted - explained / num_judged
    num_labels = _whole((1 - explained) / left) if left > 0 else None
    with_judge = None if num_labels is None or num_labels > num_judged else num_labels
    cheapest = without if with_judge is None else min(without, with_judge)
    needed = NeededLabels(
        width=width, with_judge=with_judge, without_judge=without, more=max(0, cheapest - num_labelled)
    )
    return replace(estimate, needed=needed)


def _whole(number: float) -> int:
    # Minus a rounding error, which would ask for one label more.
    return ceil(number * (1 - 1e-9))


def _width(estimate: Estimate) -> float | None:
    return None if estimate.low is None or estimate.high is None else estimate.high - estimate.low


def check_population(
    sources: LabelSources, sample: HumanSample, *, labelled: Sequence[int], rest: Sequence[int], seed: int
) -> PopulationCheck:
    """Test whether the human-labelled prompts are a random sample.

    ``labelled`` and ``rest`` count the prompts of each stratum, human-labelled and others.
    """
    variances = variances_of(sources, sample.evidence)
    tested = difference_of(
        sources.judged_same.point - sources.judged_rest.point,
        variances.bracket,
        sample.n,
        sample.evidence,
    )
    known = tested.estimate.value is not None and variances.bracket > 0
    tested = tested if known else Difference(tested.estimate, 1.0, 0.0)
    return PopulationCheck(
        p_mix=mix_p(np.array(labelled, np.int64), np.array(rest, np.int64), seed=seed),
        judged_difference=tested.estimate,
        p_judged=tested.p,
    )


def mix_p(labelled: Integers, rest: Integers, *, seed: int) -> float | None:
    """Return the p-value of the test of equal shares of strata, by permutation; both arrays have shape (stratum,).

    The statistic is Pearson's χ²; permuted, because most strata have few labelled prompts. None with fewer than two
    strata, or without prompts of one kind. Strata without a prompt are left out.
    """
    filled = labelled + rest > 0
    labelled, rest = labelled[filled], rest[filled]
    total, size = labelled + rest, int(labelled.sum())
    if len(total) < 2 or not size or not rest.any():
        return None
    expected = total * (size / total.sum())
    random = generator(seed, "mix of strata")
    drawn = random.multivariate_hypergeometric(total, size, size=_NUM_PERMUTATIONS, method="marginals")
    statistics = ((np.concatenate([labelled[None], drawn]) - expected) ** 2 / expected).sum(axis=1)
    return float((statistics[1:] >= statistics[0] - 1e-9).sum() + 1) / (_NUM_PERMUTATIONS + 1)
