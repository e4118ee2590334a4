"""Which judge agrees least with the others, whether it stands out, and since when: from counts of all batches.

*Agreement* is the mean over a judge's shared pairs of the share of the other judges with its label (three labels: one
response, the other, tie); ``agreement_of_strict`` counts labels that are strict on both sides. Kappa is Cohen's, of the
judge's labels with those of the others. A judge *stands out* if its agreement lies below the median of the other judges
by more than chance explains: the interval of the difference combines those of both (Zou and Donner, 2008), and p-values
are corrected for the number of judges (Holm).
"""

import re
from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.core.text import natural_order
from steelyard.core.types import Record
from steelyard.ranking.annotation_features import date_of
from steelyard.ranking.panel_counts import (
    MOST_CONTRADICTIONS,
    PANEL,
    PANEL_WIDTH,
    AgreementEntries,
    Contradiction,
    PanelCounts,
)
from steelyard.statistics import agreement
from steelyard.statistics.change_points import change_point
from steelyard.statistics.intervals import SHARE, Estimate, interval, one_sample, student
from steelyard.statistics.significance import holm
from steelyard.statistics.unit_bootstrap import (
    MOST_UNITS,
    Draws,
    Tally,
    UnitSums,
    agreement_beyond_chance,
    estimate_shares,
)

MOST_JUDGES = 500
LEVEL = 0.05
FEWEST_PROMPTS = 10
"""The fewest prompts with shared pairs at which a judge is compared with the median of the others."""
FEWEST_VERDICTS = 20
"""The fewest verdicts, all alike, that are called constant: chance gives that once in 500,000 judges."""
_MOST_ENTRIES = 2_000_000
_NUM_WITH_CONTRADICTIONS = 5

Constant = Literal["left", "right", "tie", "first_shown", "last_shown"]


class Change(Record, frozen=True, kw_only=True):
    """A judge's agreement before and from ``since`` on, a batch or a date; ``p`` is corrected for places and judges."""

    by: Literal["batch", "time"]
    since: str
    before: Estimate
    after: Estimate
    p: float


class JudgeReliability(Record, frozen=True, kw_only=True):
    """One judge next to the other judges of the same pairs.

    ``below_median``: the median agreement of the other judges minus its own; null with fewer than three judges that
    share pairs of ten prompts. ``with_people``: agreement of an LLM or model with the vote of the people. ``constant``:
    all verdicts are alike. ``contradictions`` are listed for the least agreeing judges.
    """

    judge: str
    num_pairs: int
    agreement: Estimate
    agreement_of_strict: Estimate
    kappa: Estimate
    below_median: Estimate | None = None
    p: float | None = None
    with_people: Estimate | None = None
    constant: Constant | None = None
    change: Change | None = None
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def stands_out(self) -> bool:
        """True for a judge that agrees significantly less than the median of the others."""
        below = self.below_median
        return below is not None and (below.value or 0) > 0 and self.p is not None and self.p < LEVEL


class PanelReliability(Record, frozen=True, kw_only=True):
    """The judges that share pairs with others, the least agreeing first. ``ordered_by``: what changes are tested by."""

    judges: tuple[JudgeReliability, ...]
    ordered_by: Literal["batch", "time"] | None = None


