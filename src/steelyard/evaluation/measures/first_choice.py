"""What a model's scores make of each case's ranking: its correlation, its first choice, and what that loses."""

from typing import NamedTuple

import numpy as np

from steelyard.core.arrays import Booleans, Floats, Integers
from steelyard.evaluation.columns import UNRANKED, BenchColumns
from steelyard.evaluation.measures.length import MATCHED_RATIO, Outcomes
from steelyard.evaluation.measures.rank_correlation import (
    Correlations,
    FirstChoice,
    Ranked,
    first_choice,
    kendall,
)
from steelyard.evaluation.measures.regret import Regret, budgets_up_to, regret
from steelyard.evaluation.questions import PairValues


class Choices(NamedTuple):
    """By case: NaN where the ranking has one tier, or a ranked response has no score. ``budgets``: the N of regret."""

    correlations: Correlations
    first: FirstChoice
    tiers_lost: Regret
    budgets: tuple[int, ...]

    @property
    def lost_of_all(self) -> Floats:
        """The regret where the model chooses among all ranked responses of a case, in tiers; shape (case,)."""
        return last_known(self.tiers_lost.model)


def choices_of(columns: BenchColumns, score: Floats) -> Choices:
    """Return the choices among the ranked responses of each case; none where a ranked response lacks a score."""
    ranked = ranked_responses(columns, score)
    num_cases = len(columns.start)
    budgets = budgets_up_to(int(np.bincount(ranked.prompt, minlength=1).max()))
    lost = regret(ranked.prompt, ranked.score, ranked.tier.astype(np.float64), budgets, num_cases)
    correlations = kendall(ranked, num_cases)
    # Of one tier nothing can be lost: that is no merit of the model.
    lost.model[~correlations.has_order] = lost.chance[~correlations.has_order] = np.nan
    return Choices(correlations, first_choice(ranked, num_cases), lost, budgets)


def ranked_responses(columns: BenchColumns, score: Floats) -> Ranked:
    """Return the ranked responses of the cases in which all of these have a score."""
    case_of, is_ranked = columns.case_of, columns.tier != UNRANKED
    is_open = np.bincount(case_of[is_ranked & np.isnan(score)], minlength=len(columns.start)) > 0
    complete = is_ranked & ~is_open[case_of]
    return Ranked(case_of[complete], columns.tier[complete], score[complete])


def ratings_lost(columns: BenchColumns, score: Floats) -> dict[str, tuple[Regret, tuple[int, ...]]]:
    """Return by dimension the regret in units of the rating, over cases with every response rated and scored.

    A response's rating is the mean of those of its raters; more is better.
    """
    case_of, num_cases = columns.case_of, len(columns.start)
    sizes = np.bincount(case_of, minlength=num_cases)
    measured = {}
    for dimension, rating in sorted(columns.ratings.items()):
        usable = ~np.isnan(rating) & ~np.isnan(score)
        complete = (np.bincount(case_of[usable], minlength=num_cases) == sizes) & (sizes > 1)
        rows = complete[case_of]
        if not rows.any():
            continue
        prompt = case_of[rows]
        budgets = budgets_up_to(int(np.bincount(prompt).max()))
        measured[dimension] = (regret(prompt, score[rows], -rating[rows], budgets, num_cases), budgets)
    return measured


def outcomes_of(columns: BenchColumns, values: PairValues, matched_ratio: float = MATCHED_RATIO) -> Outcomes:
    """Return which pairs are right, and how long their two answers are, in code points; ``prompt`` is the case."""
    is_right = values.better > values.worse
    better, worse = columns.length[columns.better], columns.length[columns.worse]
    return Outcomes(columns.prompt, is_right, better, worse, matched_ratio)


def last_known(curve: Floats) -> Floats:
    """Return the value at the largest N that a case has, NaN where it has none: shape (case, budget) to (case,)."""
    is_known = ~np.isnan(curve)
    if not curve.shape[1]:
        return np.full(len(curve), np.nan)
    last = curve.shape[1] - 1 - np.argmax(is_known[:, ::-1], axis=1)
    return np.take_along_axis(curve, last[:, None], axis=1)[:, 0]


def rows_of(included: Booleans) -> Integers:
    """Return the place of each case among the included ones; of no meaning for others."""
    return np.cumsum(included) - 1
