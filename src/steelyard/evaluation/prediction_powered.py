"""An evaluation on few human and many judge labels: headline, groups, baselines, measures and win rates.

Every number is the same function of the same sums as in an evaluation on one kind of labels; the sums of the
human-labelled prompts and of the others are resampled apart, within category and subset, prompts of one name together.
A prompt without a human label that is a parallel item of one with is drawn together with it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Booleans, Floats, Integers, ratio
from steelyard.core.types import Record
from steelyard.evaluation.bench_pairs import PairValues, count_pairs, values_of
from steelyard.evaluation.evaluated_bench import Evaluation
from steelyard.evaluation.labelled_prompts import (
    LabelledTotals,
    Resampling,
    SplitPrompts,
    add_up_labelled,
    draw_labelled,
    split_prompts,
)
from steelyard.evaluation.measure import ScoredBench, measures
from steelyard.evaluation.win_rates import Credits
from steelyard.statistics.aggregation import (
    ACCURACY,
    EXACT_MATCH,
    Formula,
    Groups,
    Headline,
    Share,
    all_cells,
    by_category,
    evidence_of_formula,
    group_cells,
    macro,
    mean_over_groups,
)
from steelyard.statistics.bootstrap import Items, Sums, evidence_of, resample
from steelyard.statistics.groups import Label, layout_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.pair_counts import CORRECT, PAIRS, count_unscored, statistics_table
from steelyard.statistics.prediction_powered import (
    Drawn,
    HumanSample,
    LabelSources,
    PopulationCheck,
    PPIEstimate,
    check_population,
    combine,
    labels_needed,
    ppi_difference,
    ppi_estimate,
)
from steelyard.statistics.prompt_means import Ratio

_AUTHORS_AT_A_TIME = 8


class PPISummary(Record, frozen=True, kw_only=True):
    """The values of an evaluation from few human and many judge labels.

    ``num_labelled``: prompts with a human label, of ``num_judged`` prompts. ``headline``: the bench's own, by its name.
    ``baselines``: the model's accuracy minus the baseline's. ``measures``: the ratios by which models are compared.
    ``win_rates``: by author of the responses, for every model.
    """

    num_labelled: int
    num_judged: int
    accuracy: PPIEstimate
    exact_match: PPIEstimate
    accuracy_micro: PPIEstimate
    exact_match_micro: PPIEstimate
    by_category: dict[str, PPIEstimate]
    by_language: dict[str, PPIEstimate]
    headline: dict[str, PPIEstimate]
    baselines: dict[str, PPIEstimate]
    measures: dict[str, PPIEstimate]
    win_rates: dict[str, PPIEstimate]
    population: PopulationCheck

    def ranked(self) -> PPIEstimate:
        """Return the value by which models are ranked: the bench's headline, or accuracy."""
        return next(iter(self.headline.values()), self.accuracy)

    def values(self) -> Iterator[tuple[str, PPIEstimate]]:
        """Yield every value with its name."""
        yield from self.headline.items()
        for name in ("accuracy", "exact_match", "accuracy_micro", "exact_match_micro"):
            yield name.replace("_", " "), getattr(self, name)
        yield from self.by_category.items() if len(self.by_category) > 1 else ()
        yield from self.by_language.items()
        yield from ((f"minus {name}", estimate) for name, estimate in self.baselines.items())
        yield from ((name.replace("_", " "), estimate) for name, estimate in self.measures.items())
        yield from ((f"win rate {name}", estimate) for name, estimate in self.win_rates.items())


class PromptTables(NamedTuple):
    """Statistics of prompts by one kind of labels; every table has a row for each of them.

    ``statistics``: (prompt, 4 + the bench's own columns); ``baselines``: (prompt, 4) each; ``ratios``: of the measures.
    """

    statistics: Integers
    baselines: Mapping[str, Integers]
    ratios: Mapping[str, Ratio]
    credits: Credits


