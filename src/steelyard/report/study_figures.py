"""The figures that studies write to files: arms of an ablation, filters of LLM verdicts, a sweep of sizes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from steelyard.core.types import JsonObject
from steelyard.curation.filter_study import FilterPrecision, PrecisionStudy
from steelyard.statistics.intervals import Estimate

_COLOURS = ["#1f6f6b", "#b5812f", "#7a3b69", "#3d5a98", "#a23e2a", "#5d7a1f", "#444444", "#c06c9b"]
_INK, _SEED = _COLOURS[:2]
_FONT = "Noto Sans, Noto Sans CJK SC, sans-serif"
_WITH_SEEDS = "accuracy: 95% interval over prompts; small marks are seeds"
_INTERVAL = {"type": "rule", "strokeWidth": 3, "opacity": 0.4, "color": _INK}
_VALUE = {"type": "point", "filled": True, "size": 80, "color": _INK, "opacity": 1}


def _specification(labels: JsonObject | None = None, **parts: Any) -> JsonObject:
    """Return a Vega-Lite specification that is drawn on white, with further settings of axis labels."""
    axis = {"labelFontSize": 12, "titleFontSize": 12, **(labels or {})}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "config": {"font": _FONT, "axis": axis, "view": {"stroke": None}},
        **parts,
    }


def _shares(title: str) -> JsonObject:
    """Return the scale and axis of accuracies or precisions, in percent."""
    return {"type": "quantitative", "scale": {"zero": False}, "axis": {"format": ".0%", "title": title}}


def _intervals_across(axis: JsonObject) -> list[JsonObject]:
    """Return the interval and the value of each row, along the x axis."""
    return [
        {"mark": _INTERVAL, "encoding": {"x": {"field": "low", **axis}, "x2": {"field": "high"}}},
        {"mark": _VALUE, "encoding": {"x": {"field": "value", **axis}}},
    ]


def ablation_figure(rows: Sequence[tuple[str, Estimate, Sequence[float]]]) -> JsonObject:
    """Return a Vega-Lite specification from the arms in order: name, accuracy over all seeds, accuracy of each seed."""
    names = [name for name, _, _ in rows]
    arms = {"field": "arm", "type": "nominal", "sort": names, "title": None, "axis": {"labelLimit": 260}}
    x = _shares(_WITH_SEEDS)
    interval, value = _intervals_across(x)
    means = {"values": [{"arm": name, **msgspec.to_builtins(accuracy)} for name, accuracy, _ in rows]}
    seeds = {"values": [{"arm": name, "value": value} for name, _, by_seed in rows for value in by_seed]}
    tick = {"type": "tick", "color": _SEED, "thickness": 2, "size": 14}
    return _specification(
        width=520,
        height=34 * len(rows),
        encoding={"y": arms},
        layer=[
            {"data": means, **interval},
            {"data": seeds, "mark": tick, "encoding": {"x": {"field": "value", **x}}},
            {"data": means, **value},
        ],
    )


def filtering_figure(precision: PrecisionStudy | None) -> JsonObject:
    """Return a Vega-Lite specification of precision by coverage; without a precision it is empty."""
    return _specification(vconcat=[] if precision is None else [_precision_panel(precision.filters)])


def _precision_panel(rows: Sequence[FilterPrecision]) -> JsonObject:
    points = [{"filter": row.filter, "coverage": row.coverage, **msgspec.to_builtins(row.precision)} for row in rows]
    y = _shares("precision of what is kept")
    axis = {"format": ".0%", "title": "coverage; 95% intervals over prompts", "values": [0, 0.25, 0.5, 0.75, 1]}
    # The axis goes beyond 100% to leave room for the names of the filters.
    x = {"field": "coverage", "type": "quantitative", "scale": {"domain": [0, 1.35]}, "axis": axis}
    name = {"type": "text", "align": "left", "dx": 8, "fontSize": 11}
    return {
        "width": 560,
        "height": 260,
        "data": {"values": points},
        "encoding": {"x": x},
        "layer": [
            {"mark": _INTERVAL, "encoding": {"y": {"field": "low", **y}, "y2": {"field": "high"}}},
            {"mark": _VALUE, "encoding": {"y": {"field": "value", **y}}},
            {"mark": name, "encoding": {"y": {"field": "value", **y}, "text": {"field": "filter"}}},
        ],
    }


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
        panels.append(_size_panel(points, "num_pairs", "pairs trained on (log scale)", colour="series"))
    if len({point.num_weights for point in points}) > 1:
        largest = max(point.share for point in points)
        biggest = [point for point in points if point.share == largest]
        panels.append(_size_panel(biggest, "num_weights", "weights of the model (log scale)", colour="start"))
    if not panels:
        panels.append(_size_panel(points, "series", "training", colour="series"))
    resolve = {"scale": {"color": "independent", "y": "shared"}}
    return _specification({"labelLimit": 260}, hconcat=panels, resolve=resolve)


def _size_panel(points: Sequence[ScalingPoint], size: str, title: str, *, colour: str) -> JsonObject:
    shown = [point._asdict() | msgspec.structs.asdict(point.accuracy) for point in points]
    rows = [{key: row[key] for key in ("series", "start", size, "value", "low", "high")} for row in shown]
    seeds = [{**row, "value": value} for row, point in zip(rows, points, strict=True) for value in point.by_seed]
    x: JsonObject = {"field": size, "title": title, "type": "nominal"}
    band: JsonObject = {"type": "rule", "strokeWidth": 3, "opacity": 0.45}
    if size != "series":
        ticks = {"format": ".3~s", "values": sorted({row[size] for row in rows}), "labelOverlap": "greedy"}
        x |= {"type": "quantitative", "scale": {"type": "log", "padding": 12, "nice": False}, "axis": ticks}
        band = {"type": "area", "opacity": 0.14}
    names = list(dict.fromkeys(row[colour] for row in rows))
    legend = {"title": None, "labelLimit": 260, "orient": "bottom", "columns": 2} if names != [""] else None
    domain = {"domain": names, "range": [_COLOURS[index % len(_COLOURS)] for index in range(len(names))]}
    encoding = {"x": x, "color": {"field": colour, "type": "nominal", "scale": domain, "legend": legend}}
    y = _shares(_WITH_SEEDS)
    value = {**encoding, "y": {"field": "value", **y}}
    tick = {"type": "tick", "orient": "horizontal", "thickness": 1.5, "size": 12, "opacity": 0.8}
    layers: list[JsonObject] = [
        {"mark": {"type": "line", "opacity": 0.7}, "encoding": value},
        {"mark": band, "encoding": {**encoding, "y": {"field": "low", **y}, "y2": {"field": "high"}}},
        {"data": {"values": seeds}, "mark": tick, "encoding": value},
        {"mark": {"type": "point", "filled": True, "size": 70, "opacity": 1}, "encoding": value},
    ]
    return {"width": 420, "height": 300, "layer": [{"data": {"values": rows}, **layer} for layer in layers]}
