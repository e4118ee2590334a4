"""One model in many languages by its bench's arithmetic: drops from English, agreement with it, and means over kin.

Every number is over the items that all compared languages share. Parallel items share a prompt id and are drawn
together, so that every interval is clustered by item.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from steelyard.statistics.aggregation import estimate
from steelyard.statistics.agreement import (
    FIRST,
    KAPPA,
    NUM_CELLS,
    SECOND,
    TIED,
    beyond_chance,
    kappa,
    num_same,
)
from steelyard.statistics.estimates import Estimate
from steelyard.statistics.groups import Label, layout_of
from steelyard.statistics.headline import (
    Breakdown,
    Formula,
    LanguageTotals,
    Part,
    by_language,
    drop_record,
)
from steelyard.statistics.pair_counts import EXACT, PAIRS, Floats, Integers
from steelyard.statistics.resampling import Items, Totals, resample
from steelyard.statistics.tallies import ratio


class Kin(NamedTuple):
    """What a language is: family, script, resource level, and class after Joshi et al. (2020); null is not known.

    ``column``: languages that name the same one are averaged first (Chinese in two scripts; M-RewardBench, Table 9).
    """

    family: str | None = None
    script: str | None = None
    resource: str | None = None
    resource_class: int | None = None
    column: str | None = None


_GROUPED_BY = ("family", "script", "resource", "resource_class")


class Parallel(NamedTuple):
    """Items in several languages: ``items`` is what parallel ones share; ``labels`` says where each counts.

    ``statistics`` has the columns of `statistics_table` and the bench's own; ``num_tied`` counts tied pairs; by item.
    """

    items: Sequence[str]
    labels: Sequence[Label]
    statistics: Integers
    num_tied: Integers


class _Spoken(NamedTuple):
    """One language: its totals, and how they sum."""

    own: LanguageTotals
    breakdown: Breakdown

    def part(self, section: str | None) -> Part | None:
        """The number over the sections, or one section, null where the language has none of it."""
        found = self.breakdown.overall if section is None else self.breakdown.sections.get(section)
        return None if found is None else Part(self.own.lift(found.formula), found.n)


def languages_report(
    parallel: Parallel,
    breakdown: Callable[[Totals], Breakdown],
    english: str,
    kin: Mapping[str, Kin],
    *,
    num_resamples: int,
    seed: int,
) -> dict[str, Any]:
    """Everything that the languages tell of a model, with intervals (M-RewardBench, sections 5.1 and 6.2).

    ``breakdown`` is the bench's arithmetic; ``english`` the language that the others are compared with. ``languages``:
    overall, sections, drops from English (absolute and relative to it, overall and by section), and kappa with English.
    ``mean``, ``standard_deviation`` and ``drop`` are over the languages without English, those of one column averaged
    first; so are those of ``kin``. The deviation has no interval. ``missing``: subsets that the shared items lack.
    """
    layout = layout_of(parallel.labels)
    totals = resample(Items(layout, parallel.statistics, num_resamples), seed=seed)
    confusions = resample(Items(layout, _confusions(parallel, english), num_resamples), seed=seed)
    spoken = {name: _Spoken(own, breakdown(own.totals)) for name, own in by_language(totals).items()}
    others = {name: one for name, one in spoken.items() if name != english}
    reference = spoken[english]
    measured = {name: _language(totals, one) for name, one in spoken.items()}
    for name, one in others.items():
        measured[name] |= {"drop": _drops(totals, reference, one.part), "kappa": _kappa(confusions, [one])}
    return {
        "english": english,
        "languages": measured,
        **_over(totals, others, kin),
        "drop": _mean_drop(totals, reference, others, kin),
        "kappa": _kappa(confusions, list(others.values())),
        "kin": _by_kin(totals, others, kin),
        "missing": dict(reference.breakdown.missing),
    }


def _confusions(parallel: Parallel, english: str) -> Integers:
    """The place of each item in the confusion matrix of its language with English: one-hot, shape (item, 9)."""
    outcome = _outcomes(parallel).tolist()
    rows = list(zip(parallel.items, parallel.labels, outcome, strict=True))
    in_english = {item: own for item, label, own in rows if label.cell.language == english}
    table = np.zeros((len(rows), NUM_CELLS), dtype=np.int64)
    for row, (item, label, own) in enumerate(rows):
        if label.cell.language != english:
            table[row, in_english[item] * 3 + own] = 1
    return table


def _outcomes(parallel: Parallel) -> Integers:
    """What the model said of each item: of one pair, which answer it prefers; of several, whether all are right."""
    exact, single = parallel.statistics[:, EXACT] == 1, parallel.statistics[:, PAIRS] == 1
    return np.where(exact, FIRST, np.where(single & (parallel.num_tied > 0), TIED, SECOND))


def _language(totals: Totals, spoken: _Spoken) -> dict[str, Any]:
    """The overall value and the sections of one language."""

    def record(section: str | None) -> dict[str, Any]:
        part = spoken.part(section)
        assert part is not None, "a section of this language"
        return estimate(totals, *part).record()

    return {"overall": record(None), "sections": {name: record(name) for name in spoken.breakdown.sections}}


def _mean_drop(
    totals: Totals, english: _Spoken, others: Mapping[str, _Spoken], kin: Mapping[str, Kin]
) -> dict[str, Any]:
    """How far the mean over languages lies below English."""

    def mean(section: str | None) -> Part | None:
        parts = {name: part for name, one in others.items() if (part := one.part(section)) is not None}
        if len(parts) < len(others):
            return None
        columns = _columns(parts, kin)
        return Part(lambda sums: columns(sums).mean(axis=-1), min(part.n for part in parts.values()))

    return _drops(totals, english, mean)


def _drops(totals: Totals, english: _Spoken, other: Callable[[str | None], Part | None]) -> dict[str, Any]:
    """Drops from English, overall and in each section that both have."""

    def drop(section: str | None) -> dict[str, Any] | None:
        reference, own = english.part(section), other(section)
        return None if reference is None or own is None else drop_record(totals, reference, own)

    sections = {name: found for name in english.breakdown.sections if (found := drop(name)) is not None}
    return (drop(None) or {}) | {"sections": sections}


def _columns(parts: Mapping[str, Part], kin: Mapping[str, Kin]) -> Formula:
    """The value of each column, (…, cell, column) to (…, column): a language, or the mean of those that share one."""
    members: dict[str, list[Formula]] = {}
    for name, part in parts.items():
        members.setdefault(kin.get(name, Kin()).column or name, []).append(part.formula)
    return lambda sums: np.stack(
        [np.mean([formula(sums) for formula in own], axis=0) for own in members.values()], axis=-1
    )


def _over(totals: Totals, spoken: Mapping[str, _Spoken], kin: Mapping[str, Kin]) -> dict[str, Any]:
    """Mean and standard deviation over columns; n counts them."""
    parts = {name: part for name, one in spoken.items() if (part := one.part(None)) is not None}
    columns = _columns(parts, kin)
    values: Floats = columns(totals.point)
    found = {"mean": estimate(totals, lambda sums: columns(sums).mean(axis=-1), len(values)).record()}
    if len(values) > 1:
        # Without an interval: a resample adds its own noise to a spread, and its percentiles would lie above it.
        found["standard_deviation"] = Estimate(float(values.std(ddof=1)), None, None, len(values)).record()
    return found


def _kappa(confusions: Totals, spoken: Sequence[_Spoken]) -> dict[str, Any]:
    """The agreement with English, or its mean over languages; n counts items, or languages where there are several."""
    places = [one.own.place for one in spoken]

    def mean(sums: Floats) -> Floats:
        return np.mean([kappa(sums[..., place, :].sum(axis=-2)) for place in places], axis=0)

    if len(places) > 1:
        return estimate(confusions, mean, len(places), scale=KAPPA).record()
    cells = confusions.point[places[0]].sum(axis=0)

    def agreed(sums: Floats) -> Floats:
        own = sums[..., places[0], :].sum(axis=-2)
        return ratio(num_same(own), own.sum(axis=-1))

    same = estimate(confusions, agreed, cells.sum())
    return beyond_chance(same, float(kappa(cells)), cells, float(cells.sum())).record()


def _by_kin(totals: Totals, spoken: Mapping[str, _Spoken], kin: Mapping[str, Kin]) -> dict[str, Any]:
    """The mean over the languages of each family, script, level and class. Class 0 is left out, as in the paper."""
    found: dict[str, Any] = {}
    for field in _GROUPED_BY:
        members: dict[str, list[str]] = {}
        for name in spoken:
            value = getattr(kin.get(name, Kin()), field)
            if value is not None and value != 0:
                members.setdefault(str(value), []).append(name)
        found[field] = {
            value: {"languages": names, **_over(totals, {name: spoken[name] for name in names}, kin)}
            for value, names in sorted(members.items())
        }
    return found
