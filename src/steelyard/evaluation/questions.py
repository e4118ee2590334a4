"""What a bench asks: its comparable pairs as flat arrays, so that every model's scores are judged by one sum."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import EvidenceError
from steelyard.core.numerics import Floats, Integers
from steelyard.core.types import Case
from steelyard.evaluation.columns import BenchColumns, bench_columns
from steelyard.ranking.pairs import PairChoice
from steelyard.statistics.bootstrap import Items
from steelyard.statistics.groups import Cell, Label, Layout, layout_of, units_of
from steelyard.statistics.pair_counts import ExactRule, PromptStatistics, prompt_statistics, statistics_table


class Questions(NamedTuple):
    """The columns of a bench, and how its cases are resampled."""

    columns: BenchColumns
    layout: Layout
    """Of the included cases alone."""
    units: tuple[str, ...]
    """What each case is drawn with when resampling; shape (case,)."""
    rule: ExactRule

    @property
    def included_units(self) -> list[str]:
        """The unit of each included case."""
        return list(compress(self.units, self.columns.included))

    @property
    def left_out(self) -> dict[Cell, int]:
        """How many cases are not evaluated, by cell: they have no comparable pair."""
        return dict(Counter(compress(self.columns.cells, ~self.columns.included)))


def questions_of(
    cases: Sequence[Case],
    choice: PairChoice | None,
    rule: ExactRule,
    resample_ids: Callable[[Case], tuple[str, ...]] = lambda case: (case.prompt.id,),
) -> Questions:
    """Return the questions of cases in memory. Raises EvidenceError without any comparable pair.

    ``resample_ids``: what a case's prompt is known by; cases that share a name are drawn together.
    """
    return laid_out(bench_columns(cases, choice, rule, resample_ids), rule)


def laid_out(columns: BenchColumns, rule: ExactRule) -> Questions:
    """Return the questions of a whole bench. Raises EvidenceError without any comparable pair."""
    check_comparable(num_pairs=len(columns.prompt), num_cases=len(columns.start))
    units = units_of(columns.names)
    included = zip(columns.cells, units, columns.included.tolist(), strict=True)
    layout = layout_of([Label(unit, cell) for cell, unit, is_in in included if is_in])
    return Questions(columns, layout, tuple(units), rule)


def check_comparable(*, num_pairs: int, num_cases: int) -> None:
    """Raise EvidenceError for a bench without a single comparable pair."""
    if not num_pairs:
        raise EvidenceError(
            f"none of {num_cases} cases has a comparable pair",
            do="give cases with a ranking of two tiers or more, or with pairs; `steelyard resolve` makes rankings",
        )


class PairValues(NamedTuple):
    """What a model gives the better and the worse response of each pair; NaN for no verdict; shape (pair,)."""

    better: Floats
    worse: Floats


def values_of(columns: BenchColumns, score: Floats) -> PairValues:
    """Return the scores of each pair's two responses; NaN for none."""
    return PairValues(score[columns.better], score[columns.worse])


def answers(columns: BenchColumns, values: PairValues) -> PromptStatistics:
    """Return what became of each case's pairs under a model. A missing score or verdict is kept apart as unscored."""
    return prompt_statistics(columns.prompt, values.better, values.worse, len(columns.start))


def items_of(
    questions: Questions, *models: PromptStatistics, num_resamples: int, columns: Integers | None = None
) -> Items:
    """Return the included cases' statistics, those of several models side by side, a bench's own ``columns`` last."""
    included = questions.columns.included
    tables = [statistics_table(statistics, included, questions.rule) for statistics in models]
    tables += [] if columns is None else [columns]
    return Items(questions.layout, np.concatenate(tables, axis=1)[included], num_resamples)
