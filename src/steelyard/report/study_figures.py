"""The figures that studies write to files: arms of an ablation, filters of LLM verdicts, a sweep of sizes."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from steelyard.core.types import JsonObject
from steelyard.curation.filter_study import FilterPrecision, PrecisionStudy
from steelyard.curation.filter_trials import ShareTrial
from steelyard.statistics.intervals import Estimate

_INK, _SEED, _FONT = "#1f6f6b", "#b5812f", "Noto Sans, Noto Sans CJK SC, sans-serif"
Row = tuple[str, Estimate, Sequence[float]]


def ablation_figure(rows: Sequence[Row]) -> JsonObject:
    """Return a Vega-Lite specification from the arms in order: name, accuracy over all seeds, accuracy of each seed."""
    order = [name for name, _, _ in rows]
    y = {"field": "arm", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 260}}
    axis = {"format": ".0%", "title": "accuracy: 95% interval over prompts; small marks are seeds"}
    x = {"type": "quantitative", "scale": {"zero": False}, "axis": axis}
    means = [
        {"arm": name, "value": accuracy.value, "low": accuracy.low, "high": accuracy.high} for name, accuracy, _ in rows
    ]
    seeds = [{"arm": name, "value": value} for name, _, by_seed in rows for value in by_seed]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": 520,
        "height": 34 * len(rows),
        "background": "white",
        "config": {"font": _FONT, "axis": {"labelFontSize": 12, "titleFontSize": 12}, "view": {"stroke": None}},
        "layer": [
            {
                "data": {"values": means},
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.5, "color": _INK},
                "encoding": {"y": y, "x": {"field": "low", **x}, "x2": {"field": "high"}},
            },
            {
                "data": {"values": seeds},
                "mark": {"type": "tick", "color": _SEED, "thickness": 2, "size": 14},
                "encoding": {"y": y, "x": {"field": "value", **x}},
            },
            {
                "data": {"values": means},
                "mark": {"type": "point", "filled": True, "size": 90, "color": _INK, "opacity": 1},
                "encoding": {"y": y, "x": {"field": "value", **x}},
            },
        ],
    }


_INK, _FONT = "#1f6f6b", "Noto Sans, Noto Sans CJK SC, sans-serif"


def filtering_figure(precision: PrecisionStudy | None, trials: Sequence[ShareTrial]) -> JsonObject:
    """Return a Vega-Lite specification: a panel of precision, and one for each share of people's prompts."""
    panels = [] if precision is None else [_precision_panel(precision.filters)]
    panels += [_arms_panel(trial) for trial in trials]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {"font": _FONT, "axis": {"labelFontSize": 12, "titleFontSize": 12}, "view": {"stroke": None}},
        "vconcat": panels,
    }


def _precision_panel(rows: Sequence[FilterPrecision]) -> JsonObject:
    points = [{"filter": row.filter, "coverage": row.coverage, **msgspec.to_builtins(row.precision)} for row in rows]
    y = {
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"format": ".0%", "title": "precision of what is kept"},
    }
    x = {
        "field": "coverage",
        "type": "quantitative",
        "scale": {"domain": [0, 1.35]},
        "axis": {"format": ".0%", "title": "coverage; 95% intervals over prompts", "values": [0, 0.25, 0.5, 0.75, 1]},
    }
    return {
        "width": 560,
        "height": 260,
        "data": {"values": points},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.4, "color": _INK},
                "encoding": {"x": x, "y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "color": _INK, "opacity": 1},
                "encoding": {"x": x, "y": {"field": "value", **y}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 11},
                "encoding": {"x": x, "y": {"field": "value", **y}, "text": {"field": "filter"}},
            },
        ],
    }


def _arms_panel(trial: ShareTrial) -> JsonObject:
    rows = [{"arm": arm.arm, **msgspec.to_builtins(arm.accuracy)} for arm in trial.arms]
    y = {"field": "arm", "type": "nominal", "sort": [row["arm"] for row in rows], "title": None}
    x = {
        "type": "quantitative",
        "scale": {"zero": False},
        "axis": {"format": ".0%", "title": "accuracy on people's pairs; 95% intervals over prompts"},
    }
    return {
        "width": 480,
        "height": 26 * len(rows),
        "title": f"people's labels on {trial.human_prompts:.0f} prompts",
        "data": {"values": rows},
        "encoding": {"y": {**y, "axis": {"labelLimit": 260}}},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.4, "color": _INK},
                "encoding": {"x": {"field": "low", **x}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 80, "color": _INK, "opacity": 1},
                "encoding": {"x": {"field": "value", **x}},
            },
        ],
    }


