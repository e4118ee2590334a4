"""Best-of-N from the gold values of some prompts and those of a proxy on all: prediction-powered curves.

The curve by gold is corrected by λ times the difference of the proxy's curve on the other prompts from that on the
prompts with gold values (`statistics.prediction_powered`). The difference is 0 in expectation for any of the proxy's
errors and its scale, if these prompts are a random sample of all.

A curve has two weights. One is that of its level, N = 1; the other that of its gains over N = 1, the same for every N
and for the best response, so that changes of the weight do not shape the curve. It makes the sum over N of the
variances the smallest (PPI++: Angelopoulos, Duchi and Zrnic, 2023). The scores of a reward model may compare only the
responses to one prompt: they then predict gains, and not the level.

The gold values of some responses of a prompt stand for all of them if they are a random sample, too: the proxy's curve
of that prompt is then of the same responses.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Floats
from steelyard.core.text import number_of, verb_for
from steelyard.evaluation.best_of_n import (
    BestOfNCurve,
    BestOfNProxy,
    BestOfNWins,
    CurveDraws,
    CurveTable,
    DrawnCurve,
    curve_table,
    estimate_curve,
)
from steelyard.evaluation.candidates import CandidateColumns
from steelyard.evaluation.labelled_prompts import Resampling, SplitPrompts, add_up_labelled, split_prompts
from steelyard.statistics.bootstrap import evidence_of
from steelyard.statistics.groups import Label
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Scale, interval, variance_of
from steelyard.statistics.prediction_powered import (
    CombinedValue,
    Drawn,
    HumanSample,
    LabelSources,
    Variances,
    check_population,
    combine,
    variances_of,
    weight_of,
)

_FEWEST = 2
"""The prompts with gold values below which nothing is known of the proxy's errors, and the candidates of a prompt."""


class PPITables(NamedTuple):
    """Expected values by gold, of the prompts that have them, and by the proxy, of all; both without NaN.

    ``labels`` and ``is_labelled`` are of all these prompts. ``num_short`` have fewer candidates than the largest N.
    """

    labels: tuple[Label, ...]
    is_labelled: Booleans
    gold: CurveTable
    proxy: CurveTable
    num_short: int


def ppi_tables(columns: CandidateColumns, budgets: tuple[int, ...]) -> PPITables:
    """Compute the curves of all prompts that have as many candidates as the largest N.

    A prompt with gold values of as many candidates counts as one with gold values, and by these candidates alone.

    Raises EvidenceError for too few of them, and for a proxy that has the gold values themselves.
    """
    has_gold = ~np.isnan(columns.gold)
    is_labelled = columns.gold_sizes >= max(_FEWEST, budgets[-1])
    by_gold = has_gold & is_labelled[columns.prompt]
    num_labelled = int(is_labelled.sum())
    if num_labelled < _FEWEST:
        problem = f"{number_of(num_labelled, 'prompt')} {verb_for(num_labelled, 'has', 'have')} gold values of "
        problem += f"{number_of(budgets[-1], 'candidate')}: the proxy's errors are unknown"
        do = "let people label more prompts, drawn at random, or take the proxy as gold"
        raise EvidenceError(problem, allowed=f"{_FEWEST} prompts or more; intervals need {UNBOUNDED.fewest}", do=do)
    if not is_labelled.all() and (columns.gold[by_gold] == columns.proxy[by_gold]).all():
        raise EvidenceError(
            f"the proxy has the gold values of all {number_of(num_labelled, 'prompt')} that have them: it is a copy of "
            "them, or these are too few to show how often it errs",
            do="let another judge or model score all candidates",
        )
    of_proxy = has_gold | ~is_labelled[columns.prompt]
    gold, proxy = (
        curve_table(columns.prompt[rows], columns.score[rows], values[rows], len(is_labelled), budgets=budgets)
        for rows, values in ((by_gold, columns.gold), (of_proxy, columns.proxy))
    )
    is_long = ~np.isnan(proxy.chosen[:, 0])
    return PPITables(
        tuple(label for label, is_used in zip(columns.labels, is_long.tolist(), strict=True) if is_used),
        is_labelled[is_long],
        gold._replace(chosen=gold.chosen[is_labelled], oracle=gold.oracle[is_labelled]),
        proxy._replace(chosen=proxy.chosen[is_long], oracle=proxy.oracle[is_long]),
        int((~is_long).sum()),
    )