def summarise_few_labels(
    prompts: SplitPrompts, human: PromptTables, judged: PromptTables, headline: Headline, how: Resampling
) -> PPISummary:
    """Estimate every value. The tables ``human`` have the human-labelled prompts, ``judged`` all of them."""
    drawn = draw_labelled(prompts, human.statistics, judged.statistics, how)
    categories, everything = by_category(prompts.cells), all_cells(prompts.cells)
    languages = group_cells(prompts.cells, lambda cell: cell.language or "unknown")
    estimator = _Estimator(prompts, drawn, how)
    is_own = headline.name != "accuracy" and not headline.missing
    return PPISummary(
        num_labelled=int(prompts.is_labelled.sum()),
        num_judged=len(judged.statistics),
        accuracy=estimator.mean(categories, ACCURACY),
        exact_match=estimator.mean(categories, EXACT_MATCH),
        accuracy_micro=estimator.mean(everything, ACCURACY),
        exact_match_micro=estimator.mean(everything, EXACT_MATCH),
        by_category=estimator.each(categories),
        by_language=estimator.each(languages) if len(languages.names) > 1 else {},
        headline={headline.name: estimator.formula(headline.formula)} if is_own else {},
        baselines={
            name: difference_of_models(
                prompts,
                LabelledPair(human.statistics, human.baselines[name]),
                LabelledPair(judged.statistics, judged.baselines[name]),
                how,
            )
            for name in human.baselines
            if name in judged.baselines
        },
        measures={
            name: _measure(prompts, human.ratios[name], judged.ratios[name], how)
            for name in human.ratios
            if name in judged.ratios
        },
        win_rates=win_rates(prompts, human.credits, judged.credits, how),
        population=estimator.population(categories),
    )


class _Estimator(NamedTuple):
    """Estimates from one pair of tables."""

    prompts: SplitPrompts
    drawn: LabelledTotals
    how: Resampling

    def mean(self, groups: Groups, share: Share) -> PPIEstimate:
        """Estimate the plain mean of a share over groups."""
        if missing := self.drawn.missing(groups, share.denominator):
            return _without_labels(missing)
        return self._finished(ppi_estimate(*self.parts(groups, share)))

    def parts(self, groups: Groups, share: Share) -> tuple[LabelSources, HumanSample]:
        """Return the plain mean of a share over groups by each kind of labels, and the sample of human labels."""
        below = groups.members @ self.drawn.human.point[:, share.denominator]
        shared = self.drawn.shared(groups, share.denominator)
        sources = self.drawn.sources(
            lambda sums: macro(sums, groups, share), judged=lambda sums: macro(sums, shared, share)
        )
        members = groups.chosen(below > 0).members
        evidence = self.drawn.human.evidence(members, denominator=share.denominator, numerator=share.numerator)
        return sources, HumanSample(below.sum(), evidence)

    def each(self, groups: Groups) -> dict[str, PPIEstimate]:
        """Estimate the accuracy of each group."""
        return {name: self.mean(groups.select(name), ACCURACY) for name in groups.names}

    def formula(self, formula: Formula) -> PPIEstimate:
        """Estimate the headline of a bench."""
        sources = self.drawn.sources(formula)
        if np.isnan(sources.human.point):
            return _without_labels(["a part of the headline"])
        strata = _strata(self.prompts)
        is_labelled = strata.members @ self.drawn.human.point[:, PAIRS] > 0
        if len(self.drawn.shared(strata, PAIRS).names) < is_labelled.sum():
            # The judge's values of both kinds of prompts are of other parts: their difference says nothing.
            nothing = Drawn(np.nan, np.full_like(sources.human.resampled, np.nan))
            sources = LabelSources(sources.human, nothing, nothing)
        sample = HumanSample(self.drawn.human.point[:, PAIRS].sum(), evidence_of_formula(self.drawn.human, formula))
        return self._finished(ppi_estimate(sources, sample))

    def population(self, categories: Groups) -> PopulationCheck:
        """Test whether the human-labelled prompts are a random sample of all."""
        sizes = [
            np.bincount(self.prompts.layout.cell[mask], minlength=len(self.prompts.cells))
            for mask in (self.prompts.is_labelled, ~self.prompts.is_labelled)
        ]
        strata = _strata(self.prompts)
        labelled, rest = (np.rint(strata.members @ size).astype(np.int64).tolist() for size in sizes)
        below = categories.members @ self.drawn.same.point[:, PAIRS]
        used = self.drawn.shared(categories, PAIRS)
        sample = HumanSample(below.sum(), self.drawn.human.evidence(used.members, denominator=PAIRS))
        sources = self.drawn.sources(lambda sums: macro(sums, used, ACCURACY))
        return check_population(sources, sample, labelled=labelled, rest=rest, seed=self.how.seed)

    def _finished(self, estimate: PPIEstimate) -> PPIEstimate:
        return _with_needs(estimate, self.prompts, self.how)


