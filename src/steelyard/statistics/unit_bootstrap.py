"""The bootstrap over prompts without strata, for judgments and pairs: sums by unit, and shares of them.

A *unit* is what is drawn: a prompt with all its judgments. When to use which:

- `Tally`: sums by unit and named group over a file of any size, in bounded memory. If the table would exceed its bound,
  units are folded two by two into random groups of prompts, and the groups are drawn: the variance keeps its
  expectation, and is known less precisely the fewer the units (to about 2 % with a thousand). One drawing serves all
  groups, so that their differences are paired.
- `selection_shares`: the share of right entries among those that each of several rules selects, drawn together.
- `share_of`: the share of right entries of one selection; the cost is that of the distinct units, not of all.
- `area`: the area under the ROC curve.

`estimate_shares` and `estimate_share_difference` form the intervals of sums (`UnitSums`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.numerics import Booleans, Floats, Integers, generator, ratio
from steelyard.statistics.agreement import beyond_chance, linear_effect
from steelyard.statistics.bootstrap import draw_counts, draw_weights, one_group
from steelyard.statistics.groups import UnitWeights, evidence_of_groups
from steelyard.statistics.intervals import SHARE, Estimate, Evidence, difference, interval, one_sample
from steelyard.statistics.unique_rows import unique_rows

MOST_UNITS = 2048
FEWEST_UNITS = 64
"""Units are folded down to this number at least; below it a variance is hardly known."""
_MOST_CELLS = 2_000_000
"""The numbers of a table: 16 MB."""
_COLUMNS_AT_A_TIME = 512
_SELECTION_RESAMPLES = 2000
_SHARE_RESAMPLES = 1000

Group = tuple[str, ...]


class Entries(NamedTuple):
    """The entries of one batch; all arrays have shape (entry,).

    Each adds 1, or its ``amount``, to the row ``unit`` (below `MOST_UNITS`) in ``column``. That is the position of the
    group in ``groups`` times the table's width, plus the column within the group.
    """

    groups: tuple[Group, ...]
    unit: Integers
    column: Integers
    amount: Floats | None = None


class Tally:
    """A table of sums, (unit, group, column). Groups are added as they occur, units folded when it grows too large.

    Beyond ``most_groups``, a new group is counted in ``rest(group)`` instead; ``num_rest`` counts the entries for which
    this happened.
    """

    def __init__(self, width: int, *, most_groups: int = 2000, rest: Callable[[Group], Group] = lambda _: ()) -> None:
        self.width = width
        self.num_rest = 0
        self._most_groups = most_groups
        self._rest = rest
        self._place: dict[Group, int] = {}
        self._cells = np.zeros((MOST_UNITS, 0))

    @property
    def groups(self) -> tuple[Group, ...]:
        """Return the groups, in order of their first entry."""
        return tuple(self._place)

    def add(self, entries: Entries) -> None:
        """Add a batch."""
        if not len(entries.unit):
            return
        place = np.array([self._find(group) for group in entries.groups], np.int64)
        self._make_room()
        group, column = np.divmod(entries.column, self.width)
        has_place = np.array([group in self._place for group in entries.groups])
        if not has_place.all():
            self.num_rest += int((~has_place[group]).sum())
        num_units, num_columns = self._cells.shape
        flat = entries.unit.astype(np.int64) % num_units * num_columns + place[group] * self.width + column
        # `add.at` and not indexing: entries of one cell add up.
        np.add.at(self._cells.reshape(-1), flat, 1.0 if entries.amount is None else entries.amount)

    def draw(self, *, seed: int, num_resamples: int = 1000) -> "Draws":
        """Draw the units. One drawing serves all groups, so that their resamples correspond."""
        # Units without an entry are no observations.
        used = self._cells[self._cells.any(axis=1)]
        return Draws(self._place, used, _unit_weights(seed, num_resamples, len(used)), self.width, self.num_rest)

    def _find(self, group: Group) -> int:
        """Return the position of the group, or of the one that it is counted in."""
        place = self._place.get(group)
        if place is None and len(self._place) >= self._most_groups:
            group = self._rest(group)
        return self._place.setdefault(group, len(self._place)) if place is None else place

    def _make_room(self) -> None:
        num_units, room = self._cells.shape
        needed = len(self._place) * self.width
        if needed <= room:
            return
        room = max(needed, min(2 * room, room + _MOST_CELLS // num_units))
        grown = np.zeros((num_units, room))
        grown[:, : self._cells.shape[1]] = self._cells
        # Halving keeps `unit % num_units` the row of every unit, for entries to come as for those in the table.
        while grown.size > _MOST_CELLS and len(grown) > FEWEST_UNITS:
            grown = grown[: len(grown) // 2] + grown[len(grown) // 2 :]
        self._cells = grown


class UnitSums(NamedTuple):
    """Sums: ``point`` (column), of each resample ``resampled`` (resample, column), and ``by_unit`` (unit, column)."""

    point: Floats
    resampled: Floats
    by_unit: Floats


class Draws(NamedTuple):
    """Resamples of a tally. ``cells``: (unit, group * column); ``weights``: how often a unit is drawn (resample, unit).

    ``place`` is the position of each group, ``num_rest`` the number of entries counted in a rest group.
    """

    place: dict[Group, int]
    cells: Floats
    weights: NDArray[np.float32]
    width: int
    num_rest: int

    @property
    def groups(self) -> tuple[Group, ...]:
        """Return the groups of the tally."""
        return tuple(self.place)

    def totals(self, groups: Sequence[Group]) -> UnitSums:
        """Return the sums over the groups, by column."""
        return self._summed(self._columns(groups).sum(axis=1))

    def totals_each(self, several: Sequence[Sequence[Group]]) -> Iterator[UnitSums]:
        """Yield the `totals` of each of several lists of groups, in order, with few products of matrices."""
        step = max(1, _COLUMNS_AT_A_TIME // self.width)
        for start in range(0, len(several), step):
            part = np.stack([self._columns(groups).sum(axis=1) for groups in several[start : start + step]], axis=1)
            drawn = self._summed(part)
            yield from (UnitSums(drawn.point[at], drawn.resampled[:, at], part[:, at]) for at in range(part.shape[1]))

    def table(self, groups: Sequence[Group]) -> UnitSums:
        """Return the sums of each group by itself: columns become (group, column)."""
        return self._summed(self._columns(groups))

    def point(self, groups: Sequence[Group]) -> Floats:
        """Return the sums of each group, (group, column), without resamples."""
        return self._columns(groups).sum(axis=0)

    def _columns(self, groups: Sequence[Group]) -> Floats:
        """Return the table of some groups, (unit, group, column)."""
        start = np.array([self.place[group] for group in groups], np.int64) * self.width
        return self.cells[:, start[:, None] + np.arange(self.width)]

    def _summed(self, table: Floats) -> UnitSums:
        # Single precision suffices for the sums of a resample; those of the data stay in double.
        flat = table.reshape(len(table), prod(table.shape[1:])).astype(np.float32)
        # Most columns of most tables are empty.
        used = np.flatnonzero(flat.any(axis=0))
        resampled = np.zeros((len(self.weights), flat.shape[1]))
        resampled[:, used] = self.weights @ flat[:, used]
        return UnitSums(table.sum(axis=0), resampled.reshape(len(resampled), *table.shape[1:]), table)


@lru_cache(maxsize=1)
def _unit_weights(seed: int, num_resamples: int, num_units: int) -> NDArray[np.float32]:
    """Return how often each unit is drawn, cached: the tables of one run nearly always have equally many units."""
    random = generator(seed, "bootstrap of units")
    weights = draw_weights(random, num_units, num_drawn=num_units, num_resamples=num_resamples)
    weights.flags.writeable = False
    return weights


def weighted_sample(weights: Floats, successes: Floats | None = None) -> Evidence:
    """Return the effective sample of a ratio over units with these denominators, drawn whole with replacement.

    ``successes``: the numerators, if the ratio is a share. Both have shape (unit,).
    """
    used = np.flatnonzero(weights > 0)
    if len(used) < 2:
        return one_sample(float(len(used)))
    row, number = np.arange(len(used)), float(len(used))
    units = UnitWeights(
        row,
        one_group(len(used)),
        weights[used],
        one_group(len(used)),
        np.ones_like(row),
        None if successes is None else successes[used],
    )
    evidence = evidence_of_groups(units, np.array([number]), 0)
    # n of n units are drawn here, which has (n - 1) / n of the variance.
    return evidence._replace(inflation=evidence.inflation * number / (number - 1))


def estimate_shares(summed: UnitSums, part: Callable[[Floats], tuple[Floats, Floats]]) -> list[Estimate]:
    """Return several shares; ``part`` maps (…, column) to numerators and denominators, each (…, value).

    The effective sample of each is that of its numerators and denominators by unit (`weighted_sample`).
    """
    denominators = part(summed.point)[1]
    values, drawn = (ratio(*part(sums)) for sums in summed[:2])
    successes, weights = part(summed.by_unit)
    return [
        interval(float(value), drawn[:, place], number, weighted_sample(weights[:, place], successes[:, place]), SHARE)
        for place, (value, number) in enumerate(zip(values, denominators, strict=True))
    ]


def estimate_share_difference(
    summed: UnitSums, parts: Callable[[Floats], tuple[Floats, Floats, Floats, Floats]], n: float
) -> Estimate:
    """Return one share minus another of the same units.

    ``parts`` maps (…, column) to numerator and denominator of the first share, then of the second, each (…).
    """
    first, of_first, second, of_second = parts(summed.point)
    value = float(ratio(first, of_first) - ratio(second, of_second))
    drawn = parts(summed.resampled)
    resampled = ratio(drawn[0], drawn[1]) - ratio(drawn[2], drawn[3])
    units = parts(summed.by_unit)
    evidence = weighted_sample(units[1] + units[3])
    apart = np.abs(units[0] / max(float(of_first), 1e-12) - units[2] / max(float(of_second), 1e-12)).sum()
    return difference(value, resampled, n, evidence, discordance=min(float(apart), 1.0)).estimate


def agreement_beyond_chance(summed: UnitSums, coefficient: Callable[[Floats], Floats]) -> Estimate:
    """Return `kappa` or `alpha` of sums whose columns are the cells of one table; n is their sum."""
    value, evidence = float(coefficient(summed.point)), weighted_sample(summed.by_unit.sum(axis=-1))
    tables = summed.point[None]
    effect = linear_effect(value, tables, summed.resampled[:, None], evidence)
    return beyond_chance(value, tables, summed.point.sum(), evidence, effect)


class SelectionShares(NamedTuple):
    """The share of right entries under each selection. ``summed`` has the columns: right, then selected, of each."""

    summed: UnitSums
    num_selections: int

    def of(self, selection: int) -> Estimate:
        """Return the share of one selection; n is the number of entries that it selects."""
        return estimate_shares(self.summed, lambda sums: self._share(sums, [selection]))[0]

    def minus(self, selection: int, other: int) -> Estimate:
        """Return the share of one selection minus that of another; n is the number of entries of the first."""
        n = self.summed.point[self.num_selections + selection]
        return estimate_share_difference(
            self.summed, lambda sums: (*self._share(sums, selection), *self._share(sums, other)), n
        )

    def _share(self, sums: Floats, selection: int | list[int]) -> tuple[Floats, Floats]:
        return sums[..., : self.num_selections][..., selection], sums[..., self.num_selections :][..., selection]


def selection_shares(unit: Integers, selected: NDArray, right: NDArray, *, seed: int) -> SelectionShares:
    """Resample the share of right entries under several selections. Entries of one unit are drawn together.

    ``selected`` has shape (entry, selection); ``right`` too, or (entry,) for all. Both may be fractions.
    """
    right = selected * (right if right.ndim > 1 else right[:, None])
    table = np.zeros((int(unit.max(initial=-1)) + 1, 2 * selected.shape[1]))
    np.add.at(table, unit, np.concatenate([right, selected], axis=1))
    drawn = [counts @ table for counts in _draw_units(len(table), seed)]
    return SelectionShares(UnitSums(table.sum(axis=0), np.concatenate(drawn), table), selected.shape[1])


def area(unit: Integers, margin: Floats, is_right: Booleans, *, seed: int) -> Estimate:
    """Return the area under the ROC curve: the probability that a right entry has a larger margin than a wrong one.

    It is the Mann-Whitney statistic over the number of pairs of a right and a wrong entry. A tie counts one half. None
    if all entries are right, or none. ``margin`` must be finite.
    """
    order = np.argsort(margin, kind="stable")
    _, start = np.unique(margin[order], return_index=True)
    right, owner = is_right[order], unit[order]
    num_units = int(unit.max(initial=-1)) + 1
    if right.all() or not right.any():
        return Estimate(None, None, None, len(margin))

    def areas(counts: Floats) -> Floats:
        weight = counts[:, owner]
        # Sums over runs of equal margins; ``bad`` below a run counts whole, within it one half.
        good = np.add.reduceat(weight * right, start, axis=1)
        bad = np.add.reduceat(weight * ~right, start, axis=1)
        below = np.cumsum(bad, axis=1) - bad / 2
        return ratio((good * below).sum(1), good.sum(1) * bad.sum(1))

    drawn = np.concatenate([areas(counts) for counts in _draw_units(num_units, seed, width=len(margin))])
    return interval(float(areas(np.ones((1, num_units)))[0]), drawn, len(margin), one_sample(num_units), SHARE)


def share_of(unit: Integers, selected: Booleans, right: Booleans, *, seed: int) -> Estimate:
    """Return the share of the selected entries that are right, with its interval. Units are drawn whole."""
    num_units = int(unit.max(initial=-1)) + 1
    num_selected = np.bincount(unit, selected, num_units).astype(np.int64)
    num_right = np.bincount(unit, selected & right, num_units).astype(np.int64)
    if not num_selected.any():
        return Estimate(None, None, None, 0)
    rows, counts = unique_rows(np.stack([num_right, num_selected], axis=1))
    random = generator(seed, "share of entries")
    chunks = draw_counts(random, counts, num_drawn=num_units, num_resamples=_SHARE_RESAMPLES)
    drawn = np.concatenate([chunk @ rows for _, chunk in chunks])
    value = int(num_right.sum()) / int(num_selected.sum())
    evidence = weighted_sample(num_selected.astype(np.float64), num_right.astype(np.float64))
    return interval(value, ratio(drawn[:, 0], drawn[:, 1]), num_selected.sum(), evidence, SHARE)


def column_slices(**widths: int) -> dict[str, slice]:
    """Return the columns of each part of a table whose parts of these widths stand side by side."""
    ends = accumulate(widths.values())
    return {name: slice(end - width, end) for (name, width), end in zip(widths.items(), ends, strict=True)}


def number_units(names: Sequence[str]) -> Integers:
    """Return the number of each entry's unit, from 0 in order of first appearance of the units' names."""
    number: dict[str, int] = {}
    return np.array([number.setdefault(name, len(number)) for name in names], np.int64)


def _draw_units(num_units: int, seed: int, *, width: int = 1) -> Iterator[Floats]:
    """Yield how often each unit is drawn, (resample, unit), some resamples at a time."""
    random = generator(seed, "bootstrap of units")
    counts = np.ones(num_units, np.int64)
    chunks = draw_counts(random, counts, num_drawn=num_units, num_resamples=_SELECTION_RESAMPLES, width=width)
    yield from (drawn for _, drawn in chunks)
