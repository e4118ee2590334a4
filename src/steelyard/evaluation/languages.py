"""One model by language: drops from English, agreement with English, and means of language groups.

Every value uses the arithmetic of the bench on the items that all compared languages share. Parallel items share a
prompt id and are resampled together, so every interval is clustered by item.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Record
from steelyard.evaluation.coverage import Coverage, has_equal_shares
from steelyard.evaluation.items import Item
from steelyard.evaluation.language_groups import GROUPED_BY, Kin, members_of_columns, members_of_groups
from steelyard.statistics.aggregation import Breakdown, Drop, Formula, LanguageTotals, Part, by_language, drop, estimate
from steelyard.statistics.agreement import FIRST, NUM_CELLS, SECOND, TIED, beyond_chance, kappa, linear_effect
from steelyard.statistics.bootstrap import Items, Totals, resample
from steelyard.statistics.groups import Label, layout_of
from steelyard.statistics.intervals import Estimate


class LanguageDrop(Drop, frozen=True, kw_only=True):
    """The drop in the overall value, and in each section."""

    sections: dict[str, Drop]


class LanguageValues(Record, frozen=True, kw_only=True):
    """The values of one language; the drop and kappa of English are null."""

    overall: Estimate
    sections: dict[str, Estimate]
    drop: LanguageDrop | None = None
    kappa: Estimate | None = None


class LanguageMean(Record, frozen=True, kw_only=True):
    """The mean over the languages of one family, script, resource level or class.

    The standard deviation is over at least two languages. It has no interval, since resampling noise inflates it.
    """

    languages: tuple[str, ...]
    mean: Estimate
    standard_deviation: Estimate | None = None


class LanguagesSummary(Record, frozen=True, kw_only=True):
    """The summary of a run of ``languages`` (M-RewardBench, sections 5.1 and 6.2).

    Values are over the ``num_shared`` items that all languages have; ``left_out`` counts the other items of each
    language. ``mean``, ``standard_deviation`` and ``drop`` are over languages except English, after averaging within
    columns; so are the means of ``kin``, by group. ``kappa`` is the mean agreement with English. ``missing``: subsets
    that the shared items lack. ``are_read_alike``: the model read equal shares of the responses in all languages.
    """

    model: str
    bench: str
    num_shared: int
    left_out: dict[str, int]
    baseline_language: str
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
    """One language: its totals, and the breakdown of the bench into sections."""

    totals: LanguageTotals
    breakdown: Breakdown

    @property
    def overall(self) -> Part:
        """The value over all sections."""
        return self._lift(self.breakdown.overall)

    def part(self, section: str | None) -> Part | None:
        """Return the overall value, or that of one section; null if the language lacks the section."""
        if section is None:
            return self.overall
        return self._lift(self.breakdown.sections[section]) if section in self.breakdown.sections else None

    def _lift(self, part: Part) -> Part:
        return Part(self.totals.lift(part.formula), part.n)


def compare_languages(
    evaluation: ParallelEvaluation,
    breakdown: Callable[[Totals], Breakdown],
    baseline_language: str,
    kin: Mapping[str, Kin],
    *,
    num_resamples: int,
    seed: int,
) -> LanguagesSummary:
    """Compare languages with ``baseline_language``; ``breakdown`` is the arithmetic of the evaluation's bench."""
    items, coverage = evaluation.items, evaluation.coverage
    labels = [Label(item.unit or item.prompt, item.cell) for item in items]
    rows = [(item.num_pairs, item.num_correct, 1, bool(item.exact_match), *item.bench_columns) for item in items]
    layout = layout_of(labels)
    totals = resample(Items(layout, np.array(rows, dtype=np.int64), num_resamples), seed=seed)
    confusions = resample(Items(layout, confusion_cells(items, baseline_language), num_resamples), seed=seed)
    parts = {
        name: _LanguagePart(language, breakdown(language.totals)) for name, language in by_language(totals).items()
    }
    others = {name: part for name, part in parts.items() if name != baseline_language}
    reference = parts[baseline_language]
    mean, deviation = _mean(totals, others, kin)
    return LanguagesSummary(
        model=evaluation.model,
        bench=evaluation.bench,
        num_shared=len(items) // len(parts),
        left_out=dict(evaluation.left_out),
        baseline_language=baseline_language,
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


def confusion_cells(items: Sequence[Item], baseline_language: str) -> Integers:
    """Return the cell of each item in the confusion matrix with the baseline: one-hot, shape (item, 9)."""
    # The preferred answer of a single pair; for several pairs, whether all are right.
    outcomes = [
        FIRST if item.exact_match else TIED if item.num_pairs == 1 and item.num_tied > 0 else SECOND for item in items
    ]
    in_baseline = {
        item.prompt: outcome
        for item, outcome in zip(items, outcomes, strict=True)
        if item.language == baseline_language
    }
    table = np.zeros((len(items), NUM_CELLS), dtype=np.int64)
    for row, (item, outcome) in enumerate(zip(items, outcomes, strict=True)):
        if item.language != baseline_language:
            table[row, in_baseline[item.prompt] * 3 + outcome] = 1
    return table


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
    """Return the drops from English, overall and in each section that both languages have."""
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
    """Return the drop of the mean over languages from English; a section that a language lacks has no drop."""

    def mean(section: str | None) -> Part | None:
        parts = {name: part for name, other in others.items() if (part := other.part(section)) is not None}
        if len(parts) < len(others):
            return None
        columns = _columns(parts, kin)
        return Part(lambda sums: columns(sums).mean(axis=-1), min(part.n for part in parts.values()))

    overall = mean(None)
    assert overall is not None, "every language has an overall value"
    return _language_drop(totals, english, overall, mean)


def _columns(parts: Mapping[str, Part], kin: Mapping[str, Kin]) -> Formula:
    """Return the formula of the columns, each a language or the mean of its languages: shape (…, column)."""
    columns = members_of_columns(parts, kin).values()
    return lambda sums: np.stack(
        [np.mean([parts[name].formula(sums) for name in names], axis=0) for names in columns], axis=-1
    )


def _mean(
    totals: Totals, languages: Mapping[str, _LanguagePart], kin: Mapping[str, Kin]
) -> tuple[Estimate, Estimate | None]:
    """Return mean and standard deviation over columns; n counts columns, and one column has no deviation."""
    columns = _columns({name: part.overall for name, part in languages.items()}, kin)
    values: Floats = columns(totals.point)
    mean = estimate(totals, lambda sums: columns(sums).mean(axis=-1), len(values))
    if len(values) < 2:
        return mean, None
    # No interval: resampling noise inflates a standard deviation, so its percentiles would lie above the estimate.
    return mean, Estimate(float(values.std(ddof=1)), None, None, len(values))


def _kappa(confusions: Totals, languages: Sequence[_LanguagePart]) -> Estimate:
    """Return kappa with English, or its mean over languages; n counts items, or languages if several."""
    places = [part.totals.place for part in languages]
    tables, resampled = (
        np.stack([sums[..., place, :].sum(axis=-2) for place in places], axis=-2)
        for sums in (confusions.point, confusions.resampled)
    )
    members = np.zeros((1, len(confusions.cells)))
    members[0, [cell for place in places for cell in place]] = 1
    # Parallel items are one unit for any number of languages.
    evidence, value = confusions.evidence(members), float(kappa(tables).mean())
    n = len(places) if len(places) > 1 else tables.sum()
    return beyond_chance(value, tables, n, evidence, linear_effect(value, tables, resampled, evidence))


def _by_kin(
    totals: Totals, languages: Mapping[str, _LanguagePart], kin: Mapping[str, Kin]
) -> dict[str, dict[str, LanguageMean]]:
    """Return the means of each family, script, level and class. Class 0 is omitted, as in the paper."""
    by_field: dict[str, dict[str, LanguageMean]] = {}
    for field in GROUPED_BY:
        by_field[field] = {}
        for value, names in members_of_groups(languages, kin, field).items():
            mean, deviation = _mean(totals, {name: languages[name] for name in names}, kin)
            by_field[field][value] = LanguageMean(languages=tuple(names), mean=mean, standard_deviation=deviation)
    return by_field