def _strata(prompts: SplitPrompts) -> Groups:
    return group_cells(prompts.cells, lambda cell: f"{cell.category}\x1f{cell.subset or ''}")


def _with_needs(estimate: PPIEstimate, prompts: SplitPrompts, how: Resampling) -> PPIEstimate:
    if how.width is None:
        return estimate
    num_labelled = int(prompts.is_labelled.sum())
    return labels_needed(estimate, how.width, num_labelled=num_labelled, num_judged=len(prompts.is_labelled))


def _without_labels(groups: Sequence[str]) -> PPIEstimate:
    why = f"no human label in {', '.join(groups[:3])}{' and others' if len(groups) > 3 else ''}"
    nothing = Estimate(None, None, None, 0, why=why)
    return PPIEstimate(
        estimate=nothing, human_only=nothing, judge_only=None, correlation=0.0, weight=0.0, effective_labels=1.0
    )


class LabelledPair(NamedTuple):
    """The statistics of two models by one kind of labels, shape (prompt, 4 or more) each."""

    first: Integers
    second: Integers

    def table(self) -> Integers:
        """Return pairs, right pairs of the first and of the second, and the absolute difference of the two."""
        correct = self.first[:, CORRECT], self.second[:, CORRECT]
        return np.stack([self.first[:, PAIRS], *correct, np.abs(correct[0] - correct[1])], axis=1)


def difference_of_models(
    prompts: SplitPrompts, human: LabelledPair, judged: LabelledPair, how: Resampling
) -> PPIEstimate:
    """Estimate the accuracy of the first model minus that of the second, the mean over categories."""
    drawn = draw_labelled(prompts, human.table(), judged.table(), how)
    categories = by_category(prompts.cells)
    if missing := drawn.missing(categories, 0):
        return _without_labels(missing)
    below = categories.members @ drawn.human.point[:, 0]
    shared = drawn.shared(categories, 0)
    first, second, distance = (Share(column, 0) for column in (1, 2, 3))
    estimate = ppi_difference(
        drawn.sources(
            lambda sums: macro(sums, categories, first) - macro(sums, categories, second),
            judged=lambda sums: macro(sums, shared, first) - macro(sums, shared, second),
        ),
        HumanSample(below.sum(), drawn.human.evidence(categories.chosen(below > 0).members, denominator=0)),
        discordance=float(macro(drawn.human.point, categories, distance)),
    )
    return _with_needs(estimate, prompts, how)


def draws_of_accuracy(prompts: SplitPrompts, human: Integers, judged: Integers, how: Resampling) -> Floats:
    """Return the accuracy from both kinds of labels in resamples, which are the same for every model."""
    estimator = _Estimator(prompts, draw_labelled(prompts, human, judged, how), how)
    sources, sample = estimator.parts(by_category(prompts.cells), ACCURACY)
    return combine(sources, sample.evidence).drawn.resampled


