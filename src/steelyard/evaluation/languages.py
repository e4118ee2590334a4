"""One model in many languages by its bench's arithmetic: drops from English, agreement with it, and group means.

Every number is over the items that all compared languages share. Parallel items share a prompt id and are resampled
together, so that every interval is clustered by item.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers, ratio
from steelyard.core.types import Record
from steelyard.evaluation.coverage import Coverage, has_equal_shares
from steelyard.evaluation.items import Item
from steelyard.statistics.aggregation import Breakdown, Drop, Formula, LanguageTotals, Part, by_language, drop, estimate
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
from steelyard.statistics.bootstrap import Items, Totals, resample
from steelyard.statistics.groups import Label, layout_of
from steelyard.statistics.intervals import Estimate


class Kin(NamedTuple):
    """The groups of a language: family, script, resource level, and class after Joshi et al. (2020); null is unknown.

    ``column``: languages that name the same one are averaged first (Chinese in two scripts; M-RewardBench, Table 9).
    """

    family: str | None = None
    script: str | None = None
    resource: str | None = None
    resource_class: int | None = None
    column: str | None = None


_GROUPED_BY = ("family", "script", "resource", "resource_class")


class LanguageDrop(Drop, frozen=True, kw_only=True):
    """The drop of the number over all sections, and of each section."""

    sections: dict[str, Drop]


class LanguageValues(Record, frozen=True, kw_only=True):
    """The values of one language; English has neither drop nor kappa."""

    overall: Estimate
    sections: dict[str, Estimate]
    drop: LanguageDrop | None = None
    kappa: Estimate | None = None


class LanguageMean(Record, frozen=True, kw_only=True):
    """The mean over the languages of one family, script, resource level or class.

    The standard deviation over the languages, of two or more, has no interval: a resample adds its own noise to it.
    """

    languages: tuple[str, ...]
    mean: Estimate
    standard_deviation: Estimate | None = None


class LanguagesSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``languages`` (M-RewardBench, sections 5.1 and 6.2).

    Numbers are over the ``num_shared`` items that all languages have; ``left_out`` counts the other items of each
    language. ``mean``, ``standard_deviation`` and ``drop`` are over the languages without English, those of one column
    averaged first; so are the means of ``kin``, by group. ``kappa`` is the mean agreement with English. ``missing``:
    subsets that the shared items lack. ``are_read_alike``: the model read equal shares of all languages' responses.
    """

    model: str
    bench: str
    num_shared: int
    left_out: dict[str, int]
    english: str
    languages: dict[str, LanguageValues]
    mean: Estimate
    standard_deviation: Estimate | None = None
    drop: LanguageDrop
    kappa: Estimate
    kin: dict[str, dict[str, LanguageMean]]
    missing: dict[str, str]
    coverage: Coverage | None
    are_read_alike: bool


class ParallelEvaluation(NamedTuple):
    """An evaluation of items that all compared languages share, with the names of its model and bench.

    ``left_out`` counts by language the items that not every language has; ``coverage`` is the evaluation's.
    """

    model: str
    bench: str
    items: Sequence[Item]
    left_out: Mapping[str, int] = {}
    coverage: Coverage | None = None


class _LanguagePart(NamedTuple):
    """One language: its totals, and how its bench sums them."""

    totals: LanguageTotals
    breakdown: Breakdown

    @property
    def overall(self) -> Part:
        """The number over all sections."""
        return self._lift(self.breakdown.overall)

    def part(self, section: str | None) -> Part | None:
        """Return the number over all sections or of one, null where the language has none of it."""
        if section is None:
            return self.overall
        return self._lift(self.breakdown.sections[section]) if section in self.breakdown.sections else None

    def _lift(self, part: Part) -> Part:
        return Part(self.totals.lift(part.formula), part.n)


def compare_languages(
    evaluation: ParallelEvaluation,
    breakdown: Callable[[Totals], Breakdown],
    english: str,
    kin: Mapping[str, Kin],
    *,
    num_resamples: int,
    seed: int,
) -> LanguagesSummary:
    """Compare the languages of an evaluation with ``english``, by the arithmetic of its bench (``breakdown``)."""
    items, coverage = evaluation.items, evaluation.coverage
    labels = [Label(item.unit or item.prompt, item.cell) for item in items]
    rows = [(item.num_pairs, item.num_correct, 1, bool(item.exact_match), *item.bench_columns) for item in items]
    layout = layout_of(labels)
    totals = resample(Items(layout, np.array(rows, dtype=np.int64), num_resamples), seed=seed)
    confusions = resample(Items(layout, _confusions(items, english), num_resamples), seed=seed)
    parts = {
        name: _LanguagePart(language, breakdown(language.totals)) for name, language in by_language(totals).items()
    }
    others = {name: part for name, part in parts.items() if name != english}
    reference = parts[english]
    mean, deviation = _mean(totals, others, kin)
    return LanguagesSummary(
        model=evaluation.model,
        bench=evaluation.bench,
        num_shared=len(items) // len(parts),
        left_out=dict(evaluation.left_out),
        english=english,
        languages={name: _values(totals, confusions, part, reference) for name, part in parts.items()},
        mean=mean,
        standard_deviation=deviation,
        drop=_mean_drop(totals, reference, others, kin),
        kappa=_kappa(confusions, list(others.values())),
        kin=_by_kin(totals, others, kin),
        missing=dict(reference.breakdown.missing),
        coverage=coverage,
        are_read_alike=coverage is None or has_equal_shares(coverage, parts),
    )