class PanelCollector:
    """The counts of all batches of lines. Agreement over time beyond a bound is kept of half the prompts, and so on."""

    def __init__(self) -> None:
        self._table = Tally(PANEL_WIDTH, most_groups=2 * MOST_JUDGES, rest=lambda _: ("rest",))
        self._over_time: list[AgreementEntries] = []
        self._num_entries, self._every = 0, 1
        self._contradictions: dict[str, tuple[Contradiction, ...]] = {}

    def add(self, counts: PanelCounts, unit: Integers) -> None:
        """Add a batch; ``unit`` has shape (case,)."""
        entries, over_time = counts.entries, counts.agreement_over_time
        self._table.add(entries._replace(unit=(unit % MOST_UNITS)[entries.unit]))
        self._add_over_time(over_time._replace(unit=unit[over_time.unit]))
        for name, new in counts.contradictions.items():
            both = sorted((*self._contradictions.get(name, ()), *new), key=lambda pair: -pair.num_against)
            self._contradictions[name] = tuple(both[:MOST_CONTRADICTIONS])

    def reliability(self, *, seed: int) -> PanelReliability | None:
        """Return the judges, the least agreeing first; None where no pair is shared."""
        draws = self._table.draw(seed=seed)
        names = sorted(group[1] for group in draws.groups if group[0] == "judge")
        if not names:
            return None
        totals = dict(zip(names, draws.totals_each([[("judge", name)] for name in names]), strict=True))
        judges = {name: _judge(name, totals[name], draws) for name in names}
        for name, (below, p) in _below_median(judges, totals).items():
            judges[name] = replaced(judges[name], below_median=below, p=p)
        judges_over_time, ordered_by = _agreement_over_time(self._over_time)
        # The judges without a row of their own are in the rest.
        known = {name: over_time for name, over_time in judges_over_time.items() if name in judges}
        for name, change in _changes(known, ordered_by).items():
            judges[name] = replaced(judges[name], change=change)
        for name, constant in _constants({name: sums.point for name, sums in totals.items()}).items():
            judges[name] = replaced(judges[name], constant=constant)
        ordered = sorted(judges.values(), key=lambda judge: (judge.agreement.value or 0.0, judge.judge))
        worst = [
            replaced(judge, contradictions=self._contradictions.get(judge.judge, ()))
            for judge in ordered[:_NUM_WITH_CONTRADICTIONS]
        ]
        return PanelReliability(judges=(*worst, *ordered[_NUM_WITH_CONTRADICTIONS:]), ordered_by=ordered_by)

    def _add_over_time(self, over_time: AgreementEntries) -> None:
        if not len(over_time.judge):
            return
        self._over_time.append(_of_every(over_time, self._every))
        self._num_entries += len(self._over_time[-1].judge)
        while self._num_entries > _MOST_ENTRIES:
            self._every *= 2
            self._over_time = [_of_every(part, self._every) for part in self._over_time]
            self._num_entries = sum(len(part.judge) for part in self._over_time)


def replaced(judge: JudgeReliability, **fields: object) -> JudgeReliability:
    """Return the judge with other values of some fields."""
    return msgspec.structs.replace(judge, **fields)


def _of_every(over_time: AgreementEntries, every: int) -> AgreementEntries:
    keep = over_time.unit % every == 0
    return over_time._replace(
        judge=over_time.judge[keep],
        batch=over_time.batch[keep],
        unit=over_time.unit[keep],
        time=over_time.time[keep],
        share=over_time.share[keep],
    )


def _judge(name: str, totals: UnitSums, draws: Draws) -> JudgeReliability:
    same, same_strict = agreement_shares(totals)
    people = ("people", name)
    with_people = agreement_shares(draws.totals([people]))[0] if people in draws.place else None
    return JudgeReliability(
        judge=name,
        num_pairs=same.n,
        agreement=same,
        agreement_of_strict=same_strict,
        kappa=kappa_of(totals),
        with_people=with_people,
    )


def _cells(sums: Floats) -> Floats:
    return sums[..., PANEL["confusion"]]


def agreement_shares(totals: UnitSums) -> tuple[Estimate, Estimate]:
    """Return the share of equal labels, and that of pairs with two strict ones; the first columns are a confusion."""

    def part(sums: Floats) -> tuple[Floats, Floats]:
        cells = _cells(sums)
        same = np.stack([agreement.num_same(cells), agreement.num_same_strict(cells)], axis=-1)
        return same, np.stack([cells.sum(axis=-1), agreement.num_strict(cells)], axis=-1)

    same, strict = estimate_shares(totals, part)
    return _whole(same, _cells(totals.point).sum()), _whole(strict, agreement.num_strict(_cells(totals.point)))