def win_rates(prompts: SplitPrompts, human: Credits, judged: Credits, how: Resampling) -> dict[str, PPIEstimate]:
    """Estimate the share of pairs that each author wins, over all pairs; authors with human labels only."""
    rates: dict[str, PPIEstimate] = {}
    everything = all_cells(prompts.cells)
    for start in range(0, len(human.authors), _AUTHORS_AT_A_TIME):
        # Drawn together, so that the rates of two authors add up to 1.
        authors = human.authors[start : start + _AUTHORS_AT_A_TIME]
        by_people, by_judge = (
            np.concatenate([part.won, 2 * part.pairs], axis=1) for part in (human.of(authors), judged.of(authors))
        )
        estimator = _Estimator(prompts, draw_labelled(prompts, by_people, by_judge, how), how)
        for place, author in enumerate(authors):
            # Denominators were doubled, like the credits: n is the number of pairs.
            rate = estimator.mean(everything, Share(place, len(authors) + place))
            halves = (replace(part, n=part.n // 2) for part in (rate.estimate, rate.human_only))
            rates[author] = replace(rate, **dict(zip(("estimate", "human_only"), halves, strict=True)))
    return dict(sorted(rates.items(), key=lambda item: -(item[1].estimate.value or 0.0)))


def _measure(prompts: SplitPrompts, human: Ratio, judged: Ratio, how: Resampling) -> PPIEstimate:
    """Estimate the mean over categories of a ratio; ``human`` has the human-labelled prompts, ``judged`` all."""
    names = sorted({cell.category for cell in prompts.cells})
    category = np.array([names.index(cell.category) for cell in prompts.cells], np.int64)
    by_people, by_judge = (np.stack([part.numerator, part.denominator], axis=1) for part in (human, judged))
    sums = add_up_labelled(prompts, by_people, by_judge, how, category)
    below, rest = sums.human.point[:, 1], sums.rest
    if not below.any():
        return _without_labels(["any category with this measure"])
    if missing := [names[place] for place in np.flatnonzero((below == 0) & (rest.point[:, 1] > 0))]:
        return _without_labels(missing)
    shared = (sums.same.point[:, 1] > 0) & (rest.point[:, 1] > 0)
    everywhere = np.ones_like(shared)
    sources = LabelSources(
        *(_mean_ratio(part, used) for part, used in ((sums.human, everywhere), (sums.same, shared), (rest, shared)))
    )
    weight = np.zeros(len(by_judge))
    weight[prompts.is_labelled] = human.denominator
    sample = HumanSample(below.sum(), evidence_of(sums.blocks, sums.group, weight[prompts.labelled.rows]))
    if human.is_difference:
        return _with_needs(ppi_difference(sources, sample, discordance=None), prompts, how)
    return _with_needs(ppi_estimate(sources, sample, human.scale), prompts, how)


def _mean_ratio(sums: Sums, used: Booleans) -> Drawn:
    """Return the plain mean over the used categories of column 0 over column 1."""
    point, resampled = (mean_over_groups(ratio(part[..., 0], part[..., 1])[..., used]) for part in sums)
    return Drawn(float(point), np.asarray(resampled))


def ppi_summary(
    human: Evaluation,
    judged: Evaluation,
    is_labelled: Booleans,
    credits_of_both: tuple[Credits, Credits],
    how: Resampling,
) -> PPISummary:
    """Return the values from both kinds of labels; ``is_labelled`` has an entry for each judged case."""
    pairs = judged.bench_pairs
    by_people, by_judge = (
        prompt_tables(evaluation, won) for evaluation, won in zip((human, judged), credits_of_both, strict=True)
    )
    cells = pairs.columns.cells
    layout = layout_of([Label(unit, cell) for unit, cell in zip(pairs.units, cells, strict=True)])
    totals = resample(Items(layout, by_judge.statistics, num_resamples=0), seed=0)
    headline = human.bench.headline(totals, pairs.left_out)
    return summarise_few_labels(split_prompts(cells, pairs.units, is_labelled), by_people, by_judge, headline, how)


def prompt_tables(evaluation: Evaluation, won: Credits) -> PromptTables:
    """Return the tables of an evaluation: a row for each case, zeros for a case without a comparable pair."""
    columns = evaluation.bench_pairs.columns
    statistics = np.concatenate(
        [_statistics(evaluation, evaluation.values), evaluation.headline.unscored_wrong], axis=1
    )
    baselines = {
        name: _statistics(evaluation, values_of(columns, score)) for name, score in evaluation.baselines.items()
    }
    # The ratios of every measure by which models are compared.
    pairs, config = evaluation.bench_pairs, evaluation.config
    bench = ScoredBench(pairs.columns, evaluation.scores, evaluation.values, matched_ratio=config.matched_ratio)
    ratios: dict[str, Ratio] = {}
    for measure in measures().values():
        if measure.column_names and bench.meets(measure.needs):
            columns_of_measure = measure.columns(bench).items()
            ratios |= measure.paired({name: np.array(values, np.float64) for name, values in columns_of_measure})
    return PromptTables(statistics, baselines, ratios, won)


def _statistics(evaluation: Evaluation, values: PairValues) -> Integers:
    pairs = evaluation.bench_pairs
    counts = count_unscored(count_pairs(pairs.columns, values), "wrong")
    table = statistics_table(counts, pairs.columns.included, pairs.rule)
    return table * pairs.columns.included[:, None]
