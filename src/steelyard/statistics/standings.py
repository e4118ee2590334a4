"""Many models on the same prompts: how often each would stand at each rank, and which cannot be told apart."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Booleans, Floats, Integers
from steelyard.core.seeds import derived_seed
from steelyard.statistics.bootstrap import Items, Totals, cell_sums, resample
from steelyard.statistics.groups import Layout
from steelyard.statistics.intervals import Difference, Evidence, difference
from steelyard.statistics.pair_counts import UnscoredPairs, with_unscored_right
from steelyard.statistics.significance import holm, significant_ranks

Formula = Callable[[Floats], Floats]
"""A headline from sums by cell: (…, cell, column) to (…)."""
_LEVEL = 0.05
_NUMBERS_AT_A_TIME = 20_000_000


class Standings(NamedTuple):
    """Of models in the order given. All arrays are of floats between 0 and 1.

    ``value``: of the headline, shape (model,). ``rank_shares``: the share of resamples in which a model stands at a
    rank, shape (model, rank); tied models share their ranks evenly. ``ranks``: the best and worst rank beyond doubt.
    ``groups``: models with a letter in common cannot be told apart. ``p_corrected``: by pair of positions, Holm over
    all pairs; ``p_bounded`` the same, each the larger of two: as it is, and with the pairs right that the worse model
    alone has no score for. Ranks and groups go by it.
    """

    value: Floats
    rank_shares: Floats
    ranks: tuple[tuple[int, int], ...]
    groups: tuple[str, ...]
    p_corrected: dict[tuple[int, int], float]
    p_bounded: dict[tuple[int, int], float]


class Drawn(NamedTuple):
    """A headline of each model: of the prompts, shape (model,), and of every resample of them, (resample, model).

    ``discordance``: of every two models the headline that their absolute differences would have, shape (model, model).
    """

    point: Floats
    resampled: Floats
    discordance: Floats
    evidence: Evidence

    def minus(self, first: int, second: int, n: float) -> Difference:
        """The headline of one model minus that of another."""
        apart = float(self.discordance[first, second])
        return difference(
            float(self.point[first] - self.point[second]),
            self.resampled[:, first] - self.resampled[:, second],
            n,
            self.evidence,
            discordance=None if np.isnan(apart) else apart,
        )


class Drawing(NamedTuple):
    """What is drawn: the layout of the prompts, and how often. ``formula`` is the headline of which all speak."""

    layout: Layout
    formula: Formula
    num_resamples: int
    seed: int

    def draw(self, tables: Sequence[Integers]) -> Drawn:
        """Draw the headline of several models."""
        return draw_headlines(self.layout, tables, self.formula, num_resamples=self.num_resamples, seed=self.seed)


def standings(
    layout: Layout,
    tables: Sequence[Integers],
    formula: Formula,
    *,
    num_resamples: int,
    seed: int,
    unscored: Sequence[UnscoredPairs] = (),
) -> Standings:
    """Rank models by a headline; ``tables`` are statistics, shape (prompt, column), of which it is a formula.

    Each resample of the prompts serves all models. ``unscored``: of each model, none where all of them scored all.
    """
    drawing = Drawing(layout, formula, num_resamples, seed)
    drawn = drawing.draw(tables)
    point, pairs = drawn.point, list(combinations(range(len(tables)), 2))
    p_values = [drawn.minus(one, other, len(tables[0])).p for one, other in pairs]
    bounded = [
        max(p, bounded_p(drawing, tables, unscored, pair, drawn) if unscored and p < _LEVEL else 0.0)
        for p, pair in zip(p_values, pairs, strict=True)
    ]
    corrected, bounded = holm(p_values), holm(bounded)
    differs = np.zeros((len(tables),) * 2, dtype=bool)
    for (one, other), p_value in zip(pairs, bounded, strict=True):
        if p_value < _LEVEL and point[one] != point[other]:
            differs[(one, other) if point[one] > point[other] else (other, one)] = True
    return Standings(
        point,
        rank_shares(drawn.resampled),
        tuple(significant_ranks(differs)),
        groups_of(point, differs),
        dict(zip(pairs, corrected, strict=True)),
        dict(zip(pairs, bounded, strict=True)),
    )


def bounded_p(
    drawing: Drawing, tables: Sequence[Integers], unscored: Sequence[UnscoredPairs], pair: tuple[int, int], drawn: Drawn
) -> float:
    """Return the p-value with the pairs right that the worse model of a pair alone has no score for; 0 if it has all.

    It is 1 where the other model is no longer the better one.
    """
    better, worse = sorted(pair, key=lambda index: -drawn.point[index])
    table = with_unscored_right(tables[worse], unscored[worse], unscored[better])
    if table is None:
        return 0.0
    found = drawing.draw([tables[better], table]).minus(0, 1, len(table))
    return found.p if (found.estimate.value or 0.0) > 0 else 1.0


def draw_headlines(
    layout: Layout, tables: Sequence[Integers], formula: Formula, *, num_resamples: int, seed: int
) -> Drawn:
    """The headline of each model, and in resamples of the prompts that serve all models (a paired bootstrap)."""
    beside = np.concatenate(tables, axis=1)
    # Many columns are the same for all models, what stands in denominators above all: each is drawn once.
    statistics, place = np.unique(beside, axis=1, return_inverse=True)
    columns = place.reshape(len(tables), -1)
    points: list[Totals] = []
    resampled: list[Floats] = []
    for totals in _parts(layout, statistics, num_resamples=num_resamples, seed=seed):
        resampled.append(np.stack([formula(totals.resampled[..., own]) for own in columns], axis=1))
        points.append(totals._replace(resampled=totals.resampled[:0]))
    point = np.array([float(formula(points[0].point[:, own])) for own in columns])
    discordance = np.zeros((len(tables),) * 2)
    for one, other in combinations(range(len(tables)), 2):
        apart = _discordance(layout, tables[one], tables[other], formula)
        discordance[one, other] = discordance[other, one] = apart
    return Drawn(point, np.concatenate(resampled), discordance, points[0].evidence())


def _discordance(layout: Layout, first: Integers, second: Integers, formula: Formula) -> float:
    """The headline that the absolute differences by prompt would have.

    Columns in which the two are equal throughout are denominators, or tell no difference: what they add is taken off.
    """
    apart = np.abs(first - second)
    differs = apart.any(axis=0)
    with_differences = float(formula(cell_sums(layout, np.where(differs, apart, first))))
    return with_differences - float(formula(cell_sums(layout, np.where(differs, 0, first))))


def _parts(layout: Layout, statistics: Integers, *, num_resamples: int, seed: int) -> Iterator[Totals]:
    """The totals of the prompts, each time with a part of the resamples."""
    step = max(1, _NUMBERS_AT_A_TIME // (len(layout.cells) * statistics.shape[1]))
    for number, start in enumerate(range(0, num_resamples, step)):
        items = Items(layout, statistics, min(step, num_resamples - start))
        yield resample(items, seed=derived_seed(seed, "standings", str(number)))


def rank_shares(drawn: Floats) -> Floats:
    """The share of rows in which each column stands at each rank, the greatest first; ties share their ranks."""
    num_models = drawn.shape[1]
    found = np.zeros((num_models, num_models))
    for one in range(num_models):
        above = (drawn > drawn[:, one : one + 1]).sum(axis=1)
        equal = (drawn == drawn[:, one : one + 1]).sum(axis=1)
        for rank in range(num_models):
            found[one, rank] = (((above <= rank) & (rank < above + equal)) / equal).mean()
    return found


def groups_of(value: Floats, differs: Booleans) -> tuple[str, ...]:
    """Letters such that neighbours in rank share one exactly where no two between them differ beyond doubt.

    ``differs``: shape (model, model), true where the row is better beyond doubt.
    """
    order = np.argsort(-value, kind="stable")
    apart = differs | differs.T
    runs: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and not apart[np.ix_(order[start : end + 2], order[start : end + 2])].any():
            end += 1
        if not runs or end > runs[-1][1]:
            runs.append((start, end))
    letters = [""] * len(order)
    for number, (start, end) in enumerate(runs):
        for place in range(start, end + 1):
            letters[order[place]] += _letter(number)
    return tuple(letters)


def _letter(number: int) -> str:
    return chr(ord("a") + number) if number < 26 else f"({number + 1})"