def _whole(estimate: Estimate, number: Floats | float) -> Estimate:
    """Return the estimate with the number of pairs rounded, not cut: it is a sum of fractions."""
    return msgspec.structs.replace(estimate, n=round(float(number)))


def kappa_of(totals: UnitSums) -> Estimate:
    """Return Cohen's kappa of the confusion in the first columns."""
    return agreement_beyond_chance(UnitSums(*map(_cells, totals)), agreement.kappa)


class _Resampled(NamedTuple):
    """The agreement of each judge in the data (judge,), in every resample (resample, judge), and its prompts."""

    value: Floats
    drawn: Floats
    num_prompts: Integers


def _below_median(
    judges: Mapping[str, JudgeReliability], totals: Mapping[str, UnitSums]
) -> dict[str, tuple[Estimate, float]]:
    """Return how far each judge lies below the median of the others, with the p-value corrected for all of them."""
    num_prompts = {name: int(_cells(sums.by_unit).any(axis=1).sum()) for name, sums in totals.items()}
    names = [name for name in judges if num_prompts[name] >= FEWEST_PROMPTS]
    if len(names) < 3:
        return {}
    drawn = np.stack([_share(totals[name].resampled) for name in names], axis=1)
    value = np.array([float(_share(totals[name].point)) for name in names])
    # A resample without a prompt of a judge says nothing new about it.
    drawn = np.where(np.isnan(drawn), value, drawn)
    all_judges = _Resampled(value, drawn, np.array([num_prompts[name] for name in names]))
    middle, middles = _median_of_others(value[None])[0], _median_of_others(drawn)
    tested = [
        _difference(judges[name].agreement, all_judges, place, middle, middles) for place, name in enumerate(names)
    ]
    corrected = holm([p for _, p in tested])
    return {name: (below, p) for name, (below, _), p in zip(names, tested, corrected, strict=True)}


def _share(sums: Floats) -> Floats:
    cells = _cells(sums)
    with np.errstate(invalid="ignore"):
        return agreement.num_same(cells) / cells.sum(axis=-1)