_FONT = "Noto Sans, Noto Sans CJK SC, sans-serif"
_COLOURS = ["#1f6f6b", "#b5812f", "#7a3b69", "#3d5a98", "#a23e2a", "#5d7a1f", "#444444", "#c06c9b"]


class ScalingPoint(NamedTuple):
    """One arm: its line, its sizes, its accuracy over all seeds, and that of each seed."""

    series: str
    start: str
    share: float
    num_pairs: float
    num_weights: int
    accuracy: Estimate
    by_seed: Sequence[float]


def scaling_figure(points: Sequence[ScalingPoint]) -> JsonObject:
    """Return a Vega-Lite specification: by pairs where shares differ, by weights where sizes do, else by name."""
    panels = []
    if len({point.share for point in points}) > 1:
        panels.append(_panel(points, "num_pairs", "pairs trained on (log scale)", colour="series"))
    if len({point.num_weights for point in points}) > 1:
        largest = max(point.share for point in points)
        biggest = [point for point in points if point.share == largest]
        panels.append(_panel(biggest, "num_weights", "weights of the model (log scale)", colour="start"))
    if not panels:
        panels.append(_panel(points, "series", "training", colour="series"))
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {
            "font": _FONT,
            "axis": {"labelFontSize": 12, "titleFontSize": 12, "labelLimit": 260},
            "view": {"stroke": None},
        },
        "hconcat": panels,
        "resolve": {"scale": {"color": "independent", "y": "shared"}},
    }


def _panel(points: Sequence[ScalingPoint], size: str, title: str, *, colour: str) -> JsonObject:
    shown = [point._asdict() | msgspec.structs.asdict(point.accuracy) for point in points]
    rows = [{key: row[key] for key in ("series", "start", size, "value", "low", "high")} for row in shown]
    seeds = [{**row, "value": value} for row, point in zip(rows, points, strict=True) for value in point.by_seed]
    x: JsonObject = {"field": size, "title": title, "type": "nominal"}
    if size != "series":
        axis_of_x = {"format": ".3~s", "values": sorted({row[size] for row in rows}), "labelOverlap": "greedy"}
        x |= {"type": "quantitative", "scale": {"type": "log", "padding": 12, "nice": False}, "axis": axis_of_x}
    axis = {"format": ".0%", "title": "accuracy: 95% interval over prompts; small marks are seeds"}
    y = {"type": "quantitative", "scale": {"zero": False}, "axis": axis}
    names = list(dict.fromkeys(row[colour] for row in rows))
    paint = {
        "field": colour,
        "type": "nominal",
        "scale": {"domain": names, "range": [_COLOURS[index % len(_COLOURS)] for index in range(len(names))]},
        "legend": {"title": None, "labelLimit": 260, "orient": "bottom", "columns": 2} if names != [""] else None,
    }
    encoding = {"x": x, "color": paint}
    whole = {"data": {"values": rows}}
    return {
        "width": 420,
        "height": 300,
        "layer": [
            whole | {"mark": {"type": "line", "opacity": 0.7}, "encoding": encoding | {"y": {"field": "value", **y}}},
            whole
            | {
                "mark": _band(size),
                "encoding": encoding | {"y": {"field": "low", **y}, "y2": {"field": "high"}},
            },
            {
                "data": {"values": seeds},
                "mark": {"type": "tick", "orient": "horizontal", "thickness": 1.5, "size": 12, "opacity": 0.8},
                "encoding": encoding | {"y": {"field": "value", **y}},
            },
            whole
            | {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": encoding | {"y": {"field": "value", **y}},
            },
        ],
    }


def _band(size: str) -> JsonObject:
    """Return the mark of intervals: a band along an axis of sizes, bars for names."""
    return (
        {"type": "rule", "strokeWidth": 3, "opacity": 0.45} if size == "series" else {"type": "area", "opacity": 0.14}
    )