def _confusions(items: Sequence[Item], english: str) -> Integers:
    """Return each item's place in the confusion matrix of its language with English: one-hot, shape (item, 9)."""
    outcomes = [_outcome(item) for item in items]
    in_english = {
        item.prompt: outcome for item, outcome in zip(items, outcomes, strict=True) if item.language == english
    }
    table = np.zeros((len(items), NUM_CELLS), dtype=np.int64)
    for row, (item, outcome) in enumerate(zip(items, outcomes, strict=True)):
        if item.language != english:
            table[row, in_english[item.prompt] * 3 + outcome] = 1
    return table


def _outcome(item: Item) -> int:
    """Return which answer of a single pair the model prefers; of several pairs, whether all are right."""
    if item.exact_match:
        return FIRST
    return TIED if item.num_pairs == 1 and item.num_tied > 0 else SECOND


def _values(totals: Totals, confusions: Totals, part: _LanguagePart, reference: _LanguagePart) -> LanguageValues:
    """Return the values of one language, compared with English unless it is English."""
    is_english = part is reference
    return LanguageValues(
        overall=estimate(totals, *part.overall),
        sections={
            name: estimate(totals, *section)
            for name in part.breakdown.sections
            if (section := part.part(name)) is not None
        },
        drop=None if is_english else _language_drop(totals, reference, part.overall, part.part),
        kappa=None if is_english else _kappa(confusions, [part]),
    )


def _language_drop(
    totals: Totals, english: _LanguagePart, overall: Part, part: Callable[[str], Part | None]
) -> LanguageDrop:
    """Return the drops from English, overall and in each section that both have."""
    whole = drop(totals, english.overall, overall)
    sections: dict[str, Drop] = {}
    for name in english.breakdown.sections:
        reference, other = english.part(name), part(name)
        if reference is not None and other is not None:
            sections[name] = drop(totals, reference, other)
    return LanguageDrop(absolute=whole.absolute, relative=whole.relative, sections=sections)


def _mean_drop(
    totals: Totals, english: _LanguagePart, others: Mapping[str, _LanguagePart], kin: Mapping[str, Kin]
) -> LanguageDrop:
    """Return how far the mean over languages lies below English; a section that one of them lacks has no drop."""

    def mean(section: str | None) -> Part | None:
        parts = {name: part for name, other in others.items() if (part := other.part(section)) is not None}
        if len(parts) < len(others):
            return None
        columns = _columns(parts, kin)
        return Part(lambda sums: columns(sums).mean(axis=-1), min(part.n for part in parts.values()))

    overall = mean(None)
    assert overall is not None, "every language has a number over its sections"
    return _language_drop(totals, english, overall, mean)


def _columns(parts: Mapping[str, Part], kin: Mapping[str, Kin]) -> Formula:
    """Return the value of each column, (…, cell, column) to (…, column): one language, or the mean of those in it."""
    members: dict[str, list[Formula]] = {}
    for name, part in parts.items():
        members.setdefault(kin.get(name, Kin()).column or name, []).append(part.formula)
    return lambda sums: np.stack(
        [np.mean([formula(sums) for formula in formulas], axis=0) for formulas in members.values()], axis=-1
    )


def _mean(
    totals: Totals, languages: Mapping[str, _LanguagePart], kin: Mapping[str, Kin]
) -> tuple[Estimate, Estimate | None]:
    """Return mean and standard deviation over columns, counted by n; one column has no deviation."""
    columns = _columns({name: part.overall for name, part in languages.items()}, kin)
    values: Floats = columns(totals.point)
    mean = estimate(totals, lambda sums: columns(sums).mean(axis=-1), len(values))
    if len(values) < 2:
        return mean, None
    # Without an interval: a resample adds its own noise to a spread, and its percentiles would lie above it.
    return mean, Estimate(float(values.std(ddof=1)), None, None, len(values))


def _kappa(confusions: Totals, languages: Sequence[_LanguagePart]) -> Estimate:
    """Return the agreement with English or its mean over languages; n counts items, or languages if several."""
    places = [part.totals.place for part in languages]

    def mean(sums: Floats) -> Floats:
        return np.mean([kappa(sums[..., place, :].sum(axis=-2)) for place in places], axis=0)

    if len(places) > 1:
        return estimate(confusions, mean, len(places), scale=KAPPA)
    cells = confusions.point[places[0]].sum(axis=0)

    def agreed(sums: Floats) -> Floats:
        confusion = sums[..., places[0], :].sum(axis=-2)
        return ratio(num_same(confusion), confusion.sum(axis=-1))

    same = estimate(confusions, agreed, cells.sum())
    return beyond_chance(same, float(kappa(cells)), cells, float(cells.sum()))


def _by_kin(
    totals: Totals, languages: Mapping[str, _LanguagePart], kin: Mapping[str, Kin]
) -> dict[str, dict[str, LanguageMean]]:
    """Return the means of each family, script, level and class. Class 0 is left out, as in the paper."""
    by_field: dict[str, dict[str, LanguageMean]] = {}
    for field in _GROUPED_BY:
        members: dict[str, list[str]] = {}
        for name in languages:
            value = getattr(kin.get(name, Kin()), field)
            if value is not None and value != 0:
                members.setdefault(str(value), []).append(name)
        by_field[field] = {}
        for value, names in sorted(members.items()):
            mean, deviation = _mean(totals, {name: languages[name] for name in names}, kin)
            by_field[field][value] = LanguageMean(languages=tuple(names), mean=mean, standard_deviation=deviation)
    return by_field
