"""Values of several models in joint resamples: parallel items are drawn together, and all models see the same draw."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.languages import language_key
from steelyard.core.numerics import Floats, Integers
from steelyard.evaluation.coverage import has_equal_shares
from steelyard.evaluation.evaluations import bench_of
from steelyard.evaluation.items import Item
from steelyard.evaluation.language_groups import kin_of
from steelyard.evaluation.language_table import (
    LEVELS,
    LanguageTable,
    ModelDraws,
    ModelKappa,
    TableSample,
    compare_translations,
    language_table,
)
from steelyard.evaluation.languages import confusion_cells
from steelyard.evaluation.parallel_runs import (
    CommonItems,
    FoundRuns,
    ParallelItem,
    ParallelRun,
    read_sets,
    share_among_models,
)
from steelyard.statistics.aggregation import Breakdown, Formula, by_language, evidence_of_formula
from steelyard.statistics.agreement import NUM_LABELS, beyond_chance, kappa, linear_effect, num_same
from steelyard.statistics.bootstrap import Items, Terms, Totals, add_up, cell_sums, draw_layout, resample
from steelyard.statistics.groups import Label, layout_of
from steelyard.statistics.intervals import Evidence

_UNDEFINED = "one label is that of all items"
"""The reason for having no mean kappa where the labels of a language agree in one category."""


class TableOfRuns(NamedTuple):
    """The table of some evaluations, and the number of items that not all of them have."""

    table: LanguageTable
    num_left_out: int


def table_of_runs(
    sources: Sequence[FoundRuns],
    *,
    languages: Sequence[str] | None,
    baseline: str | None,
    num_resamples: int,
    seed: int,
) -> TableOfRuns:
    """Return the table of the first set of evaluations, with its differences from the second, if there is one.

    Raises EvidenceError for no common item or language, and where no model is in both sets.
    """
    sets = read_sets(sources)
    first = sets[0].runs[0]
    common = share_among_models(sets, languages, baseline, where=str(first.folder))
    draws = JointDraws(first, common, num_resamples=num_resamples, seed=seed)
    models, sample = [draws.model(run) for run in sets[0].runs], draws.sample()
    table = language_table(models, sample, bench=first.run.summary.bench, baseline=common.baseline)
    translation = None
    for other in sets[1:]:
        if not {run.name for run in sets[0].runs} & {run.name for run in other.runs}:
            here, there = (", ".join(run.name for run in each.runs) for each in sets)
            raise EvidenceError(
                "no model is evaluated in both translations",
                where=str(other.runs[0].folder),
                allowed=f"{sets[0].name}: {here}; {other.name}: {there}",
                do="evaluate a model on both translations of the benchmark",
            )
        seconds = [draws.model(run, has_baseline=False) for run in other.runs]
        translation = compare_translations(models, seconds, sample, (sets[0].name, other.name))
    return TableOfRuns(
        replace(
            table,
            translation=translation,
            missing=draws.missing,
            lacking=common.lacking,
            not_read_alike=tuple(run.name for run in sets[0].runs if not _is_read_alike(run, common)),
        ),
        common.num_left_out,
    )


def _is_read_alike(run: ParallelRun, common: CommonItems) -> bool:
    """Return whether the model read equal shares of the responses in all compared languages."""
    coverage = run.run.summary.coverage
    if coverage is None:
        return True
    return has_equal_shares(
        coverage, [code for code in coverage.by_language if language_key(code) in common.identities]
    )


class JointDraws:
    """Resamples of the common items, the same for every model: parallel items are drawn together."""

    def __init__(self, first: ParallelRun, common: CommonItems, *, num_resamples: int, seed: int) -> None:
        self.common = common
        items = self._items(first)
        labels = [Label(item.unit or item.prompt, item.cell) for item in items]
        self._layout = layout_of(labels)
        names = [label.prompt for label in labels]
        self._blocks = draw_layout(self._layout, names, num_resamples=num_resamples, seed=seed)
        # The effective sample depends on the items and their pairs, which are those of all models.
        self._frame = resample(Items(self._layout, _statistics(items), num_resamples=0), seed=0)
        self._breakdown: Callable[[Totals], Breakdown] = bench_of(first.run, first.folder).breakdown
        parts = {name: self._breakdown(part.totals) for name, part in by_language(self._frame).items()}
        self.missing = dict(parts[common.baseline].missing)
        self._sections = tuple(parts[common.baseline].sections)
        number_of = {code: number for number, code in enumerate(common.identities.values())}
        place = np.array([number_of[str(item.language)] for item in items])
        self._language = place - 1
        members = (self._layout.cell[:, None] == np.arange(len(self._layout.cells))).T @ (place > 0)
        self._of_kappa = self._frame.evidence((members > 0).astype(np.float64)[None])

    def sample(self) -> TableSample:
        """Return the languages, and the effective sample behind a value over all sections, and behind each section."""
        parts = by_language(self._frame)
        breakdowns = {name: self._breakdown(part.totals) for name, part in parts.items()}

        def evidence(choose: Callable[[Breakdown], Formula]) -> Evidence:
            formulas = [part.lift(choose(breakdowns[name])) for name, part in parts.items()]
            effective = evidence_of_formula(
                self._frame, lambda sums: np.mean([each(sums) for each in formulas], axis=0)
            )
            # The successes are those of one model, and the values those of another or a mean of many.
            return effective._replace(events=None)

        return TableSample(
            self.common.languages,
            kin_of(self.common.languages),
            self.common.num_items,
            evidence(lambda parts: parts.overall.formula),
            {name: evidence(lambda parts, name=name: parts.sections[name].formula) for name in self._sections},
        )

    def model(self, run: ParallelRun, *, has_baseline: bool = True) -> ModelDraws:
        """Return the values of one model by language and section, with its agreement with itself in the baseline."""
        items = self._items(run, has_baseline=has_baseline)
        statistics = _statistics(items, len(self.common.keys))
        terms = Terms(np.arange(len(statistics)), self._layout.cell, list(statistics.T))
        resampled = add_up(self._blocks, terms, len(self._layout.cells)).resampled
        totals = self._frame._replace(point=cell_sums(self._layout, statistics), resampled=resampled)
        parts = by_language(totals)
        breakdowns = {name: self._breakdown(part.totals) for name, part in parts.items()}

        def values(name: str, choose: Callable[[Breakdown], Formula]) -> Floats:
            formula, sums = choose(breakdowns[name]), parts[name].totals
            return np.concatenate([np.atleast_1d(formula(sums.point)), np.asarray(formula(sums.resampled))])

        def table(choose: Callable[[Breakdown], Formula]) -> Floats:
            return np.stack([values(name, choose) for name in self.common.languages], axis=-1)

        baseline = self.common.baseline
        return ModelDraws(
            run.name,
            run.kind,
            table(lambda parts: parts.overall.formula),
            values(baseline, lambda parts: parts.overall.formula) if has_baseline else None,
            {
                name: (
                    values(baseline, lambda parts, name=name: parts.sections[name].formula),
                    table(lambda parts, name=name: parts.sections[name].formula),
                )
                for name in (self._sections if has_baseline else ())
            },
            self._kappa(items) if has_baseline else None,
        )

    def _items(self, run: ParallelRun, *, has_baseline: bool = True) -> list[ParallelItem]:
        """Return the common items of a run in their order, with one spelling of each language.

        Without the baseline its items, which come first, are left out.
        """
        by_key = run.items()
        skipped = 0 if has_baseline else self.common.num_items
        return [replace(by_key[key], language=self.common.identities[key[0]]) for key in self.common.keys[skipped:]]

    def _kappa(self, items: Sequence[Item]) -> ModelKappa:
        cells = confusion_cells(items, self.common.baseline)
        names = self.common.languages
        terms = Terms(np.arange(len(cells)), self._language, list(cells.T))
        sums = add_up(self._blocks, terms, len(names))
        by_name = kappa(sums.point)
        value = float(by_name.mean())
        mean = beyond_chance(
            value, sums.point, len(names), self._of_kappa,
            linear_effect(value, sums.point, sums.resampled, self._of_kappa),
        )  # fmt: skip
        known = by_name[~np.isnan(by_name)]
        counts = sums.point.sum(axis=-1)
        matrices = sums.point.reshape(len(names), NUM_LABELS, NUM_LABELS)
        labels = (matrices.sum(axis=1) + matrices.sum(axis=2)) / (2 * counts[:, None])
        # The table of levels has the kappas with two digits.
        levels = Counter(
            next(name for name, most in LEVELS.items() if round(each, 2) <= most) for each in known.tolist()
        )
        return ModelKappa(
            mean=mean if mean.value is not None else mean.without_interval(_UNDEFINED),
            spread=float(known.std(ddof=1)) if len(known) > 1 else None,
            levels={name: levels[name] for name in LEVELS},
            by_language={
                name: None if np.isnan(each) else float(each) for name, each in zip(names, by_name, strict=True)
            },
            agreement=float((num_same(sums.point) / counts).mean()),
            majority_share=float(labels.max(axis=-1).mean()),
        )


def _statistics(items: Sequence[Item], num_keys: int | None = None) -> Integers:
    """Return the columns of the items, shape (key, column); keys without an item come first and count nothing."""
    rows = [(item.num_pairs, item.num_correct, 1, bool(item.exact_match), *item.bench_columns) for item in items]
    statistics = np.array(rows, dtype=np.int64)
    nothing = np.zeros(((num_keys or len(rows)) - len(rows), statistics.shape[1]), np.int64)
    return np.concatenate([nothing, statistics])
