"""Differences between models on the same prompts: paired tests, corrections for many tests, trends over sizes, ranks.

Ranks of many models: how often each has each rank in the resamples, and which models differ significantly.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers, derived_seed
from steelyard.statistics.aggregation import (
    ACCURACY,
    EXACT_MATCH,
    Formula,
    Share,
    by_category,
    evidence_of_formula,
    macro,
)
from steelyard.statistics.bootstrap import Items, Totals, cell_sums, difference_items, resample
from steelyard.statistics.groups import Layout
from steelyard.statistics.intervals import Difference, Estimate, Evidence, difference
from steelyard.statistics.pair_counts import EXACT, NUM_COLUMNS, PAIRS, UnscoredPairs, with_unscored_right

NUM_RESAMPLES = 2_000
"""The resamples of a paired difference, equal in every stage so that one difference has one interval."""
_POWER_AND_LEVEL = 1.959964 + 0.841621
"""The normal quantiles of a two-sided level of 5% and of a power of 80%."""


class PairedComparison(NamedTuple):
    """The first model minus the second.

    ``p_accuracy`` and ``p_exact_match``: two-sided, of the test that the interval of the difference belongs to.
    ``only_first`` and ``only_second``: the prompts on which one of the two has more exact matches. ``detectable``: the
    smallest true difference in accuracy that this many prompts would detect in four cases out of five.
    """

    accuracy: Estimate
    exact_match: Estimate
    p_accuracy: float
    p_exact_match: float
    only_first: int
    only_second: int
    detectable: float


class Trend(NamedTuple):
    """The slope of accuracy over log2 of a size: the gain of each doubling.

    ``p``: two-sided, of the test that the interval of the slope belongs to. ``sizes``: in ascending order.
    """

    per_doubling: Estimate
    p: float
    sizes: tuple[float, ...]


def share_difference(both: Items, share: Share, *, seed: int) -> Difference:
    """Return a measure (mean over categories) of the first model minus the second's; their columns are side by side.

    Prompts are drawn once for both (a paired bootstrap). With the models exchanged, the interval changes its sign and
    the p-value is the same, unless the models are equal in the sum of every cell: the draws then differ, and p is 1.
    Asserts that both have the same denominators.
    """
    items = difference_items(both, shared=[share.denominator], compared=[share.numerator])
    gains = items.statistics[:, 1]
    # The draws depend on the order of the distinct rows, and thus on the sign of the gains. Drawing the better model
    # minus the other makes them independent of the order of the models.
    sums = cell_sums(items.layout, gains[:, None])[:, 0]
    is_reversed = next((total < 0 for total in (sums.sum(), *sums) if total), False)
    if is_reversed:
        np.negative(gains, out=gains)
    totals = resample(items, seed=seed)
    categories = by_category(totals.cells)
    gain, distance = Share(1, 0), Share(2, 0)
    tested = difference(
        float(macro(totals.point, categories, gain)),
        np.asarray(macro(totals.resampled, categories, gain)),
        totals.point[:, 0].sum(),
        totals.evidence(categories.members, denominator=0),
        discordance=float(macro(totals.point, categories, distance)),
    )
    return tested.reversed() if is_reversed else tested


def compare(layout: Layout, first: Integers, second: Integers, *, num_resamples: int, seed: int) -> PairedComparison:
    """Compare two tables of statistics, shape (prompt, 4), over the same prompts in the same order.

    Prompts are drawn once for both (a paired bootstrap), within category and subset, parallel items together.
    Each measure has drawings of its own. Asserts that both count the same pairs and prompts.
    """
    both = Items(layout, np.concatenate([first, second], axis=1), num_resamples)
    accuracy = share_difference(both, ACCURACY, seed=seed)
    exact_match = share_difference(both, EXACT_MATCH, seed=seed)
    only_first = int((first[:, EXACT] > second[:, EXACT]).sum())
    only_second = int((second[:, EXACT] > first[:, EXACT]).sum())
    return PairedComparison(
        accuracy.estimate,
        exact_match.estimate,
        accuracy.p,
        exact_match.p,
        only_first,
        only_second,
        accuracy.error * _POWER_AND_LEVEL,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for multiple testing (Holm's step-down procedure, 1979), in the same order.

    A corrected p-value below the level means significance at that family-wise error rate.
    """
    order = np.argsort(p_values, kind="stable")
    corrected = np.empty(len(p_values))
    largest = 0.0
    for place, index in enumerate(order):
        # The running maximum keeps corrected p-values in the order of the plain ones.
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected.tolist()


def significant_ranks(is_better: Booleans) -> list[tuple[int, int]]:
    """Return the best and the worst possible rank of each model, from 1.

    ``is_better``: shape (model, model), true if the model of the row is significantly better than that of the column.
    """
    number = len(is_better)
    return [(1 + int(is_better[:, row].sum()), number - int(is_better[row].sum())) for row in range(number)]