def estimate_ppi_curve(tables: PPITables, scale: Scale, *, num_resamples: int, seed: int) -> BestOfNCurve:
    """Estimate the curves from both kinds of values, and test where they peak and fall."""
    prompts = _split(tables.labels, tables.is_labelled)
    by_gold, by_proxy = ([part.chosen, part.oracle] for part in (tables.gold, tables.proxy))
    means = _combine_curves(prompts, by_gold, by_proxy, Resampling(num_resamples, seed))
    chosen, oracle = (_within(curve, scale) for curve in means.curves)
    curve = estimate_curve(CurveDraws(chosen, oracle, means.sample.evidence), tables.gold, scale)
    alone = [
        interval(float(point), resampled, *means.sample, scale)
        for point, resampled in zip(means.gold.point, means.gold.resampled.T, strict=True)
    ]
    labelled, rest = (
        np.bincount(prompts.layout.cell[mask], minlength=len(prompts.cells)).tolist()
        for mask in (tables.is_labelled, ~tables.is_labelled)
    )
    categories = [
        {cell.category for cell, number in zip(prompts.cells, part, strict=True) if number} for part in (labelled, rest)
    ]
    rest_point = means.largest.judged_rest.point
    proxy = BestOfNProxy(
        num_prompts=len(tables.labels),
        weight=means.weight,
        correlation=means.correlation,
        level_weight=means.level.weight,
        level_correlation=means.level.correlation,
        effective_labels=means.effective_labels,
        proxy_only=None if np.isnan(rest_point) else rest_point,
        population=check_population(means.largest, means.sample, labelled=labelled, rest=rest, seed=seed),
        categories_without_gold=tuple(sorted(categories[1] - categories[0])),
    )
    points = tuple(replace(point, gold_only=each) for point, each in zip(curve.points, alone, strict=True))
    return replace(curve, points=points, proxy=proxy)


class PPIWins(NamedTuple):
    """The win rate at each N, and the number of prompts with gold values that it is of."""

    wins: tuple[BestOfNWins, ...]
    num_wins: int


def estimate_ppi_wins(
    columns: CandidateColumns, budgets: tuple[int, ...], *, num_resamples: int, seed: int
) -> PPIWins | None:
    """Estimate the win rate at each N from both kinds of values, on prompts whose baseline has them.

    Null where the proxy lacks a value of their baselines, or fewer than two have gold values: gold alone counts then.
    """
    has_gold = ~np.isnan(columns.gold)
    is_labelled = columns.gold_sizes >= max(_FEWEST, budgets[-1])
    by_gold, by_proxy = (
        curve_table(columns.prompt[rows], columns.score[rows], values[rows], len(is_labelled), budgets=budgets).chosen
        for rows, values in (
            (has_gold & is_labelled[columns.prompt], columns.win),
            (has_gold | ~is_labelled[columns.prompt], columns.proxy_win),
        )
    )
    has_win, has_proxy_win = (~np.isnan(part.sum(axis=1)) for part in (by_gold, by_proxy))
    if has_win.sum() < _FEWEST or (has_win & ~has_proxy_win).any():
        return None
    used = has_proxy_win & (has_win | ~is_labelled)
    labels = [label for label, is_used in zip(columns.labels, used.tolist(), strict=True) if is_used]
    prompts, how = _split(labels, has_win[used]), Resampling(num_resamples, seed)
    means = _combine_curves(prompts, [by_gold[has_win]], [by_proxy[used]], how)
    drawn = _within(means.curves[0], SHARE)
    rates = (
        interval(float(drawn.point[at]), drawn.resampled[:, at], *means.sample, SHARE) for at in range(len(budgets))
    )
    wins = tuple(BestOfNWins(n=budget, win_rate=rate) for budget, rate in zip(budgets, rates, strict=True))
    return PPIWins(wins, int(has_win.sum()))


