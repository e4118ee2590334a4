"""Best-of-N regret: the loss of the response with the highest score minus the smallest loss, among N responses.

Both expectations over the N responses drawn are exact (`evaluation.best_of_n`). A loss is the response's tier, or minus
its mean rating in one dimension.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.types import Record
from steelyard.evaluation.bench_pairs import ranked_responses
from steelyard.evaluation.best_of_n import selected_value
from steelyard.evaluation.columns import BenchColumns, prompts_by_size
from steelyard.evaluation.measure import (
    GroupColumn,
    GroupedMeans,
    Means,
    Measure,
    MeasureRow,
    Needs,
    ResampledBench,
    ScoredBench,
    grouped_means,
    means_row,
    null_where_nan,
    ungrouped_means,
)
from steelyard.evaluation.tables import DECIMAL, Figure, Mark, Panel, word
from steelyard.evaluation.vega import BASELINE_COLOUR, Spec, colour_of, framed, model_marks, value_tips
from steelyard.statistics.intervals import Scale
from steelyard.statistics.prompt_means import mean_of

TEXT = {
    "regret_in_tiers": {"en": "Regret in tiers", "zh": "首选与最优层级之差"},
    "regret_in": {"en": "Regret in", "zh": "遗憾值："},
    "best_of_n": {"en": "Best-of-N regret", "zh": "Best-of-N 遗憾值"},
    "budget": {"en": "Number of answers N", "zh": "可选回答数 N"},
    "note_regret": {
        "en": "N answers of a prompt are drawn, and the model selects the one with its highest score. Regret is the "
        "number of tiers between it and the best of the N. Bands are 95% intervals. Prompts with fewer answers "
        "contribute to smaller N only.",
        "zh": "从一个提示词的回答中抽 N 个，模型取得分最高者：它比这 N 个里最优的低几个层级。色带为 95% 置信区间。回"
        "答较少的提示词较早结束。",
    },
    "figure_regret": {"en": "Best-of-N regret in tiers", "zh": "Best-of-N 遗憾值（层级数）"},
    "define_regret_in_tiers": {
        "en": "The tier of the answer with the highest score minus the best tier among the answers.",
        "zh": "得分最高的回答所在的层级与当时可选的最优层级之差。",
    },
}
_EVERY = 8
_FEWEST_BUDGETS = 2


class RegretOfAll(Record, frozen=True, kw_only=True):
    """The regret of a selection among all responses, by the model and at random."""

    model: GroupedMeans
    chance: GroupedMeans


class RegretOfN(Record, frozen=True, kw_only=True):
    """The regret of a selection among ``budget`` responses, by the model and at random."""

    budget: int
    model: Means
    chance: Means


class RegretCurve(Record, frozen=True, kw_only=True):
    """Regret by N, and of a selection among all responses."""

    curve: tuple[RegretOfN, ...]
    of_all: RegretOfAll


class RegretSummary(Record, frozen=True, kw_only=True):
    """Regret in tiers, and in units of each rated dimension."""

    tiers: RegretCurve
    ratings: dict[str, RegretCurve]


class Regret(NamedTuple):
    """The regret of the model and of a random selection, shape (prompt, budget); NaN where N exceeds the responses.

    ``largest`` is the range of the losses, which bounds every regret.
    """

    budgets: tuple[int, ...]
    model: Floats
    chance: Floats
    largest: float


def budgets_up_to(largest: int) -> tuple[int, ...]:
    """Return the values of N of the curve: 2 to 8, then powers of two, and the largest."""
    doubled = [2**power for power in range(4, 31)]
    return tuple(sorted({size for size in (*range(2, _EVERY + 1), *doubled, largest) if 2 <= size <= largest}))


def regret(prompt: Integers, score: Floats, loss: Floats, num_prompts: int) -> Regret:
    """Compute the regret of each prompt at each N from arrays of shape (response,); ``prompt`` is sorted."""
    budgets = budgets_up_to(int(np.bincount(prompt, minlength=1).max()))
    model, chance = (np.full((num_prompts, len(budgets)), np.nan) for _ in range(2))
    for prompts, rows in prompts_by_size(prompt, num_prompts):
        size = rows.shape[1]
        places = [place for place, budget in enumerate(budgets) if budget <= size]
        sizes = [budgets[place] for place in places]
        losses = loss[rows]
        best = selected_value(-losses, losses, sizes)
        taken = selected_value(score[rows], losses, sizes)
        model[prompts[:, None], places] = taken - best
        chance[prompts[:, None], places] = losses.mean(axis=1, keepdims=True) - best
    return Regret(budgets, model, chance, float(np.ptp(loss)) if len(loss) else 0.0)


def tiers_lost(bench: ScoredBench) -> Regret:
    """Return the regret in tiers, over cases with two tiers or more whose ranked responses all have a score."""
    num_cases = len(bench.columns.start)
    ranked = ranked_responses(bench.columns, bench.scores.score)
    lost = regret(ranked.prompt, ranked.score, ranked.tier.astype(np.float64), num_cases)
    # With a single tier the regret is 0 for every model: such prompts would only dilute the mean.
    has_order = ranked.has_order(num_cases)
    lost.model[~has_order] = lost.chance[~has_order] = np.nan
    return lost


def ratings_lost(columns: BenchColumns, score: Floats) -> dict[str, Regret]:
    """Return the regret in units of the rating, by dimension, over cases with every response rated and scored.

    A response's rating is the mean over its raters; higher is better.
    """
    case_of, num_cases = columns.case_of, len(columns.start)
    sizes = np.bincount(case_of, minlength=num_cases)
    lost = {}
    for dimension, rating in sorted(columns.ratings.items()):
        usable = ~np.isnan(rating) & ~np.isnan(score)
        complete = (np.bincount(case_of[usable], minlength=num_cases) == sizes) & (sizes > 1)
        rows = complete[case_of]
        if rows.any():
            lost[dimension] = regret(case_of[rows], score[rows], -rating[rows], num_cases)
    return lost


def last_known(curve: Floats) -> Floats:
    """Return the value at the largest N that a case has, NaN where it has none: shape (case, budget) to (case,)."""
    is_known = ~np.isnan(curve)
    if not curve.shape[1]:
        return np.full(len(curve), np.nan)
    last = curve.shape[1] - 1 - np.argmax(is_known[:, ::-1], axis=1)
    return np.take_along_axis(curve, last[:, None], axis=1)[:, 0]


def estimate(resampled: ResampledBench) -> RegretSummary:
    """Estimate regret in tiers and in each rated dimension."""
    bench = resampled.bench
    ratings = ratings_lost(bench.columns, bench.scores.score)
    return RegretSummary(
        tiers=_curve(resampled, tiers_lost(bench)),
        ratings={dimension: _curve(resampled, lost) for dimension, lost in ratings.items()},
    )


def _curve(resampled: ResampledBench, lost: Regret) -> RegretCurve:
    included: Booleans = resampled.included
    sides, scale = {"model": lost.model[included], "chance": lost.chance[included]}, Scale(0.0, lost.largest or 1.0)
    by_budget = ungrouped_means(
        resampled.blocks,
        {
            f"{side} {budget}": mean_of(values[:, place], scale)
            for side, values in sides.items()
            for place, budget in enumerate(lost.budgets)
        },
    )
    of_all = grouped_means(
        resampled.blocks, {side: mean_of(last_known(values), scale) for side, values in sides.items()}
    )
    curve = [
        RegretOfN(budget=budget, model=by_budget[f"model {budget}"], chance=by_budget[f"chance {budget}"])
        for budget in lost.budgets
    ]
    return RegretCurve(curve=tuple(curve), of_all=RegretOfAll(**of_all))


def rows(summary: RegretSummary) -> Iterator[MeasureRow]:
    """Yield the rows of the table of measures: tiers, then every rated dimension."""
    curves = {word("regret_in_tiers"): summary.tiers}
    curves |= {f"{word('regret_in')} {dimension}": curve for dimension, curve in summary.ratings.items()}
    for title, curve in curves.items():
        yield means_row(title, curve.of_all.model, DECIMAL, curve.of_all.chance)


def regret_panel(summaries: Mapping[str, RegretSummary]) -> Panel | None:
    """Return the curves of all models in one figure; null where none has two values of N."""
    figure = regret_figure({name: summary.tiers.curve for name, summary in summaries.items()})
    return None if figure is None else Panel(word("best_of_n"), figure, (), "note_regret")


def regret_figure(curves: Mapping[str, Sequence[RegretOfN]]) -> Figure | None:
    """Draw the regret of each model by N with intervals; null where no model has two values of N.

    The dashed line is a random selection on the prompts of the first model.
    """
    curves = {name: curve for name, curve in curves.items() if len(curve) >= _FEWEST_BUDGETS}
    if not curves:
        return None
    marks = (*model_marks(list(curves)), Mark(word("at_random"), BASELINE_COLOUR, "circle"))
    values: list[Spec] = [
        {
            "series": name,
            "n": point.budget,
            "value": point.model.macro.value,
            "low": point.model.macro.low,
            "high": point.model.macro.high,
        }
        for name, curve in curves.items()
        for point in curve
        if point.model.macro.value is not None
    ]
    first = next(iter(curves.values()))
    chance = [{"series": word("at_random"), "n": point.budget, "value": point.chance.macro.value} for point in first]
    budgets = sorted({value["n"] for value in values})
    ends = {"y": {**_VALUE_AXIS, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        {"data": {"values": chance}, **_line({"type": "line", "strokeDash": [5, 4]}, budgets, marks)},
        {
            "data": {"values": values},
            "mark": {"type": "area", "opacity": 0.16, "aria": False},
            "encoding": {"x": _budget_axis(budgets), **ends, "color": colour_of(marks)},
        },
        {"data": {"values": values}, **_line({"type": "line", "strokeWidth": 2.2, "point": True}, budgets, marks)},
    ]
    return Figure("figure_regret", framed(layers, 230), marks)


_VALUE_AXIS: Spec = {
    "field": "value",
    "type": "quantitative",
    "axis": {"title": word("regret_in_tiers"), "tickCount": 5},
}


def _budget_axis(budgets: list[int]) -> Spec:
    axis = {"title": word("budget"), "values": budgets, "format": "d"}
    return {"field": "n", "type": "quantitative", "scale": {"type": "log", "base": 2, "nice": False}, "axis": axis}


def _line(mark: Spec, budgets: list[int], marks: tuple[Mark, ...]) -> Spec:
    tips = value_tips("n", "budget", "d", ".3f")
    encoding = {"x": _budget_axis(budgets), "y": _VALUE_AXIS, "color": colour_of(marks), "tooltip": tips}
    return {"mark": mark, "encoding": encoding}


MEASURE = Measure(
    order=30,
    summary=RegretSummary,
    estimate=estimate,
    text=TEXT,
    needs=Needs(scores=True),
    rows=rows,
    group_column=lambda summary: GroupColumn("regret_in_tiers", summary.tiers.of_all.model, DECIMAL),
    shared_panel=regret_panel,
    columns=lambda bench: {"regret": null_where_nan(last_known(tiers_lost(bench).model))},
    column_names=("regret",),
    paired_titles=(("regret", "regret in tiers"),),
)