def trend(layout: Layout, tables: Sequence[Integers], sizes: Sequence[float], *, num_resamples: int) -> Trend:
    """Return the least-squares slope over models on the same prompts; ``tables`` have shape (prompt, 4), a size each.

    Prompts are drawn once for all models, within category and subset: the interval covers the choice of prompts, not
    of training seeds. Asserts two different sizes above 0.
    """
    assert len(tables) == len(sizes), "a size for each model"
    assert len(set(sizes)) > 1, "a slope needs two sizes"
    assert min(sizes) > 0, "a size above 0"
    doublings = np.log2(np.asarray(sizes, dtype=np.float64))
    centred = doublings - doublings.mean()
    weights = centred / (centred**2).sum()
    totals = resample(Items(layout, np.concatenate(list(tables), axis=1), num_resamples), seed=0)
    categories = by_category(totals.cells)

    def slope(sums: Floats) -> Floats:
        each = [macro(sums, categories, ACCURACY.shifted(NUM_COLUMNS * index)) for index in range(len(sizes))]
        return np.stack(each, axis=-1) @ weights

    evidence = totals.evidence(categories.members, denominator=PAIRS)
    tested = difference(float(slope(totals.point)), slope(totals.resampled), totals.point[:, PAIRS].sum(), evidence)
    return Trend(tested.estimate, tested.p, tuple(sorted(sizes)))


_LEVEL = 0.05
"""The family-wise significance level of ranks and groups."""
_NUMBERS_AT_A_TIME = 20_000_000
"""The numbers of a chunk of resamples in memory: 160 MB."""


class Standings(NamedTuple):
    """The ranks of models, in the order of their tables. All arrays hold floats between 0 and 1.

    ``value``: the headline, shape (model,). ``rank_shares``: the share of resamples in which a model has a rank, shape
    (model, rank); tied models share their ranks evenly. ``ranks``: the best and worst rank that the data allow.
    ``groups``: models with a common letter do not differ significantly. ``p_corrected``: by pair of positions, Holm
    over all pairs. ``p_bounded``: the same of the larger of two p-values, the plain one and that with the pairs right
    that only the worse model has no score for; ranks and groups follow it.
    """

    value: Floats
    rank_shares: Floats
    ranks: tuple[tuple[int, int], ...]
    groups: tuple[str, ...]
    p_corrected: dict[tuple[int, int], float]
    p_bounded: dict[tuple[int, int], float]


class Headlines(NamedTuple):
    """The headline of each model: of the prompts, shape (model,), and of their resamples, (resample, model).

    ``discordance``: the headline that the absolute differences of two models would have, shape (model, model).
    """

    point: Floats
    resampled: Floats
    discordance: Floats
    evidence: Evidence

    def minus(self, first: int, second: int, n: float) -> Difference:
        """Return the headline of one model minus that of another."""
        discordance = float(self.discordance[first, second])
        return difference(
            float(self.point[first] - self.point[second]),
            self.resampled[:, first] - self.resampled[:, second],
            n,
            self.evidence,
            discordance=None if np.isnan(discordance) else discordance,
        )