def _split(labels: Sequence[Label], is_labelled: Booleans) -> SplitPrompts:
    return split_prompts([label.cell for label in labels], [label.prompt for label in labels], is_labelled)


def _within(curve: DrawnCurve, scale: Scale) -> DrawnCurve:
    """Return the curve with its values within the bounds of the scale."""
    low, high = -np.inf if scale.low is None else scale.low, np.inf if scale.high is None else scale.high
    return curve._replace(point=np.clip(curve.point, low, high))


class PPIMeans(NamedTuple):
    """Curves from both kinds of values; the first of them by gold alone, and at the largest N by each kind.

    ``level`` is the value at N = 1; ``weight`` and ``correlation`` (at the largest N) are those of the gains over it.
    """

    curves: tuple[DrawnCurve, ...]
    gold: DrawnCurve
    largest: LabelSources
    sample: HumanSample
    level: CombinedValue
    weight: float
    correlation: float

    @property
    def effective_labels(self) -> float:
        """As how many prompts with gold values alone one of them counts, at the largest N."""
        alone, both = (
            variance_of(curve.resampled[:, -1], self.sample.evidence) for curve in (self.gold, self.curves[0])
        )
        return alone / both if both > 0 else 1.0


def _combine_curves(
    prompts: SplitPrompts, gold: Sequence[Floats], proxy: Sequence[Floats], how: Resampling
) -> PPIMeans:
    """Combine the means of tables of shape (prompt, budget) with equal first columns; weights are of the first one."""
    size, num_curves = gold[0].shape[1], len(gold)
    by_gold, by_proxy = (
        np.concatenate([tables[0][:, :1], *(table[:, 1:] - table[:, :1] for table in tables)], axis=1)
        for tables in (gold, proxy)
    )
    # Centred, because sums in single precision keep seven digits.
    center, proxy_center = by_gold.mean(axis=0), by_proxy.mean(axis=0)
    columns, proxy_columns = (
        np.concatenate([table - middle, np.ones((len(table), 1))], axis=1)
        for table, middle in ((by_gold, center), (by_proxy, proxy_center))
    )
    sums = add_up_labelled(prompts, columns, proxy_columns, how, np.zeros(len(prompts.cells), np.int64))
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [
            [each[..., 0, :-1] / each[..., 0, -1:] + middle for each in part]
            for part, middle in ((sums.human, center), (sums.same, proxy_center), (sums.rest, proxy_center))
        ]
    is_labelled = prompts.is_labelled[prompts.labelled.rows].astype(np.float64)
    evidence = evidence_of(sums.blocks, sums.group, is_labelled)
    sources = [
        LabelSources(*(Drawn(float(point[place]), resampled[:, place]) for point, resampled in parts))
        for place in range(len(center))
    ]
    level = combine(sources[0], evidence)
    variances = [variances_of(each, evidence) for each in sources[1:size]]
    weight = weight_of(Variances(*np.sum(variances, axis=0).tolist()), evidence) if variances else 0.0
    gains = [combine(each, evidence, weight) for each in sources[1:]]

    def curve_of(values: Sequence[Drawn]) -> DrawnCurve:
        """Add the level, the first value, to the gains."""
        point = np.array([value.point for value in values])
        resampled = np.stack([value.resampled for value in values], axis=1)
        point[1:] += point[0]
        resampled[:, 1:] += resampled[:, :1]
        return DrawnCurve(point, resampled)

    steps = [slice(at * (size - 1), (at + 1) * (size - 1)) for at in range(num_curves)]
    curves = tuple(curve_of([level.drawn, *(gain.drawn for gain in gains[step])]) for step in steps)
    by_kind = [curve_of([each[kind] for each in sources[:size]]) for kind in range(3)]
    largest = LabelSources(*(Drawn(float(curve.point[-1]), curve.resampled[:, -1]) for curve in by_kind))
    correlation = gains[size - 2].correlation if variances else level.correlation
    return PPIMeans(curves, by_kind[0], largest, HumanSample(len(gold[0]), evidence), level, weight, correlation)
