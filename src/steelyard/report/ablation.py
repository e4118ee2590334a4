"""The figure of an ablation: each arm's accuracy with its interval, and the accuracy of every seed."""

from collections.abc import Sequence

from steelyard.core.types import JsonObject
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