class HeadlineBootstrap(NamedTuple):
    """The layout of the prompts, the formula of the headline, and the number of resamples."""

    layout: Layout
    formula: Formula
    num_resamples: int
    seed: int

    def draw(self, tables: Sequence[Integers]) -> Headlines:
        """Return the headlines of several models in the same resamples (a paired bootstrap)."""
        side_by_side = np.concatenate(tables, axis=1)
        # Many columns, above all denominators, are the same for all models: each is drawn once.
        statistics, place = np.unique(side_by_side, axis=1, return_inverse=True)
        columns = place.reshape(len(tables), -1)
        points: list[Totals] = []
        resampled: list[Floats] = []
        for totals in self._chunks(statistics):
            resampled.append(np.stack([self.formula(totals.resampled[..., each]) for each in columns], axis=1))
            points.append(totals._replace(resampled=totals.resampled[:0]))
        point = np.array([float(self.formula(points[0].point[:, each])) for each in columns])
        discordance = np.zeros((len(tables),) * 2)
        for first, second in combinations(range(len(tables)), 2):
            pair = self._discordance(tables[first], tables[second])
            discordance[first, second] = discordance[second, first] = pair
        evidence = evidence_of_formula(points[0].of_columns(columns[0]), self.formula)
        return Headlines(point, np.concatenate(resampled), discordance, evidence)

    def bounded_p(
        self,
        tables: Sequence[Integers],
        unscored: Sequence[UnscoredPairs],
        pair: tuple[int, int],
        headlines: Headlines,
    ) -> float:
        """Return the p-value of a pair with the pairs right that only the worse model has no score for; 0 without any.

        It is 1 if the other model is then no longer the better one.
        """
        better, worse = sorted(pair, key=lambda index: -headlines.point[index])
        table = with_unscored_right(tables[worse], unscored[worse], unscored[better])
        if table is None:
            return 0.0
        tested = self.draw([tables[better], table]).minus(0, 1, len(table))
        return tested.p if (tested.estimate.value or 0.0) > 0 else 1.0

    def _chunks(self, statistics: Integers) -> Iterator[Totals]:
        """Yield the totals of the prompts, each time with a part of the resamples."""
        step = max(1, _NUMBERS_AT_A_TIME // (len(self.layout.cells) * statistics.shape[1]))
        for number, start in enumerate(range(0, self.num_resamples, step)):
            items = Items(self.layout, statistics, min(step, self.num_resamples - start))
            yield resample(items, seed=derived_seed(self.seed, "standings", str(number)))

    def _discordance(self, first: Integers, second: Integers) -> float:
        """Return the headline that the absolute differences by prompt would have.

        Columns that are equal throughout are denominators, or carry no difference: their contribution is subtracted.
        """
        distance = np.abs(first - second)
        differs = distance.any(axis=0)
        with_differences = float(self.formula(cell_sums(self.layout, np.where(differs, distance, first))))
        return with_differences - float(self.formula(cell_sums(self.layout, np.where(differs, 0, first))))


def standings(
    bootstrap: HeadlineBootstrap, tables: Sequence[Integers], unscored: Sequence[UnscoredPairs] = ()
) -> Standings:
    """Rank models by a headline; ``tables`` are their statistics, each of shape (prompt, column).

    ``unscored`` has an entry a model; empty if all of them scored all pairs.
    """
    headlines = bootstrap.draw(tables)
    point, pairs = headlines.point, list(combinations(range(len(tables)), 2))
    p_values = [headlines.minus(*pair, len(tables[0])).p for pair in pairs]
    bounds = [
        max(p, bootstrap.bounded_p(tables, unscored, pair, headlines) if unscored and p < _LEVEL else 0.0)
        for p, pair in zip(p_values, pairs, strict=True)
    ]
    return standings_of(point, headlines.resampled, dict(zip(pairs, p_values, strict=True)), bounds)


def standings_of(
    point: Floats, resampled: Floats, p_values: Mapping[tuple[int, int], float], bounds: Sequence[float]
) -> Standings:
    """Return the ranks of models by their values, shape (model,), the resamples of these, and p-values by pair.

    ``bounds`` are p-values in the same order that ranks and groups follow.
    """
    corrected, bounded = holm(list(p_values.values())), holm(bounds)
    is_better = np.zeros((len(point),) * 2, dtype=bool)
    for (first, second), p_value in zip(p_values, bounded, strict=True):
        if p_value < _LEVEL and point[first] != point[second]:
            is_better[(first, second) if point[first] > point[second] else (second, first)] = True
    return Standings(
        point,
        rank_shares(resampled),
        tuple(significant_ranks(is_better)),
        letter_groups(point, is_better),
        dict(zip(p_values, corrected, strict=True)),
        dict(zip(p_values, bounded, strict=True)),
    )


def rank_shares(drawn: Floats) -> Floats:
    """Return the share of rows in which each column has each rank, greatest first; ties share their ranks evenly."""
    num_models = drawn.shape[1]
    shares = np.zeros((num_models, num_models))
    for model in range(num_models):
        above = (drawn > drawn[:, model : model + 1]).sum(axis=1)
        equal = (drawn == drawn[:, model : model + 1]).sum(axis=1)
        for rank in range(num_models):
            shares[model, rank] = (((above <= rank) & (rank < above + equal)) / equal).mean()
    return shares


def letter_groups(value: Floats, is_better: Booleans) -> tuple[str, ...]:
    """Return a compact letter display: each letter is a longest run of models, by value, that do not differ.

    Differs from: Piepho (2004), whose groups may leave out a model between two others.

    ``is_better``: shape (model, model), true if the model of the row is significantly better.
    """
    order = np.argsort(-value, kind="stable")
    differs = is_better | is_better.T
    runs: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and not differs[np.ix_(order[start : end + 2], order[start : end + 2])].any():
            end += 1
        # A run inside the one before adds no information.
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    letters = [""] * len(order)
    for number, (start, end) in enumerate(runs):
        for place in range(start, end + 1):
            # Numbers in brackets beyond z: two letters would read as membership in two groups.
            letters[order[place]] += chr(ord("a") + number) if number < 26 else f"({number + 1})"
    return tuple(letters)
