"""Figures of models by language: a heat map of models and columns, and means over languages against English.

Colours are CSS variables, which cannot be mixed: a value is the opacity of one colour.
"""

from collections.abc import Sequence
from typing import NamedTuple

from steelyard.evaluation.tables import Figure, Mark, word
from steelyard.evaluation.vega import MODEL_COLOURS, MUTED, STRONG, Spec, framed, row_axis, share_axis
from steelyard.statistics.intervals import Estimate

_ROW, _SQUARE = 20, 420


class HeatCell(NamedTuple):
    """One cell: its row, its column and its value; a null value leaves the cell empty."""

    row: str
    column: str
    value: float | None


class ModelPoint(NamedTuple):
    """One model: its series, its value in English, and its mean over the other languages."""

    model: str
    series: str
    english: Estimate
    mean: Estimate


def heat_map(about: str, cells: Sequence[HeatCell], *, columns: str, form: str) -> Figure:
    """Draw a value for each row and column, in the order of the cells; the stronger the colour, the higher.

    ``columns`` is the word for a column, ``form`` the number format of the tooltip.
    """
    values: list[Spec] = [
        {"row": cell.row, "column": cell.column, "value": cell.value} for cell in cells if cell.value is not None
    ]
    rows = list(dict.fromkeys(cell.row for cell in cells))
    names = list(dict.fromkeys(cell.column for cell in cells))
    labels = {
        "orient": "top",
        "title": None,
        "labelAngle": -90,
        "labelAlign": "left",
        "labelBaseline": "middle",
        "labelOverlap": "parity",
        "grid": False,
        "domain": False,
        "ticks": False,
    }
    tips = [
        {"field": "row", "title": word("scorer")},
        {"field": "column", "title": word(columns)},
        {"field": "value", "title": word("value"), "format": form},
    ]
    encoding: Spec = {
        "y": {
            "field": "row",
            "type": "nominal",
            "sort": rows,
            "axis": {**row_axis(num_lines=1), "labelLimit": 240, "grid": False},
        },
        "x": {"field": "column", "type": "nominal", "sort": names, "axis": labels},
        "opacity": {
            "field": "value",
            "type": "quantitative",
            "scale": {"range": [0.06, 1], "zero": False},
            "legend": {
                "orient": "bottom",
                "direction": "horizontal",
                "title": None,
                "format": form,
                "tickCount": 4,
                "symbolType": "square",
                "symbolSize": 160,
                "symbolFillColor": STRONG,
                "symbolStrokeColor": MUTED,
                "labelColor": MUTED,
            },
        },
        "color": {"value": STRONG},
        "tooltip": tips,
    }
    layers: list[Spec] = [{"mark": {"type": "rect"}, "encoding": encoding}]
    return Figure(about, {**framed(layers, _ROW * max(2, len(rows))), "data": {"values": values}})


def english_and_mean(about: str, points: Sequence[ModelPoint], *, baseline: str) -> Figure:
    """Draw each model at its value in the ``baseline``, a word, and its mean; on the dashed line both are equal."""
    values: list[Spec] = [
        {
            "model": point.model,
            "series": point.series,
            "english": point.english.value,
            "mean": point.mean.value,
            "low": point.mean.low,
            "high": point.mean.high,
        }
        for point in points
        if point.english.value is not None and point.mean.value is not None
    ]
    names = list(dict.fromkeys(point.series for point in points))
    marks = tuple(Mark(name, MODEL_COLOURS[place % len(MODEL_COLOURS)], "circle") for place, name in enumerate(names))
    least = min([value[key] for value in values for key in ("english", "mean")], default=0.0)
    most = max([value[key] for value in values for key in ("english", "mean")], default=1.0)
    across = {"type": "quantitative", "scale": {"zero": False}}
    x = {"field": "english", **across, "axis": {**share_axis("mean_over_languages"), "title": baseline}}
    y = {"field": "mean", **across, "axis": share_axis("mean_over_languages")}
    tips = [
        {"field": "model", "title": word("scorer")},
        {"field": "series", "title": word("model_kind")},
        {"field": "english", "title": baseline, "format": ".1%"},
        {"field": "mean", "title": word("mean_over_languages"), "format": ".1%"},
    ]
    colour = {
        "field": "series",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": [mark.name for mark in marks], "range": [mark.colour for mark in marks]},
    }
    line: Spec = {
        "data": {"values": [{"english": end, "mean": end} for end in (least, most)]},
        "mark": {"type": "line", "strokeDash": [4, 4], "color": MUTED, "aria": False},
        "encoding": {"x": x, "y": y},
    }
    points_layer: Spec = {
        "mark": {"type": "point", "filled": True, "size": 80, "opacity": 0.9},
        "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
    }
    return Figure(
        about, {**framed([line, points_layer], _SQUARE), "data": {"values": values}}, marks if len(marks) > 1 else ()
    )
