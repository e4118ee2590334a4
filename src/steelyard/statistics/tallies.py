"""Sums by unit and by named group, in bounded memory: what a bootstrap over prompts needs of a file of any size.

A *unit* is what is drawn: a prompt, as long as there are few of them. Where the table would grow beyond its bound, the
units are folded two by two into random groups of prompts, and the groups are drawn: the variance that the bootstrap
sees has the same expectation, known the less precisely the fewer the units (to about 2 % with a thousand).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from steelyard.core.seeds import generator
from steelyard.statistics.estimates import (
    SHARE,
    UNBOUNDED,
    Estimate,
    Scale,
    difference,
    interval,
    one_sample,
)
from steelyard.statistics.pair_counts import Floats

MOST_UNITS = 2048
FEWEST_UNITS = 64
_MOST_CELLS = 2_000_000
_COLUMNS_AT_A_TIME = 512

Group = tuple[str, ...]
Integers = npt.NDArray[np.integer]


class Entries(NamedTuple):
    """What one batch adds: to ``unit`` (a number below `MOST_UNITS`), in ``column``, 1 or the ``amount``.

    ``column`` is the position of the group in ``groups`` times the table's width, plus the column within the group.
    """

    groups: tuple[Group, ...]
    unit: Integers
    column: Integers
    amount: Floats | None = None


class Tally:
    """A table of sums, [unit, group, column]; groups are added as they are met, units folded when it grows too large.

    Beyond ``most_groups``, a group that is met is counted in ``rest(group)`` instead; ``num_rest`` says of how many
    entries that is true.
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
        """The groups that were met, in that order."""
        return tuple(self._place)

    def add(self, entries: Entries) -> None:
        """Adds a batch."""
        if not len(entries.unit):
            return
        place = np.array([self._find(group) for group in entries.groups], np.int64)
        self._make_room()
        given, within = np.divmod(entries.column, self.width)
        if any(group not in self._place for group in entries.groups):
            met = np.array([group in self._place for group in entries.groups])
            self.num_rest += int((~met[given]).sum())
        num_units, num_columns = self._cells.shape
        flat = entries.unit.astype(np.int64) % num_units * num_columns + place[given] * self.width + within
        np.add.at(self._cells.reshape(-1), flat, 1.0 if entries.amount is None else entries.amount)

    def drawn(self, *, seed: int, num_resamples: int = 1000) -> "Draws":
        """The bootstrap of the units. One drawing serves all groups, so that their resamples go together."""
        used = self._cells[self._cells.any(axis=1)]
        num_units = len(used)
        return Draws(self._place, used, _times(seed, num_resamples, num_units), self.width)

    def _find(self, group: Group) -> int:
        """Where the group stands, or the one that it is counted in."""
        found = self._place.get(group)
        if found is None and len(self._place) >= self._most_groups:
            group = self._rest(group)
        return self._place.setdefault(group, len(self._place)) if found is None else found

    def _make_room(self) -> None:
        num_units, room = self._cells.shape
        needed = len(self._place) * self.width
        if needed <= room:
            return
        room = max(needed, min(2 * room, room + _MOST_CELLS // num_units))
        grown = np.zeros((num_units, room))
        grown[:, : self._cells.shape[1]] = self._cells
        while grown.size > _MOST_CELLS and len(grown) > FEWEST_UNITS:
            grown = grown[: len(grown) // 2] + grown[len(grown) // 2 :]
        self._cells = grown


class Summed(NamedTuple):
    """The sums of groups: ``point`` [column], of each resample [resample, column], and ``by_unit`` [unit, column]."""

    point: Floats
    resampled: Floats
    by_unit: Floats


class Draws(NamedTuple):
    """Resamples of a tally: how often each unit is drawn, [resample, unit]."""

    place: dict[Group, int]
    cells: Floats
    times: np.ndarray
    width: int

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of the tally."""
        return tuple(self.place)

    def totals(self, groups: Sequence[Group]) -> Summed:
        """The sums over the groups, by column."""
        return self._summed(self._columns(groups).sum(axis=1))

    def totals_each(self, several: Sequence[Sequence[Group]]) -> Iterator[Summed]:
        """The `totals` of each of several lists of groups, in order; many are drawn by one product of matrices."""
        step = max(1, _COLUMNS_AT_A_TIME // self.width)
        for start in range(0, len(several), step):
            own = np.stack([self._columns(groups).sum(axis=1) for groups in several[start : start + step]], axis=1)
            drawn = self._summed(own)
            yield from (Summed(drawn.point[at], drawn.resampled[:, at], own[:, at]) for at in range(own.shape[1]))

    def table(self, groups: Sequence[Group]) -> Summed:
        """The sums of each group by itself: columns become [group, column]."""
        return self._summed(self._columns(groups))

    def point(self, groups: Sequence[Group]) -> Floats:
        """The sums of each group, [group, column], without resamples."""
        return self._columns(groups).sum(axis=0)

    def _columns(self, groups: Sequence[Group]) -> Floats:
        """[unit, group, column]."""
        start = np.array([self.place[group] for group in groups], np.int64) * self.width
        return self.cells[:, start[:, None] + np.arange(self.width)]

    def _summed(self, own: Floats) -> Summed:
        flat = own.reshape(len(own), prod(own.shape[1:])).astype(np.float32)  # drawn sums need no more digits
        used = np.flatnonzero(flat.any(axis=0))  # most columns of most tables hold nothing
        resampled = np.zeros((len(self.times), flat.shape[1]))
        resampled[:, used] = self.times @ flat[:, used]
        return Summed(own.sum(axis=0), resampled.reshape(len(resampled), *own.shape[1:]), own)


@lru_cache(maxsize=1)
def _times(seed: int, num_resamples: int, num_units: int) -> npt.NDArray[np.float32]:
    """How often each unit is drawn; the tables of one run nearly always have equally many."""
    random = generator(seed, "bootstrap of units")
    times = np.empty((num_resamples, num_units), np.float32)
    for row in times if num_units else ():
        row[:] = np.bincount(random.integers(num_units, size=num_units), minlength=num_units)
    times.flags.writeable = False
    return times


def estimates(
    summed: Summed, formula: Callable[[Floats], Floats], n: Floats, scale: Scale = UNBOUNDED
) -> list[Estimate]:
    """Several values at once with their intervals; ``formula`` maps (…, column) to (…, value), ``n`` is behind each.

    NaN is "nothing to measure": a value that is NaN is null, resamples in which it is NaN are passed over.
    """
    value, drawn = formula(summed.point), formula(summed.resampled)
    evidence = one_sample(float(summed.by_unit.reshape(len(summed.by_unit), -1).any(axis=1).sum()))
    return [
        interval(float(own), drawn[:, place], number, evidence, scale)
        for place, (own, number) in enumerate(zip(value, n, strict=True))
    ]


def shares(summed: Summed, part: Callable[[Floats], tuple[Floats, Floats]]) -> list[Estimate]:
    """Several shares at once; ``part`` maps (…, column) to what is counted and what of, each (…, value).

    Behind each stand the units that have something to count.
    """
    below = part(summed.point)[1]
    value, drawn = (ratio(*part(sums)) for sums in summed[:2])
    num_units = (part(summed.by_unit)[1] > 0).sum(axis=0)
    return [
        interval(float(own), drawn[:, place], number, one_sample(float(units)), SHARE)
        for place, (own, number, units) in enumerate(zip(value, below, num_units, strict=True))
    ]


def share_difference(
    summed: Summed, parts: Callable[[Floats], tuple[Floats, Floats, Floats, Floats]], n: float
) -> Estimate:
    """One share minus another of the same units; ``parts``: counted and of what of the first, and of the second."""
    one, of_one, two, of_two = parts(summed.point)
    drawn = [parts(summed.resampled)[place] for place in range(4)]
    by_unit = parts(summed.by_unit)
    num_units = float(((by_unit[1] > 0) | (by_unit[3] > 0)).sum())
    own = float(ratio(one, of_one) - ratio(two, of_two))
    resampled = ratio(drawn[0], drawn[1]) - ratio(drawn[2], drawn[3])
    apart = np.abs(by_unit[0] / max(float(of_one), 1e-12) - by_unit[2] / max(float(of_two), 1e-12)).sum()
    return difference(own, resampled, n, one_sample(num_units), discordance=min(float(apart), 1.0)).estimate


def ratio(above: Floats, below: Floats) -> Floats:
    """One array over the other, NaN where the lower one is not positive."""
    has = below > 0
    return np.where(has, above, np.nan) / np.where(has, below, 1.0)
