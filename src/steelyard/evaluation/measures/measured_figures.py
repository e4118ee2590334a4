"""The measures beside accuracy as figures: what best-of-N loses, and how often a confidence is right."""

from collections.abc import Mapping

from steelyard.evaluation.marks import BASELINE_COLOUR, Spec, colour_of, framed, model_marks
from steelyard.evaluation.tables import Figure, Mark, word
from steelyard.report.measured_contents import Calibration, Lost

_FEWEST_BUDGETS = 2
_CONFIDENCE: Spec = {
    "field": "confidence",
    "type": "quantitative",
    "scale": {"domain": [0.5, 1]},
    "axis": {"title": word("confidence"), "format": ".0%", "tickCount": 6},
}
_SHARE_RIGHT: Spec = {
    "field": "value",
    "type": "quantitative",
    "scale": {"domain": [0, 1]},
    "axis": {"title": word("share_right"), "format": ".0%", "tickCount": 6},
}


def regret_figure(lost: Mapping[str, Lost], unit: str) -> Figure | None:
    """What is lost by N, of each model, with its interval; a choice at random is dashed. None below two N.

    ``unit`` is the word for what is lost. The choice at random is that of the first model's prompts.
    """
    lost = {name: own for name, own in lost.items() if len(own.curve) >= _FEWEST_BUDGETS}
    if not lost:
        return None
    marks = (*model_marks(list(lost)), Mark(word("at_random"), BASELINE_COLOUR, "circle"))
    values: list[Spec] = [
        {
            "series": name,
            "n": one.budget,
            "value": one.model.macro.value,
            "low": one.model.macro.low,
            "high": one.model.macro.high,
        }
        for name, own in lost.items()
        for one in own.curve
        if one.model.macro.value is not None
    ]
    first = next(iter(lost.values()))
    chance = [{"series": word("at_random"), "n": one.budget, "value": one.chance.macro.value} for one in first.curve]
    budgets = sorted({value["n"] for value in values})
    layers = [
        {"data": {"values": chance}, **_line({"type": "line", "strokeDash": [5, 4]}, unit, budgets, marks)},
        {"data": {"values": values}, **_band(budgets, unit, marks)},
        {
            "data": {"values": values},
            **_line({"type": "line", "strokeWidth": 2.2, "point": True}, unit, budgets, marks),
        },
    ]
    return Figure("figure_regret", framed(layers, 230), marks)


def reliability_figure(own: Calibration) -> Figure | None:
    """The share of right pairs by confidence, with intervals; on the dashed line confidence is what it says."""
    marks = (
        Mark(word("rewards_as_they_are"), "var(--series-1)", "circle"),
        Mark(word("with_temperature"), "var(--series-2)", "circle"),
    )
    values = [
        {
            "series": mark.name,
            "confidence": one.confidence,
            "value": one.accuracy.value,
            "low": one.accuracy.low,
            "high": one.accuracy.high,
            "n": one.accuracy.n,
        }
        for mark, curve in zip(marks, (own.curve, own.cross_validated.curve), strict=True)
        for one in curve
        if one.accuracy.value is not None
    ]
    if not values:
        return None
    shown = {"color": colour_of(marks), "tooltip": _tips("confidence", ".1%", ".1%")}
    ends = {"y": {**_SHARE_RIGHT, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        {
            "data": {"values": [{"confidence": 0.5, "value": 0.5}, {"confidence": 1, "value": 1}]},
            "mark": {"type": "line", "strokeDash": [4, 4], "color": "var(--muted)", "aria": False},
            "encoding": {"x": _CONFIDENCE, "y": _SHARE_RIGHT},
        },
        {
            "data": {"values": values},
            "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.4, "strokeCap": "round"},
            "encoding": {"x": _CONFIDENCE, **ends, **shown},
        },
        {
            "data": {"values": values},
            "mark": {"type": "line", "strokeWidth": 1.6, "point": {"filled": True, "size": 55}},
            "encoding": {"x": _CONFIDENCE, "y": _SHARE_RIGHT, **shown},
        },
    ]
    return Figure("figure_reliability", framed(layers, 260), marks)


def _across(budgets: list[int]) -> Spec:
    axis = {"title": word("budget"), "values": budgets, "format": "d"}
    return {"field": "n", "type": "quantitative", "scale": {"type": "log", "base": 2, "nice": False}, "axis": axis}


def _up(unit: str) -> Spec:
    return {"field": "value", "type": "quantitative", "axis": {"title": word(unit), "tickCount": 5}}


def _line(mark: Spec, unit: str, budgets: list[int], marks: tuple[Mark, ...]) -> Spec:
    tips = _tips("n", "d", ".3f")
    return {
        "mark": mark,
        "encoding": {"x": _across(budgets), "y": _up(unit), "color": colour_of(marks), "tooltip": tips},
    }


def _band(budgets: list[int], unit: str, marks: tuple[Mark, ...]) -> Spec:
    ends = {"y": {**_up(unit), "field": "low"}, "y2": {"field": "high"}}
    return {
        "mark": {"type": "area", "opacity": 0.16, "aria": False},
        "encoding": {"x": _across(budgets), **ends, "color": colour_of(marks)},
    }


def _tips(field: str, across: str, up: str) -> list[Spec]:
    return [
        {"field": "series", "title": word("series")},
        {"field": field, "title": word("budget" if field == "n" else field), "format": across},
        {"field": "value", "title": word("value"), "format": up},
        {"field": "low", "title": word("interval_low"), "format": up},
        {"field": "high", "title": word("interval_high"), "format": up},
    ]
