"""The comparable pairs and ranked responses of a bench as arrays, with the outcome of the pairs under a model.

Every measure takes its pairs, or its ranked responses, from here, so that all measures count the same ones.
"""

from collections import Counter
from itertools import compress
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.remedies import Advice, Command
from steelyard.core.text import number_of, verb_for
from steelyard.evaluation.columns import UNRANKED, BenchColumns
from steelyard.statistics.bootstrap import Items
from steelyard.statistics.groups import Cell, Label, Layout, layout_of, units_of
from steelyard.statistics.pair_counts import ExactRule, PromptStatistics, prompt_statistics, statistics_table


class BenchPairs(NamedTuple):
    """The comparable pairs of a bench, in its columns, and the resampling layout of its cases."""

    columns: BenchColumns
    layout: Layout
    """The layout of the included cases only."""
    units: tuple[str, ...]
    """The resampling unit of each case; shape (case,)."""
    rule: ExactRule

    @property
    def included_units(self) -> list[str]:
        """The resampling unit of each included case."""
        return list(compress(self.units, self.columns.included))

    @property
    def left_out(self) -> dict[Cell, int]:
        """The number of cases without a comparable pair, which are not evaluated, by cell."""
        return dict(Counter(compress(self.columns.cells, ~self.columns.included)))


def lay_out_pairs(columns: BenchColumns, rule: ExactRule) -> BenchPairs:
    """Return the comparable pairs of a whole bench. Raises EvidenceError for a bench without any."""
    check_comparable(
        num_pairs=len(columns.prompt), num_cases=len(columns.start), num_unwinnable=columns.unwinnable.shape[1]
    )
    units = units_of(columns.names)
    included = zip(columns.cells, units, columns.included.tolist(), strict=True)
    layout = layout_of([Label(unit, cell) for cell, unit, is_in in included if is_in])
    return BenchPairs(columns, layout, tuple(units), rule)


def check_comparable(*, num_pairs: int, num_cases: int, num_unwinnable: int = 0) -> None:
    """Raise EvidenceError for a bench without any comparable pair, or with pairs of equal texts only."""
    if num_unwinnable and not num_pairs:
        verb = verb_for(num_unwinnable, "has two equal texts", "have two equal texts each")
        raise EvidenceError(
            f"{number_of(num_unwinnable, 'pair')} {verb}, and no other pair is comparable: no model can win these",
            allowed="pairs of two different texts",
            do="look for the step that made the two answers of a prompt the same",
        )
    if not num_pairs:
        raise EvidenceError(
            f"none of {number_of(num_cases, 'case')} has a comparable pair",
            allowed="cases with a ranking of at least two tiers, or with pairs",
            do=Advice("make rankings from judgments: ", Command("resolve")),
        )


class PairValues(NamedTuple):
    """A model's values of the better and the worse response of each pair, NaN for no score or verdict; shape (pair,).

    Values are scores, or 1 and 0 for the verdicts of a judge.
    """

    better: Floats
    worse: Floats


def values_of(columns: BenchColumns, score: Floats) -> PairValues:
    """Return the scores of the two responses of each pair; NaN for none."""
    return PairValues(score[columns.better], score[columns.worse])


def count_pairs(columns: BenchColumns, values: PairValues) -> PromptStatistics:
    """Count the correct, tied and unscored pairs of each case under a model."""
    return prompt_statistics(columns.prompt, values.better, values.worse, len(columns.start))


def items_of(
    bench_pairs: BenchPairs, *models: PromptStatistics, num_resamples: int, columns: Integers | None = None
) -> Items:
    """Return the statistics of the included cases, one block of columns per model; the bench's ``columns`` are last."""
    included = bench_pairs.columns.included
    tables = [statistics_table(statistics, included, bench_pairs.rule) for statistics in models]
    tables += [] if columns is None else [columns]
    return Items(bench_pairs.layout, np.concatenate(tables, axis=1)[included], num_resamples)


class Ranked(NamedTuple):
    """Responses that have a tier (0 is the best) and a score, in the order of their prompts; shape (response,)."""

    prompt: Integers
    tier: Integers
    score: Floats

    def has_order(self, num_prompts: int) -> Booleans:
        """Return whether the responses of each prompt are in two tiers or more; shape (prompt,)."""
        first = np.full(num_prompts, UNRANKED)
        first[self.prompt[::-1]] = self.tier[::-1]
        return np.bincount(self.prompt[self.tier != first[self.prompt]], minlength=num_prompts) > 0


def ranked_responses(columns: BenchColumns, score: Floats) -> Ranked:
    """Return the ranked responses of the cases in which all of these have a score."""
    case_of, is_ranked = columns.case_of, columns.tier != UNRANKED
    is_open = np.bincount(case_of[is_ranked & np.isnan(score)], minlength=len(columns.start)) > 0
    complete = is_ranked & ~is_open[case_of]
    return Ranked(case_of[complete], columns.tier[complete], score[complete])
