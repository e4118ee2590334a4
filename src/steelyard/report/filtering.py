"""The figure of a study of filters: precision by coverage, and the accuracy of the model of each arm."""

from collections.abc import Sequence

import msgspec

from steelyard.core.types import JsonObject
from steelyard.curation.filter_trials import ShareTrial
from steelyard.curation.filtering import FilterPrecision, PrecisionStudy

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