def _median_of_others(values: Floats) -> Floats:
    """Return for each value of a row the median of the others in the row: (row, value) to (row, value)."""
    order = np.argsort(values, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(values.shape[1])[None], axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    # Without the value of a rank, the values from that rank on move down by one.
    num_others = values.shape[1] - 1
    low, high = (num_others - 1) // 2, num_others // 2
    at_low, at_high = (np.take_along_axis(ordered, at + (rank <= at), axis=1) for at in (low, high))
    return (at_low + at_high) / 2


def _difference(
    agreement_of_judge: Estimate, judges: _Resampled, place: int, middle: Floats, middles: Floats
) -> tuple[Estimate, float]:
    """Return the median of the others minus the agreement of one judge, with its p-value."""
    from scipy.special import stdtr

    units = int(judges.num_prompts[place])
    evidence = one_sample(float(judges.num_prompts.max()))
    others = interval(float(middle[place]), middles[:, place], units, evidence, SHARE)
    (value, low, high), (median, low_median, high_median) = _ends(agreement_of_judge), _ends(others)
    together = _correlation(judges.drawn[:, place], middles[:, place])
    below = _combined(high - value, median - low_median, together)
    above = _combined(value - low, high_median - median, together)
    gap = median - value
    # The p-value that belongs to the end of the interval nearest to 0.
    half_width, freedom = (below if gap > 0 else above), max(units - 1, 1)
    t = abs(gap) / half_width * student(freedom) if half_width else 0.0
    difference = Estimate(
        median - value, max(-1.0, median - value - below), min(1.0, median - value + above), agreement_of_judge.n
    )
    return difference, float(2 * stdtr(freedom, -t))


def _ends(estimate: Estimate) -> tuple[float, float, float]:
    """Return value, low and high; an estimate without an interval has the widest."""
    low = 0.0 if estimate.low is None else estimate.low
    high = 1.0 if estimate.high is None else estimate.high
    return 0.0 if estimate.value is None else estimate.value, low, high


def _combined(first: float, second: float, correlation: float) -> float:
    return sqrt(max(first**2 + second**2 - 2 * correlation * first * second, 0.0))


def _correlation(first: Floats, second: Floats) -> float:
    if first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _constants(sums: Mapping[str, Floats]) -> dict[str, Constant]:
    """Return the judges whose verdicts are all alike; none where no judge has others: the data are written so."""
    constants: dict[str, Constant] = {
        name: constant for name, point in sums.items() if (constant := _constant(point, FEWEST_VERDICTS))
    }
    # Judges with few verdicts are no evidence of another way: theirs count by what they are.
    return constants if len({_constant(point, 1) for point in sums.values()}) > 1 else {}


def _constant(sums: Floats, fewest: int) -> Constant | None:
    """Return what all verdicts of a judge on shared pairs have in common, if there are enough."""
    first, last = sums[PANEL["places"]]
    if first + last >= fewest and min(first, last) == 0:
        return "first_shown" if first else "last_shown"
    verdicts = sums[PANEL["verdicts"]]
    if verdicts.sum() >= fewest and verdicts.max() == verdicts.sum():
        return ("left", "right", "tie")[int(verdicts.argmax())]
    return None


class _AgreementOverTime(NamedTuple):
    """A judge's agreement by prompt: ``order`` has a number for each value, ``name`` the batch or date of a number."""

    order: Floats
    share: Floats
    names: Sequence[str]

    def name(self, order: float) -> str:
        """Return the batch, or the date, of a place in the order."""
        if self.names:
            return self.names[int(order)]
        return date_of(order)


def _agreement_over_time(
    parts: Sequence[AgreementEntries],
) -> tuple[dict[str, _AgreementOverTime], Literal["batch", "time"] | None]:
    """Return the agreement of every judge by time, or by batches with numbers in their names; else nothing."""
    if not parts:
        return {}, None
    has_time = not any(np.isnan(part.time).any() for part in parts)
    has_batch = not any((part.batch < 0).any() for part in parts)
    present = {part.batches[code] for part in parts for code in np.unique(part.batch).tolist() if code >= 0}
    batches = sorted(present, key=natural_order)
    if not has_time and not (has_batch and len(batches) > 1 and all(re.search(r"\d", name) for name in batches)):
        return {}, None
    number = {name: place for place, name in enumerate(batches)}
    orders: dict[str, list[Floats]] = {}
    shares: dict[str, list[Floats]] = {}
    for part in parts:
        numbers = np.array([number.get(name, -1) for name in part.batches], np.float64)
        order = part.time if has_time else numbers[part.batch]
        for code in np.unique(part.judge).tolist():
            mask = part.judge == code
            orders.setdefault(part.judges[code], []).append(order[mask])
            shares.setdefault(part.judges[code], []).append(part.share[mask])
    names = () if has_time else batches
    judges_over_time = {
        name: _AgreementOverTime(np.concatenate(orders[name]), np.concatenate(shares[name]), names) for name in orders
    }
    return judges_over_time, "time" if has_time else "batch"


def _changes(
    judges_over_time: Mapping[str, _AgreementOverTime], by: Literal["batch", "time"] | None
) -> dict[str, Change]:
    """Return the significant changes: p-values are corrected for the places of a change, and for the judges."""
    if by is None:
        return {}
    tested = {}
    for name, over_time in sorted(judges_over_time.items()):
        in_order = np.argsort(over_time.order, kind="stable")
        order = over_time.order[in_order]
        change = change_point(over_time.share[in_order], np.searchsorted(np.unique(order), order))
        if change is not None:
            tested[name] = (change, over_time.name(float(order[change.place])))
    corrected = holm([change.p for change, _ in tested.values()])
    return {
        name: Change(by=by, since=since, before=change.before, after=change.after, p=p)
        for (name, (change, since)), p in zip(tested.items(), corrected, strict=True)
        if p < LEVEL
    }
