"""Many models by language: one row a model, means by kind of model and by group of languages, and correlations.

All is computed from one table of values, by model and language, and from the same table of every resample of items, in
which parallel items are drawn together and all models see the same draw. Published numbers are such a table without
resamples: they have values and no intervals.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from steelyard.core.numerics import Floats
from steelyard.core.types import Record
from steelyard.evaluation.language_groups import GROUPED_BY_OF_MODELS, Kin, members_of_columns, members_of_groups
from steelyard.evaluation.languages import LanguageDrop, LanguageMean
from steelyard.evaluation.printed_tables import Slip
from steelyard.statistics.aggregation import Drop, difference_of_shares
from steelyard.statistics.correlation import correlate, pearson, spearman
from steelyard.statistics.intervals import SHARE, UNBOUNDED, Estimate, Evidence, Scale, interval

NO_ITEMS = "no items to resample"
"""The reason for having no interval of published numbers."""
SQUARED_POINTS = 100.0**2
"""The variance of shares in squared percentage points."""
LEVELS = {"none": 0.2, "minimal": 0.39, "weak": 0.59, "moderate": 0.79, "strong": 0.9, "almost_perfect": 1.0}
"""The levels of agreement (McHugh, 2012, Table 3), each up to this kappa of two digits."""
Columns = Literal["languages", "subsets", "sections"]
AveragedOver = Literal["columns", "languages", "columns_and_baseline", "languages_and_baseline"]
"""The columns that the printed means of a table are over: ``columns`` have Chinese in two scripts averaged first."""


class ModelKappa(Record, frozen=True, kw_only=True):
    """The agreement of a model with itself in the baseline language.

    ``mean`` is over languages, and null where kappa is undefined in one: all labels agree in one category. ``spread``
    is the standard deviation over the languages with a kappa, ``levels`` their numbers by level (McHugh, 2012).
    ``agreement`` is the share of items with equal labels, and ``majority_share`` that of the most frequent label: both
    are means over languages, and a high majority share makes kappa low at an equal agreement.
    """

    mean: Estimate
    spread: float | None
    levels: dict[str, int]
    by_language: dict[str, float | None]
    agreement: float
    majority_share: float


class ModelRow(Record, frozen=True, kw_only=True):
    """One model: its value in the baseline language, and in each column that is averaged.

    ``mean`` and ``variance``, in squared percentage points, are over columns, Chinese in two scripts averaged first;
    those of a published table are as printed. ``best`` and ``worst`` are all languages with the highest and the lowest
    value, none where all are equal. Values of sections in a published table are changes from English: the row then has
    neither mean nor variance.
    """

    model: str
    kind: str | None
    english: Estimate | None = None
    values: dict[str, Estimate]
    mean: Estimate | None = None
    variance: float | None = None
    drop: LanguageDrop | None = None
    kappa: ModelKappa | None = None
    best: tuple[str, ...] = ()
    worst: tuple[str, ...] = ()


class KindMeans(Record, frozen=True, kw_only=True):
    """The means over the models of one kind. ``largest_drop`` is that of one model, and no other value is."""

    models: tuple[str, ...]
    english: Estimate | None
    mean: Estimate
    drop: Estimate | None
    largest_drop: float | None
    variance: float | None
    kappa: float | None


class ColumnMeans(Record, frozen=True, kw_only=True):
    """The means over models of one language, subset or section, and the standard deviation over models."""

    mean: Estimate
    standard_deviation: float | None
    drop: Estimate | None = None
    kappa: float | None = None


class Lacking(Record, frozen=True, kw_only=True):
    """Gaps of a model beside others: languages, and items of the compared languages."""

    languages: tuple[str, ...]
    num_items: int


class TranslatedModel(Record, frozen=True, kw_only=True):
    """One model on two translations: its means over languages, and the differences, the first minus the second."""

    first: Estimate
    second: Estimate
    difference: Estimate
    languages: dict[str, Estimate]


class TranslationComparison(Record, frozen=True, kw_only=True):
    """Evaluations of the same items in two translations (M-RewardBench, Figure 4).

    All differences are paired: parallel items, and both translations of an item, are resampled together. ``difference``
    is the mean over models, ``by_kind`` that of each kind, ``languages`` that in each language. ``unmatched`` are the
    models of one translation alone.
    """

    first: str
    second: str
    models: dict[str, TranslatedModel]
    difference: Estimate
    by_kind: dict[str, Estimate]
    languages: dict[str, Estimate]
    unmatched: tuple[str, ...] = ()


class LanguageTable(Record, frozen=True, kw_only=True):
    """The summary of a run of ``languages`` over several models, or over a published table.

    Values of evaluations are over the ``num_shared`` items that all models have in all languages; ``lacking`` names the
    models that have less than others. ``bench`` is the benchmark, or the file of a published table, whose numbers have
    ``decimals``. ``columns`` are means over models, and so are ``kin``, by group of languages, ``sections``, the drops
    by section, and ``kinds``. ``incomplete`` are rows of a published table, left out, with the columns that they lack.
    ``num_checked`` are printed means, variances and deviations; those in ``slips`` do not follow from the values that
    ``averaged_over`` selects, which explain the most of them.
    ``pearson`` and ``spearman`` correlate English with the mean over languages, over models.
    """

    bench: str
    of: Columns = "languages"
    is_published: bool = False
    decimals: int = 1
    num_shared: int = 0
    baseline_language: str | None
    models: tuple[ModelRow, ...]
    kinds: dict[str, KindMeans]
    columns: dict[str, ColumnMeans]
    kin: dict[str, dict[str, LanguageMean]]
    sections: dict[str, Estimate]
    missing: dict[str, str]
    lacking: dict[str, Lacking]
    pearson: Estimate | None = None
    spearman: Estimate | None = None
    translation: TranslationComparison | None = None
    not_read_alike: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()
    num_checked: int = 0
    averaged_over: AveragedOver = "columns"
    incomplete: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - msgspec copies it


class ModelDraws(NamedTuple):
    """Contribution of one model to the table.

    All arrays have first the value of the items, then those of resamples: ``languages`` has shape (1 + resample,
    language), ``english`` (1 + resample,), and those of a section the same shapes.
    """

    model: str
    kind: str | None
    languages: Floats
    english: Floats | None = None
    sections: Mapping[str, tuple[Floats, Floats]] = {}
    kappa: ModelKappa | None = None


class TableSample(NamedTuple):
    """The languages of a table, their groups, and the items behind its values: none behind published ones."""

    languages: tuple[str, ...]
    kin: Mapping[str, Kin]
    num_items: int = 0
    evidence: Evidence | None = None
    of_sections: Mapping[str, Evidence] = {}

    @property
    def places(self) -> tuple[list[int], ...]:
        """The positions of the languages of each column that is averaged."""
        place = {name: index for index, name in enumerate(self.languages)}
        return tuple([place[name] for name in names] for names in members_of_columns(self.languages, self.kin).values())

    def column_values(self, values: Floats) -> Floats:
        """Return the values of columns: (…, language) to (…, column)."""
        return np.stack([values[..., places].mean(axis=-1) for places in self.places], axis=-1)

    def estimate(self, draws: Floats, n: int, *, scale: Scale = SHARE, section: str | None = None) -> Estimate:
        """Return a value, the first of ``draws``, with the interval of the others."""
        evidence = self.of_sections.get(section or "", self.evidence)
        value = float(draws[0])
        if evidence is None:
            return Estimate(None if np.isnan(value) else value, None, None, n, why=NO_ITEMS)
        return interval(value, draws[1:], n, evidence, scale)

    def estimate_difference(self, draws: Floats, n: int, section: str | None = None) -> Estimate:
        """Return a difference of two shares of the same items."""
        evidence = self.of_sections.get(section or "", self.evidence)
        if evidence is None:
            return Estimate(float(draws[0]), None, None, n, why=NO_ITEMS)
        return difference_of_shares(float(draws[0]), draws[1:], n, evidence)

    def drop(self, english: Floats, other: Floats, n: int, section: str | None = None) -> Drop:
        """Return how far a value lies below that of English, and relative to it."""
        below = english - other
        relative = np.where(english > 0, below, np.nan) / np.where(english > 0, english, 1.0)
        return Drop(
            absolute=self.estimate_difference(below, n, section),
            relative=self.estimate(relative, n, scale=UNBOUNDED, section=section),
        )


def model_row(draws: ModelDraws, sample: TableSample) -> ModelRow:
    """Return the row of one model. Values of English are null where the table has none."""
    n, columns = sample.num_items, sample.column_values(draws.languages)
    mean, num_columns = columns.mean(axis=-1), columns.shape[-1]
    values = {name: sample.estimate(draws.languages[:, place], n) for place, name in enumerate(sample.languages)}
    edges = [
        tuple(
            name
            for name, value in zip(sample.languages, draws.languages[0], strict=True)
            if value == edge(draws.languages[0])
        )
        for edge in (np.max, np.min)
    ]
    best, worst = edges if edges[0] != edges[1] else [(), ()]
    drop = None
    if draws.english is not None:
        whole = sample.drop(draws.english, mean, n)
        sections = {
            name: sample.drop(english, sample.column_values(others).mean(axis=-1), n, name)
            for name, (english, others) in draws.sections.items()
        }
        drop = LanguageDrop(absolute=whole.absolute, relative=whole.relative, sections=sections)
    return ModelRow(
        model=draws.model,
        kind=draws.kind,
        english=None if draws.english is None else sample.estimate(draws.english, n),
        values=values,
        mean=sample.estimate(mean, num_columns),
        variance=float(columns[0].var(ddof=1)) * SQUARED_POINTS if num_columns > 1 else None,
        drop=drop,
        kappa=draws.kappa,
        best=best,
        worst=worst,
    )


def language_table(
    models: Sequence[ModelDraws], sample: TableSample, *, bench: str, baseline: str | None
) -> LanguageTable:
    """Return the table of these models, the highest mean first; the order in which they are given has no influence.

    What is missing, lacking or printed otherwise is not known here, and is left empty.
    """
    models = sorted(models, key=lambda each: (-float(sample.column_values(each.languages)[0].mean()), each.model))
    rows = [model_row(each, sample) for each in models]
    values = np.stack([each.languages for each in models], axis=1)
    known = [each.english for each in models if each.english is not None]
    english = np.stack(known, axis=1) if len(known) == len(models) else None
    means = sample.column_values(values).mean(axis=-1)
    kinds = dict.fromkeys(row.kind for row in rows if row.kind is not None)
    return LanguageTable(
        bench=bench,
        num_shared=sample.num_items,
        baseline_language=baseline,
        models=tuple(rows),
        kinds={
            kind: _kind_means(
                [place for place, row in enumerate(rows) if row.kind == kind], rows, means, english, sample
            )
            for kind in sorted(kinds)
        },
        columns=_column_means(rows, values, english, sample),
        kin=_group_means(values.mean(axis=1), sample),
        sections={
            name: sample.estimate_difference(_mean_section_drop(models, name, sample), sample.num_items, name)
            for name in (models[0].sections if english is not None else ())
        },
        missing={},
        lacking={},
        pearson=None if english is None else correlate(pearson, english, means),
        spearman=None if english is None else correlate(spearman, english, means),
    )


def _kind_means(
    places: Sequence[int], rows: Sequence[ModelRow], means: Floats, english: Floats | None, sample: TableSample
) -> KindMeans:
    """Return the means over the models at these places; ``means`` and ``english`` have shape (1 + resample, model)."""
    members, n = [rows[place] for place in places], sample.num_items
    mean = means[:, places].mean(axis=-1)
    baseline = None if english is None else english[:, places].mean(axis=-1)
    drops = [row.drop.absolute.value for row in members if row.drop is not None and row.drop.absolute.value is not None]
    return KindMeans(
        models=tuple(row.model for row in members),
        english=None if baseline is None else sample.estimate(baseline, n),
        mean=sample.estimate(mean, n),
        drop=None if baseline is None else sample.estimate_difference(baseline - mean, n),
        largest_drop=max(drops, default=None),
        variance=_mean([row.variance for row in members]),
        kappa=_mean([None if row.kappa is None else row.kappa.mean.value for row in members]),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; null where a value is."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def _column_means(
    rows: Sequence[ModelRow], values: Floats, english: Floats | None, sample: TableSample
) -> dict[str, ColumnMeans]:
    """Return the means over models of each language; ``values`` has shape (1 + resample, model, language)."""
    n, over_models = sample.num_items, values.mean(axis=1)
    baseline = None if english is None else english.mean(axis=-1)
    means: dict[str, ColumnMeans] = {}
    for place, name in enumerate(sample.languages):
        kappas = [None if row.kappa is None else row.kappa.by_language[name] for row in rows]
        means[name] = ColumnMeans(
            mean=sample.estimate(over_models[:, place], n),
            standard_deviation=float(values[0, :, place].std(ddof=1)) if len(rows) > 1 else None,
            drop=None if baseline is None else sample.estimate_difference(baseline - over_models[:, place], n),
            kappa=_mean(kappas),
        )
    return means


def _group_means(values: Floats, sample: TableSample) -> dict[str, dict[str, LanguageMean]]:
    """Return the mean of each group of languages over models; ``values`` has shape (1 + resample, language)."""
    place = {name: index for index, name in enumerate(sample.languages)}
    by_field: dict[str, dict[str, LanguageMean]] = {}
    for field in GROUPED_BY_OF_MODELS:
        for value, names in members_of_groups(sample.languages, sample.kin, field).items():
            group = sample._replace(languages=tuple(names))
            columns = group.column_values(values[:, [place[name] for name in names]])
            number = columns.shape[-1]
            # As in the table of one model: resampling noise would inflate the interval of a standard deviation.
            deviation = float(columns[0].std(ddof=1)) if number > 1 else None
            by_field.setdefault(field, {})[value] = LanguageMean(
                languages=tuple(names),
                mean=sample.estimate(columns.mean(axis=-1), number),
                standard_deviation=None if deviation is None else Estimate(deviation, None, None, number),
            )
    return by_field


def _mean_section_drop(models: Sequence[ModelDraws], section: str, sample: TableSample) -> Floats:
    """Return the mean over models of the drop in one section: (1 + resample,)."""
    sections = [each.sections[section] for each in models]
    return np.mean([english - sample.column_values(others).mean(axis=-1) for english, others in sections], axis=0)


def compare_translations(
    first: Sequence[ModelDraws], second: Sequence[ModelDraws], sample: TableSample, names: tuple[str, str]
) -> TranslationComparison:
    """Return the differences of the models that both translations have; resamples are of the same items in both."""
    pairs = [(former, latter) for former in first for latter in second if former.model == latter.model]
    pairs.sort(key=lambda pair: (-float(sample.column_values(pair[0].languages)[0].mean()), pair[0].model))
    n = sample.num_items
    differences = np.stack([former.languages - latter.languages for former, latter in pairs], axis=1)
    over_languages = sample.column_values(differences).mean(axis=-1)
    models: dict[str, TranslatedModel] = {}
    for place, (former, latter) in enumerate(pairs):
        means = [sample.column_values(each.languages).mean(axis=-1) for each in (former, latter)]
        models[former.model] = TranslatedModel(
            first=sample.estimate(means[0], n),
            second=sample.estimate(means[1], n),
            difference=sample.estimate_difference(over_languages[:, place], n),
            languages={
                name: sample.estimate_difference(differences[:, place, index], n)
                for index, name in enumerate(sample.languages)
            },
        )
    kinds = sorted({former.kind for former, _ in pairs if former.kind is not None})
    places = {kind: [place for place, (former, _) in enumerate(pairs) if former.kind == kind] for kind in kinds}
    counts = Counter(each.model for each in (*first, *second))
    return TranslationComparison(
        first=names[0],
        second=names[1],
        models=models,
        difference=sample.estimate_difference(over_languages.mean(axis=-1), n),
        by_kind={
            kind: sample.estimate_difference(over_languages[:, members].mean(axis=-1), n)
            for kind, members in places.items()
        },
        languages={
            name: sample.estimate_difference(differences[:, :, index].mean(axis=-1), n)
            for index, name in enumerate(sample.languages)
        },
        unmatched=tuple(sorted(name for name in counts if name not in models)),
    )
